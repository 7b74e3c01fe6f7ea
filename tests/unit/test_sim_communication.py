"""What jobs communicate: files, mixes and shares, and that they change no other drawn value."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.traffic.patterns import PATTERNS, sends
from hpc_sched.sim.jobs.communication import (
    MAX_BYTES,
    NO_COMMUNICATION,
    Communication,
    Communications,
    read_file,
    read_patterns,
    read_shares,
)
from hpc_sched.sim.jobs.distributions import read, read_applications, read_mix
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs, Workload
from hpc_sched.sim.network.messages.iteration import iteration
from tests import cpu_guard

SOME = Communications(read_patterns("ring=0.5,bt=0.3,none=0.2", "mix"), read("uniform:0:1"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.csv"


def test_a_file_by_application(path: Path):
    path.write_text(
        "# measured in May\n"
        "application, pattern, communication\n"
        "\n"
        "WRF, halo2, 0.25   # the new grid\n"
        '"LU.C", bt, 1\n'
        "idle, none, 0\n"
    )
    found = read_file(path)
    assert (found.stated_by, found.draws) == ("application", False)
    assert found.of(1, 7, 12, "WRF") == Communication("halo2", 0.25)
    assert found.of(1, 8, 12, "LU.C") == Communication("bt", 1.0)
    assert found.of(1, 8, 12, "unknown") == NO_COMMUNICATION
    assert found.of(1, 8, 12, None) == NO_COMMUNICATION


def test_a_file_by_job_names_the_numbers_of_the_trace_and_has_columns_in_any_order(path: Path):
    path.write_text("communication,job,pattern\r\n.5,12,ring\r\n")
    found = read_file(path)
    assert found.of(1, 7, 12, "WRF") == Communication("ring", 0.5)
    assert found.of(1, 12, 7, "12") == NO_COMMUNICATION
    assert found.of(1, 12, None, None) == NO_COMMUNICATION


HEADER = "job,pattern,communication\n"


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        pytest.param("", 1, "expected a header of pattern, communication, and job or", id="empty"),
        pytest.param("# a\n\n# b\n", 1, "expected a header", id="comments alone"),
        pytest.param("1,ring,0.5\n", 1, "expected a header", id="no header"),
        pytest.param("job,pattern\n", 1, "expected a header", id="a column is missing"),
        pytest.param(
            *("\njob,application,pattern,communication\n", 2, "found 'job, application"),
            id="both names",
        ),
        pytest.param(
            *("job,pattern,communication,more\n", 1, "found 'job, pattern, communication, more'"),
            id="an unknown column",
        ),
        pytest.param(
            *("job,pattern,pattern,communication\n", 1, "expected a header"), id="a column twice"
        ),
        pytest.param(HEADER + "1,ring\n", 2, "expected 3 columns, found 2", id="too few cells"),
        pytest.param(HEADER + "1,ring,0.5,\n", 2, "expected 3 columns, found 4", id="too many"),
        pytest.param(
            *(
                HEADER + "1,ring,0.5\n#\n1,bt,0.5\n",
                4,
                "job: expected a job's number that no other row",
            ),
            id="a job twice",
        ),
        pytest.param(
            *(HEADER + "1,ring,0.5\n01,bt,0.5\n", 3, "job: .* no other row has, found '01'"),
            id="a job twice, with and without a zero",
        ),
        pytest.param(HEADER + "LU,ring,0.5\n", 2, "job: .* number .*found 'LU'", id="no number"),
        pytest.param(HEADER + ",ring,0.5\n", 2, "job: expected a job's .*found ''", id="no job"),
        pytest.param(
            *(HEADER + "1,star,0.5\n", 2, "pattern: expected one of ring, .*none, found 'star'"),
            id="an unknown pattern",
        ),
        *(
            pytest.param(
                *(f"{HEADER}1,ring,{share}\n", 2, "communication: expected a number from 0 to 1"),
                id=f"the share {share!r}",
            )
            for share in ("1.01", "-0.1", "nan", "inf", "30 %", "", "1e999")
        ),
        pytest.param(f'{HEADER}1,"ring,0.5\n', 2, "not CSV", id="an open quote"),
    ],
)
def test_an_error_names_file_line_and_what_was_expected(
    path: Path, text: str, line: int, error: str
):
    path.write_text(text)
    with pytest.raises(exceptions.SimulationError) as caught:
        read_file(path)
    assert re.match(rf"{re.escape(str(path))}:{line}: .*{error}", str(caught.value))


def test_an_error_does_not_repeat_a_cell_of_any_length(path: Path):
    path.write_text(f"{HEADER}1,{'x' * 100_000},0.5\n")
    with pytest.raises(exceptions.SimulationError, match="pattern: expected one of") as caught:
        read_file(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"\xff\xfe\x00", "UTF-8", id="not a text"),
        pytest.param(bytes(MAX_BYTES + 1), "50", id="huge"),
    ],
)
def test_a_file_that_is_no_table_is_named(path: Path, content: bytes, error: str):
    path.write_bytes(content)
    with pytest.raises(exceptions.SimulationError, match=error) as caught:
        read_file(path)
    assert str(caught.value).startswith(str(path))


def test_a_missing_file_is_named(path: Path):
    with pytest.raises(exceptions.SimulationError, match=r"jobs\.csv: cannot be read: No such"):
        read_file(path)


def test_the_time_for_a_file_grows_with_its_rows(path: Path):
    """Forty thousand rows take a tenth of a second; compared with each other, they take minutes."""
    path.write_text(HEADER + "".join(f"{number},ring,0.5\n" for number in range(40_000)))
    with cpu_guard.ends(3.0):
        assert len(read_file(path).stated) == 40_000


def test_a_mix_of_patterns():
    assert read_patterns("ring=3,none=1", "--network").shares == (("ring", 0.75), ("none", 0.25))
    every = read_patterns(",".join(f"{name}=1" for name in PATTERNS), "--network")
    assert [name for name, _ in every.shares] == list(PATTERNS)


@pytest.mark.parametrize("text", ["", "star=1", "ring", "ring=-1", "ring=nan", "ring=0", "a=1,a=1"])
def test_a_mix_that_is_none_is_refused(text: str):
    with pytest.raises(exceptions.ConfigError, match="--network: expected"):
        read_patterns(text, "--network")


@pytest.mark.parametrize("text", ["constant:0", "constant:1", "uniform:0:1", "lognormal:0.3:2"])
def test_shares_of_the_runtime(text: str):
    assert read_shares(text, "--communication") == read(text)


@pytest.mark.parametrize("text", ["constant:1.5", "constant:30", "uniform:-1:1", "0.3", ""])
def test_what_is_no_share_of_the_runtime_is_refused(text: str):
    with pytest.raises(exceptions.ConfigError, match="--communication: expected"):
        read_shares(text, "--communication")


@given(st.integers(0, 99), st.integers(1, 999))
def test_a_drawn_share_is_from_0_to_1_and_depends_on_seed_and_job_only(seed: int, number: int):
    wide = replace(SOME, shares=read("lognormal:0.8:2"))
    found = wide.of(seed, number, 3, "a")
    assert found == wide.of(seed, number, None, None)
    assert 0 <= found.share <= 1
    assert found.pattern in ("ring", "bt", "none")


def test_drawn_patterns_come_as_often_as_their_shares():
    found = [SOME.of(1, number, None, None).pattern for number in range(1000)]
    assert found.count("ring") == pytest.approx(500, abs=60)
    assert found.count("none") == pytest.approx(200, abs=50)


def without_communication(job: Job) -> Job:
    return replace(job, communication=NO_COMMUNICATION)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_drawn_job_has_the_same_other_values_with_and_without_a_network(seed: int):
    plain = Synthetic(
        count=50,
        classes=read_mix("sync=1,none=1", "--classes"),
        scores=read("uniform:0:9"),
        applications=read_applications("a=1,b=1", "--applications"),
    )
    found = list(replace(plain, communications=SOME).jobs(seed))
    assert list(map(without_communication, found)) == list(plain.jobs(seed))
    assert len({job.communication for job in found}) > 30


def test_a_job_of_a_trace_has_the_same_other_values_with_and_without_a_network(tmp_path: Path):
    """Also where nothing but its communication is drawn: all of one application are drawn once."""
    trace = tmp_path / "jobs.swf"
    row = "{} 0 -1 10 4 -1 -1 4 -1 -1 1 1 1 {} 1 1 -1 -1\n"
    trace.write_text("".join(row.format(number, number % 3) for number in range(1, 30)))
    plain = list(TraceJobs(trace).jobs(1))
    jobs = TraceJobs(trace, Workload(communications=SOME))
    assert jobs.draws
    found = list(jobs.jobs(1))
    assert list(map(without_communication, found)) == plain
    assert [job.communication for job in found] == [
        SOME.of(1, number, None, None) for number in range(1, 30)
    ]
    stated = Communications(stated={"2": Communication("ring", 0.5)}, stated_by="application")
    named = TraceJobs(trace, Workload(communications=stated)).jobs(1)
    assert [job.number for job in named if job.communication.share] == list(range(2, 30, 3))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_communicates_where_its_iteration_has_messages(pattern: str):
    for ranks in range(1, 20):
        has_messages = any(len(each.sender) for each in iteration(pattern, ranks, 1.0))
        assert sends(pattern, ranks) == has_messages
        assert Communication(pattern, 0.5).is_of(ranks) == has_messages
        assert not Communication(pattern, 0.0).is_of(ranks)
