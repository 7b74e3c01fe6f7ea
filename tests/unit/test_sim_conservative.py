"""Conservative backfilling: as the textbook counts cores, and what a fabric adds to it."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import TraceJobs
from hpc_sched.sim.policies.placement_policy import Policy, refused
from hpc_sched.sim.queues.conservative import Conservative
from hpc_sched.sim.queues.in_order import Easy
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import Failure, SimulationInput
from hpc_sched.topology import Topology
from tests import sample_data
from tests.unit.core_jobs import JOBS, UNBOUNDED, jobs_of, one_leaf, starts_of
from tests.unit.simulated import Simulated, cluster
from tests.unit.textbook_backfilling import CoreJob, conservative_starts


def textbook(jobs: list[Job], cores: int) -> tuple[list[float], list[float]]:
    plain = [CoreJob(job.submit, job.count, job.runtime, job.estimate) for job in jobs]
    return conservative_starts(plain, cores)


def test_a_job_that_delays_no_reservation_starts_and_one_that_delays_the_second_does_not():
    """::

    core 1..4  | job 1 (6) to 10 | job 2 (8) to 20 |
    core 5, 6  |                 | job 2           | job 3 (4) from 20
    core 7, 8  |                 | job 2           |
    """
    jobs = [
        Job(1, 0, 10, 6),
        Job(2, 1, 10, 8),  # reserved at 10
        Job(3, 2, 9, 4),  # reserved at 20
        Job(4, 3, 7, 1),  # ends at 10
        Job(5, 4, 30, 1),  # delays job 2
    ]
    found = Simulated("first-fit", jobs, on=one_leaf(8), discipline=Conservative())
    starts = {record.number: record.start for record in found.records}
    assert starts == {1: 0, 2: 10, 3: 20, 4: 3, 5: 20}


def test_easy_delays_the_second_job_of_the_queue_and_conservative_backfilling_does_not():
    # Job 4 leaves job 2 its 5 of 6 cores at 10, but takes what job 3 needs together with them.
    jobs = [Job(1, 0, 10, 4), Job(2, 1, 10, 5), Job(3, 2, 10, 6), Job(4, 3, 99, 1)]
    starts = [
        {
            record.number: record.start
            for record in Simulated(
                "first-fit", jobs, on=one_leaf(6), discipline=discipline
            ).records
        }
        for discipline in (Easy(), Conservative())
    ]
    assert starts == [{1: 0, 2: 10, 3: 102, 4: 3}, {1: 0, 2: 10, 3: 20, 4: 30}]


def test_jobs_behind_the_depth_have_no_reservation_and_do_not_start():
    jobs = [Job(1, 0, 10, 8), Job(2, 1, 5, 10), Job(3, 2, 99, 1), Job(4, 2, 1, 1)]
    assert "2 start 4: b3" in Simulated("first-fit", jobs, discipline=Conservative(2)).log
    assert "2 start 4: b3" not in Simulated("first-fit", jobs, discipline=Conservative(1)).log


def test_room_is_reserved_on_one_island():
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
    on = cluster(topology=islands)
    found = Simulated("exact-plan", jobs, on=on, discipline=Conservative())
    # Job 3 fits leaf2 alone, from 10 on. Job 4 goes to leaf1; job 5 would take what 3 waits for.
    assert found.starts == [
        "0 start 1: a1*2",
        "0 start 2: b1*2 b2*2",
        "4 start 4: a2*2",
        "10 start 3: b1*2 b2*2 b3*2",
        "10 start 5: a1*2",
    ]


def test_a_policy_that_ignores_islands_may_use_both_where_neither_holds_the_job():
    islands = Topology.from_tree({"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2", "b3"]})
    jobs = [Job(1, 0, 10, 2), Job(2, 1, 10, 8)]
    on = cluster(topology=islands)
    found = Simulated("first-fit", jobs, on=on, discipline=Conservative())
    assert "1 start 2: a2*2 b1*2 b2*2 b3*2" in found.starts


def test_a_job_that_the_policy_does_not_place_keeps_no_other_from_starting():
    def places(request):
        order = range(len(request.group.room))
        is_large = request.group.left > 1
        return (
            refused(request.problem)
            if is_large and request.group.room.sum() < 10
            else (tuple(host for host in order for _ in range(request.group.room[host])))[
                : request.group.left
            ]
        )

    records = []
    simulation = Simulation(
        SimulationInput(cluster(), Policy("picky", "", places)),
        Conservative(),
        [Job(1, 0, 10, 1), Job(2, 1, 5, 4), Job(3, 2, 5, 1), Job(4, 3, 50, 1)],
        on_record=records.append,
    )
    simulation.run()
    simulation.conclude()
    # Job 2 is placed on an empty cluster only: it is reserved at the end of job 1, and then at
    # the ends of those that leave its room.
    assert {record.number: record.start for record in records} == {1: 0, 2: 53, 3: 2, 4: 3}


def test_reservations_are_made_anew_when_a_host_fails():
    # Job 3 waits for a1, a2 and b2 or b3, so that one of these is spare until b3 fails.
    jobs = [Job(1, 0, 10, 2), Job(2, 0, 90, 1), Job(3, 1, 10, 3), Job(4, 3, 50, 1)]
    found = Simulated(
        "first-fit", jobs, on=cluster(1), discipline=Conservative(), failures=[Failure(2, 4)]
    )
    assert "10 start 3: a1 a2 b2" in found.starts


# KTH-SP2's jobs that exceed their estimates are among them: all reservations are made anew then.
def test_every_job_of_a_trace_starts_as_in_the_textbook():
    source = TraceJobs(sample_data.path("swf/KTH-SP2-1996-2.1-cln.swf.gz"), limit=1500)
    jobs = list(source.jobs(1))
    expected, _ = textbook(jobs, 100)
    assert sum(start > job.submit for start, job in zip(expected, jobs, strict=True)) == 510
    assert starts_of(jobs, 100, Conservative(UNBOUNDED)) == expected


@settings(suppress_health_check=list(HealthCheck))
@given(JOBS)
def test_every_job_of_a_short_list_starts_as_in_the_textbook(drawn: list[tuple[int, ...]]):
    """With estimates equal to the runtimes, longer, and shorter."""
    jobs = jobs_of(drawn)
    assert starts_of(jobs, 6, Conservative(UNBOUNDED)) == textbook(jobs, 6)[0]


@settings(suppress_health_check=list(HealthCheck))
@given(JOBS, st.sampled_from(("first-fit", "exact-plan", "most-free-pe")), st.integers(1, 2))
def test_no_job_starts_later_than_its_first_reservation(
    drawn: list[tuple[int, ...]], policy: str, vcpus: int
):
    """On hosts of two vcpus under two leaves; no job exceeds its estimate, none is estimated 0."""
    jobs = [
        Job(
            job.number,
            job.submit,
            job.runtime,
            job.count,
            walltime=max(job.estimate, job.runtime, 1),
        )
        for job in jobs_of(drawn)
    ]
    conservative = Conservative()
    promised: dict[int, float] = {}

    def watched(simulation: Simulation) -> None:
        conservative(simulation)
        for number, reserved in conservative.reserved.items():
            promised.setdefault(number, reserved.start)

    found = Simulated(policy, jobs, on=cluster(vcpus), discipline=watched)
    starts = {record.number: record.start for record in found.records if record.start is not None}
    assert all(starts[number] <= start for number, start in promised.items())
