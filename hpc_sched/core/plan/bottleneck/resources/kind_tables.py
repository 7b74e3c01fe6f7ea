"""The best sums over switches by the VMs below them, once for each kind of switch.

What a switch adds depends on the number of VMs below it alone. So the best split of VMs over its
children is found bottom up, child by child; equal switches have one table.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.counts.group_fabric import GroupFabric
from hpc_sched.core.plan.maxplus import maxplus, splits
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.time_limit import NO_LIMIT, Limit

# In place of the value of a number of VMs that is not permitted. Two of them fit into 62 bits.
NEVER = -(1 << 60)
_MOST_SUMS = 1 << 28  # of one join: some 0.3 s, between two looks at the limit


class KindWay(NamedTuple):
    """VMs below a switch of some kind, and how its children share them."""

    kind: int
    vms: int
    parts: tuple["KindWay", ...]


class KindTables:
    """The best sums of 0, 1, 2 .. new VMs below each kind, its own value included."""

    def __init__(
        self, fabric: GroupFabric, values: Sequence[Array], limit: Limit = NO_LIMIT
    ) -> None:
        """Make the tables. O(kinds * children) joins.

        :param values: of 0, 1, 2 .. VMs below each kind, NEVER where they are not permitted; of
            leaves what their hosts add too. Shape (VMs + 1,) each
        :raises TimeLimitPassed: if the limit passes
        :raises OverflowError: if two children together take too many VMs
        """
        self.fabric, self._limit = fabric, limit
        self.tables: list[Array] = []
        self._joined: list[list[Array]] = []  # of the first 0, 1, 2 .. children of a kind
        for kind, own in enumerate(values):
            joined = [np.zeros(1, dtype=np.int64)]
            for child in fabric.children_of(kind):
                table = maxplus(joined[-1], self.tables[child], len(own) - 1, self._spend)
                joined.append(np.maximum(table, NEVER))
            self._joined.append(joined)
            is_leaf = len(joined) == 1
            self.tables.append(own if is_leaf else _sum(joined[-1], own))

    def _spend(self, sums: int) -> None:
        self._limit.check()
        if sums > _MOST_SUMS:
            raise OverflowError(f"{sums} sums of two tables: expected at most {_MOST_SUMS}")

    def best(self, kind: int, vms: int) -> int:
        """Return the best sum of a number of VMs below a kind."""
        table = self.tables[kind]
        return table.item(vms) if vms < len(table) else NEVER

    def way(self, kind: int, vms: int) -> KindWay:
        """Return the best way to share VMs; of equal ones most go to the last child of a kind."""
        parts, left = [], vms
        children = self.fabric.children_of(kind)
        for child, before in zip(reversed(children), self._joined[kind][-2::-1], strict=True):
            low, sums = splits(self.tables[child], before, left)
            here = low + len(sums) - 1 - int(np.argmax(sums[::-1]))
            parts.append(self.way(child, here))
            left -= here
        return KindWay(kind, vms, tuple(parts))

    def together(self, kind: int) -> Array:
        """Return the best sums of all children of a kind."""
        return self._joined[kind][-1]

    def rest(self, kind: int) -> list[Array]:
        """Return the best sums of the children after the first 0, 1, 2 .. ones of a kind."""
        found = [np.zeros(1, dtype=np.int64)]
        for child in reversed(self.fabric.children_of(kind)):
            table = maxplus(found[-1], self.tables[child], self.fabric.count)
            found.append(np.maximum(table, NEVER))
        return found[::-1]


def shared_out(problem: Problem, fabric: GroupFabric, top: int, way: KindWay) -> dict[int, int]:
    """Return the VMs of each leaf, in order: of equal switches the first in tie order take most.

    :param top: the switch below which a way places VMs, in ``topology.switches``
    """
    counts: dict[int, int] = {}
    ranks = problem.tie.ranks

    def share(switch: int, way: KindWay) -> None:
        if not fabric.kinds[way.kind].children:
            counts[switch] = way.vms
            return
        children = sorted(fabric.below[switch], key=lambda child: int(ranks[child]))
        for kind in {part.kind for part in way.parts}:
            parts = [part for part in way.parts if part.kind == kind]
            parts.sort(key=lambda part: -part.vms)
            same = [child for child in children if fabric.kind_of[child] == kind]
            for child, part in zip(same, parts, strict=True):
                if part.vms:
                    share(child, part)

    share(top, way)
    return dict(sorted(counts.items()))


def _sum(joined: Array, own: Array) -> Array:
    length = min(len(joined), len(own))
    found: Array = np.maximum(joined[:length] + own[:length], NEVER)
    return found
