"""Queues, failures and conservation, event by event."""

import math
import random
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.engine import Engine, EventKind
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import Easy, Fcfs
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import Failure, SimulationInput, drawn_failures
from hpc_sched.topology import Topology
from tests.unit.fabrics import two_leaves
from tests.unit.simulated import Simulated, cluster


def test_events_of_one_time_come_by_kind_then_by_entry():
    engine, told = Engine(), []
    for kind, name in [(EventKind.SUBMIT, "b"), (EventKind.END, "a"), (EventKind.SUBMIT, "c")]:
        engine.enter(1.0, kind, lambda name=name: told.append(name))
    while engine.peek() < math.inf:
        engine.step()
    assert told == ["a", "b", "c"]
    assert engine.peek() == float("inf")


@pytest.mark.parametrize("time", [-1.0, float("nan"), float("inf")])
def test_no_event_is_entered_at_a_time_that_is_past_or_none(time: float):
    with pytest.raises(ValueError, match="was entered at"):
        Engine().enter(time, EventKind.END, lambda: None)


def test_first_come_is_first_served_even_if_a_later_job_would_fit():
    found = Simulated("first-fit", [Job(1, 0, 10, 8), Job(2, 1, 5, 4), Job(3, 2, 1, 1)])
    assert found.log == [
        "0 submit 1: 8 VMs",
        "0 start 1: a1*2 a2*2 b1*2 b2*2",
        "1 submit 2: 4 VMs",
        "2 submit 3: 1 VM",
        "10 end 1",
        "10 start 2: a1*2 a2*2",
        "10 start 3: b1",
        "11 end 3",
        "15 end 2",
    ]


def test_backfilling_starts_what_ends_before_the_first_job_can_start():
    jobs = [Job(1, 0, 10, 8), Job(2, 1, 5, 10), Job(3, 2, 9, 1), Job(4, 2, 8, 1), Job(5, 3, 8, 1)]
    found = Simulated("first-fit", jobs, discipline=Easy())
    # Job 2 has all slots from 10 on: job 3 would end at 11, job 5 too; job 4 just in time.
    assert found.starts == [
        "0 start 1: a1*2 a2*2 b1*2 b2*2",
        "2 start 4: b3",
        "10 start 2: a1*2 a2*2 b1*2 b2*2 b3*2",
        "15 start 3: a1",
        "15 start 5: a1",
    ]


def test_backfilling_starts_what_leaves_the_first_job_its_room():
    jobs = [Job(1, 0, 10, 8), Job(2, 1, 5, 9), Job(3, 2, 99, 1), Job(4, 3, 99, 1)]
    found = Simulated("first-fit", jobs, discipline=Easy())
    # One slot is to spare at 10; the second one is not.
    assert found.starts == [
        "0 start 1: a1*2 a2*2 b1*2 b2*2",
        "2 start 3: b3",
        "10 start 2: a1*2 a2*2 b1*2 b2*2 b3",
        "15 start 4: a1",
    ]


def test_backfilling_keeps_one_island_for_a_job_that_no_other_holds():
    """::

    leaf1     leaf2
    a1 a2     b1 b2 b3
    """
    islands = Topology.from_tree({"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2", "b3"]})
    jobs = [
        Job(1, 0, 10, 2),
        Job(2, 0, 10, 4),
        Job(3, 1, 5, 6),
        *(Job(n, n, 99, 2) for n in (4, 5)),
    ]
    found = Simulated("exact-plan", jobs, on=cluster(topology=islands), discipline=Easy())
    # Job 3 fits leaf2 alone, from 10 on. Job 4 goes to leaf1; job 5 would take what 3 waits for.
    assert found.starts == [
        "0 start 1: a1*2",
        "0 start 2: b1*2 b2*2",
        "4 start 4: a2*2",
        "10 start 3: b1*2 b2*2 b3*2",
        "10 start 5: a1*2",
    ]


def test_backfilling_does_not_count_on_a_host_that_has_failed_meanwhile():
    # Job 3 waits for a1, a2 and b2 or b3, so that one of these is spare until b3 fails.
    jobs = [Job(1, 0, 10, 2), Job(2, 0, 90, 1), Job(3, 1, 10, 3), Job(4, 3, 50, 1)]
    found = Simulated("first-fit", jobs, on=cluster(1), discipline=Easy(), failures=[Failure(2, 4)])
    assert "10 start 3: a1 a2 b2" in found.starts


def test_backfilling_looks_again_at_a_job_once_another_has_ended():
    jobs = [Job(1, 0, 20, 4), Job(2, 0, 10, 4), Job(3, 1, 5, 10), Job(4, 1, 10, 5)]
    found = Simulated("first-fit", jobs, discipline=Easy())
    # Job 4 has no room at 1. It has from 10 on, and ends when job 3 can start.
    assert found.starts == [
        "0 start 1: a1*2 a2*2",
        "0 start 2: b1*2 b2*2",
        "10 start 4: b1*2 b2*2 b3",
        "20 start 3: a1*2 a2*2 b1*2 b2*2 b3*2",
    ]


def test_backfilling_goes_by_walltimes_and_not_by_runtimes():
    long = Job(3, 2, 1, 1, walltime=100)
    jobs = [Job(1, 0, 10, 8, walltime=20), Job(2, 1, 5, 10), long, Job(4, 3, 12, 1)]
    found = Simulated("first-fit", jobs, discipline=Easy())
    # Job 1 says 20: job 4 ends at 15 and starts, and delays job 2 when job 1 ends early.
    assert found.starts[1:3] == ["3 start 4: b3", "15 start 2: a1*2 a2*2 b1*2 b2*2 b3*2"]


def test_backfilling_counts_all_jobs_that_end_at_the_same_time():
    # At 100 both running jobs end by their walltimes: job 3 takes 6 of 8 cores, and 2 are spare.
    one_leaf = Topology.from_tree({"leaf": [f"n{i}" for i in range(8)]})
    jobs = [
        Job(1, 0, 95, 4, walltime=100),
        Job(2, 0, 95, 2, walltime=100),
        Job(3, 10, 50, 6),
        Job(4, 20, 500, 2),
    ]
    found = Simulated("first-fit", jobs, on=cluster(1, topology=one_leaf), discipline=Easy())
    assert "20 start 4: n6 n7" in found.starts
    assert "95 start 3: n0 n1 n2 n3 n4 n5" in found.starts


def test_backfilling_looks_no_deeper_than_it_is_told():
    jobs = [Job(1, 0, 10, 8), Job(2, 1, 5, 10), Job(3, 2, 99, 1), Job(4, 2, 1, 1)]
    assert "2 start 4: b3" in Simulated("first-fit", jobs, discipline=Easy(2)).log
    assert "2 start 4: b3" not in Simulated("first-fit", jobs, discipline=Easy(1)).log


def test_a_job_that_loses_a_host_starts_again_before_all_that_wait():
    jobs = [Job(1, 0, 10, 4), Job(2, 1, 3, 8)]
    failures = [Failure(4.0, 0, repair=2.0)]
    found = Simulated("first-fit", jobs, failures=failures)
    assert found.log == [
        "0 submit 1: 4 VMs",
        "0 start 1: a1*2 a2*2",
        "1 submit 2: 8 VMs",
        "4 fail: a1: jobs 1",
        "4 start 1: a2*2 b1*2",
        "6 repair: a1",
        "14 end 1",
        "14 start 2: a1*2 a2*2 b1*2 b2*2",
        "17 end 2",
    ]
    assert [record.restarts for record in found.records] == [1, 0]


def test_a_job_that_loses_a_host_is_lost_where_nothing_is_requeued():
    found = Simulated("first-fit", [Job(1, 0, 10, 4)], failures=[Failure(4, 1)], requeue=False)
    assert [record.outcome for record in found.records] == ["failed"]
    assert found.records[0].end == 4


def test_the_end_that_a_lost_job_would_have_had_passes_without_it():
    jobs = [Job(1, 0, 10, 4), Job(2, 5, 20, 4)]
    found = Simulated("first-fit", jobs, failures=[Failure(4, 1)], requeue=False)
    assert found.log[2:] == [
        "4 fail: a2: jobs 1",
        "5 submit 2: 4 VMs",
        "5 start 2: a1*2 b1*2",
        "25 end 2",
    ]
    assert [record.outcome for record in found.records] == ["failed", "done"]


def test_a_job_that_waits_for_a_host_that_never_comes_back_is_counted():
    found = Simulated("first-fit", [Job(1, 0, 10, 10)], failures=[Failure(4, 1)])
    assert [record.outcome for record in found.records] == ["waiting"]


def test_a_host_that_is_down_already_does_not_fail_again():
    failures = [Failure(1, 0, 5), Failure(2, 0, 1)]
    found = Simulated("first-fit", [Job(1, 0, 10, 1, 1), Job(2, 5.5, 1, 1)], failures=failures)
    assert found.log[2:5] == ["1 fail: a1: jobs 1", "1 start 1: a2", "5.5 submit 2: 1 VM"]
    assert "6 repair: a1" in found.log


@pytest.mark.parametrize(
    ("mtbf", "repair", "said"),
    [
        (1e-300, 60.0, "failures of a host: expected a mean time of 1 to 1e+15 s, found 1e-300"),
        (60.0, 1e308, "repair: expected a mean time of 1 to 1e+15 s, found 1e+308"),
    ],
)
def test_hosts_that_fail_all_the_time_or_never_come_back_are_not_drawn(mtbf, repair, said):
    with pytest.raises(exceptions.ConfigError, match=re.escape(said)):
        next(drawn_failures(range(5), mtbf, repair, seed=1))


def test_jobs_that_run_or_wait_when_time_is_up_are_counted():
    found = Simulated("first-fit", [Job(1, 0, 10, 6), Job(2, 1, 5, 5), Job(3, 7, 1, 1)], until=5)
    assert [record.outcome for record in found.records] == ["running", "waiting"]
    assert found.simulation.submitted == 2


def test_a_job_of_no_time_ends_when_it_starts():
    found = Simulated("first-fit", [Job(1, 0, 0, 1), Job(2, 0, 0, 10)])
    assert found.log[-2:] == ["0 start 2: a1*2 a2*2 b1*2 b2*2 b3*2", "0 end 2"]


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([Job(1, 5, 1, 1), Job(2, 4, 1, 1)], "expected jobs in the order of submission"),
        ([Job(1, 0, 9, 1), Job(1, 1, 1, 1)], "expected a number of its own"),
        ([Job(1, 0, 9, 0)], "and a VM"),
    ],
)
def test_jobs_that_cannot_be_simulated_are_told(jobs: list[Job], said: str):
    with pytest.raises(exceptions.SimulationError, match=said):
        Simulated("first-fit", jobs)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ((0, 0, 0), "placed on host 'a1', which has no room"),
        ((0, 1), "of 3 VMs was to start 2"),
        ((0, 1, 2, 3), "of 3 VMs was to start 4"),
    ],
)
def test_a_policy_that_breaks_a_law_is_stopped(places: tuple[int, ...], said: str):
    broken = Policy("broken", "", lambda request: places)
    with pytest.raises(exceptions.ConservationError, match=said):
        Simulation(SimulationInput(cluster(), broken), Fcfs(), [Job(1, 0, 1, 3)]).run()


def test_a_policy_whose_own_code_fails_is_named():
    def oops(request):
        raise ZeroDivisionError("oops")

    broken = Policy("broken", "", oops)
    with pytest.raises(exceptions.SimulationError, match=r"policy 'broken' failed: Zero.*oops"):
        Simulation(SimulationInput(cluster(), broken), Fcfs(), [Job(1, 0, 1, 3)]).run()


def test_the_check_finds_what_was_taken_twice_or_lost():
    occupancy = ClusterState(cluster())
    occupancy.take(PlacedJob.of(Job(1, 0, 1, 2), (0, 0)))
    occupancy.check()
    occupancy.free[3] -= 1
    with pytest.raises(exceptions.ConservationError, match="host 'b2' should have"):
        occupancy.check()
    with pytest.raises(exceptions.ConservationError, match="job 2 was to end and does not run"):
        occupancy.release(2)


JOBS = st.lists(
    st.tuples(
        st.integers(0, 5),  # after the one before
        st.integers(0, 12),  # runtime
        st.integers(1, 12),  # VMs
        st.integers(1, 3),  # vcpus
        st.integers(0, 3),  # memory
    ),
    min_size=1,
    max_size=25,
)


@settings(suppress_health_check=list(HealthCheck))
@given(
    drawn_jobs=JOBS,
    policy=st.sampled_from(POLICIES.names()),
    is_easy=st.booleans(),
    failures=st.booleans(),
    seed=st.integers(0, 3),
)
def test_every_job_is_accounted_for_and_no_slot_is_used_twice(
    drawn_jobs, policy, is_easy, failures, seed
):
    time, jobs = 0.0, []
    for number, (after, runtime, vms, vcpus, memory) in enumerate(drawn_jobs, start=1):
        time += after
        jobs.append(Job(number, time, runtime, vms, vcpus, memory, walltime=runtime * 1.5))
    there = uniform(two_leaves(), HostType(4, 6), {"b3": HostType(3, 9)})
    found = Simulated(
        policy,
        jobs,
        on=there,
        discipline=Easy(5) if is_easy else Fcfs(),
        failures=drawn_failures(range(5), mtbf=60.0, repair=4.0, seed=seed) if failures else (),
        seed=seed,
    )
    assert Counter(record.number for record in found.records) == Counter(job.number for job in jobs)
    # Hosts come back, so everything that was not refused has been done.
    assert {record.outcome for record in found.records} <= {"done", "refused"}
    assert (found.simulation.state.free == there.total).all()
    if not is_easy and not failures:
        starts = sorted((r.number, r.start) for r in found.records if r.outcome == "done")
        assert all(early <= late for (_, early), (_, late) in pairwise(starts))
    again = Simulated(
        policy,
        jobs,
        on=there,
        discipline=Easy(5) if is_easy else Fcfs(),
        failures=drawn_failures(range(5), mtbf=60.0, repair=4.0, seed=seed) if failures else (),
        seed=seed,
    )
    assert again.log == found.log


def test_the_first_job_of_a_queue_is_never_delayed_by_backfilling():
    """With true walltimes EASY starts every job that came first in the queue no later."""
    for seed in range(20):
        draw = random.Random(seed)
        time, jobs = 0.0, []
        for number in range(1, 40):
            time += draw.choice([0, 1, 2, 5])
            jobs.append(Job(number, time, draw.randint(1, 12), draw.randint(1, 10)))
        promised: dict[int, float] = {}
        easy = Easy()

        def watched(simulation, easy=easy, promised=promised):
            easy(simulation)
            head = next(iter(simulation.waiting), None)
            if head is not None and easy.reservation is not None:
                promised[head] = min(promised.get(head, float("inf")), easy.reservation.time)

        found = Simulated("first-fit", jobs, discipline=watched)
        starts = {record.number: record.start for record in found.records}
        assert promised
        assert all(starts[number] <= time for number, time in promised.items())
