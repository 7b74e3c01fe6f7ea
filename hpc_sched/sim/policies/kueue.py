"""Kueue's Topology Aware Scheduling, with BestFit and with LeastFreeCapacity.

Restated from Kueue v0.19.2 (pkg/cache/scheduler/tas_flavor_snapshot.go) and its KEP 2724; the
rules, and what is left out of them, are in docs/reference/policies.rst. A pod is a VM; the levels
are those of the fabric, top down, and below the leaf switch the host.
"""

from functools import partial

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.switch_rooms import rooms_below
from hpc_sched.sim.policies.placement_policy import (
    PlacementRequest,
    Places,
    Policy,
    filled,
    refused,
)
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import name_rank

HOST, LEAF = 0, 1  # levels: leaf switches are on level 1


def _place(request: PlacementRequest, *, unconstrained: bool) -> Places | Rejection:
    """Return the places of a group that prefers the leaf, or is ``unconstrained``, by default."""
    problem = request.problem
    bounds = problem.constraints.bounds
    named = bounds.level or bounds.preferred
    if named is None and unconstrained:
        return least_free(problem)
    return best_fit(
        problem,
        LEAF if named is None else level_of(problem.topology, named),
        required=bounds.level is not None,
    )


def best_fit(problem: Problem, level: int, *, required: bool) -> Places | Rejection:
    """Return the places by BestFit. O(hosts log hosts * levels).

    :param level: the whole group is wanted below one switch of this level, 1 for leaves
    """
    topology, wanted = problem.topology, problem.awaiting
    if not wanted:
        return ()
    rooms = rooms_below(problem, level)
    while rooms.max() < wanted and level < topology.depth and not required:
        level += 1
        rooms = rooms_below(problem, level)
    if (rooms.max() if required else rooms.sum()) < wanted:
        return refused(problem)
    path = _paths(topology)
    hosts = np.flatnonzero(problem.capacity > 0)
    for number in range(level, HOST - 1, -1):
        rooms = problem.capacity if number == HOST else rooms_below(problem, number)
        domain = hosts if number == HOST else topology.groups[number - 1, hosts]
        found, below = np.unique(domain, return_index=True)
        # Sorted by the names from the top down, which any host below the domain has.
        order = np.lexsort((*path[number:, hosts[below]], -rooms[found]))
        chosen = found[order][fewest(rooms[found[order]], wanted)]
        hosts = hosts[np.isin(domain, chosen)]
    return filled(problem, chosen)


def least_free(problem: Problem) -> Places | Rejection:
    """Return the places by LeastFreeCapacity. O(hosts log hosts)."""
    order = np.lexsort((*_paths(problem.topology), problem.capacity))
    alone = order[problem.capacity[order] >= problem.awaiting]
    return filled(problem, alone if len(alone) else order)


def fewest(rooms: Array, wanted: int) -> Array:
    """Return the indices of the domains that BestFit takes, the partly filled one last. O(domains).

    :param rooms: room of the domains, descending; together at least ``wanted``
    """
    left = wanted - (np.cumsum(rooms) - rooms)  # when the domains before are full
    last = int(np.argmax(rooms >= left))
    enough = rooms[last:][rooms[last:] >= left[last]]
    return np.array([*range(last), last + int(np.argmin(enough))])


def _paths(topology: Topology) -> Array:
    """Return the name rank of each host's domain per level, host first. (depth + 1, hosts)."""
    rank = name_rank([switch.name for switch in topology.switches])
    return np.vstack([topology.name_rank, rank[topology.groups]])


BEST_FIT = Policy(
    "kueue-best-fit",
    "a job that prefers one leaf in Kueue's Topology Aware Scheduling (v0.19.2), BestFit",
    partial(_place, unconstrained=False),
    draws=False,
    packs=False,
)
LEAST_FREE = Policy(
    "kueue-least-free",
    "an unconstrained job in Kueue's Topology Aware Scheduling (v0.19.2), LeastFreeCapacity",
    partial(_place, unconstrained=True),
    draws=False,
    packs=False,
)
