"""A part of a run is measured: worked out by hand, read from texts, and against the whole run."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.exceptions import ConfigError, SimulationError
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.measured import measured_window
from hpc_sched.sim.measured.measured_window import ALL_OF_IT, WHOLE_RUN, Window
from hpc_sched.sim.results import Result, result_of
from hpc_sched.sim.statistics.columns import Scope
from hpc_sched.sim.statistics.policy_comparison import compare
from hpc_sched.sim.statistics.sentences import about_marks
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated
from tests.unit.test_sim_core_hours import busy_days

#  vcpus   10 |     1 1 1 1     3        leaf1 has 4, leaf2 6; job 4 is too large
#             | 2 2 2 2 2 2 2 2 3
#           0 +--------------------- time
#             0       4       8
JOBS = [Job(1, 2, 4, 4), Job(2, 2, 6, 6), Job(3, 2, 1, 10), Job(4, 2, 1, 11)]


def result(since: float, until: float, jobs: list[Job] = JOBS) -> Result:
    found = Simulated("exact-plan", jobs, window=Window(since, until))
    return result_of("exact-plan", 1, found.simulation)


def test_a_bound_cuts_jobs_in_the_middle_and_only_the_part_inside_counts():
    found = result(3, 8.5).summary
    # Job 1 until 6, job 2 until 8, and the first half of job 3, which crosses leaves.
    occupied = 4 * 3 + 6 * 5 + 10 * 0.5
    assert found.makespan == 5.5
    assert found.vcpu_use == pytest.approx(occupied / (10 * 5.5))
    assert found.core_hours == pytest.approx(occupied / 3600)
    # Hosts of two vcpus: two, three, all five.
    assert found.host_hours == pytest.approx((2 * 3 + 3 * 5 + 5 * 0.5) / 3600)
    assert found.crossing == pytest.approx(0.5 / 5.5)
    # All jobs were submitted earlier.
    assert (found.jobs, found.done, found.refused, found.wait_mean) == (0, 0, 0, None)


def test_jobs_submitted_in_the_window_count_in_full_when_they_start_and_end_after_it():
    found = result(0, 3)
    summary = found.summary
    assert (summary.jobs, summary.done, summary.refused) == (4, 3, 1)
    assert (summary.wait_mean, summary.wait_p95) == (2.0, pytest.approx(5.4))
    assert (summary.slowdown_mean, summary.leaf_ratio, summary.hop_byte_ratio) == (1, 1, 1)
    assert sum(found.refusals.values()) == 1
    # From the first start, at 2; job 3 crosses leaves from 8 on.
    assert (summary.makespan, summary.vcpu_use) == (1, 1)
    assert (summary.crossing, summary.most_crossing) == (0, 0)


def test_a_job_submitted_at_a_bound_is_in_the_window_that_begins_there():
    jobs = [Job(1, 0, 5, 1), Job(2, 3, 5, 1), Job(3, 6, 5, 1)]
    assert [result(*bounds, jobs).summary.jobs for bounds in ((0, 3), (3, 6), (6, 9))] == [1, 1, 1]


@pytest.mark.parametrize(
    ("since", "until", "most"),
    [(0, 8, 0), (0, 8.1, 1), (8, 9, 1), (8.5, 20, 1), (9, 20, 0)],
    ids=[
        "it starts at the end of the window",
        "it starts in the window",
        "it runs all the time",
        "it has started before",
        "it ends at the start of the window",
    ],
)
def test_the_most_crossings_are_those_of_jobs_that_run_in_the_window(since, until, most):
    assert result(since, until).summary.most_crossing == most


def test_a_window_after_the_run_measures_nothing():
    found = result(50, math.inf).summary
    assert (found.jobs, found.makespan, found.vcpu_use, found.core_hours) == (0, 0, 0, 0)


def test_a_window_from_the_start_without_an_end_is_the_whole_run():
    found = Simulated("exact-plan", JOBS)
    assert result(0, math.inf) == result_of("exact-plan", 1, found.simulation)
    assert result(0, math.inf).window is None
    assert result(0, 3).window == Window(0, 3)


def test_samples_and_records_are_of_the_whole_run():
    jobs = [Job(number, number * 60.0, 100, 3) for number in range(10)]
    part = Simulated("exact-plan", jobs, window=Window(120, 240))
    whole = Simulated("exact-plan", jobs)
    assert part.records == whole.records
    assert part.simulation.measures.series == whole.simulation.measures.series
    assert part.simulation.measures.series.done[-1] > result(120, 240, jobs).summary.done == 2


@given(
    busy_days(),
    st.sampled_from(["first-fit", "nova-default", "exact-plan"]),
    st.booleans(),
    st.lists(st.integers(1, 300).map(lambda n: n * 100.0), min_size=1, max_size=4, unique=True),
)
def test_adjacent_windows_add_up_to_the_whole_run(day, policy, requeue, bounds):
    jobs, failures = day
    there = uniform(
        Topology.from_tree({"core": {"l1": ["a", "b"], "l2": ["c", "d", "e"]}}),
        HostType(3, 0),
        {"e": HostType(5, 0)},
    )

    def summary(window: Window) -> dict[str, float]:
        found = Simulated(policy, jobs, on=there, failures=failures, requeue=requeue, window=window)
        one = result_of(policy, 1, found.simulation).summary
        return {
            **{name: getattr(one, name) for name in ("core_hours", "host_hours", "makespan")},
            **{name: getattr(one, name) for name in ("host_core_hours", "jobs", "done", "failed")},
            **{name: getattr(one, name) for name in ("restarts", "refused", "left")},
            "vcpus": one.vcpu_use * one.makespan,
            "crossing": one.crossing * one.makespan,
            "most": one.most_crossing,
        }

    edges = [0.0, *sorted(bounds), math.inf]
    whole = summary(WHOLE_RUN)
    parts = [summary(Window(*pair)) for pair in pairwise(edges)]
    assert max(part.pop("most") for part in parts) == whole.pop("most")
    added = {name: math.fsum(part[name] for part in parts) for name in whole}
    assert added == pytest.approx(whole)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("3600,", "from 3600 s to the end. "),
        (",7200.5", "from the start until 7200.5 s. "),
        ("3600,7200", "from 3600 s until 7200 s. "),
        ("20%,90%", "without the first 20 % of the jobs and the last 10 %. "),
        ("20%,", "from the first job after 20 % of the jobs to the end. "),
        (",90%", "from the start until the first job after 90 % of the jobs. "),
        ("3600,90%", "from 3600 s until the first job after 90 % of the jobs. "),
    ],
)
def test_a_part_is_written_as_it_is_read(text: str, sentence: str):
    found = measured_window.read(text, "x")
    assert str(found) == text
    assert found.sentence.startswith(sentence)
    assert measured_window.read(str(found), "x") == found


@pytest.mark.parametrize("text", [",", " , ", "0,", "0%,", ",100%", "0 %, 100 %"])
def test_the_whole_run_may_be_written_in_several_ways(text: str):
    found = measured_window.read(text, "x")
    assert found == ALL_OF_IT
    assert found.window(lambda: iter(()), 0) == WHOLE_RUN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "FROM,UNTIL, each a time in s"),
        ("3600", "FROM,UNTIL, each a time in s"),
        ("1,2,3", "FROM,UNTIL, each a time in s"),
        ("a,", "FROM,UNTIL, each a time in s"),
        ("-1,", "FROM,UNTIL, each a time in s"),
        ("nan,", "FROM,UNTIL, each a time in s"),
        ("%,", "FROM,UNTIL, each a time in s"),
        ("20%,101%", "percentages of at most 100"),
        ("7200,3600", "FROM before UNTIL"),
        ("90%,20%", "FROM before UNTIL"),
        ("5,5", "FROM before UNTIL"),
        ("100%,", "FROM below 100 %"),
    ],
)
def test_what_is_no_part_is_refused_with_what_was_expected(text: str, expected: str):
    with pytest.raises(ConfigError, match=f"^x: expected {expected}.*found '{text}'"):
        measured_window.read(text, "x")


@pytest.mark.parametrize(
    ("text", "jobs", "numbers"),
    [
        ("20%,90%", 1000, range(200, 900)),
        ("14.3%,29%", 1000, range(143, 290)),
        ("50%,", 5, range(2, 5)),
        (",50%", 5, range(2)),
        ("33.4%,66.7%", 3, range(1, 2)),
    ],
)
def test_percentages_leave_out_the_first_and_the_last_jobs(text: str, jobs: int, numbers):
    submits = [10.0 * number for number in range(jobs)]
    window = measured_window.read(text, "x").window(lambda: submits, jobs)
    assert [n for n, submit in enumerate(submits) if window.holds(submit)] == list(numbers)


def test_jobs_are_read_no_further_than_needed_and_not_at_all_for_times():
    read = []

    def submits():
        for number in range(100):
            read.append(number)
            yield 5.0 * number

    assert measured_window.read("7,9", "x").window(submits, 100) == Window(7, 9)
    assert read == []
    assert measured_window.read("10%,20%", "x").window(submits, 100) == Window(50, 100)
    assert read == list(range(21))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("400,50%", "400 s and 250 s"),
        ("20%,20.5%", "100 s and 100 s"),
        ("20%,1", "100 s and 1 s"),
    ],
)
def test_a_part_that_the_jobs_leave_empty_is_an_error(text: str, found: str):
    submits = [5.0 * number for number in range(100)]
    expected = f"--measure {text}: expected FROM before UNTIL, found {found}"
    with pytest.raises(SimulationError, match=expected):
        measured_window.read(text, "x").window(lambda: submits, 100)


def test_what_a_window_cuts_is_no_merit_of_a_policy():
    def both(window: Window) -> list[Result]:
        found = [Simulated(policy, JOBS, window=window) for policy in ("random", "exact-plan")]
        return [
            result_of(policy, 1, one.simulation, is_drawn=False)
            for policy, one in zip(("random", "exact-plan"), found, strict=True)
        ]

    whole, part = compare(both(WHOLE_RUN)), compare(both(Window(0, 8.5)))
    assert whole.unlike == frozenset()
    assert part.unlike == {Scope.OCCUPIED, Scope.SPENT, Scope.SPAN}
    assert part.best["hop_byte_ratio"] == {"exact-plan"}
    assert "A part of the run is measured" in " ".join(about_marks(part, "*"))
    assert "A part of the run" not in " ".join(about_marks(whole, "*"))
