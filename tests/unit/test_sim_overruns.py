"""Jobs that are longer than their requested walltimes: they run to their ends, or are killed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs
from hpc_sched.sim.measured.measured_jobs import SLOWDOWN_BOUND
from hpc_sched.sim.queues.in_order import Easy, Fcfs
from hpc_sched.sim.results import result_of
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import Failure, drawn_failures
from tests import sample_data
from tests.unit.simulated import Simulated, cluster

HOUR = 3600.0


def twice_as_long(state: ClusterState, placed: PlacedJob) -> float:
    return 2.0


def ends(found: Simulated) -> list[tuple[int, str, float | None]]:
    return [(record.number, record.outcome.value, record.end) for record in found.records]


OVERRUN = [Job(1, 0, 10, 10, walltime=7), Job(2, 1, 3, 4, walltime=5)]


def test_a_job_is_killed_at_its_walltime():
    found = Simulated("first-fit", OVERRUN, kills_overruns=True)
    assert found.log == [
        "0 submit 1: 10 VMs",
        "0 start 1: a1*2 a2*2 b1*2 b2*2 b3*2",
        "1 submit 2: 4 VMs",
        "7 kill 1",
        "7 start 2: a1*2 a2*2",
        "10 end 2",
    ]
    assert ends(found) == [(1, "killed", 7), (2, "done", 10)]
    assert found.records[0].runtime == 10


def test_a_job_runs_beyond_its_walltime_unless_overruns_are_killed():
    assert ends(Simulated("first-fit", OVERRUN)) == [(1, "done", 10), (2, "done", 13)]


def test_a_job_that_takes_exactly_its_walltime_is_done():
    found = Simulated("first-fit", [Job(1, 0, 10, 1, walltime=10)], kills_overruns=True)
    assert ends(found) == [(1, "done", 10)]


def test_a_placement_that_makes_a_job_longer_than_its_walltime_costs_the_job():
    jobs = [Job(1, 0, 10, 1, walltime=15), Job(2, 0, 7, 1, walltime=15)]
    found = Simulated("first-fit", jobs, kills_overruns=True, slowdown=twice_as_long)
    assert ends(found) == [(2, "done", 14), (1, "killed", 15)]
    assert [record.factor for record in found.records] == [2, 2]


def test_a_job_without_a_walltime_is_not_killed_whatever_its_placement_costs():
    """The runtime that backfilling assumes for it is no limit."""
    job = Job(1, 0, 10, 1)
    assert job.estimate == 10
    found = Simulated("first-fit", [job], kills_overruns=True, slowdown=twice_as_long)
    assert ends(found) == [(1, "done", 20)]


def test_a_walltime_of_0_in_a_trace_is_none_and_kills_nothing(tmp_path):
    trace = tmp_path / "jobs.swf"
    row = "1 0 -1 10 1 -1 -1 1 {} -1 1 1 1 -1 1 1 -1 -1\n"
    trace.write_text("".join(row.format(walltime) for walltime in (0, -1, 9)))
    found = Simulated("first-fit", TraceJobs(trace).jobs(1), kills_overruns=True)
    assert ends(found) == [(3, "killed", 9), (1, "done", 10), (2, "done", 10)]


def test_a_job_that_lost_a_host_has_its_whole_walltime_again():
    jobs = [Job(1, 0, 10, 4, walltime=7)]
    found = Simulated("first-fit", jobs, failures=[Failure(4, 0)], kills_overruns=True)
    assert found.log[2:] == ["4 fail: a1: jobs 1", "4 start 1: a2*2 b1*2", "11 kill 1"]
    assert (found.records[0].start, found.records[0].restarts) == (4, 1)


def test_what_a_killed_job_used_counts_and_its_wait_and_slowdown_do_not():
    jobs = [Job(1, 0, 3 * HOUR, 10, walltime=2 * HOUR), Job(2, 0, HOUR, 4)]
    found = Simulated("first-fit", jobs, kills_overruns=True)
    summary = result_of("first-fit", 1, found.simulation).summary
    assert (summary.jobs, summary.done, summary.killed) == (2, 1, 1)
    assert (summary.refused, summary.failed, summary.left) == (0, 0, 0)
    assert summary.core_hours == 2 * 10 + 4
    assert summary.makespan == 3 * HOUR
    # Job 2 alone.
    assert summary.wait_mean == 2 * HOUR
    assert summary.slowdown_mean == 3 > SLOWDOWN_BOUND / HOUR


def test_backfilling_can_count_on_the_end_of_a_job_that_would_overrun():
    """Job 1 leaves at 10: job 3, which ends then, starts at 2; job 2 is not delayed."""
    jobs = [Job(1, 0, 50, 8, walltime=10), Job(2, 1, 5, 10), Job(3, 2, 8, 1, walltime=8)]
    found = Simulated("first-fit", jobs, discipline=Easy(), kills_overruns=True)
    assert found.log[3:] == [
        "2 submit 3: 1 VM",
        "2 start 3: b3",
        "10 kill 1",
        "10 end 3",
        "10 start 2: a1*2 a2*2 b1*2 b2*2 b3*2",
        "15 end 2",
    ]


JOBS = st.lists(
    st.tuples(
        st.integers(0, 5),  # after the one before
        st.integers(0, 12),  # runtime
        st.integers(1, 12),  # VMs
        st.none() | st.integers(0, 15),  # walltime
    ),
    min_size=1,
    max_size=25,
)


@given(drawn=JOBS, is_easy=st.booleans(), fails=st.booleans(), factor=st.sampled_from([1.0, 1.5]))
def test_every_job_is_accounted_for_and_killed_exactly_where_it_overruns(
    drawn, is_easy, fails, factor
):
    time, jobs = 0.0, {}
    for number, (after, runtime, vms, walltime) in enumerate(drawn, start=1):
        time += after
        jobs[number] = Job(number, time, runtime, vms, walltime=walltime)

    def watched(simulation: Simulation) -> None:
        queue(simulation)
        for start, placed in simulation.running().values():
            walltime = placed.job.walltime
            assert walltime is None or simulation.now <= start + walltime

    queue = Easy(5) if is_easy else Fcfs()
    found = Simulated(
        "first-fit",
        jobs.values(),
        discipline=watched,
        failures=drawn_failures(range(5), mtbf=60.0, repair=4.0, seed=1) if fails else (),
        kills_overruns=True,
        slowdown=lambda state, placed: factor,
    )
    assert Counter(record.number for record in found.records) == Counter(list(jobs))
    assert (found.simulation.state.free == cluster().total).all()
    for record in found.records:
        walltime = jobs[record.number].walltime
        if record.outcome == "refused":
            continue
        runtime = record.runtime * factor
        is_overrun = walltime is not None and runtime > walltime
        assert record.outcome == ("killed" if is_overrun else "done")
        assert record.end == record.start + (walltime if is_overrun else runtime)
    counts = Counter(record.outcome.value for record in found.records)
    summary = result_of("first-fit", 1, found.simulation).summary
    assert (summary.done, summary.killed) == (counts["done"], counts["killed"])
    assert summary.jobs == summary.done + summary.killed + summary.refused


@pytest.mark.parametrize("kills", [False, True])
def test_jobs_of_a_real_trace_that_overran_are_those_killed(kills: bool):
    trace = TraceJobs(sample_data.path("swf/KTH-SP2-1996-2.1-cln.swf.gz"), limit=200)
    jobs = list(trace.jobs(1))
    long = {job.number for job in jobs if job.walltime and job.runtime > job.walltime}
    assert long
    found = Simulated("first-fit", jobs, on=cluster(40), discipline=Easy(), kills_overruns=kills)
    killed = {record.number for record in found.records if record.outcome == "killed"}
    assert killed == (long if kills else set())


def test_a_record_has_number_and_time_of_the_trace():
    jobs = [Job(1, 0, 9, 1, trace_job=77, trace_submit=1000.0), Job(2, 5, 9, 1)]
    found = Simulated("first-fit", jobs).records
    assert [(each.trace_job, each.trace_submit) for each in found] == [(77, 1000.0), (None, None)]


def test_drawn_jobs_have_the_number_and_time_drawn():
    for job in Synthetic(20).jobs(1):
        assert (job.trace_job, job.trace_submit) == (job.number, job.submit)
