"""Disciplines that keep orders, ends and reservations start the jobs that scans would start."""

from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.conservative import Conservative
from hpc_sched.sim.queues.fair_share import FairShare
from hpc_sched.sim.queues.in_order import Easy, ListScheduling, by_estimate
from hpc_sched.sim.queues.running_jobs import RunningJobs
from hpc_sched.sim.queues.slot_profile import SlotProfile
from hpc_sched.sim.queues.waiting_jobs import KeptOrder, WaitingJobs
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import Failure, drawn_failures
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.scanned_queues import ScannedEasy, ScannedFairShare, ScannedList
from tests.unit.simulated import Simulated

ISLANDS = Topology.from_tree({"core": {"x": ["x1", "x2", "x3"], "y": ["y1"]}, "z": ["z1", "z2"]})

JOBS = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 1, 2, 5)),  # after the one before
        st.sampled_from((0, 1, 2, 5, 9, 14)),  # runtime
        st.sampled_from((1, 1, 1, 2, 3, 5, 8)),  # VMs
        st.sampled_from((0, 1, 2, 4, 14, 20)),  # estimate
        st.sampled_from((1, 1, 2, 3)),  # vcpus
        st.sampled_from((0, 0, 1, 3)),  # memory
        st.sampled_from((None, 1, 2, 3)),  # user
    ),
    min_size=8,
    max_size=40,
)


def jobs_of(drawn: list[tuple[int | None, ...]], *, equal: bool = False) -> list[Job]:
    """Return the jobs of a drawn list, those with equal VMs with one vcpu each."""
    now, jobs = 0.0, []
    for number, (after, runtime, vms, estimate, vcpus, memory, user) in enumerate(drawn, 1):
        now += after or 0
        size = (1, 0) if equal else (vcpus or 1, memory or 0)
        jobs.append(Job(number, now, runtime or 0, vms or 1, *size, walltime=estimate, user=user))
    return jobs


def same_log(
    jobs: list[Job], on: Cluster, disciplines: list[Discipline], failures: list[Failure], **setting
) -> None:
    """Check that all disciplines give the same events and records."""
    found = [
        Simulated(setting.get("policy", "first-fit"), jobs, on=on, discipline=discipline,
                  failures=failures, until=1e5, constraints=setting["constraints"])
        for discipline in disciplines
    ]  # fmt: skip
    for other in found[1:]:
        assert other.log == found[0].log
        assert other.records == found[0].records
        # Also the times at which reservations begin.
        assert other.simulation.events == found[0].simulation.events


def hosts_that_fail(seed: int, hosts: int) -> list[Failure]:
    """Return failures of a few hosts, none for seed 0."""
    drawn = drawn_failures(range(hosts), mtbf=60.0, repair=4.0, seed=seed)
    return list(islice(drawn, 12 if seed else 0))


PAIRS: dict[str, Callable[[int], list[Discipline]]] = {
    "easy": lambda depth: [Easy(depth), ScannedEasy(depth, lambda _job: 0)],
    "shortest-first": lambda depth: [
        Easy(depth, by_estimate),
        ScannedEasy(depth, lambda job: job.estimate),
    ],
    "fair-share": lambda depth: [FairShare(depth, 20.0), ScannedFairShare(depth, 20.0)],
    "list-scheduling": lambda _depth: [ListScheduling(), ScannedList()],
}


@pytest.mark.parametrize("name", sorted(PAIRS))
@settings(suppress_health_check=list(HealthCheck))
@given(
    drawn=JOBS,
    depth=st.sampled_from((0, 2, 100)),
    where=st.sampled_from(("one root", "islands", "leaf")),
    policy=st.sampled_from(("first-fit", "exact-plan", "random")),
    seed=st.integers(0, 3),
)
def test_what_is_kept_starts_what_a_scan_starts(name, drawn, depth, where, policy, seed):
    topology = ISLANDS if where == "islands" else fabrics.two_leaves()
    on = uniform(topology, HostType(4, 6), {topology.hosts[-1]: HostType(3, 9)})
    constraints = NO_CONSTRAINTS
    if where == "leaf":
        constraints = constraints.changed(require=topology.levels[0])
    failures = hosts_that_fail(seed, len(topology.hosts))
    same_log(jobs_of(drawn), on, PAIRS[name](depth), failures, policy=policy,
             constraints=constraints)  # fmt: skip


class ByHosts(Conservative):
    """Conservative backfilling that counts hosts even where slots would do."""

    def __call__(self, simulation: Simulation) -> None:
        self._size, self._is_by_slots = (0, 0), False
        super().__call__(simulation)


@settings(suppress_health_check=list(HealthCheck))
@given(
    drawn=JOBS,
    depth=st.sampled_from((0, 2, 100)),
    equal=st.sampled_from((True, True, True, False)),
    policy=st.sampled_from(("first-fit", "exact-plan", "gupta2013")),
    seed=st.integers(0, 3),
    leaves=st.sampled_from((None, 1)),
)
def test_reservations_by_slots_are_those_by_hosts(drawn, depth, equal, policy, seed, leaves):
    """With a bound on leaves, or hosts that fail, a job may wait where slots are free."""
    topology = fabrics.two_leaves()
    on = uniform(topology, HostType(4, 6), {"b3": HostType(3, 9)})
    jobs = jobs_of(drawn)
    if equal:
        jobs = jobs_of(drawn, equal=True)
    constraints = NO_CONSTRAINTS if leaves is None else NO_CONSTRAINTS.changed(max_leaves=leaves)
    disciplines: list[Discipline] = [Conservative(depth), ByHosts(depth)]
    failures = hosts_that_fail(seed, len(topology.hosts))
    same_log(jobs, on, disciplines, failures, policy=policy, constraints=constraints)


def test_slots_are_not_counted_where_hosts_decide():
    """Two islands, or a VM without a vcpu."""
    found = []

    def watched(simulation: Simulation) -> None:
        found.append([SlotProfile.is_exact(simulation, size) for size in ((1, 0), (0, 1))])

    for topology in (fabrics.two_leaves(), ISLANDS):
        on = uniform(topology, HostType(4, 6))
        Simulated("first-fit", [Job(1, 0, 9, 1)], on=on, discipline=watched, until=1.0)
    assert found == [[True, False], [False, False]]


class ByNumber(KeptOrder):
    """The numbers of waiting jobs by their ranks."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}

    def enter(self, job: Job, rank: int) -> None:
        self.numbers[rank] = job.number

    def leave(self, job: Job, rank: int) -> None:
        assert self.numbers.pop(rank) == job.number


@given(st.lists(st.tuples(st.sampled_from(("last", "first", "leave", "read")), st.integers(0, 9))))
def test_an_order_that_is_kept_has_the_jobs_of_the_queue(steps: list[tuple[str, int]]):
    waiting, expected = WaitingJobs(), list[int]()
    for step, (what, index) in enumerate(steps):
        job = Job(step, 0, 1, 1)
        if what == "last":
            waiting[job.number] = job
            expected.append(step)
        elif what == "first":
            waiting.put_first(job)
            expected.insert(0, step)
        elif what == "leave" and expected:
            del waiting[expected.pop(index % len(expected))]
        else:
            kept = waiting.kept(ByNumber).numbers
            assert [kept[rank] for rank in sorted(kept)] == expected
        assert list(waiting) == expected
        assert [one.number for one in waiting.first(3)] == expected[:3]


def test_the_first_jobs_are_the_same_list_until_they_change():
    waiting = WaitingJobs()
    for number in range(3):
        waiting[number] = Job(number, 0, 1, 1)
    first = waiting.first(2)
    waiting[3] = Job(3, 0, 1, 1)
    assert waiting.first(2) is first
    del waiting[0]
    assert waiting.first(2) is not first


def test_running_jobs_are_kept_by_their_expected_ends_and_users():
    running = RunningJobs()
    jobs = [Job(1, 0, 9, 2, 3, user=7), Job(2, 0, 4, 1, user=None), Job(3, 0, 4, 1, user=7)]
    for job in jobs:
        running.add(job, 10.0)
    assert running.ends == [(14.0, 2), (14.0, 3), (19.0, 1)]
    assert running.vcpus == {7: 7, None: 1}
    running.remove(jobs[1], 10.0)
    assert running.ends == [(14.0, 3), (19.0, 1)]
    assert running.vcpus == {7: 7}
