"""Totals of a run until each sample, from which means over any time follow."""

from itertools import pairwise

import pytest

from hpc_sched.sim import measures
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.results import result_of
from hpc_sched.sim.series import FEWEST_ENDED, Totals
from tests.unit.simulated import Simulated, cluster

#  vcpus   10 |             3 3          job 3 waits from 2 to 8 and crosses leaves
#             |     1 1 1 1
#             | 2 2 2 2 2 2 2 2
#           0 +--------------------- time
#             2       6       8 9
JOBS = [Job(1, 2, 4, 4), Job(2, 2, 6, 6), Job(3, 2, 1, 10), Job(4, 2, 1, 11)]


def totals_of(simulated: Simulated) -> Totals:
    return simulated.simulation.measures.series.totals


def means(totals: Totals, measure: str) -> list[float]:
    """The means of a measure between the times of the totals."""
    spans = [after - before for before, after in pairwise(totals.time)]
    sums = pairwise(getattr(totals, measure))
    return [(after - before) / span for (before, after), span in zip(sums, spans, strict=True)]


def test_the_last_totals_are_those_of_the_whole_run():
    totals = totals_of(Simulated("exact-plan", JOBS))
    assert totals.time == [0.0, 9.0]
    # The job that was refused has not ended: it never began.
    assert (totals.done, totals.ended) == ([0, 3], [0, 3])
    assert totals.vcpus == pytest.approx([0.0, (4 * 4 + 6 * 6 + 10) / 10])
    assert totals.running == [0.0, 4 + 6 + 1]
    assert totals.waiting == [0.0, 6.0]
    assert totals.crossing == pytest.approx([0.0, 1.0])


def test_they_agree_with_the_summary():
    there = cluster(vcpus=8, memory_mb=1000)
    found = Simulated("first-fit", [Job(1, 0, 1000, 6, 1, 400), Job(2, 500, 10, 1)], on=there)
    summary, totals = result_of("first-fit", 1, found.simulation).summary, totals_of(found)
    assert totals.vcpus[-1] / summary.makespan == pytest.approx(summary.vcpu_use)
    assert totals.memory[-1] / summary.makespan == pytest.approx(summary.memory_use)
    assert totals.crossing[-1] / summary.makespan == pytest.approx(summary.crossing)


def test_means_are_true_whatever_happens_between_samples():
    """Every job runs between two samples, and no sample sees one."""
    jobs = [Job(number, number * 60.0 + 10, 30, 4) for number in range(20)]
    found = Simulated("first-fit", jobs)
    series = found.simulation.measures.series
    assert set(series.vcpus) == {0.0}
    assert means(series.totals, "vcpus")[:-1] == pytest.approx([0.4 * 30 / 60] * 19)
    assert means(series.totals, "running")[:-1] == pytest.approx([30 / 60] * 19)


def test_means_remain_true_where_samples_are_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measures, "MOST_SAMPLES", 16)
    jobs = [Job(number, number * 60.0 + 10, 30, 1) for number in range(1000)]
    found = Simulated("first-fit", jobs)
    series, totals = found.simulation.measures.series, totals_of(found)
    # All samples have totals, and the end of the run comes after the last one.
    assert set(series.time) < set(totals.time)
    assert len(totals.time) < 16 + 2 * FEWEST_ENDED
    assert totals.time[-1] == 999 * 60.0 + 40
    assert {len(numbers) for numbers in totals.lists} == {len(totals.time)}
    assert means(totals, "vcpus")[:-1] == pytest.approx([0.1 * 30 / 60] * (len(totals.time) - 2))
    assert totals.vcpus[-1] == pytest.approx(1000 * 30 * 0.1)


@pytest.mark.parametrize(("until", "end"), [(50, 10.0), (70, 60.0)], ids=["event", "sample"])
def test_a_run_that_is_stopped_counts_what_is_left(until, end):
    jobs = [Job(1, 0, 10, 10), Job(2, 0, 100, 10), Job(3, 0, 100, 10), Job(4, 200, 1, 1)]
    totals = totals_of(Simulated("first-fit", jobs, until=until))
    assert totals.time == [0.0, end]
    assert (totals.done, totals.ended) == ([0, 1], [0, 3])


def test_totals_remain_dense_where_most_jobs_end():
    """A hundred jobs in as many minutes, and one of a year: samples are some 17 hours apart."""
    jobs = [Job(number, number * 60.0, 30, 1) for number in range(1, 100)]
    found = Simulated("first-fit", [Job(100, 0.0, 365 * 86400, 1), *jobs])
    totals = totals_of(found)
    assert len(found.simulation.measures.series.time) < measures.MOST_SAMPLES
    assert sum(time <= 6000 for time in totals.time) > 90
    assert len(totals.time) < measures.MOST_SAMPLES + 2 * FEWEST_ENDED


def test_a_run_without_time_has_one_row():
    totals = totals_of(Simulated("first-fit", [Job(1, 0, 1, 11)]))
    assert totals.time == [0.0]
    assert totals.vcpus == [0.0]
