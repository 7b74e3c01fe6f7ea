"""The knapsack over a tree of switches that gives the least Hop-Byte cost.

The closed form of the cost (Dudina2013) is a constant less the savings of each switch and host.
The savings below a switch depend only on the number of VMs below each of its children. So the
best split is found bottom up, with one table a node: the best score of 0, 1, 2 .. new VMs below
it. Two tables are joined by max-plus convolution.

From the tables, top down, come the scores of ways that use other numbers of leaves, as far as
they are near the best one, and the way itself: of equal ones the first in the order of plans.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.near_scores import NOTHING_NEAR, NearScores, Wanted
from hpc_sched.core.plan.exact.order import NOTHING, Rank, ScoreWeights, Way
from hpc_sched.core.plan.maxplus import maxplus, splits
from hpc_sched.core.plan.time_limit import Effort

# What a join takes, in sums of scores that are listed one by one, and sums of tables for one.
_JOIN = 500
_SUMS_OF_TABLES = 15


class Node(ABC):
    """A part of the tree with its table."""

    @property
    @abstractmethod
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""

    @property
    def most(self) -> int:
        """The most VMs."""
        return len(self.scores) - 1

    def score(self, vms: int) -> int:
        """Return the best score of a number of VMs."""
        return int(self.scores[vms])

    @abstractmethod
    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores. A later call takes the place of this one, see :meth:`way`.

        :raises EffortSpent: for too many sums
        """

    @abstractmethod
    def way(self, vms: int, score: int) -> Way:
        """Return the first way with a score: the best one, or one that ``near`` returned."""


class Pair(Node):
    """Two nodes side by side."""

    def __init__(
        self, left: Node, right: Node, most: int, weights: ScoreWeights, effort: Effort
    ) -> None:
        """Put two nodes side by side, for up to ``most`` VMs."""
        self.left, self.right = left, right
        self._most = min(left.most + right.most, most)
        self.weights, self.effort = weights, effort
        self._near = NOTHING_NEAR, NOTHING_NEAR  # left and right
        self._ways: dict[tuple[int, int], Way] = {}

    @cached_property
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        length = self.most + 1
        left, right = self.left.scores[:length], self.right.scores[:length]
        self.effort.limit.check()
        return maxplus(left, right, self.most, self._spend)

    def _spend(self, sums: int) -> None:
        """Count sums of tables as the sums of listed scores that take as long."""
        self.effort.spend(_JOIN + sums // _SUMS_OF_TABLES)

    @property
    def most(self) -> int:
        """The most VMs."""
        return self._most

    def score(self, vms: int) -> int:
        """Return the best score of a number of VMs."""
        return int(splits(self.left.scores, self.right.scores, vms)[1].max())

    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores."""
        if not wanted.vms.any():
            return NearScores(NOTHING_NEAR.vms, self.scores[:1])
        # For few groups.
        from hpc_sched.core.plan.exact.bound.near_sums import side_by_side, wanted_below

        left, right = wanted_below(wanted, self.left.scores, self.right.scores, self.effort)
        self._near = self.left.near(left), self.right.near(right)
        return side_by_side(*self._near, wanted, self.weights, self.effort)

    def way(self, vms: int, score: int) -> Way:
        """Return the first way with a score: the best one, or one that ``near`` returned."""
        if vms == 0:
            return NOTHING
        key = vms, score
        if key not in self._ways:
            self.effort.limit.check()
            self._ways[key] = min(
                self.left.way(here, of_left).beside(self.right.way(vms - here, score - of_left))
                for here, of_left in self._splits(vms, score)
            )
        return self._ways[key]

    def _splits(self, vms: int, score: int) -> Iterator[tuple[int, int]]:
        """Yield VMs on the left, and their score, for each way to split a score."""
        low, sums = splits(self.left.scores, self.right.scores, vms)
        if score == sums.max():
            for here in (low + np.flatnonzero(sums == score)).tolist():
                yield here, int(self.left.scores[here])
            return
        left, right = self._near
        for here, here_score in zip(left.vms.tolist(), left.scores.tolist(), strict=True):
            if here <= vms and score - here_score in right.at(vms - here):
                yield here, here_score


class Siblings(NamedTuple):
    """All nodes just below one switch."""

    nodes: Sequence[Node]
    together: Node


@dataclass(frozen=True)
class Above(Node):
    """A switch above its nodes."""

    switch: int  # in topology.switches
    below: Siblings
    own: Array  # what the switch itself adds to the score of 0, 1, 2 .. VMs. Shape (VMs + 1,)
    rank: Rank  # of the switch, if it is used

    @cached_property
    def scores(self) -> Array:
        """The best score of 0, 1, 2 .. VMs. Shape (VMs + 1,)."""
        return self.below.together.scores + self.own

    def near(self, wanted: Wanted) -> NearScores:
        """Return the wanted scores."""
        found = self.below.together.near(Wanted(wanted.vms, wanted.least - self.own[wanted.vms]))
        return NearScores(found.vms, found.scores + self.own[found.vms])

    def way(self, vms: int, score: int) -> Way:
        """Return the first way with a score: the best one, or one that ``near`` returned."""
        if not vms:
            return NOTHING
        below = self.below.together
        return below.way(vms, score - int(self.own[vms])).beside(Way(self.rank))


def joined(nodes: Iterable[Node], most: int, weights: ScoreWeights, effort: Effort) -> Node:
    """Return one node of several, for up to ``most`` VMs; small tables are joined first."""
    heap = [(node.most, i, node) for i, node in enumerate(nodes)]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        pair = Pair(heapq.heappop(heap)[2], heapq.heappop(heap)[2], most, weights, effort)
        heapq.heappush(heap, (pair.most, number, pair))
        number += 1
    return heap[0][2]
