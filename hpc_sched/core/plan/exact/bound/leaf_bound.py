"""The best plan on a bounded number of leaves, by a price of a leaf (Lagrange multiplier).

The value of a plan is what it saves less the price of its leaves. At any price, a plan within the
bound that is better than a known one is worth at least as much as that one would be on all leaves
that are allowed. So once all plans of such values are listed, the best one is found. The nearer
the known plan and the price are to the best ones, the fewer these are.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter

from hpc_sched.core.plan.exact.bound import leaf_sets
from hpc_sched.core.plan.exact.bound.price_bracket import PriceBracket
from hpc_sched.core.plan.exact.order import Greatest, ScoreWeights
from hpc_sched.core.plan.exact.search import Point, Search
from hpc_sched.core.plan.problem import LeafCounts
from hpc_sched.core.plan.time_limit import Effort, EffortSpent, TimeLimitPassed

# Sums of scores that may be made in all, and to list plans at least.
_SUMS = 38_000_000
_SUMS_TO_LIST = 3_000_000
_CHEAP = 8  # prices that may be tried for the sums of a list
# Plans are listed first that are worth less than the best by a part of what matters at most.
_PARTS = 64
# No more prices are looked for if they lower the bound on savings by a small part of the gap.
_FRACTION = 6


class Known:
    """The best plan within the bound that is known so far."""

    def __init__(self, point: Point) -> None:
        """Begin with a plan. It is made while there is time: that looks at the clock too."""
        self.point, self.counts = point, point.counts()

    def add(self, point: Point) -> None:
        """Keep a plan if it is better."""
        if point.saved > self.point.saved:
            self.point, self.counts = point, point.counts()


@dataclass(frozen=True, slots=True)
class LeafBound:
    """Bounds on the new leaves of a group, one of which the best plan breaks.

    The algorithm knows bounds at most only: with the sign -1 numbers of leaves are negative, and so
    is the bound at least.
    """

    most: int | None
    least: int
    sign: int  # 1 if the best plan uses too many leaves, -1 if it uses too few
    greatest: Greatest
    # The best plan on some leaves and those of members, if they have room for all VMs.
    among: Callable[[Iterable[int], ScoreWeights], Search | None]
    # The search at a price for all plans that save at least some hops, see Point.saved. None if
    # the one without a price has all of them.
    saving: Callable[[ScoreWeights, int], Search] | None
    effort: Effort

    @property
    def limit(self) -> int:
        """The bound that is broken, with the sign."""
        return -self.least if self.sign < 0 or self.most is None else self.most

    def allows(self, leaves: int) -> bool:
        """True if a number of leaves, with the sign, keeps both bounds."""
        used = self.sign * leaves
        return self.least <= used and (self.most is None or used <= self.most)

    def best(self, free: Search, start: Sequence[int]) -> LeafCounts:
        """Return the best plan within the bounds.

        :param free: the search without a price for the best plan of all
        :param start: leaves within the bounds that have room for all VMs
        :raises TimeLimitPassed: if the limit passes before any plan is found
        """
        known, is_proven = self.best_known(free, start)
        return replace(known.counts, is_proven=is_proven)

    def best_known(self, free: Search, start: Sequence[int]) -> tuple[Known, bool]:
        """Return the best plan as :meth:`best` does, with its point, and whether it is proven."""
        first = Point.best_of(free)
        known = Known(self._similar([first], start))
        try:
            is_proven = self._improve(known, first, start)
        except (OverflowError, TimeLimitPassed):
            is_proven = False
        return known, is_proven

    def _improve(self, known: Known, free: Point, start: Sequence[int]) -> bool:
        """Look for the best plan; True if it is found."""
        bracket = PriceBracket(self.limit, free, known.point)
        point, saving = free, self.saving
        nearest: Point | None = None
        has_mixed = False
        while bracket.price is not None:
            began = self.effort.made
            weights = self._weights(bracket.price)
            if saving is None:
                search = point.search.at(weights, self._least_score(point, known))
            else:
                search, saving = saving(weights, known.point.saved), None
            point = Point.best_of(search)
            bracket.add(point)
            if point.leaves == self.limit and self.allows(point.leaves):
                known.point, known.counts = point, point.counts()
                return True
            if self.allows(point.leaves):
                known.add(point)
            nearest = point if nearest is None else min(nearest, point, key=self._most)
            if not self._is_near(bracket, nearest, known):
                continue
            if not has_mixed:
                # This takes as long as another price, and often leads to a better plan.
                has_mixed = True
                known.add(self._similar(bracket.ends, start))
            # Another price leaves out more of the fabric, where that costs little.
            is_costly = _CHEAP * (self.effort.made - began) > self._left()
            if is_costly and self._is_near(bracket, nearest, known):
                break
        assert nearest is not None  # a price is tried at least
        # Once more without what no plan uses that is as good as the known one: lists are long.
        trimmed = nearest.search.at(nearest.search.weights, self._least_score(nearest, known))
        return self._list(known, Point.best_of(trimmed))

    def _weights(self, price: Fraction) -> ScoreWeights:
        has_both = self.most is not None and self.least > 0
        return self.greatest.weights(price, self.sign, keeps_all=has_both)

    def _left(self) -> int:
        """Return the sums that may be made to list plans."""
        return max(_SUMS - self.effort.made, _SUMS_TO_LIST)

    def _list(self, known: Known, point: Point) -> bool:
        """List plans that are worth little less than the best at a price, then more.

        :return: True if the best plan is found, False after too many sums
        """
        with suppress(EffortSpent), self.effort.at_most(self._left()):
            self._list_all(known, point)
            return True
        return False

    def _list_all(self, known: Known, point: Point) -> None:
        search, weights = point.search, point.search.weights
        parts, before = _PARTS, 0
        while True:
            began = self.effort.made
            spare = (self._most(point) - known.point.saved) / parts
            scores = search.near(int(spare * weights.saving) + weights.unit - 1)
            near = [one for score in scores if self.allows((one := Point(score, search)).leaves)]
            # A plan that is listed comes first of those that are as good. Below several tops
            # they may differ in excess capacity, and so in their scores.
            near.sort(key=lambda one: one.score, reverse=True)
            best = max([*near, known.point], key=lambda one: (one.saved, -abs(one.leaves)))
            if best.saved >= self._most(point) - spare:
                known.point, known.counts = best, best.counts()
                return
            known.add(best)
            # Further where the last list took little more than the one before.
            made = self.effort.made - began
            parts = max(parts // (4 if made < 2 * before or not before else 2), 1)
            before = made

    def _similar(self, near: Sequence[Point], start: Sequence[int]) -> Point:
        """Return a good plan within the bounds, on leaves like those of some plans."""
        tree, price = near[0].search.tree, Fraction(0)
        plans = [point.counts() for point in near]
        sets: Iterable[Sequence[int]]
        if self.sign > 0:
            counts = [plan.counts for plan in plans]
            sets = leaf_sets.by_savings(tree, [start, *leaf_sets.like(tree, counts, self.limit)])
        else:
            sets = [start, *(leaf_sets.with_others(tree, plan, self.least) for plan in plans)]
        if self.least:
            # With so high a reward a plan uses as many of the leaves as it can.
            price = Fraction(-self.sign * (self.greatest.saved + 1))
        searches = (self.among(leaves, self._weights(price)) for leaves in sets)
        points = (Point.best_of(search) for search in searches if search is not None)
        found = (point for point in points if self.allows(point.leaves))
        return next(found) if self.sign > 0 else max(found, key=attrgetter("saved"))

    def _most(self, point: Point) -> Fraction:
        """Return the most that any plan within the bound saves, by the best one at a price."""
        return point.value(point.price) + point.price * self.limit

    def _is_near(self, bracket: PriceBracket, nearest: Point, known: Known) -> bool:
        """True if no price lowers the most that a plan may save by much of the gap to the known."""
        if bracket.low is None or bracket.price is None:
            return bracket.price is None
        line = bracket.line
        least = bracket.high.value(line) + line * self.limit
        most = self._most(nearest)
        return _FRACTION * (most - least) <= most - known.point.saved

    def _least_score(self, point: Point, known: Known) -> int:
        """Return the least score, in the search of a point, of plans as good as the known one."""
        weights = point.search.weights
        spare = weights.width if self.sign > 0 else weights.unit
        return weights.saving * known.point.saved - weights.leaf * abs(self.limit) - spare
