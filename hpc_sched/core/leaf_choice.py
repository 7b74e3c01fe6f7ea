"""Which leaves a best plan can need, seen before any table is made of them."""

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.capacity import leaf_sums
from hpc_sched.core.problem import Problem

Array = NDArray[np.int64]

# Up to so many VMs on each host of a leaf, each VM more saves at least as much as the one before:
# a second host begins with a loss of 2 at most, and the leaf's own saving grows by 2 a VM.
_CONVEX = 3


def hosts_needed(problem: Problem, count: int) -> Array:
    """Return the hosts with room, without those of leaves that no best plan can need.

    Of leaves under one switch, without members, that are as good as each other but for their
    excess capacity and the tie order, only the first ones are ever used:

    - where each has a host for all ``count`` VMs, or VMs on one host are no nearer to each other
      and it has room for all, the one that is left fullest;
    - where all hosts of each are alike and few VMs fill them, as many as they can fill and one.

    Indices into ``topology.hosts``. O(hosts + switches log switches).
    """
    capacity = problem.capacity
    open_ = np.flatnonzero(capacity > 0)
    leaf = problem.topology.leaf_index[open_]
    room = leaf_sums(problem, capacity)
    most = np.zeros_like(room)
    np.maximum.at(most, leaf, capacity[open_])
    least = most.copy()
    np.minimum.at(least, leaf, capacity[open_])
    is_bare = (room > 0) & (leaf_sums(problem, problem.members) == 0)
    holds_all = is_bare & ((most if problem.pack_hosts else room) >= count)
    are_alike = (least == most) & (most <= _CONVEX) if problem.pack_hosts else room > 0
    few = is_bare & ~holds_all & are_alike
    needed = room > 0
    needed[holds_all] = False
    needed[_first(problem, np.flatnonzero(holds_all), room)] = True
    needed[few] = False
    needed[_enough(problem, np.flatnonzero(few), room, most, count)] = True
    return open_[needed[leaf]]


def _first(problem: Problem, leaves: Array, room: Array) -> Array:
    """Return the leaf with the least room below each parent, the first in tie order."""
    parent = _parents(problem, leaves)
    order = np.lexsort((problem.tie[leaves], room[leaves], parent))
    starts = np.flatnonzero(np.diff(parent[order], prepend=-2))
    return leaves[order[starts]]


def _enough(problem: Problem, leaves: Array, room: Array, most: Array, count: int) -> Array:
    """Return the first leaves of each kind in tie order, as many as can be filled and one."""
    kinds = np.stack([_parents(problem, leaves), room[leaves], most[leaves]])
    order = np.lexsort((problem.tie[leaves], *kinds))
    kinds = kinds[:, order]
    starts = np.flatnonzero((np.diff(kinds, prepend=-2) != 0).any(axis=0))
    place = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return leaves[order[place <= count // np.maximum(room[leaves[order]], 1)]]


def _parents(problem: Problem, leaves: Array) -> Array:
    switches = problem.topology.switches
    return np.array([switches[leaf].parent for leaf in leaves.tolist()], dtype=np.int64)
