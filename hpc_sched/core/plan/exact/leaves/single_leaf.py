"""One leaf as a node of the knapsack."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.near_scores import NearScores, Wanted, near_in_table
from hpc_sched.core.plan.exact.nodes import Node
from hpc_sched.core.plan.exact.order import LeafOrder, ScoreWeights
from hpc_sched.core.plan.exact.ways import NOTHING, UsedLeaf, Way


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf switch with room."""

    index: int  # in topology.switches
    room: int
    has_members: bool
    gains: Array  # hops that 0, 1, 2 .. VMs save. Shape (VMs + 1,)
    order: LeafOrder

    def with_room(self, count: int) -> "Leaf | None":
        """Return the leaf if it has room for a number of VMs."""
        return self if self.room >= count else None

    def up_to(self, vms: int) -> "Leaf":
        """Return the leaf for up to a number of VMs."""
        return replace(self, gains=self.gains[: vms + 1])

    def node(self, weights: ScoreWeights) -> "LeafNode":
        """Return the leaf as a node."""
        return LeafNode(self, weights)


@dataclass(frozen=True)
class LeafNode(Node):
    """A leaf with its table."""

    leaf: Leaf
    weights: ScoreWeights

    @cached_property
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        leaf, weights = self.leaf, self.weights
        scores = weights.saving * leaf.gains
        if weights.excess:
            scores -= weights.excess * (leaf.room - np.arange(len(scores)))
        if not leaf.has_members:
            scores -= weights.leaf
        scores[0] = 0
        return scores

    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores."""
        return near_in_table(self.scores, wanted)

    def way(self, vms: int, score: int) -> Way:
        """Return the one way to place a number of VMs."""
        if not vms:
            return NOTHING
        leaf = self.leaf
        rank = leaf.order.rank_of_leaf(leaf.index, leaf.room, int(not leaf.has_members))
        used = UsedLeaf(int(leaf.order.place[leaf.index]), leaf.index, vms)
        return Way(rank, (used,))
