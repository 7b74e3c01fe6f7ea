"""Stock Nova: one VM after the other, each on the host with the highest weight.

Restated from Nova 34.0.0 (nova/weights.py, nova/scheduler/weights/ram.py, cpu.py, io_ops.py and
affinity.py); which weighers, and what is left out, is in docs/reference/policies.rst.
"""

from functools import partial

import numpy as np

from hpc_sched.core.arrays import Reals
from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.placement_policy import PlacementRequest, Places, Policy, refused


def _place(request: PlacementRequest, *, soft_affinity: bool) -> Places | Rejection:
    """Return the hosts of VMs that are scheduled one after the other. O(awaiting * hosts)."""
    problem = request.problem
    packing = problem.packing
    assert packing is not None
    if int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    # In the order of names: argmax returns the first of equal weights.
    hosts = np.argsort(problem.topology.name_rank)
    hosts = hosts[problem.capacity[hosts] > 0]
    room = problem.capacity[hosts]
    free = packing.free.T[:, hosts]  # processors and memory. Shape (2, hosts)
    of_group = np.zeros(len(hosts))
    places = []
    for _ in range(problem.awaiting):
        weights = shares(free[1]) + shares(free[0]) - shares(of_group)
        if soft_affinity:
            weights += spans(of_group)
        best = int(np.argmax(weights))
        places.append(int(hosts[best]))
        free[:, best] -= packing.demand
        of_group[best] += 1
        room[best] -= 1
        if not room[best]:
            # A full host does not pass the filters, and so has no influence on any scale.
            hosts, room = np.delete(hosts, best), np.delete(room, best)
            free, of_group = np.delete(free, best, axis=1), np.delete(of_group, best)
    return tuple(places)


def shares(free: Reals) -> Reals:
    """Return free resources as shares of the largest, as a weigher with minval 0."""
    weights = np.maximum(free, 0.0)
    most = weights.max()
    return weights / most if most > 0 else weights


def spans(raw: Reals) -> Reals:
    """Return numbers scaled to 0..1 between the least and the most; 0 if all are equal."""
    least, most = raw.min(), raw.max()
    return (raw - least) / (most - least) if most > least else np.zeros_like(raw)


DEFAULT = Policy(
    "nova-default",
    "each VM on the host with most free memory and processors (stock Nova's default weighers)",
    partial(_place, soft_affinity=False),
    draws=False,
)
SOFT_AFFINITY = Policy(
    "nova-soft-affinity",
    "stock Nova with a server group of policy soft-affinity",
    partial(_place, soft_affinity=True),
    draws=False,
)
