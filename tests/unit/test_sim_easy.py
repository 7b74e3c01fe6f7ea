"""EASY backfilling starts every job when the textbook starts it."""

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.workload import TraceJobs, Workload
from hpc_sched.sim.queues.easy import Easy
from tests import sample_data
from tests.unit.simulated import Simulated
from tests.unit.textbook_backfilling import CoreJob, easy_starts

UNBOUNDED = 10**9  # jobs behind the first one: more than there are


@functools.cache
def one_leaf(cores: int) -> Cluster:
    """Return a cluster of hosts with one core each, under one switch."""
    return uniform(FatTree(levels=1, radix=cores).topology(), HostType(1, 0))


def simulated_starts(jobs: list[Job], cores: int) -> list[float]:
    found = Simulated("first-fit", jobs, on=one_leaf(cores), discipline=Easy(UNBOUNDED))
    starts = {record.number: record.start for record in found.records}
    return [starts[job.number] for job in jobs]


def textbook_starts(jobs: list[Job], cores: int) -> list[float]:
    return easy_starts([CoreJob(j.submit, j.count, j.runtime, j.estimate) for j in jobs], cores)


# The default, 100 jobs behind the first one, would bind: the textbook knows no such bound. Jobs of
# KTH-SP2 that exceed their estimates are in it; METACENTRUM states no estimates, so the runtimes
# are known. It has no queue on 1,024 cores unless its jobs arrive faster.
@pytest.mark.parametrize(
    ("trace", "cores", "limit", "load", "late", "waiting"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 5000, 1.0, 71, 2227),
        ("METACENTRUM-2009-2.swf.gz", 1024, 1500, 30.0, 0, 1008),
    ],
)
def test_every_job_of_a_trace_starts_as_in_the_textbook(trace, cores, limit, load, late, waiting):
    source = TraceJobs(sample_data.path(f"swf/{trace}"), Workload(load=load), limit)
    jobs = list(source.jobs(1))
    expected = textbook_starts(jobs, cores)
    assert sum(job.runtime > job.estimate for job in jobs) == late
    assert sum(start > job.submit for start, job in zip(expected, jobs, strict=True)) == waiting
    assert simulated_starts(jobs, cores) == expected


# Few different numbers: many jobs are submitted, or expected to end, at the same time.
JOBS = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1, 2, 3)),  # after the one before
        st.sampled_from((0, 1, 2, 5, 9, 14)),  # runtime
        st.sampled_from((1, 1, 2, 2, 3, 4, 5, 6)),  # cores
        st.sampled_from((0, 1, 2, 2, 4, 6, 14)),  # estimate
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(JOBS)
def test_every_job_of_a_short_list_starts_as_in_the_textbook(drawn: list[tuple[int, ...]]):
    """With estimates equal to the runtimes, longer, and shorter: such jobs end at any moment."""
    now, jobs = 0.0, []
    for number, (after, runtime, cores, estimate) in enumerate(drawn, start=1):
        now += after
        jobs.append(Job(number, now, runtime, cores, walltime=estimate))
    assert simulated_starts(jobs, 6) == textbook_starts(jobs, 6)
