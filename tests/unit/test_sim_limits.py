"""The room of the hosts of a simulated cluster next to the VMs that they have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.sharing import cache_interference
from hpc_sched.core.sharing.cache_interference import Application, Limits
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job

HOSTS = 4
CLUSTER = uniform(FatTree(levels=1, radix=HOSTS).topology(), HostType(8, 1024))

# Tenths: their sums are often equal to a limit but for rounding.
tenths = st.integers(0, 400).map(lambda number: number / 10)
limits = st.builds(Limits, tenths, tenths)
applications = st.builds(
    Application,
    st.sampled_from(["extreme", "sync", "async", "none"]),
    score=tenths | st.sampled_from([1e-9, 1e12]),
)
jobs = st.lists(st.tuples(applications, st.integers(0, HOSTS - 1), st.integers(1, 2)), max_size=12)


@given(there=jobs, gone=st.integers(0, 3), newcomer=applications, bounds=limits)
def test_hosts_take_what_the_rules_of_sharing_give_for_each_of_them(there, gone, newcomer, bounds):
    state = ClusterState(CLUSTER)
    running: dict[int, list[Application]] = {host: [] for host in range(HOSTS)}
    for number, (application, host, count) in enumerate(there, start=1):
        job = Job(number, 0.0, 1.0, count, application=application)
        if state.free[host, 0] < count:
            continue
        state.take(PlacedJob.of(job, (host,) * count))
        if number <= gone:
            state.release(number)
        else:
            running[host] += [application] * count
    room = state.capacity(1, 0)
    expected = [
        min(
            int(room[host]),
            cache_interference.dedicated_room(newcomer, vms),
            cache_interference.room(newcomer, vms, bounds),
        )
        for host, vms in running.items()
    ]
    assert np.array_equal(state.applications.rooms_beside(newcomer, bounds, room), expected)
