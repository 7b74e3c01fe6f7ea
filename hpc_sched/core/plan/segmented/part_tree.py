"""The tree of the planner's knapsack with the numbers that parts of a group permit alone.

Which numbers these are depends on each switch by itself, but for the last part of the group, which
is below one switch. So a number that is not permitted scores less than any plan can make up for,
and the last part costs more than any plan saves: no good plan has it twice.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.exact.group_tree import GroupTree, switches_above, used_switches
from hpc_sched.core.plan.exact.leaves.convex_leaves import Leaf
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves, saved_by_leaves
from hpc_sched.core.plan.exact.leaves.leaf_kinds import Leaves, classes, leaves_by_switch, saving
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import LeafOrder
from hpc_sched.core.plan.exact.pruning.branches import Branches
from hpc_sched.core.plan.exact.search import Top, tops_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.segmented.part_rooms import Division
from hpc_sched.core.plan.segmented.rooms_of_tops import tops_with_division
from hpc_sched.core.plan.time_limit import Effort


@dataclass(frozen=True, slots=True, eq=False)
class PermittedNumbers:
    """What a division of a group permits below each switch of a level, as scores."""

    division: Division
    level: int  # of the switches of parts
    last: int  # what the last part costs, in parts of a hop
    # Whether the last part may be anywhere: not if a switch without room has it already.
    is_free: bool = True

    @property
    def never(self) -> int:
        """What a number that is not permitted costs. Two of it outweigh nothing."""
        return 2 * self.last

    def costs(self, members: int, vms: int) -> Array:
        """Return what 0, 1, 2 .. new VMs below a switch cost. Shape (VMs + 1,).

        :param members: below the switch
        """
        division, total = self.division, members + np.arange(vms + 1)
        full, rest = total // division.size, total % division.size
        is_whole, is_last = rest == 0, np.zeros_like(rest, dtype=np.bool_)
        if division.rest and self.is_free:
            is_last = rest == division.rest
        if division.each is not None:
            parts = full + is_last
            is_even = (parts == division.each) | (parts == division.each + 1)
            is_whole &= is_even | (total == 0)
            is_last &= is_even
        costs = np.full(vms + 1, self.never)
        costs[is_whole] = 0
        costs[is_last] = self.last
        return costs


def part_tree(
    open_: OpenLeaves,
    permitted: PermittedNumbers,
    effort: Effort,
    branches: Branches | None = None,
) -> GroupTree:
    """Return the tree of what parts permit. O(hosts + switches * VMs).

    :param branches: those that are used; None: all
    """
    is_used = np.ones(len(open_.index), dtype=np.bool_)
    if branches is not None:
        is_used = np.isin(open_.above, list(branches.parents))
    order = LeafOrder.of(open_.problem, open_.room, open_.members > 0, open_.index[is_used])
    below = open_.path[permitted.level - 1]
    # A leaf stands in for a missing switch of the level.
    is_part = below == open_.index
    leaves = leaves_by_switch(open_, np.flatnonzero(is_used & ~is_part), order)
    of_parts = np.flatnonzero(is_used & is_part)
    for above, found in _leaves_of_parts(open_, of_parts, order, permitted).items():
        leaves.setdefault(above, []).extend(found)
    if branches is None:
        switches, most = switches_above(open_.path), {}
    else:
        switches, most = used_switches(branches.children, leaves), branches.most
    parents = [switch.parent for switch in open_.problem.topology.switches]
    own = {
        switch: _own(open_, permitted, switch)
        for switch in np.unique(below[is_used & ~is_part]).tolist()
        if parents[switch] >= 0
    }
    return GroupTree(
        *(open_.problem, open_.count, effort, open_.members, order, open_.index, open_.path),
        *(leaves, switches, most),
        own=own,
        charges=open_.charges,
    )


def fitting(
    problem: Problem, level: int, bounds: Bounds, tops: Array, permitted: PermittedNumbers
) -> Array:
    """Return those of some switches of a level below which the permitted division fits."""
    parts = bounds.guaranteed_parts
    assert parts is not None
    return tops_with_division(problem, level, parts, bounds, tops, permitted.division)


def tops_in_parts(tree: GroupTree, tops: Array, permitted: PermittedNumbers) -> list[Top]:
    """Return switches as tops; a root that is a switch of parts holds the last part too."""
    found = tops_of(tree, tops)
    levels, count = tree.problem.topology.switches, tree.count
    for i, top in enumerate(found):
        if top.leaf is None and levels[top.switch].level <= permitted.level:
            cost = permitted.costs(int(tree.members[top.switch]), count)[count]
            found[i] = replace(top, less=top.less + int(cost))
    return found


def _own(open_: OpenLeaves, permitted: PermittedNumbers, switch: int) -> Array:
    """Return what 0, 1, 2 .. VMs save in a switch of parts, less what their number costs."""
    members, vms = int(open_.members[switch]), min(int(open_.room[switch]), open_.count)
    parent = open_.problem.topology.switches[switch].parent
    saved = saving(members, int(open_.levels[parent] - open_.levels[switch]), vms)
    if open_.charges is not None:
        saved = open_.charges.worth(switch, saved)
    return saved - permitted.costs(members, vms)


def _leaves_of_parts(
    open_: OpenLeaves, among: Array, order: LeafOrder, permitted: PermittedNumbers
) -> dict[int, list[Leaves]]:
    """Return leaves, each of which is a switch of parts, by the switch above them."""
    found = defaultdict[int, list[Leaves]](list)
    rows: dict[tuple[int, bytes], list[Array]] = {}
    for part, gains, _ in classes(open_, among, order, by_room=True):
        one, index = part[0], open_.index[part]
        members, most = int(open_.here[one]), len(gains) - 1
        if open_.charges is not None:
            gains = open_.charges.worth(int(index[0]), gains)
        costs = permitted.costs(members, most)
        [vms] = (costs < permitted.never).nonzero()
        if not len(vms):
            continue
        gains = (gains - costs)[: vms[-1] + 1]
        first = Leaf(int(index[0]), int(open_.rooms[one]), members > 0, gains, order)
        here = found[int(open_.above[one])]
        if len(part) == 1 or costs[0] or len(vms) == 1:
            # Where no VMs more are a number that costs something, each leaf counts by itself.
            here += [replace(first, index=leaf) for leaf in index.tolist()]
            continue
        key = len(part), gains.tobytes()
        if key not in rows:
            rows[key] = saved_by_leaves(gains, len(part), open_.count, fewest=int(vms[1]))
        here.append(EqualLeaves(index, first, rows[key], open_.count))
    return found
