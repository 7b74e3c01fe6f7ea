"""Which leaves a best plan can need, seen before any table is made of them."""

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import leaf_sums

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]

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
    has_members = leaf_sums(problem, problem.members) > 0
    is_bare = (room > 0) & ~has_members
    holds_all = is_bare & ((most if problem.pack_hosts else room) >= count)
    are_alike = (least == most) & (most <= _CONVEX) if problem.pack_hosts else room > 0
    few = is_bare & ~holds_all & are_alike
    needed = room > 0
    needed[holds_all] = False
    is_other = (room > 0) & ~holds_all
    needed[_fullest(problem, np.flatnonzero(holds_all), room, is_other | has_members)] = True
    needed[few] = False
    needed[_enough(problem, np.flatnonzero(few), room, most, count)] = True
    return open_[needed[leaf]]


def _fullest(problem: Problem, leaves: Array, room: Array, is_other: Mask) -> list[int]:
    """Return the one leaf of each branch that may be used of those that hold the whole group.

    Two of them are never used at once, and below one switch they differ in nothing but their
    room and the tie order, however many switches are between. A branch that has others besides
    keeps its own.

    :param is_other: per switch, whether it is a leaf with members, or with room for a part
    """
    topology = problem.topology
    switches = topology.switches
    mixed = [
        np.bincount(row, weights=is_other[topology.leaf_index], minlength=len(switches)) > 0
        for row in topology.groups
    ]
    best: dict[int, int] = {}  # by the highest switch below which there is no other leaf
    for leaf in leaves[np.lexsort((problem.tie[leaves], room[leaves]))].tolist():
        above = switches[leaf].parent
        while above >= 0 and not mixed[switches[above].level - 1][above]:
            above = switches[above].parent
        best.setdefault(above, leaf)
    return list(best.values())


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
