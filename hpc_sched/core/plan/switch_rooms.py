"""The capacity of leaves, and of the switches above them."""

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds
from hpc_sched.core.plan.problem import Problem, leaf_members, leaf_room


def sums_by_switch(path: Array, numbers: Array, switches: int) -> Array:
    """Return the sums of numbers below each switch. Shape (switches,).

    :param path: the switches above what each number is of, by level; shape (levels, numbers)
    """
    total = np.zeros(switches, dtype=np.int64)
    for row in path:
        # A leaf in place of missing switches has the same sum on each level.
        np.maximum(total, np.bincount(row, numbers, switches).astype(np.int64), out=total)
    return total


def sums_below(problem: Problem, per_host: Array) -> Array:
    """Return the sums of numbers per host, by switch. Shape (switches,). O(hosts * depth)."""
    return sums_by_switch(problem.topology.groups, per_host, len(problem.topology.switches))


def largest_branch_first(
    problem: Problem, leaves: Array, sizes: Array, per_host: Array | None = None
) -> Array:
    """Return leaves in the order in which those below the largest branch come first on each level.

    Equal branches: in tie order. O(switches * depth), with numbers per host O(hosts * depth).

    :param leaves: as indices in ``topology.switches``, sorted
    :param sizes: what each of them adds to the size of a branch
    :param per_host: what hosts add to it, shape (hosts,); by default nothing
    """
    topology, number = problem.topology, len(problem.topology.switches)
    path = topology.leaf_path[:, np.searchsorted(topology.leaf_switches, leaves)]
    keys = []
    for row, of_hosts in zip(path[::-1], topology.groups[::-1], strict=True):
        size = np.bincount(row, sizes, number)
        if per_host is not None:
            size += np.bincount(of_hosts, per_host, number)
        keys += [-size[row], problem.tie.among(row)]
    return leaves[np.lexsort(keys[::-1])]


def place_in_run(switches: Array) -> Array:
    """Return 0, 1, 2 .. for each run of the same switch in a row. Shape of ``switches``."""
    starts = np.flatnonzero(np.diff(switches, prepend=-2))
    place: Array = np.arange(len(switches)) - np.repeat(starts, np.diff([*starts, len(switches)]))
    return place


def rooms_below(
    problem: Problem, level: int, bounds: Bounds = UNBOUND, most: int | None = None
) -> Array:
    """Return the VMs that fit per switch of a level; 0 for others. Shape (switches,). O(hosts).

    :param bounds: on leaves. At most: of each switch first the members' leaves count, then those
        with most room. At least: below a switch with too few leaves each VM needs one of its own.
        On parts: with members, of the switches above these alone
    :param most: of the VMs that fit in parts: where more would, fewer may not
    """
    rooms = _rooms_below(problem, level, bounds)
    if bounds.parts is None:
        return rooms
    # Few groups are in parts.
    from hpc_sched.core.plan.segmented.rooms_of_tops import most_in_parts, parts_below

    parts = parts_below(problem, level, bounds)
    if parts is None:
        return rooms
    [has_members] = problem.members.nonzero()
    if len(has_members):
        is_above = np.zeros(len(rooms), dtype=np.bool_)
        is_above[problem.topology.groups[level - 1, has_members]] = True
        rooms = np.where(is_above, rooms, 0)
    return most_in_parts(problem, level, parts, bounds, rooms, most)


def _rooms_below(problem: Problem, level: int, bounds: Bounds) -> Array:
    """Return the same whatever bounds on parts there are."""
    topology = problem.topology
    room = leaf_room(problem)
    leaf, domain = topology.leaf_switches, topology.leaf_path[level - 1]
    if bounds.most_leaves is None and not bounds.least_leaves:
        return np.bincount(domain, room[leaf], len(room)).astype(np.int64)
    here = leaf_members(problem) > 0
    if bounds.most_leaves is not None:
        order = np.lexsort((-room[leaf], ~here[leaf], domain))
        leaf, domain = leaf[order], domain[order]
        is_first = place_in_run(domain) < bounds.most_leaves
        leaf, domain = leaf[is_first], domain[is_first]
    rooms = np.bincount(domain, weights=room[leaf], minlength=len(room)).astype(np.int64)
    missing = bounds.missing_leaves(int(here.sum()), int(rooms.max(initial=0)))
    if missing:
        is_new = (room[leaf] > 0) & ~here[leaf]
        new = np.bincount(domain[is_new], minlength=len(room))
        rooms = np.where(new < missing, np.minimum(rooms, new), rooms)
    return rooms


def switches_with_room(problem: Problem, count: int, level: int, bounds: Bounds) -> Array:
    """Return the switches of a level, or roots below it, that can hold the whole group. O(hosts).

    :param bounds: on the leaves of the group, the members' leaves included
    """
    topology = problem.topology
    [has_members] = problem.members.nonzero()
    with_members = has_members
    if len(has_members):
        with_members = np.unique(topology.groups[level - 1, has_members])
        leaves = len(np.unique(topology.leaf_index[has_members]))
        is_over = bounds.most_leaves is not None and leaves > bounds.most_leaves
        if len(with_members) > 1 or is_over:
            return with_members[:0]
    rooms = _rooms_below(problem, level, bounds)
    if len(with_members):
        with_room: Array = with_members[rooms[with_members] >= count]
    elif count:
        [with_room] = (rooms >= count).nonzero()
    else:
        with_room = np.unique(topology.leaf_path[level - 1])
    if bounds.parts is None or not count:
        return with_room
    from hpc_sched.core.plan.segmented.rooms_of_tops import parts_below, tops_with_parts

    parts = parts_below(problem, level, bounds)
    if parts is None:
        return with_room
    return tops_with_parts(problem, count, level, parts, bounds, with_room)
