"""Which leaves a best plan can use, found before any of the planner's tables is made."""

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import leaf_sums

# With at most this many VMs a host, each further VM in a leaf saves at least as much as the one
# before: a new host loses at most 2 pairs, and the leaf's own saving grows by at least 2 a VM.
_CONVEX = 3


def hosts_of_needed_leaves(problem: Problem, count: int) -> Array:
    """Return the hosts with room, without those of leaves that no best plan uses.

    Indices into ``topology.hosts``. O(hosts log hosts).
    """
    capacity = problem.capacity
    open_ = np.flatnonzero(capacity > 0)
    leaf = problem.topology.leaf_index[open_]
    room = leaf_sums(problem, capacity)
    members = leaf_sums(problem, problem.members)
    largest = np.zeros_like(room)
    np.maximum.at(largest, leaf, capacity[open_])
    # Either one host takes all VMs, or hosts do not matter and the leaf takes all.
    holds_all = (room > 0) & (members == 0)
    holds_all &= (largest if problem.pack_hosts else room) >= count
    is_other = ((room > 0) & ~holds_all) | (members > 0)
    needed = np.zeros(len(room), dtype=np.bool_)
    needed[_fullest(problem, np.flatnonzero(holds_all), room, is_other)] = True
    needed[_first_of_alike(problem, open_[~holds_all[leaf]], room, members, count)] = True
    return open_[needed[leaf]]


def _fullest(problem: Problem, leaves: Array, room: Array, is_other: Mask) -> list[int]:
    """Return, for each branch, the one leaf that a plan may use of those that hold all VMs.

    A best plan uses at most one of them. Below one switch they differ only in room and tie
    order, however many levels are between. A branch with other leaves keeps its own.
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


def _first_of_alike(
    problem: Problem, hosts: Array, room: Array, members: Array, count: int
) -> list[int]:
    """Return the leaves of some hosts, of alike leaves only the number that a best plan uses.

    Leaves are alike if they are under one switch and have equal hosts, members included. A best
    plan uses the first of them in tie order. If each VM in a leaf saves more than the one before
    (convex), at most one used leaf is not filled; else every used leaf takes at least one VM.
    """
    leaf = problem.topology.leaf_index[hosts]
    kinds = np.stack([problem.members[hosts], np.minimum(problem.capacity[hosts], count)], axis=1)
    if not problem.pack_hosts:
        kinds[:] = 0  # the room of the leaf is all that counts
    order = np.lexsort((kinds[:, 1], kinds[:, 0], leaf))
    kinds = kinds[order]
    leaves, starts = np.unique(leaf[order], return_index=True)
    ends = [*starts[1:].tolist(), len(hosts)]
    allowed: dict[tuple[int, int, int, bytes], int] = {}
    needed = []
    for i in np.argsort(problem.tie[leaves]).tolist():
        switch, own = int(leaves[i]), kinds[starts[i] : ends[i]]
        parent = problem.topology.switches[switch].parent
        key = (parent, int(room[switch]), int(members[switch]), own.tobytes())
        if key not in allowed:
            fewest, most = own[0].tolist(), own[-1].tolist()
            is_convex = fewest[0] == most[0] and (most[1] <= _CONVEX or len(own) == 1)
            allowed[key] = count // key[1] + 1 if is_convex else count
        if allowed[key] > 0:
            allowed[key] -= 1
            needed.append(switch)
    return needed
