"""Queue disciplines: their registry, and what each does, event by event."""

import math
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.installed import QUEUES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.fair_share import DecayedUsage, FairShare
from hpc_sched.sim.queues.in_order import Easy, ListScheduling, by_estimate
from hpc_sched.sim.queues.queue_discipline import QueueOptions
from hpc_sched.sim.scenario import Run, Scenario, simulate
from hpc_sched.sim.simulation_input import Failure, drawn_failures
from tests.unit.core_jobs import JOBS, jobs_of, one_leaf, starts_of
from tests.unit.fabrics import two_leaves
from tests.unit.simulated import Simulated

# On 8 cores. Job 1 leaves two of them until 10.
MIXED = [
    Job(1, 0, 10, 6, user=1),
    Job(2, 1, 20, 7, user=1),
    Job(3, 2, 10, 6, user=2),
    Job(4, 3, 30, 2, user=2),
    Job(5, 4, 5, 2, user=3),
    Job(6, 4, 12, 2, user=1),
    Job(7, 5, 99, 1, user=3),
]

STARTS = {
    "fcfs": [0, 10, 30, 30, 40, 40, 40],
    # Job 5 ends before job 2 can start, and job 7 leaves it its 7 cores; then job 4 waits for it.
    "easy": [0, 10, 30, 40, 4, 40, 9],
    # Job 7 may not delay job 4 either.
    "conservative": [0, 10, 30, 30, 4, 40, 40],
    # Job 2 finds 7 cores free only when job 4 has ended.
    "list-scheduling": [0, 33, 10, 3, 20, 20, 20],
    # Job 3 before job 2, and then job 5 before both: job 4 leaves job 3 its 6 cores.
    "shortest-first": [0, 37, 15, 3, 10, 25, 25],
    # What does not fit when it is submitted is refused: only job 4 does.
    "refuse": [0, None, None, 3, None, None, None],
    # User 3 has used nothing at 10, user 2 has 14 core-seconds, user 1 has 60.
    "fair-share": [0, 43, 33, 3, 10, 10, 10],
}


def test_every_installed_discipline_has_a_case_here():
    assert sorted(STARTS) == QUEUES.names()


def test_every_installed_discipline_is_documented():
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "queues.rst"
    assert set(QUEUES.names()) <= set(page.read_text().split())


@pytest.mark.parametrize("name", sorted(STARTS))
def test_a_discipline_starts_the_same_jobs_event_by_event(name: str):
    queue = QUEUES.load(name)
    assert queue.name == name
    assert starts_of(MIXED, 8, queue.discipline(QueueOptions())) == STARTS[name]


def test_an_unknown_discipline_is_refused_with_the_names_of_the_installed_ones():
    with pytest.raises(exceptions.SimulationError) as caught:
        QUEUES.load("conservatve")
    assert str(caught.value) == (
        "there is no queue discipline 'conservatve', did you mean conservative: expected one of "
        "conservative, easy, fair-share, fcfs, list-scheduling, refuse, shortest-first"
    )


LAST_COME = """
from hpc_sched.sim.queues.queue_discipline import Queue


class LastCome:
    def __init__(self, depth):
        self.depth = depth

    def __call__(self, simulation):
        for job in list(reversed(simulation.waiting.values()))[: self.depth]:
            if not simulation.start(job):
                return


QUEUE = Queue(
    "last-come", "last come, first served", lambda options: LastCome(options.depth), ("depth",)
)
NO_QUEUE = 1
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with disciplines of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "site_queues.py").write_text(LAST_COME)
    info = tmp_path / "site_queues-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site_queues\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hpc_sched.queues]\nlast-come = site_queues:QUEUE\nnone = site_queues:NO_QUEUE\n"
        "gone = site_queues:GONE\n"
    )


class _Jobs:
    """A source of jobs."""

    draws = False

    def jobs(self, seed: int) -> list[Job]:
        return [Job(1, 0, 10, 2), Job(2, 1, 10, 2), Job(3, 2, 10, 2)]


def test_a_discipline_of_another_package_runs_by_its_name(other_package: None, tmp_path: Path):
    assert "last-come" in QUEUES.names()
    scenario = Scenario(one_leaf(2), _Jobs(), "last-come", QueueOptions(5), folder=tmp_path)  # type: ignore[arg-type]
    simulate(scenario, Run("first-fit", 1))
    rows = (tmp_path / "first-fit-seed1-jobs.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["1", "3", "2"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "queue discipline 'none': expected a Queue at its entry point, found 1"),
        ("gone", "queue discipline 'gone' cannot be loaded: .*GONE"),
    ],
)
def test_a_discipline_that_is_none_or_cannot_be_loaded_is_named(
    other_package: None, name: str, said: str
):
    with pytest.raises(exceptions.SimulationError, match=said):
        QUEUES.load(name)


def test_a_discipline_states_the_options_that_it_reads():
    options = QueueOptions(depth=7, half_life=3600)
    texts = {name: QUEUES.load(name).text(options) for name in QUEUES.names()}
    assert texts["fcfs"] == "first come, first served"
    assert texts["easy"] == "EASY backfilling (Lifka 1995), 7 jobs deep"
    assert texts["fair-share"].endswith(", 7 jobs deep, half-life 3600 s")


def test_without_depth_backfilling_is_first_come_first_served():
    for name in ("easy", "conservative"):
        discipline = QUEUES.load(name).discipline(QueueOptions(depth=0))
        assert starts_of(MIXED, 8, discipline) == STARTS["fcfs"]


def test_a_large_job_waits_for_ever_while_smaller_ones_keep_a_list_busy():
    jobs = [Job(1, 0, 10, 1), Job(2, 1, 1, 2), *(Job(n, 9 * (n - 2), 10, 1) for n in range(3, 20))]
    starts = starts_of(jobs, 2, ListScheduling())
    assert starts[1] == max(start for start in starts if start is not None)


def test_a_list_tries_again_the_job_that_lost_its_host():
    jobs = [Job(1, 0, 10, 2), Job(2, 1, 10, 2), Job(3, 2, 5, 1)]
    failures = [Failure(4, 0, repair=3)]
    on = one_leaf(3)
    found = Simulated("first-fit", jobs, on=on, discipline=ListScheduling(), failures=failures)
    starts = [line for line in found.log if " start " in line]
    # Host 1 fails: of the two others job 3 has one, and two are free again only at 7.
    assert [line.split(":")[0] for line in starts] == [
        *("0 start 1", "2 start 3", "7 start 1", "17 start 2")
    ]


def test_estimates_decide_what_is_shortest_and_equal_ones_start_as_submitted():
    jobs = [
        Job(1, 0, 10, 1),
        Job(2, 1, 1, 1, walltime=9),
        Job(3, 2, 8, 1),
        Job(4, 3, 8, 1),
    ]
    starts = starts_of(jobs, 1, Easy(order=by_estimate))
    assert starts == [0, 26, 10, 18]


def test_the_use_of_long_ago_weighs_less_than_that_of_today():
    # User 1 has used 1,000 core-seconds until 1,000, user 2 100 until 10,000.
    jobs = [
        Job(1, 0, 1000, 1, user=1),
        Job(2, 9900, 100, 1, user=2),
        Job(3, 9999, 10, 1, user=2),
        Job(4, 9999, 10, 1, user=1),
    ]
    assert starts_of(jobs, 1, FairShare(half_life=1000))[2:] == [10010, 10000]
    assert starts_of(jobs, 1, FairShare(half_life=1e9))[2:] == [10000, 10010]


def test_jobs_of_unknown_users_share_as_one_user_does():
    jobs = [Job(1, 0, 10, 1), Job(2, 1, 5, 1), Job(3, 2, 5, 1), Job(4, 3, 5, 1, user=7)]
    assert starts_of(jobs, 1, FairShare()) == [0, 15, 20, 10]


@given(
    st.lists(st.tuples(st.floats(0, 500), st.integers(0, 64)), min_size=1, max_size=8),
    st.floats(1, 1e6),
)
def test_decayed_usage_is_the_integral_of_its_formula(
    stretches: list[tuple[float, int]], half_life: float
):
    usage = DecayedUsage(half_life)
    time = 0.0
    for passed, vcpus in stretches:
        time += passed
        usage.advance(time, {1: vcpus})
    # The antiderivative of 2 ** (-(t - s) / H) by s is H / ln 2 times the same.
    begin, expected = 0.0, 0.0
    for passed, vcpus in stretches:
        end = begin + passed
        weight = 2 ** (-(time - end) / half_life) - 2 ** (-(time - begin) / half_life)
        expected += vcpus * weight * half_life / math.log(2)
        begin = end
    assert usage.of(1) == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert usage.of(2) == 0


@settings(suppress_health_check=list(HealthCheck))
@given(JOBS, st.sampled_from(QUEUES.names()), st.booleans(), st.sampled_from((0, 2, 100)))
def test_every_job_ends_under_every_discipline(
    drawn: list[tuple[int, ...]], name: str, fails: bool, depth: int
):
    """With hosts that fail, VMs of different sizes, and two islands or a required leaf."""
    jobs = [
        Job(
            job.number,
            job.submit,
            job.runtime,
            job.count,
            1 + job.number % 2,
            job.number % 3,
            walltime=job.walltime,
            user=job.number % 3,
        )
        for job in jobs_of(drawn)
    ]
    there = uniform(two_leaves(), HostType(4, 6), {"b3": HostType(3, 9)})
    failures = list(islice(drawn_failures(range(5), mtbf=60.0, repair=4.0, seed=depth), 30))
    found = [
        Simulated(
            "exact-plan",
            jobs,
            on=there,
            discipline=QUEUES.load(name).discipline(QueueOptions(depth)),
            failures=failures if fails else (),
        )
        for _ in range(2)
    ]
    numbers = Counter(record.number for record in found[0].records)
    assert numbers == Counter(job.number for job in jobs)
    assert {record.outcome for record in found[0].records} <= {"done", "refused"}
    assert found[0].log == found[1].log
