"""A plan in little time, by best fit, without the proof that none costs less.

It keeps the bounds and the members' switch whenever any plan does.
"""

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds
from hpc_sched.core.plan.problem import LeafCounts, Problem, leaf_members, leaf_room
from hpc_sched.core.plan.switch_rooms import largest_branch_first, switches_with_room


def best_fit(problem: Problem, count: int, level: int, bounds: Bounds = UNBOUND) -> LeafCounts:
    """Return new VMs per leaf below one switch of a level that has room for all.

    The VMs go below the smallest switch of the lowest level that has room for all. There the
    switches with most room are filled one after the other. O(hosts * levels).

    :param bounds: on the leaves of the group, the members' leaves included
    """
    topology = problem.topology
    tops = switches_with_room(problem, count, level, bounds)
    above = topology.groups[level - 1]
    for lower in range(1, level + 1):
        found = switches_with_room(problem, count, lower, bounds)
        domain = topology.groups[lower - 1]
        found = found[np.isin(found, domain[np.isin(above, tops)])]
        if len(found):
            break
    room = leaf_room(problem)
    below = np.bincount(domain, weights=problem.capacity, minlength=len(room))
    smallest = int(found[np.lexsort((problem.tie.among(found), below[found]))[0]])
    inside = domain == smallest
    leaves = np.unique(topology.leaf_index[inside & (problem.capacity > 0)])
    has_members = leaf_members(problem) > 0
    by_room = np.lexsort((problem.tie.among(leaves), -room[leaves], ~has_members[leaves]))
    if bounds.most_leaves is not None:
        new = bounds.most_leaves - int(has_members.sum())
        leaves = leaves[by_room[: new + int(has_members[leaves].sum())]]
    takes = filled(problem, leaves, count)
    missing = bounds.missing_leaves(int(has_members.sum()), count)
    if missing > np.count_nonzero(takes[~has_members]):
        # One VM each for the leaves that the group must use; then the others.
        given = np.zeros_like(room)
        given[spread(problem, takes, leaves, missing)] = 1
        takes = given + filled(problem, np.flatnonzero(takes), count - missing, given)
    used = np.flatnonzero(takes)
    counts = dict(zip(used.tolist(), takes[used].tolist(), strict=True))
    return LeafCounts(int(above[inside][0]), counts, is_proven=not count)


def filled(problem: Problem, leaves: Array, count: int, given: Array | None = None) -> Array:
    """Return the VMs of each leaf if the largest branches are filled first. Shape (switches,).

    :param leaves: those to fill
    :param given: VMs that leaves take besides. Shape (switches,)
    """
    room = leaf_room(problem) - (0 if given is None else given)
    leaves = np.unique(leaves)
    in_order = largest_branch_first(problem, leaves, room[leaves])
    before = np.cumsum(room[in_order]) - room[in_order]
    takes = np.zeros_like(room)
    takes[in_order] = np.clip(count - before, 0, room[in_order])
    return takes


def spread(problem: Problem, takes: Array, leaves: Array, number: int) -> Array:
    """Return the leaves without members that have VMs, and the nearest others up to a number.

    Below the switches with most of those on each level, then with most others. O(hosts * depth).

    :param takes: VMs per leaf. Shape (switches,)
    :param leaves: those that may be used
    """
    leaves = np.unique(leaves)
    leaves = leaves[leaf_members(problem)[leaves] == 0]
    sizes = np.where(takes[leaves] > 0, len(leaves) + 1, 1)
    members = np.where(problem.members > 0, len(leaves) + 1, 0)
    in_order = largest_branch_first(problem, leaves, sizes, members)
    return in_order[np.argsort(takes[in_order] == 0, kind="stable")][:number]


def saved_hops(problem: Problem, takes: Array) -> int:
    """Return the hops that VMs and members save which share a leaf or a switch above it.

    :param takes: VMs per leaf. Shape (switches,)
    """
    topology = problem.topology
    everyone = (leaf_members(problem) + takes)[topology.leaf_switches]
    below = [np.bincount(row, weights=everyone) for row in topology.leaf_path[:-1]]
    return sum(int((vms * (vms - 1)).sum()) for vms in below)
