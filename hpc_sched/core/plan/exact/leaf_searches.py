"""The searches for the plan of one group: on all leaves with room, or on some of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import ScoreWeights
from hpc_sched.core.plan.exact.pruning.branches import Branches, BranchSearch
from hpc_sched.core.plan.exact.search import Point, Search, tops_of
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import Effort

if TYPE_CHECKING:
    from hpc_sched.core.plan.segmented.part_tree import PermittedNumbers

_MANY = 4  # switches above leaves: fewer are searched at once


@dataclass(frozen=True, slots=True, eq=False)
class LeafSearches:
    """Searches of one effort, at any price of a leaf.

    Each search raises TimeLimitPassed if the limit passes.
    """

    leaves: OpenLeaves
    level: int  # of the switch that must hold all VMs, members included
    tops: Array  # the switches of that level with room for all
    bounds: Bounds  # on the leaves of the group, the members' leaves included
    effort: Effort
    permitted: "PermittedNumbers | None" = None  # VMs below switches; None: any numbers
    branches: Branches | None = None  # with permitted numbers: those that good plans use on all

    def within(self, branches: Branches | None) -> "LeafSearches":
        """Return the searches of permitted numbers, on all in some branches; None: anywhere."""
        return replace(self, branches=branches)

    @property
    def with_members(self) -> Array:
        """The leaves of members, as indices in ``topology.switches``."""
        switches = self.leaves.problem.topology.leaf_switches
        found: Array = switches[self.leaves.members[switches] > 0]
        return found

    def on_all(self, weights: ScoreWeights, known: int | None = None) -> Search:
        """Return the search for plans that save as much as a known one, on any leaves.

        :param known: the hops that it saves, less what all pairs cost through its top; None: those
            of one that is easy to find
        """
        return self._search(self.leaves, self.tops, weights, known)

    def among(self, indices: Iterable[int], weights: ScoreWeights) -> Search | None:
        """Return the search on some leaves and those of members; None if they lack room."""
        allowed = np.array([*indices, *self.with_members], dtype=np.int64)
        is_leaf = np.zeros(len(self.leaves.room), dtype=np.bool_)
        is_leaf[allowed] = True
        problem, count = self.leaves.problem, self.leaves.count
        is_allowed = is_leaf[problem.topology.leaf_index]
        room = replace(problem, capacity=np.where(is_allowed, problem.capacity, 0))
        tops = switches_with_room(room, count, self.level, self.bounds)
        if self.permitted is not None:
            from hpc_sched.core.plan.segmented.part_tree import fitting

            tops = fitting(room, self.level, self.bounds, tops, self.permitted)
        if not len(tops):
            return None
        leaves = OpenLeaves.of(room, count, self.leaves.charges)
        return self._search(leaves, tops, weights)

    def _search(
        self, leaves: OpenLeaves, tops: Array, weights: ScoreWeights, known: int | None = None
    ) -> Search:
        if self.permitted is not None:
            from hpc_sched.core.plan.segmented.part_tree import part_tree, tops_in_parts

            branches = self.branches if leaves is self.leaves else None
            tree = part_tree(leaves, self.permitted, self.effort, branches)
            return Search(tree, tops_in_parts(tree, tops, self.permitted), weights)
        if weights.keeps_all or weights.sign < 0:
            tree = GroupTree.of(leaves, self.effort, is_spread=True)
        else:
            tree = GroupTree.of(leaves, self.effort, self._branches(leaves, tops, weights, known))
        return Search(tree, tops_of(tree, tops), weights)

    def _branches(
        self, leaves: OpenLeaves, tops: Array, weights: ScoreWeights, known: int | None
    ) -> Branches | None:
        """Return the parts of the tree that good plans use; None: any."""
        search = BranchSearch.of(leaves, self.level, tops, self.effort.limit)
        if search is None:
            return None
        branches = search.used(known)
        if known is None and leaves.charges is not None and len(branches.parents) >= _MANY:
            # A filled plan does not choose which leaf it breaks up. The best one below a single
            # switch is soon found, and leaves out most others.
            switch = search.promising(branches)
            level = leaves.levels.item(switch)
            below = leaves.index[leaves.path[level - 1] == switch]
            # With the leaves of members, which are searched besides.
            is_among = (leaves.path[level - 1] == switch) | (leaves.here > 0)
            if level > 1 and not is_among.all():
                best = self.among(below, weights)
                if best is not None:
                    branches = search.used(Point.best_of(best).saved)
        return branches
