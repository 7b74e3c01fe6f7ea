"""Jobs on a network in whole simulations: times worked out by hand, failures, kills, invariants."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.traffic.patterns import NONE, PATTERNS
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.jobs.communication import Communication
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import NetworkedJobRecord, Outcome
from hpc_sched.sim.network.links import Network, fat_tree
from hpc_sched.sim.network.neighbours.job_speeds import (
    DETAILS,
    LINKS,
    STEPS,
    JobNetwork,
    JobSpeeds,
    Speed,
)
from hpc_sched.sim.policies.placement_policy import PlacementRequest, Places, Policy, refused
from hpc_sched.sim.simulation_input import Failure
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.network_cases import two_leaves_thin, with_uplinks
from tests.unit.simulated import Simulated, cluster

ALWAYS = Communication("ring", 1.0)
SOME = Communication("ring", 0.3)
NEAR = 1e-3  # the fixed point is found up to 1e-4


def first_hosts_of_leaves(request: PlacementRequest) -> Places:
    """Return the first host with room below each leaf, for a job of two VMs."""
    group = request.group
    found: dict[int, int] = {}
    for host, leaf in enumerate(group.topology.leaf_index.tolist()):
        if group.room[host]:
            found.setdefault(leaf, host)
    return tuple(found.values())


def across(request: PlacementRequest) -> object:
    places = first_hosts_of_leaves(request)
    return places if len(places) == request.group.left else refused(request.problem)


def one_host_if_possible(request: PlacementRequest) -> object:
    group = request.group
    if group.room[0] >= group.left:
        return (0,) * group.left
    return across(request)


def policy(place: object) -> Policy:
    return Policy("of this test", "", place, draws=False, packs=False)  # type: ignore[arg-type]


ACROSS = policy(across)


def pair(number: int, submit: float, runtime: float = 10, **more: object) -> Job:
    """Return a job of two VMs that always communicates, unless it is stated otherwise."""
    stated = {"communication": ALWAYS, **more}
    return Job(number, submit, runtime, 2, **stated)  # type: ignore[arg-type]


def simulated(
    *jobs: Job, by: str | Policy = ACROSS, vcpus: int = 1, detail: str = LINKS, **setting: object
) -> Simulated:
    """Return a run on two leaves with uplinks as thin as a host's link.

    One VM fits on a host, so that jobs meet on the uplinks only.
    """
    network = JobNetwork(two_leaves_thin(), detail)
    return Simulated(by, jobs, on=cluster(vcpus), network=network, **setting)  # type: ignore[arg-type]


def ends(found: Simulated) -> dict[int, float | None]:
    return {record.number: record.end for record in found.records}


def factors(found: Simulated) -> dict[int, float]:
    return {record.number: record.factor for record in found.records}


@pytest.mark.parametrize("detail", DETAILS)
def test_two_jobs_that_always_communicate_halve_each_other(detail: str):
    """Job 1 has done 5 s of 10 when 2 comes; the rest takes twice as long. So does half of 2."""
    found = simulated(pair(1, 0), pair(2, 5), detail=detail)
    assert ends(found) == pytest.approx({1: 15, 2: 20}, rel=NEAR)
    assert factors(found) == pytest.approx({1: 1.5, 2: 1.5}, rel=NEAR)


def test_jobs_that_communicate_a_part_of_their_time_meet_in_a_part_of_it():
    """With t = 1 + t / (t + c), as in test_sim_contention; c = 1 / 0.3 - 1."""
    c = 1 / 0.3 - 1
    slower = ((2 - c + math.sqrt((2 - c) ** 2 + 4 * c)) / 2 + c) / (1 + c)
    found = simulated(pair(1, 0, communication=SOME), pair(2, 5, communication=SOME))
    assert ends(found) == pytest.approx({1: 5 + 5 * slower, 2: 10 + 5 * slower}, rel=NEAR)


def test_a_job_that_always_communicates_leaves_no_link_idle():
    """The messages of both take 10 + 3 s of the link."""
    found = simulated(pair(1, 0, communication=SOME), pair(2, 0))
    assert ends(found) == pytest.approx({1: 13, 2: 13}, rel=NEAR)


def test_a_job_that_starts_when_another_ends_does_not_meet_it():
    found = simulated(pair(1, 0), pair(2, 10))
    assert ends(found) == {1: 10, 2: 20}
    assert factors(found) == {1: 1, 2: 1}


def test_a_job_that_waits_for_hosts_starts_when_its_neighbour_ends():
    """Leaf 1 has two hosts: job 3 gets one of them when 1 and 2, which began together, end."""
    found = simulated(pair(1, 0), pair(2, 0), pair(3, 0))
    assert ends(found) == pytest.approx({1: 20, 2: 20, 3: 30}, rel=NEAR)


@pytest.mark.parametrize("detail", DETAILS)
def test_a_job_without_runtime_ends_when_it_starts(detail: str):
    found = simulated(pair(1, 0), pair(2, 5, 0), detail=detail)
    assert ends(found) == pytest.approx({1: 10, 2: 5})
    assert factors(found) == pytest.approx({1: 1, 2: 1})
    assert found.log.index("5 end 2") == len(found.log) - 2


@pytest.mark.parametrize("runtime", [0.0, 7.3, 86400.0])
@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_job_alone_on_its_best_hosts_runs_as_long_as_stated(
    pattern: str, detail: str, share: float, runtime: float
):
    """A walltime of its runtime does not kill it: not even the last digit is off."""
    network = fat_tree(
        fabrics.two_pods(), host_rate=1.25e9, oversubscription=(4.0, 2.0), host_latency=1e-6
    )
    job = Job(1, 0, runtime, 9, walltime=runtime, communication=Communication(pattern, share))
    found = Simulated(
        *("exact-plan", [job]),
        on=cluster(2, topology=network.topology),
        network=JobNetwork(network, detail),
        kills_overruns=True,
    )
    (record,) = found.records
    assert (record.outcome, record.end, record.factor) == (Outcome.DONE, runtime, 1)


@pytest.mark.parametrize(
    ("count", "communication"),
    [
        pytest.param(2, ALWAYS, id="all its VMs are on one host"),
        pytest.param(1, ALWAYS, id="it has one VM"),
        pytest.param(4, Communication(NONE, 1.0), id="its pattern is none"),
        pytest.param(4, Communication("ring", 0.0), id="its share is 0"),
        pytest.param(4, Communication("ring", 1e-310), id="its share has no reciprocal"),
        pytest.param(3, Communication("bt", 1.0), id="it has too few ranks for its pattern"),
    ],
)
def test_neighbours_do_not_change_a_job_that_sends_nothing(
    count: int, communication: Communication
):
    job = Job(1, 0, 10, count, communication=communication)
    others = (Job(number, 1, 50, 3, communication=ALWAYS) for number in (2, 3))
    found = simulated(job, *others, by="first-fit", vcpus=2)
    assert (ends(found)[1], factors(found)[1]) == (10, 1)


def test_a_job_that_its_policy_spreads_though_one_host_holds_it_is_as_fast_if_it_is_alone():
    """A rank sends at no more than a host's link, so that the uplink, as fast, costs nothing."""
    found = simulated(pair(1, 0), vcpus=2)
    assert "a1 b1" in found.starts[0]
    assert ends(found) == pytest.approx({1: 10})


def test_a_job_that_no_island_holds_has_its_messages_on_the_links_between_islands():
    """Alone it runs as long as stated, since it has no better hosts; a neighbour on them counts.

    ::

        west        east
        a1 a2       e1 e2
    """
    topology = Topology.from_tree({"west": ["a1", "a2"], "east": ["e1", "e2"]})
    network = JobNetwork(with_uplinks(topology, west=1.0, east=1.0))
    large, small = Job(1, 0, 10, 6, communication=ALWAYS), pair(2, 0)

    def run(*jobs: Job) -> Simulated:
        return Simulated("nova-default", jobs, on=cluster(2, topology=topology), network=network)

    alone = run(large)
    assert alone.records[0].least_hop_bytes is None
    assert ends(alone) == {1: 10}
    both = factors(run(large, small))
    assert both[1] > 1
    assert both[2] > 1.2


def test_a_failure_gives_the_link_to_the_neighbour_and_the_job_starts_again():
    """At 4 both have done 2 s. Without a1 leaf 1 has one host: job 1 waits for the end of 2."""
    found = simulated(pair(1, 0), pair(2, 0), failures=[Failure(4, 0)])
    assert ends(found) == pytest.approx({1: 22, 2: 12}, rel=NEAR)
    assert factors(found) == pytest.approx({1: 1, 2: 1.2}, rel=NEAR)
    assert [record.restarts for record in found.records] == [0, 1]


def test_what_all_starts_of_a_job_lose_is_a_part_of_the_time_of_all_starts():
    """As above. In 4 s on 2 hosts each loses half; then 1 has 10 s for itself, and 2 has 8 s."""
    found = simulated(pair(1, 0), pair(2, 0), failures=[Failure(4, 0)])
    second, first = found.records
    assert isinstance(first, NetworkedJobRecord)
    assert isinstance(second, NetworkedJobRecord)
    assert (first.lost, first.host_seconds) == pytest.approx((4, 28), rel=NEAR)
    assert (second.lost, second.host_seconds) == pytest.approx((4, 24), rel=NEAR)
    assert found.simulation.measures.jobs.lost == pytest.approx(8 / 52, rel=NEAR)


def test_a_job_lost_by_a_failure_has_the_factor_of_what_it_had_done():
    found = simulated(pair(1, 0), pair(2, 0), failures=[Failure(4, 0)], requeue=False)
    assert ends(found) == pytest.approx({1: 4, 2: 12}, rel=NEAR)
    assert factors(found) == pytest.approx({1: 2, 2: 1.2}, rel=NEAR)
    assert found.records[0].outcome is Outcome.FAILED


def test_both_jobs_of_a_failed_host_leave_the_network():
    jobs = (pair(1, 0), pair(2, 0), pair(3, 0, 20))
    failures = [Failure(2, 0, repair=1), Failure(3.5, 1, repair=1)]
    found = simulated(*jobs, failures=failures)
    assert sorted(ends(found)) == [1, 2, 3]
    assert found.simulation._run_times._runs == {}
    assert all(record.outcome is Outcome.DONE for record in found.records)


def test_the_end_of_a_start_that_a_failure_has_undone_does_not_touch_the_next_start():
    """Job 1 was on one host, off the network; its end at 10 was left among the events.

    It starts again at 3 over both leaves, has done 8 s at 11, and takes 4 s for the rest.
    """
    by, failures = policy(one_host_if_possible), [Failure(3, 0)]
    found = simulated(pair(1, 0), pair(2, 11), by=by, vcpus=2, failures=failures)
    assert ends(found)[1] == pytest.approx(15, rel=NEAR)


def test_a_job_that_a_neighbour_makes_longer_than_its_walltime_is_killed():
    """At 12 it has done 5 + 7 / 2 s, and 2 has 6.5 s left."""
    found = simulated(pair(1, 0, walltime=12), pair(2, 5), kills_overruns=True)
    assert found.records[0].outcome is Outcome.KILLED
    assert ends(found) == pytest.approx({1: 12, 2: 18.5}, rel=NEAR)
    assert factors(found)[1] == pytest.approx(12 / 8.5, rel=NEAR)


def test_a_job_whose_neighbour_leaves_in_time_is_not_killed():
    """Job 2 runs from 5 to 7. Until then 1 would have been killed at 12; it ends at 11."""
    found = simulated(pair(1, 0, walltime=12), pair(2, 5, 1), kills_overruns=True)
    assert ends(found) == pytest.approx({1: 11, 2: 7}, rel=NEAR)
    assert all(record.outcome is Outcome.DONE for record in found.records)


def test_a_run_that_is_stopped_leaves_its_jobs_running_with_their_factors_until_then():
    """At 9 the first has done 5 + 4 / 2 s, the second 4 / 2 s."""
    found = simulated(pair(1, 0), pair(2, 5), pair(3, 9), until=9)
    outcomes = [record.outcome for record in found.records]
    assert outcomes == [Outcome.RUNNING, Outcome.RUNNING, Outcome.WAITING]
    assert factors(found) == pytest.approx({1: 9 / 7, 2: 2, 3: 1}, rel=NEAR)


def test_a_slow_processor_makes_the_computation_longer_not_the_messages():
    def twice(_state: ClusterState, _placed: PlacedJob) -> float:
        return 2.0

    found = simulated(pair(1, 0, communication=SOME), slowdown=twice)
    assert ends(found) == pytest.approx({1: 10 * (0.3 + 0.7 * 2)})
    found = simulated(pair(1, 0, communication=SOME), by="first-fit", vcpus=2, slowdown=twice)
    assert ends(found) == pytest.approx({1: 10 * (0.3 + 0.7 * 2)})


def test_without_a_network_what_jobs_communicate_changes_nothing():
    jobs = [pair(number, number, 5 + number) for number in range(1, 6)]
    silent = [replace(job, communication=Communication(NONE, 0.0)) for job in jobs]
    plain, drawn = (Simulated(ACROSS, each, on=cluster(1)) for each in (silent, jobs))
    assert (plain.log, plain.records) == (drawn.log, drawn.records)


def speeds(detail: str, *jobs: tuple[str, float, Sequence[int]]) -> JobSpeeds:
    found = JobSpeeds(JobNetwork(two_leaves_thin(), detail))
    for number, (pattern, share, places) in enumerate(jobs):
        found.start(number, pattern, share, places=places, best=places)
    return found


@pytest.mark.parametrize("detail", DETAILS)
def test_a_job_whose_last_neighbour_has_left_is_as_fast_as_alone(detail: str):
    """Also if the neighbour took so little that steps and replay were not computed again."""
    found = speeds(detail, ("ring", 0.5, (0, 2)), ("halo2", 0.01, (1, 3)))
    before = dict(found.settle())[0]
    assert before.factor > 1
    found.end(1)
    assert found.settle() == [(0, Speed(1.0, 0.0, 0.0))]


def test_what_jobs_that_run_alone_need_is_kept_of_the_latest_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hpc_sched.sim.network.neighbours.job_speeds._MOST_KEPT", 3)
    found = speeds(STEPS)
    for number in range(4):
        for other in range(number + 1, 5):
            found.start(0, "ring", 0.5, places=(number, other), best=(number, other))
            found.end(0)
    assert len(found._alone) == 3
    assert found.settle() == []


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Network, list[Job], list[Failure]]:
    """Return a network, up to eight jobs, and up to two failures that are repaired."""
    topology = draw(st.sampled_from([fabrics.two_leaves, fabrics.two_pods, fabrics.lopsided]))()
    network = fat_tree(
        topology, host_rate=1.25e9, oversubscription=draw(st.sampled_from([1, 4, 8]))
    )
    now, jobs = 0.0, []
    for number in range(1, draw(st.integers(2, 8)) + 1):
        now += draw(st.sampled_from([0, 0, 1, 2.5]))
        pattern = draw(st.sampled_from(tuple(PATTERNS)))
        share = draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
        runtime = draw(st.sampled_from([0, 1, 4, 9.5]))
        count = draw(st.integers(1, 5))
        found = Communication(pattern, share)
        jobs.append(Job(number, now, runtime, count, communication=found))
    host = st.integers(0, len(topology.hosts) - 1)
    times = sorted(draw(st.lists(st.sampled_from([0, 1, 3, 6.25]), max_size=2)))
    return network, jobs, [Failure(time, draw(host), repair=1.5) for time in times]


def run_of(drawn: tuple[Network, list[Job], list[Failure]], detail: str = LINKS) -> Simulated:
    network, jobs, failures = drawn
    return Simulated(
        *("random", jobs),
        on=cluster(2, topology=network.topology),
        network=JobNetwork(network, detail),
        failures=failures,
    )


@given(workloads())
def test_every_job_ends_and_its_factor_is_its_time_over_its_runtime(drawn):
    found = run_of(drawn)
    assert len(found.records) == len(drawn[1])
    for record in found.records:
        if record.outcome is Outcome.REFUSED:
            continue
        assert record.outcome is Outcome.DONE
        assert record.start is not None
        assert record.end is not None
        if record.runtime:
            expected = (record.end - record.start) / record.runtime
            assert record.factor == pytest.approx(expected, rel=1e-9)
    assert found.simulation._run_times._runs == {}
    assert len(found.simulation.engine._cancelled) <= len(found.simulation.engine._heap)


@given(workloads(), st.sampled_from([LINKS, STEPS]))
def test_the_same_input_gives_the_same_log(drawn, detail: str):
    first, second = run_of(drawn, detail), run_of(drawn, detail)
    assert (first.log, first.records) == (second.log, second.records)


@given(workloads())
def test_what_running_jobs_lose_is_what_running_jobs_cause(drawn):
    """In host-seconds a second; and no job gains by others."""
    network, jobs, _ = drawn
    hosts = len(network.topology.hosts)
    found = JobSpeeds(JobNetwork(network))
    used: dict[int, int] = {}
    latest: dict[int, Speed] = {}

    def check() -> None:
        latest.update(found.settle())
        lost = [latest[number].lost * used[number] for number in used]
        assert min(lost, default=0) >= 0
        caused = sum(latest[number].caused for number in used)
        assert caused == pytest.approx(sum(lost), rel=1e-6, abs=1e-9)

    for job in jobs:
        if not job.communication.is_of(job.count):
            continue
        places = [(job.number * 7 + 3 * vm) % hosts for vm in range(job.count)]
        if len(set(places)) < 2:
            continue
        used[job.number] = len(set(places))
        found.start(
            *(job.number, job.communication.pattern, job.communication.share),
            places=places,
            best=places,
        )
        check()
        assert latest[job.number].factor >= 1 - 1e-9
    for number in sorted(used, key=lambda each: (each % 3, each)):
        del used[number]
        found.end(number)
        check()


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 30))))
def test_cancelled_events_never_happen_and_all_others_do(drawn):
    engine, happened, expected, entries = Engine(), [], {}, []
    for number, (time, cancels, which) in enumerate(drawn):
        entry = engine.enter(time, EventKind.END, lambda number=number: happened.append(number))
        expected[entry] = (time, number)
        entries.append(entry)
        if cancels and (other := entries[which % len(entries)]) in expected:
            engine.cancel(other)
            del expected[other]
    while engine.peek() < math.inf:
        engine.step()
    assert happened == [number for _, number in sorted(expected.values())]
    assert (engine._heap, engine._cancelled) == ([], set())


def test_an_event_that_is_entered_anew_again_and_again_is_kept_once():
    """A job of a month whose neighbours change every second."""
    engine = Engine()
    entry = engine.enter(1e9, EventKind.END, lambda: None)
    for time in range(10_000):
        engine.cancel(entry)
        entry = engine.enter(1e9 - time, EventKind.END, lambda: None)
    assert len(engine._heap) < 200
    assert len(engine._cancelled) < 200
