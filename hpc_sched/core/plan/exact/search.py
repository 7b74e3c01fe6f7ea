"""The switches that may hold a whole group, and the best plan below one of them."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.convex_leaves import Leaf
from hpc_sched.core.plan.exact.leaves.open_leaves import saved_by
from hpc_sched.core.plan.exact.near_scores import Wanted
from hpc_sched.core.plan.exact.nodes import Node, Siblings
from hpc_sched.core.plan.exact.order import Rank, ScoreWeights, Way
from hpc_sched.core.plan.problem import LeafCounts


@dataclass(frozen=True, slots=True)
class Top:
    """A switch that has room for the whole group."""

    switch: int
    leaf: Leaf | None  # the switch, if it is a leaf
    less: int  # what all pairs cost through the switch, and it and those above are charged


def tops_of(tree: GroupTree, switches: Array) -> list[Top]:
    """Return switches as tops; of leaves that save alike only the first in the order of plans."""
    problem, levels = tree.problem, tree.problem.topology.switches
    count = tree.count
    pairs = math.comb(int(problem.members.sum()) + count, 2)
    among = set(switches.tolist())
    tops = [
        Top(switch, None, _less(tree, switch, (2 * levels[switch].level - 1) * pairs))
        for switch in switches.tolist()
        if levels[switch].level > 1 and (switch in tree.leaves or switch in tree.switches)
    ]
    if all(levels[switch].level > 1 for switch in among):
        return tops
    for above, classes in tree.leaves.items():
        rise = levels[above].level - 1 if above >= 0 else 0
        for leaves in classes:
            leaf = leaves.with_room(count)
            if leaf is not None and leaf.index in among:
                saved = int(saved_by(count, int(tree.members[leaf.index]), rise))
                tops.append(Top(leaf.index, leaf, _less(tree, above, pairs + saved)))
    return tops


def _less(tree: GroupTree, switch: int, hops: int) -> int:
    """Return hops and what a switch and those above are charged, in the tree's parts."""
    charges = tree.charges
    if charges is None:
        return hops
    return charges.scale * hops + charges.from_top(tree.problem.topology, switch, tree.count)


class Search:
    """The plans below some switches, at one price of leaves.

    The score of a plan is that of its new VMs, less what all pairs cost through its top.
    """

    def __init__(self, tree: GroupTree, tops: Sequence[Top], weights: ScoreWeights) -> None:
        """Make the tables. O(bent points * VMs) for each pair of nodes, see maxplus.maxplus."""
        self.tree, self.count, self.weights = tree, tree.count, weights
        nodes = [
            (
                top,
                Siblings((), top.leaf.node(weights))
                if top.leaf
                else tree.node(top.switch, weights),
            )
            for top in tops
        ]
        # Plans that fill the others were left out of the tree: there are better ones.
        self._nodes = [(top, node) for top, node in nodes if node.together.most >= self.count]
        # Plans with one score a top, or all those near the best.
        self._found = [
            (node.together.score(self.count) - weights.saving * top.less, top, node.together)
            for top, node in self._nodes
        ]
        # None where only worse plans use what was left out of the tree.
        self.has_plan = bool(self._found)
        self.best = max((score for score, _, _ in self._found), default=0)

    def at(self, weights: ScoreWeights, least: int) -> "Search":
        """Return the search at another price, without leaves that no good plan uses.

        :param least: the least score of a good plan in this search
        """
        # For few groups.
        from hpc_sched.core.plan.exact.bound.trimmed_tree import trimmed

        tree, tops = self.tree, []
        for top, node in self._nodes:
            less = self.weights.saving * top.less
            if node.together.score(self.count) - less >= least:
                tops.append(top)
                if top.leaf is None:
                    tree = trimmed(tree, top.switch, node, least + less)
        return Search(tree, tops, weights)

    def near(self, spare: int) -> list[int]:
        """Return the best scores of plans with each number of new leaves below each top.

        Those that use more leaves and save no more than others may be left out.

        :param spare: by how much less than the best score a plan may have
        :raises EffortSpent: for too many sums
        """
        found: list[tuple[int, Top, Node]] = []
        for top, (_, node) in self._nodes:
            less = self.weights.saving * top.less
            wanted = Wanted(np.array([self.count]), np.array([self.best - spare + less]))
            if node.score(self.count) >= wanted.least[0]:
                scores = (node.near(wanted).scores - less).tolist()
                found += [(score, top, node) for score in scores]
        self._found = found
        return [score for score, _, _ in found]

    def plan(self, score: int) -> LeafCounts:
        """Return the first plan with a score: the best one, or one that ``near`` returned last."""
        ways = [
            (node.way(self.count, score + self.weights.saving * top.less), top)
            for of_top, top, node in self._found
            if of_top == score
        ]
        ranked = [(way.beside(Way(self._rank(top))), top.switch) for way, top in ways]
        first, switch = min(ranked, key=itemgetter(0))
        counts = {used.leaf: used.vms for used in sorted(first.used_leaves())}
        return LeafCounts(switch, counts)

    def _rank(self, top: Top) -> Rank:
        """Return the rank of a top and of the switches above it; a leaf has its own rank."""
        above = self.tree.problem.topology.upwards(top.switch)
        return self.tree.order.rank_of(itertools.islice(above, top.leaf is not None, None))


@dataclass(frozen=True, slots=True)
class Point:
    """A plan that a search has found."""

    score: int
    search: Search

    @classmethod
    def best_of(cls, search: Search) -> "Point":
        """Return the best plan of a search."""
        return cls(search.best, search)

    @property
    def leaves(self) -> int:
        """The leaves without members."""
        return int(self.search.weights.leaves(np.array(self.score)))

    @property
    def saved(self) -> int:
        """What the plan saves, less what all pairs cost through its top."""
        return int(self.search.weights.saved(np.array(self.score), np.array(self.leaves)))

    @property
    def price(self) -> Fraction:
        """The price of a leaf in the search."""
        return self.search.weights.price

    def value(self, price: Fraction) -> Fraction:
        """Return what the plan is worth at a price of a leaf."""
        return self.saved - price * self.leaves

    def counts(self) -> LeafCounts:
        """Return the plan."""
        return self.search.plan(self.score)
