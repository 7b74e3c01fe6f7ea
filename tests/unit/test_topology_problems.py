"""The collector of a reader's problems and remarks, within bounds."""

import pytest

from hpc_sched import exceptions
from hpc_sched.topology.readers.reader_errors import Problems


def test_problems_name_file_and_line():
    problems = Problems("t.conf")
    problems.note(3, "expected a, found b")
    problems.note(None, "no switch")
    with pytest.raises(exceptions.TopologyError) as caught:
        problems.stop()
    assert caught.value.problems == ("t.conf:3: expected a, found b", "t.conf: no switch")


def test_without_problems_it_goes_on():
    Problems("t.conf").stop()


def test_the_hundredth_problem_stops():
    problems = Problems("t")
    for line in range(99):
        problems.note(line, "x")
    with pytest.raises(exceptions.TopologyError, match="and 99 more problems"):
        problems.note(99, "x")


def test_many_remarks_are_counted_and_long_ones_cut():
    problems = Problems("t")
    for line in range(105):
        problems.remark(line, "x" * 5000)
    assert len(problems.remarks) == 101
    assert problems.remarks[-1] == "t: and 5 more remarks"
    assert len(problems.remarks[0]) < 500
