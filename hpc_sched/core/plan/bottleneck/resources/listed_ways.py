"""Lists of ways to place VMs below switches that no other way exceeds in what it saves and uses.

Where a bound on a resource binds, the best plan within it need not be the best at any price. So
below each kind of switch the ways are listed by VMs, saved hops and what they use. Ways are left
out that no plan uses which is as good as a known one: at some price all other switches are worth
too little.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.bottleneck.resources.kind_tables import KindTables, KindWay
from hpc_sched.core.plan.bottleneck.resources.kind_values import KindValues
from hpc_sched.core.plan.bottleneck.resources.worth_elsewhere import WorthElsewhere
from hpc_sched.core.plan.time_limit import Effort, EffortSpent

_MOST_AT_ONCE = 1 << 22  # sums of two lists: more take too much memory


class Ways(NamedTuple):
    """Ways to place VMs, by VMs; of as many VMs by saved hops. Shape (ways,) each."""

    vms: Array
    saved: Array
    used: Array
    # The ways of the children before the last one, and of the last one, by index.
    before: Array
    last: Array

    def among(self, chosen: Array | Mask) -> "Ways":
        """Return some of the ways, by mask or index."""
        return Ways(*(field[chosen] for field in self))


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What a saved hop and a unit of the resource count."""

    saved: int
    used: int

    def worth(self, ways: Ways) -> Array:
        """Return what ways are worth. Shape (ways,)."""
        worth: Array = self.saved * ways.saved - self.used * ways.used
        return worth


class ListedWays:
    """The ways below each kind that plans may use which are as good as a known one."""

    def __init__(
        self,
        values: KindValues,
        tables: KindTables,
        prices: Prices,
        elsewhere: WorthElsewhere,
        effort: Effort,
    ) -> None:
        """List the ways.

        :param tables: what switches are worth at the prices
        :param elsewhere: what all else must be worth at least
        :raises EffortSpent: for too many sums
        """
        self.values, self.prices, self.effort = values, prices, effort
        self.fabric = tables.fabric
        self.of_kind: list[Ways] = []
        self._joined: list[list[Ways]] = []
        for kind, need in enumerate(elsewhere.needs()):
            self._joined.append(self._joins(kind, need.after_children))
            self.of_kind.append(self._with_own(kind, self._joined[-1][-1], need.of_kind))

    def _joins(self, kind: int, needs: list[Array]) -> list[Ways]:
        """Return the ways of the first 0, 1, 2 .. children of a kind."""
        none = np.zeros(1, dtype=np.int64)
        joins = [Ways(none, none, none, none, none)]
        for child, need in zip(self.fabric.children_of(kind), needs, strict=True):
            joins.append(self._side_by_side(joins[-1], self.of_kind[child], need))
        return joins

    def _side_by_side(self, left: Ways, right: Ways, need: Array) -> Ways:
        """Return the ways of two lists together that are worth what is needed."""
        number = len(left.vms) * len(right.vms)
        if number > _MOST_AT_ONCE:
            raise EffortSpent
        self.effort.spend(number)
        vms = left.vms[:, None] + right.vms
        worth = self.prices.worth(left)[:, None] + self.prices.worth(right)
        is_good = worth >= need[np.minimum(vms, len(need) - 1)]
        before, last = np.nonzero(is_good & (vms < len(need)))
        found = Ways(
            vms[before, last],
            left.saved[before] + right.saved[last],
            left.used[before] + right.used[last],
            before,
            last,
        )
        return found.among(not_exceeded(found))

    def _with_own(self, kind: int, below: Ways, need: Array) -> Ways:
        """Return the ways of a kind with what it saves and uses itself."""
        permitted, saved = self.values.permitted[kind], self.values.saved[kind]
        used = self.values.used[kind]
        if not self.fabric.kinds[kind].children:
            [vms] = permitted.nonzero()
            below = Ways(vms, *(np.zeros_like(vms) for _ in range(4)))
        index = np.flatnonzero(below.vms < len(permitted))
        index = index[permitted[below.vms[index]]]
        vms = below.vms[index]
        found = Ways(
            vms, below.saved[index] + saved[vms], below.used[index] + used[vms], index, index
        )
        return found.among(self.prices.worth(found) >= need[vms])

    def way(self, kind: int, index: int) -> KindWay:
        """Return a way of :attr:`of_kind`."""
        ways = self.of_kind[kind]
        parts = []
        at = ways.before.item(index)
        children = self.fabric.children_of(kind)
        for child, joined in zip(reversed(children), self._joined[kind][:0:-1], strict=True):
            parts.append(self.way(child, joined.last.item(at)))
            at = joined.before.item(at)
        return KindWay(kind, ways.vms.item(index), tuple(parts))


def not_exceeded(ways: Ways) -> Array:
    """Return which ways no other with as many VMs exceeds, as indices by VMs and saved hops.

    Of equal ones the first is kept. O(ways log ways).
    """
    if not len(ways.vms):
        return ways.vms
    order = np.lexsort((ways.used, -ways.saved, ways.vms))
    vms, used = ways.vms[order], ways.used[order]
    # Below all of the numbers of VMs before.
    span = int(used.max()) - int(used.min()) + 1
    rows = np.cumsum(np.diff(vms, prepend=vms[:1]) > 0)
    used = used - rows * span
    is_less = np.ones(len(order), dtype=np.bool_)
    is_less[1:] = used[1:] < np.minimum.accumulate(used)[:-1]
    kept: Array = order[is_less]
    return kept
