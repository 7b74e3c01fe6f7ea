"""One leaf, or leaves below one switch that save alike with their table in closed form."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.near_scores import NearScores, Wanted, near_in_table
from hpc_sched.core.plan.exact.nodes import Node
from hpc_sched.core.plan.exact.order import NOTHING, LeafOrder, ScoreWeights, Way


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf switch with room."""

    index: int  # in topology.switches
    room: int
    has_members: bool
    gains: Array  # hops that 0, 1, 2 .. VMs save. Shape (VMs + 1,)
    order: LeafOrder

    def with_room(self, count: int) -> "Leaf | None":
        """Return the leaf if it takes a number of VMs."""
        return self if len(self.gains) > count else None

    def up_to(self, vms: int) -> "Leaf":
        """Return the leaf for up to a number of VMs."""
        return replace(self, gains=self.gains[: vms + 1])

    def node(self, weights: ScoreWeights) -> "LeavesNode":
        """Return the leaf as a node."""
        return LeavesNode(self, weights)

    def scores(self, weights: ScoreWeights) -> Array:
        """Return the score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        scores = weights.saving * self.gains
        if weights.excess:
            scores -= weights.excess * (self.room - np.arange(len(scores)))
        if not self.has_members:
            scores -= weights.leaf
        scores[0] = weights.saving * self.gains[0]
        return scores

    def way(self, count: int) -> Way:
        """Return the one way to place a number of VMs."""
        leaf, vms = np.array([[self.index], [count]])
        return self.order.way(leaf, vms, self.room, has_members=self.has_members)


@dataclass(frozen=True)
class ConvexLeaves:
    """Leaves whose savings are one strictly convex function, each up to its room.

    The best split of VMs over such leaves fills the largest of them. The rest of the VMs goes
    to the leaf in which it leaves the least excess capacity: any other with room saves as much.
    """

    leaves: Array  # in topology.switches, by room (largest first), then tie order
    rooms: Array  # shape (leaves,)
    has_members: bool
    gains: Array  # hops that 0, 1, 2 .. VMs save in a leaf that has room for them
    order: LeafOrder
    most: int  # VMs

    def with_room(self, count: int) -> Leaf | None:
        """Return the first of the smallest leaves with room for a number of VMs, or None."""
        if self.rooms[0] < count:
            return None
        smallest = np.searchsorted(-self.rooms, -count, side="right") - 1
        i = int(np.searchsorted(-self.rooms, -self.rooms[smallest]))
        leaf, room = int(self.leaves[i]), int(self.rooms[i])
        return Leaf(leaf, room, self.has_members, self.gains[: count + 1], self.order)

    def up_to(self, vms: int) -> "ConvexLeaves":
        """Return the leaves for up to a number of VMs."""
        return replace(self, most=vms)

    def node(self, weights: ScoreWeights) -> "LeavesNode":
        """Return the leaves as a node."""
        return LeavesNode(self, weights)

    def scores(self, weights: ScoreWeights) -> Array:
        """Return the best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        full, rest, last = self._split
        used = full + (rest > 0)
        scores = weights.saving * (self._saved_in_first[full] + self.gains[rest])
        if not self.has_members:
            scores -= weights.leaf * used
        if weights.excess:
            scores -= np.where(rest > 0, weights.excess * (self.rooms[last] - rest), 0)
        return scores

    def way(self, count: int) -> Way:
        """Return the best way to place a number of VMs."""
        full, rest, last = (int(numbers[count]) for numbers in self._split)
        used = np.append(np.arange(full), last)[: full + (rest > 0)]
        rooms = self.rooms[used]
        vms = np.append(rooms[:full], rest)[: len(used)]
        room = int(rooms.sum())
        return self.order.way(self.leaves[used], vms, room, has_members=self.has_members)

    @cached_property
    def _ends(self) -> Array:
        """The capacity of the 0, 1, 2 .. largest leaves together."""
        return np.concatenate(([0], np.cumsum(self.rooms[: self.most])))

    @cached_property
    def _saved_in_first(self) -> Array:
        """The hops that VMs save which fill the 0, 1, 2 .. largest leaves, up to ``most``."""
        sizes = self.rooms[: np.searchsorted(self._ends, self.most, side="right") - 1]
        return np.concatenate(([0], np.cumsum(self.gains[sizes])))

    @cached_property
    def _split(self) -> tuple[Array, Array, Array]:
        """For 0, 1, 2 .. VMs: full leaves, VMs in one more leaf, and the index of that leaf.

        The last is the first of the smallest leaves that are not full and have room for the rest.
        """
        vms = np.arange(min(int(self.rooms.sum()), self.most) + 1)
        if self.rooms[0] == self.rooms[-1]:
            full, rest = np.divmod(vms, self.rooms[0])
            return full, rest, np.minimum(full, len(self.rooms) - 1)
        full = np.searchsorted(self._ends, vms, side="right") - 1
        rest = vms - self._ends[full]
        smallest = np.searchsorted(-self.rooms, -rest, side="right") - 1
        alike = np.searchsorted(-self.rooms, -self.rooms[smallest])
        return full, rest, np.minimum(np.maximum(alike, full), len(self.rooms) - 1)


@dataclass(frozen=True)
class LeavesNode(Node):
    """One leaf, or convex leaves, with the table."""

    leaves: Leaf | ConvexLeaves
    weights: ScoreWeights

    @cached_property
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        return self.leaves.scores(self.weights)

    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores: other ways use as many leaves or more, and save no more."""
        return near_in_table(self.scores, wanted)

    def way(self, vms: int, score: int) -> Way:
        """Return the best way to place a number of VMs."""
        return self.leaves.way(vms) if vms else NOTHING
