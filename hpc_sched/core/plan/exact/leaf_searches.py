"""The searches for the plan of one group: on all leaves with room, or on some of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import ScoreWeights
from hpc_sched.core.plan.exact.pruning.branches import used_branches
from hpc_sched.core.plan.exact.search import Search, tops_of
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import Effort


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
        problem, count = self.leaves.problem, self.leaves.count
        is_allowed = np.isin(problem.topology.leaf_index, [*indices, *self.with_members])
        room = replace(problem, capacity=np.where(is_allowed, problem.capacity, 0))
        tops = switches_with_room(room, count, self.level, self.bounds)
        return self._search(OpenLeaves.of(room, count), tops, weights) if len(tops) else None

    def _search(
        self, leaves: OpenLeaves, tops: Array, weights: ScoreWeights, known: int | None = None
    ) -> Search:
        if weights.keeps_all or weights.sign < 0:
            tree = GroupTree.of(leaves, self.effort, is_spread=True)
        else:
            branches = used_branches(leaves, self.level, tops, self.effort.limit, known)
            tree = GroupTree.of(leaves, self.effort, branches)
        return Search(tree, tops_of(tree, tops), weights)
