"""The plans that a search may find: places of a group within its bounds and that of the harm."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import Bounds, level_of
from hpc_sched.core.plan.bottleneck.ranks.rank_intervals import Measures, RankIntervals
from hpc_sched.core.plan.bottleneck.ranks.rank_moves import Moves
from hpc_sched.core.plan.problem import Problem

_MOST = (1 << 63) - 1  # that an array holds; loads add up to less


@dataclass(frozen=True, slots=True, eq=False)
class SearchSpace:
    """Places, what plans of them cost, and the bounds of a group. Shapes of arrays (places,)."""

    tables: RankIntervals
    room: Array  # most new VMs
    leaf: Array
    top: Array  # the switch of the required level
    has_members: bool
    fewest_leaves: int  # that the group uses, members included
    most_leaves: int
    harm: Fraction | None = None  # bound; None without one

    def within_top(self, planned: Array, moves: Moves) -> Mask:
        """Return which moves leave the group below one switch of the required level.

        Shape (moves,). They stay where it is, or take all of a group without members elsewhere.
        """
        if not planned.any():
            return np.ones(len(moves), dtype=np.bool_)
        now = self.top[np.argmax(planned)]
        leaves = (self.top[moves.target] != now) & (moves.vms > 0)
        gone = np.where(leaves, moves.vms, 0).sum(1)
        to = self.top[moves.target[np.arange(len(moves)), leaves.argmax(1)]]
        is_one = (~leaves | (self.top[moves.target] == to[:, None])).all(1)
        all_go = (gone == planned.sum()) & is_one & (not self.has_members)
        found: Mask = (gone == 0) | all_go
        return found

    def permitted(self, after: Measures) -> Mask:
        """Return which plans keep the other bounds, that of the harm rounded. Shape (plans,)."""
        found = (after.leaves >= self.fewest_leaves) & (after.leaves <= self.most_leaves)
        if self.harm is not None:
            most = self.harm * self.tables.unit
            found &= after.harm <= min(most.numerator // most.denominator, _MOST)
        return found

    def keeps_harm(self, planned: Array) -> bool:
        """True if a plan keeps the bound on the harm."""
        return self.harm is None or self.tables.exact(planned)[1] <= self.harm


def search_space(
    problem: Problem,
    tables: RankIntervals,
    bounds: Bounds,
    hops_plan: Array,
    tradeoff: Fraction | None,
) -> SearchSpace:
    """Return the plans of as many VMs as the plan of least Hop-Byte has.

    :param bounds: of the plans, the members' leaves included
    :param hops_plan: VMs per host. Shape (hosts,)
    :param tradeoff: the harm is at most this part more than that of the hops plan; None: any
    """
    topology, places = problem.topology, tables.places
    before = len(np.unique(topology.leaf_index[problem.members > 0]))
    vms, harm = int(hops_plan.sum()), tables.exact(hops_plan[places])[1]
    return SearchSpace(
        tables=tables,
        room=np.minimum(problem.capacity[places], vms),
        leaf=topology.leaf_index[places],
        top=topology.groups[level_of(topology, bounds.level) - 1, places],
        has_members=bool(problem.members.any()),
        fewest_leaves=before + bounds.missing_leaves(before, vms),
        most_leaves=len(topology.hosts) if bounds.most_leaves is None else bounds.most_leaves,
        harm=None if tradeoff is None else (1 + tradeoff) * harm,
    )
