"""The plan of least Hop-Byte within a bottleneck that uses no more of a resource than a bound.

The resource, harm or leaves, has a price in saved hops (Lagrange multiplier). At any price, the
best plan without a bound says how many hops a plan within it saves at most. Only plans that are
worth little less can be the best within it: these are listed.
"""

from contextlib import suppress
from dataclasses import dataclass

from hpc_sched.core.plan.bottleneck.least_hops.bounded_tree import Savings
from hpc_sched.core.plan.bottleneck.resources.kind_tables import KindTables, KindWay, shared_out
from hpc_sched.core.plan.bottleneck.resources.kind_values import KindValues
from hpc_sched.core.plan.bottleneck.resources.listed_ways import ListedWays, Prices
from hpc_sched.core.plan.bottleneck.resources.resource import MOST_USED, Resource
from hpc_sched.core.plan.bottleneck.resources.worth_elsewhere import WorthElsewhere
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.time_limit import Effort, EffortSpent, TimeLimitPassed

_SUMS = 4_000_000  # to list ways
_PRICES = 12  # that are tried at most
_MOST_WORTH = 1 << 56  # of a plan, at any price


@dataclass(frozen=True, slots=True)
class Added:
    """What the new VMs of a plan save, and what they use of the resource."""

    saved: int  # hops, less what all pairs cost through the top
    used: int  # of the resource

    def worth(self, prices: Prices) -> int:
        """Return what the plan is worth."""
        return prices.saved * self.saved - prices.used * self.used


@dataclass(frozen=True, slots=True)
class Found:
    """A plan."""

    added: Added
    top: int  # in topology.switches
    way: KindWay


class ResourceBound:
    """The plans within one bottleneck, by what they use of a resource."""

    def __init__(
        self, problem: Problem, savings: Savings, resource: Resource, effort: Effort
    ) -> None:
        """Make what VMs save in each kind of switch."""
        self.problem, self.most, self.effort = problem, resource.most, effort
        self.counts, self.most_saved = savings.counts, -savings.never
        self.values = KindValues.of(savings, resource)
        tops = sorted(savings.counts.tops(), key=lambda top: int(problem.tie.ranks[top]))
        self.costs = {top: _cost(problem, top, savings.counts.fabric.everyone) for top in tops}
        self._known: Found  # the best plan so far that keeps the bound

    def best(self, free: Added) -> LeafCounts:
        """Return the best plan within the bound; one is.

        :param free: the best plan without it, which uses too much
        """
        self._known, _ = self._found(Prices(0, 1))
        is_proven = False
        with suppress(EffortSpent, TimeLimitPassed):
            self._improve(free)
            is_proven = True
        top, way = self._known.top, self._known.way
        return LeafCounts(top, shared_out(self.problem, self.counts.fabric, top, way), is_proven)

    def _improve(self, high: Added) -> None:
        """Look for the best plan, from the one that uses least and one that uses too much."""
        low = self._known.added
        for _ in range(_PRICES):
            if self._known.added.saved >= high.saved:
                return
            prices = self._prices(high, low)
            found, tables = self._found(prices)
            worth = found.added.worth(prices)
            if self._known.added.saved >= (worth + prices.used * self.most) // prices.saved:
                return
            if worth <= max(high.worth(prices), low.worth(prices)):
                break
            if found.added.used > self.most:
                high = found.added
                continue
            low = found.added
            if low.saved > self._known.added.saved:
                self._known = found
        self._list(prices, tables)

    def _prices(self, high: Added, low: Added) -> Prices:
        """Return the prices at which two plans are worth as much, rounded to what fits."""
        of_saved, of_used = high.used - low.used, high.saved - low.saved
        most = max(of_saved * self.most_saved, of_used * MOST_USED) // _MOST_WORTH + 1
        return Prices(max(of_saved // most, 1), of_used // most)

    def _found(self, prices: Prices) -> tuple[Found, KindTables]:
        """Return the plan that is worth most, with the tables."""
        fabric = self.counts.fabric
        values = self.values.priced(prices.saved, prices.used)
        tables = KindTables(fabric, values, self.effort.limit)
        kinds = fabric.kind_of
        top = max(
            self.costs,
            key=lambda top: tables.best(kinds[top], fabric.count) - prices.saved * self.costs[top],
        )
        way = tables.way(kinds[top], fabric.count)
        saved, used = self._sums(way)
        return Found(Added(saved - self.costs[top], used), top, way), tables

    def _list(self, prices: Prices, tables: KindTables) -> None:
        """Take the best plan of all within the bound that save as much as the known one."""
        fabric = self.counts.fabric
        least = prices.saved * self._known.added.saved - prices.used * self.most
        tops = {fabric.kind_of[top]: prices.saved * cost for top, cost in self.costs.items()}
        values = self.values.priced(prices.saved, prices.used)
        elsewhere = WorthElsewhere(tables, values, tops, least)
        with self.effort.at_most(_SUMS):
            listed = ListedWays(self.values, tables, prices, elsewhere, self.effort)
        best = self._known.added
        for top, cost in self.costs.items():
            kind = fabric.kind_of[top]
            ways = listed.of_kind[kind]
            [within] = ((ways.vms == fabric.count) & (ways.used <= self.most)).nonzero()
            for i in within.tolist():
                added = Added(ways.saved.item(i) - cost, ways.used.item(i))
                if (added.saved, -added.used) > (best.saved, -best.used):
                    best = added
                    self._known = Found(added, top, listed.way(kind, i))

    def _sums(self, way: KindWay) -> tuple[int, int]:
        """Return what the VMs of a way save, and what they use."""
        saved = self.values.saved[way.kind].item(way.vms)
        used = self.values.used[way.kind].item(way.vms)
        for part in way.parts:
            of_part = self._sums(part)
            saved, used = saved + of_part[0], used + of_part[1]
        return saved, used


def _cost(problem: Problem, top: int, everyone: int) -> int:
    """Return what all pairs cost through a top, and what new VMs save in it by its own table."""
    switches, members = problem.topology.switches, int(problem.members.sum())
    parent, level = switches[top].parent, switches[top].level
    above = level if parent < 0 else switches[parent].level
    pairs, of_members = (vms * (vms - 1) // 2 for vms in (everyone, members))
    return (2 * above - 1) * pairs - 2 * (above - level) * of_members
