"""The capacity of leaves, and of the switches above them."""

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.problem import Problem


def leaf_sums(problem: Problem, per_host: Array | Mask) -> Array:
    """Return the sums of numbers per host, by leaf; 0 for switches above. Shape (switches,)."""
    topology = problem.topology
    sums = np.bincount(topology.leaf_index, weights=per_host, minlength=len(topology.switches))
    return sums.astype(np.int64)


def rooms_below(problem: Problem, level: int, max_leaves: int | None = None) -> Array:
    """Return the capacity per switch of a level; 0 for others. Shape (switches,). O(hosts).

    :param max_leaves: the number of leaves that count for each switch: first the members', then
        those with most room
    """
    topology = problem.topology
    room = leaf_sums(problem, problem.capacity)
    here = leaf_sums(problem, problem.members) > 0
    leaf, first = np.unique(topology.leaf_index, return_index=True)
    domain = topology.groups[level - 1][first]
    if max_leaves is not None:
        order = np.lexsort((-room[leaf], ~here[leaf], domain))
        leaf, domain = leaf[order], domain[order]
        starts = np.flatnonzero(np.diff(domain, prepend=-1))
        place = np.arange(len(leaf)) - np.repeat(starts, np.diff([*starts, len(leaf)]))
        leaf, domain = leaf[place < max_leaves], domain[place < max_leaves]
    rooms = np.bincount(domain, weights=room[leaf], minlength=len(room))
    return rooms.astype(np.int64)
