"""Stock Nova: one VM after the other on the host that its default weighers like best.

Restated from Nova 34.0.0 (nova/weights.py, nova/scheduler/weights/ram.py, cpu.py, io_ops.py and
affinity.py). A weigher's raw numbers are scaled to 0..1 over the hosts that pass and added up,
the multipliers being 1.0. RAMWeigher and CPUWeigher pin the lower end of their scale to 0, so
theirs is the share of what the host with most has free, not of the span between the hosts; raw
numbers below 0 count as 0. ServerGroupSoftAffinityWeigher pins nothing: 0 is the host with the
fewest VMs of the group, 1 the one with most.

Left out: the weighers of disk, build failures, PCI devices, metrics, cells, versions of computes
and hypervisors, all taken to be equal on all hosts; those whose multiplier is 0 by default;
``host_subset_size`` and ``shuffle_best_same_weighed_hosts``; Placement's limit on candidates.
IoOpsWeigher, which has the multiplier -1.0, is there for the VMs of the request alone: a host
counts those it has just been given as I/O operations until it reports again, which drives them
apart and cancels most of what soft-affinity adds.

Nova weighs the memory that a compute reports as free, without allocation ratio; here it is what
the host can still give. Hosts of equal weight come from Nova in the order of a set; here the first
by name is taken. Members do not count: in the simulator no group has any.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import PlacementRequest, Places, Policy, refused

Reals = NDArray[np.float64]


def _place(request: PlacementRequest, *, soft_affinity: bool) -> Places | Rejection:
    """Return the hosts of VMs that are weighed one after the other. O(awaiting * hosts).

    :param soft_affinity: whether the group is a server group of this policy
    """
    problem = request.problem
    packing = problem.packing
    assert packing is not None
    if int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    # In the order of names, so that the first of equal weights is the first by name.
    hosts = np.argsort(problem.topology.name_rank)
    hosts = hosts[problem.capacity[hosts] > 0]
    room = problem.capacity[hosts]
    processors, memory = packing.free[hosts, 0], packing.free[hosts, 1]
    of_group = np.zeros(len(hosts))
    places = []
    for _ in range(problem.awaiting):
        weights = shares(memory) + shares(processors) - shares(of_group)
        if soft_affinity:
            weights += spans(of_group)
        best = int(np.argmax(weights))
        places.append(int(hosts[best]))
        processors[best] -= packing.demand[0]
        memory[best] -= packing.demand[1]
        of_group[best] += 1
        room[best] -= 1
        if not room[best]:
            # A full host does not pass the filters, so that it is no end of any scale either.
            hosts, room, processors, memory, of_group = (
                np.delete(hosts, best),
                np.delete(room, best),
                np.delete(processors, best),
                np.delete(memory, best),
                np.delete(of_group, best),
            )
    return tuple(places)


def shares(free: Reals) -> Reals:
    """Return what is free as shares of the most there is, as a weigher with minval 0 has it."""
    weights = np.maximum(free, 0.0)
    most = weights.max()
    return weights / most if most > 0 else weights


def spans(raw: Reals) -> Reals:
    """Return numbers scaled to 0..1 between the least and the most; 0 where all are equal."""
    least, most = raw.min(), raw.max()
    return (raw - least) / (most - least) if most > least else np.zeros_like(raw)


DEFAULT = Policy(
    "nova-default",
    "each VM on the host with most free memory and processors (stock Nova's default weighers)",
    partial(_place, soft_affinity=False),
)
SOFT_AFFINITY = Policy(
    "nova-soft-affinity",
    "stock Nova with a server group of policy soft-affinity",
    partial(_place, soft_affinity=True),
)
