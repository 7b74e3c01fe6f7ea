"""The plans between the least Hop-Byte and the least bottleneck, by the harm that is allowed.

frontier    the plans, each better than any other in bottleneck, Hop-Byte or harm
  _ends     those of the least Hop-Byte and of the least bottleneck
  _between  those with a bottleneck between these two
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hpc_sched.core.objectives.plan_loads import PlanLoads
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.result import Plan

MOST_PLANS = 32  # that are made
MOST_BY_PATTERN = 8  # the same where each takes a local search
# Bounds on the harm that are nearer to each other, in parts of their whole range, are one.
_NEAR = Fraction(1, 64)


@dataclass(frozen=True, slots=True)
class FrontierPlan:
    """A plan of a group, and what it does to links."""

    plan: Plan
    loads: PlanLoads
    # How much more harm than the plan of least Hop-Byte it does, in parts of that: the least value
    # of bottleneck_tradeoff that gives it. None: the plan of least Hop-Byte itself.
    tradeoff: Fraction | None = None

    @property
    def costs(self) -> tuple[Fraction, float, Fraction]:
        """Bottleneck, Hop-Byte and harm."""
        return self.loads.bottleneck, self.plan.hop_bytes, self.loads.harm


@dataclass(frozen=True, slots=True)
class Frontier:
    """The plans of a group, from the least Hop-Byte to the least bottleneck."""

    plans: tuple[FrontierPlan, ...]
    # False if there may be others with a bottleneck between two of them, and a trade-off that
    # differs from theirs by more than 1/64 of the largest.
    is_whole: bool = True

    @property
    def hops(self) -> FrontierPlan:
        """The plan of least Hop-Byte."""
        return self.plans[0]

    def tradeoff_of(self, loads: PlanLoads) -> Fraction:
        """Return the least trade-off within which a plan with some loads is."""
        return _tradeoff(loads.harm, self.hops.loads.harm)


def frontier(
    plan_by: Callable[[LeastBottleneck | None], Plan | None],
    loads_of: Callable[[Plan], PlanLoads],
    objective: LeastBottleneck,
    most: int = MOST_PLANS,
) -> Frontier | None:
    """Return the plans that values of bottleneck_tradeoff give, and that of least Hop-Byte, or None
    if there is none.

    Of the plans with one bottleneck two at most: that of the least harm, and that of the least
    Hop-Byte. No plan is at least as bad as another one in bottleneck, Hop-Byte and harm, but that
    of least Hop-Byte may have an equal Hop-Byte. Deterministic: makes at most ``most`` plans,
    those first that split the widest gap.

    :param plan_by: returns the plan by an objective, None for hops
    :param objective: of the group; the plan within its own trade-off is among those looked at
    """
    probes = _Probes(plan_by, loads_of, objective, most)
    first = probes.by_hops()
    if first is None:
        return None
    found, is_whole = list(_ends(probes)), True
    if len(found) > 1:
        between, is_whole = _between(probes, *found)
        found += between
    if objective.tradeoff is not None and (own := probes.within(objective.tradeoff)) is not None:
        found.append(own)
    return Frontier((first, *_best(first, found)), is_whole)


@dataclass(slots=True)
class _Probes:
    """Makes the plans within bounds on the harm, a limited number of them."""

    plan_by: Callable[[LeastBottleneck | None], Plan | None]
    loads_of: Callable[[Plan], PlanLoads]
    objective: LeastBottleneck
    left: int
    least_harm: Fraction = Fraction(0)  # of the plan of least Hop-Byte

    def by_hops(self) -> FrontierPlan | None:
        found = self._made(None)
        if found is not None:
            self.least_harm = found.loads.harm
        return found

    def within(self, tradeoff: Fraction | None) -> FrontierPlan | None:
        """Return the plan within a trade-off; None: without a bound."""
        found = self._made(replace(self.objective, tradeoff=tradeoff))
        if found is None:
            return None
        return replace(found, tradeoff=_tradeoff(found.loads.harm, self.least_harm))

    def _made(self, objective: LeastBottleneck | None) -> FrontierPlan | None:
        self.left -= 1
        plan = self.plan_by(objective)
        return None if plan is None else FrontierPlan(plan, self.loads_of(plan))


def _ends(probes: _Probes) -> Iterator[FrontierPlan]:
    """Yield the plans of the least bottleneck: with the least harm, and with any."""
    nearest = probes.within(Fraction(0))
    if nearest is None:
        return
    yield nearest
    # Without harm there is none that is a part more.
    if probes.least_harm and (farthest := probes.within(None)) is not None:
        yield farthest


def _between(
    probes: _Probes, low: FrontierPlan, high: FrontierPlan
) -> tuple[list[FrontierPlan], bool]:
    """Return the plans whose bottleneck is between those of two, and whether these are all.

    :param low: within the least trade-off
    :param high: within any
    """
    near = _NEAR * (high.tradeoff or 0)
    gaps = [(Fraction(0), low, high)] if high.loads.bottleneck < low.loads.bottleneck else []
    found = []
    while gaps and probes.left > 1:  # the last one is the group's own
        widest = max(gaps, key=lambda gap: (_depth(gap[1], gap[2]), -gap[0]))
        gaps.remove(widest)
        bound, low, high = widest
        ends = bound, high.tradeoff or Fraction(0)
        # Capacities of some Mb/s make fractions of many digits: bounds need few.
        middle = (sum(ends, Fraction(0)) / 2).limit_denominator(10_000)
        if ends[1] - ends[0] <= near or not ends[0] < middle < ends[1]:
            continue
        one = probes.within(middle)
        if one is None:
            continue
        found.append(one)
        if one.loads.bottleneck > high.loads.bottleneck:
            gaps.append((middle, one, high))
        if one.loads.bottleneck < low.loads.bottleneck:
            gaps.append((bound, low, one))
    return found, not gaps


def _tradeoff(harm: Fraction, least: Fraction) -> Fraction:
    return max(harm / least - 1, Fraction(0)) if least else Fraction(0)


def _depth(low: FrontierPlan, high: FrontierPlan) -> Fraction:
    return low.loads.bottleneck - high.loads.bottleneck


def _best(first: FrontierPlan, found: Sequence[FrontierPlan]) -> list[FrontierPlan]:
    """Return the plans that none is better than, by falling bottleneck."""
    by_costs: dict[tuple[Fraction, float, Fraction], FrontierPlan] = {}
    for one in found:
        if one.costs != first.costs:
            by_costs.setdefault(one.costs, one)
    among = [first, *by_costs.values()]
    left = [one for one in by_costs.values() if not any(_is_better(other, one) for other in among)]
    kept = []
    for one in left:
        alike = [other for other in left if other.loads.bottleneck == one.loads.bottleneck]
        harms, hops = min(each.loads.harm for each in alike), min(o.plan.hop_bytes for o in alike)
        if one.loads.harm == harms or one.plan.hop_bytes == hops:
            kept.append(one)
    return sorted(kept, key=lambda one: (-one.loads.bottleneck, one.plan.hop_bytes))


def _is_better(one: FrontierPlan, other: FrontierPlan) -> bool:
    """True if a plan is no worse than another in each of its costs, and better in one."""
    is_no_worse = (
        one.loads.bottleneck <= other.loads.bottleneck
        and one.plan.hop_bytes <= other.plan.hop_bytes
        and one.loads.harm <= other.loads.harm
    )
    return is_no_worse and one.costs != other.costs
