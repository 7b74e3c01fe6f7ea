"""Equal leaves below one switch, as a node of the knapsack."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.leaves.convex_leaves import Leaf
from hpc_sched.core.plan.exact.near_scores import NearScores, Wanted
from hpc_sched.core.plan.exact.nodes import Node
from hpc_sched.core.plan.exact.order import NOTHING, ScoreWeights, Way
from hpc_sched.core.plan.maxplus import LOWEST, bent, maxplus


def saved_by_leaves(
    gains: Array, leaves: int, most: int, *, fewest: int | None = None
) -> list[Array]:
    """Return what VMs save at most in 0, 1, 2 .. of some equal leaves, each of which has VMs.

    Row l begins with l VMs. O(rows * VMs).

    :param fewest: VMs that each leaf has; by default those that :func:`bent` says: more leaves are
        never better then
    """
    if fewest is None:
        fewest = int(bent(gains, 1)[1])
    rows = [np.zeros(1, dtype=np.int64)]
    for used in range(1, min(leaves, most // fewest + 1, most) + 1):
        rows.append(maxplus(gains[1:], rows[-1], most - used))
    return rows


@dataclass(frozen=True)
class EqualLeaves:
    """Leaves with the same room, members and savings."""

    leaves: Array  # in topology.switches, in tie order
    first: Leaf
    saved: list[Array]  # see saved_by_leaves
    most: int  # VMs

    def with_room(self, count: int) -> Leaf | None:
        """Return the first leaf if it has room for a number of VMs."""
        return self.first.with_room(count)

    def up_to(self, vms: int) -> "EqualLeaves":
        """Return the leaves for up to a number of VMs."""
        return replace(self, most=vms)

    def node(self, weights: ScoreWeights) -> "EqualNode":
        """Return the leaves as a node."""
        return EqualNode(self, weights)

    def numbers(self, leaves: int, count: int) -> list[int]:
        """Return the VMs in each of some leaves, of equally good ways most in the first."""
        numbers, gains = [], self.first.gains
        for used in range(leaves, 0, -1):
            before = self.saved[used - 1]
            # The rest of the leaves has at least one VM each.
            low = max(1, count - (used - 1) - (len(before) - 1))
            high = min(len(gains) - 1, count - (used - 1))
            takes = np.arange(high, low - 1, -1)
            rest = before[count - takes - (used - 1)]
            best = gains[takes] + rest == self.saved[used][count - used]
            numbers.append(int(takes[best][0]))
            count -= numbers[-1]
        return numbers


@dataclass(frozen=True)
class EqualNode(Node):
    """Equal leaves with their table."""

    leaves: EqualLeaves
    weights: ScoreWeights

    @cached_property
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        part = self.leaves
        length = min(len(part.leaves) * (len(part.first.gains) - 1), part.most) + 1
        scores = np.full(length, LOWEST)
        scores[0] = 0
        for used in range(1, min(len(part.saved), length)):
            row = self.row(used)[: length - used]
            np.maximum(scores[used : used + len(row)], row, out=scores[used : used + len(row)])
        return scores

    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores."""
        # For few groups.
        from hpc_sched.core.plan.exact.bound.near_sums import near_in_rows

        rows = (self.row(used) for used in range(1, len(self.leaves.saved)))
        return near_in_rows(rows, wanted, has_members=self.leaves.first.has_members)

    def way(self, vms: int, score: int) -> Way:
        """Return the first way with a score: the best one, or one that ``near`` returned."""
        if not vms:
            return NOTHING
        # Several numbers of members' leaves may be as good.
        return min(
            self._way(used, vms)
            for used in range(1, min(vms + 1, len(self.leaves.saved)))
            if vms - used < len(self.leaves.saved[used]) and self.row(used)[vms - used] == score
        )

    def row(self, used: int) -> Array:
        """Return the scores of ways that use a number of leaves, from as many VMs on."""
        part, weights = self.leaves, self.weights
        row = weights.saving * part.saved[used]
        if weights.excess:
            row -= weights.excess * (used * part.first.room - used - np.arange(len(row)))
        return row if part.first.has_members else row - weights.leaf * used

    def _way(self, used: int, count: int) -> Way:
        part, first = self.leaves, self.leaves.first
        vms = np.array(part.numbers(used, count))
        room = used * first.room
        return first.order.way(part.leaves[:used], vms, room, has_members=first.has_members)
