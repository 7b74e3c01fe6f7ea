"""EASY backfilling starts every job when the textbook starts it."""

import pytest
from hypothesis import HealthCheck, given, settings

from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import TraceJobs, Workload
from hpc_sched.sim.queues.in_order import Easy
from tests import sample_data
from tests.unit.core_jobs import JOBS, UNBOUNDED, jobs_of, starts_of
from tests.unit.textbook_backfilling import CoreJob, easy_starts


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
    assert starts_of(jobs, cores, Easy(UNBOUNDED)) == expected


@settings(suppress_health_check=list(HealthCheck))
@given(JOBS)
def test_every_job_of_a_short_list_starts_as_in_the_textbook(drawn: list[tuple[int, ...]]):
    """With estimates equal to the runtimes, longer, and shorter: such jobs end at any moment."""
    jobs = jobs_of(drawn)
    assert starts_of(jobs, 6, Easy(UNBOUNDED)) == textbook_starts(jobs, 6)
