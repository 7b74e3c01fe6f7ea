"""Most free processors first: what CloudSim's VmAllocationPolicySimple does."""

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import Places, Policy, Request, refused


def _place(request: Request) -> Places | Rejection:
    """Return for each VM the host with the most free processors, those placed before counted.

    The VMs of a host meet ever fewer free processors there, so that all of them can be put in
    order at once. Equal hosts by name. O(slots log slots), slots being the VMs that hosts take.
    """
    problem = request.problem
    assert problem.packing is not None
    room = np.minimum(problem.capacity, problem.awaiting)
    hosts = np.repeat(np.arange(len(room)), room)
    if len(hosts) < problem.awaiting:
        return refused(problem)
    before = np.arange(len(hosts)) - np.repeat(np.cumsum(room) - room, room)  # VMs on this host
    free = problem.packing.free[hosts, 0] - before * problem.packing.demand[0]
    order = np.lexsort((problem.topology.name_rank[hosts], -free))
    return tuple(hosts[order[: problem.awaiting]].tolist())


POLICY = Policy(
    "most-free-pe",
    "each VM on the host with the most free processors (CloudSim's VmAllocationPolicySimple)",
    _place,
)
