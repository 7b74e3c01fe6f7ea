"""Jobs that need cores only, on hosts with one core each."""

import functools

from hypothesis import strategies as st

from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Discipline
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated

UNBOUNDED = 10**9  # jobs behind the first one: more than there are

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


def jobs_of(drawn: list[tuple[int, ...]]) -> list[Job]:
    """Return the jobs of a drawn list; some exceed their estimates."""
    now, jobs = 0.0, []
    for number, (after, runtime, cores, estimate) in enumerate(drawn, start=1):
        now += after
        jobs.append(Job(number, now, runtime, cores, walltime=estimate))
    return jobs


@functools.cache
def one_leaf(cores: int) -> Cluster:
    """Return a cluster of hosts with one core each, under one switch."""
    topology = Topology.from_tree({"leaf": [f"n{i}" for i in range(cores)]})
    return uniform(topology, HostType(1, 0))


def starts_of(jobs: list[Job], cores: int, discipline: Discipline) -> list[float | None]:
    """Return the start of each job."""
    found = Simulated("first-fit", jobs, on=one_leaf(cores), discipline=discipline)
    starts = {record.number: record.start for record in found.records}
    return [starts[job.number] for job in jobs]
