"""How much a part of a plan must be worth, from what all else is worth at most."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.resources.kind_tables import NEVER, KindTables
from hpc_sched.core.plan.maxplus import maxplus


class Needs(NamedTuple):
    """What 0, 1, 2 .. VMs must be worth at least for a plan that is good enough."""

    of_kind: Array  # below a switch of the kind, itself included. Shape (VMs + 1,)
    after_children: list[Array]  # in its first 1, 2, 3 .. children. Shape (VMs + 1,) each


class WorthElsewhere:
    """What all else is worth at most if 0, 1, 2 .. VMs are below a switch of some kind."""

    def __init__(
        self,
        tables: KindTables,
        values: Sequence[Array],
        tops: Mapping[int, int],
        least: int,
    ) -> None:
        """Go down from the tops. O(kinds * children * VMs ** 2).

        :param values: of 0, 1, 2 .. VMs in each kind by itself
        :param tops: the kinds of switches that may hold all VMs, and what each costs besides
        :param least: what a plan must be worth
        """
        self.tables, self.values, self.least = tables, values, least
        fabric = tables.fabric
        self.outside = [np.full(len(own), NEVER) for own in values]
        for kind, cost in tops.items():
            if fabric.count < len(self.outside[kind]):
                self.outside[kind][fabric.count] = -cost
        for kind in reversed(range(len(fabric.kinds))):
            self._go_down(kind)

    def needs(self) -> Iterator[Needs]:
        """Yield the needs of each kind."""
        for kind, outside in enumerate(self.outside):
            own = self.values[kind]
            with_own = np.maximum(outside + own, NEVER)
            rests = self.tables.rest(kind)[1:]
            yield Needs(
                self.least - outside,
                [self.least - _best_above(with_own, rest) for rest in rests],
            )

    def _go_down(self, kind: int) -> None:
        """Raise what is worth at most outside the children of a kind."""
        children = self.tables.fabric.children_of(kind)
        if not children or not (self.outside[kind] > NEVER).any():
            return
        with_own = np.maximum(self.outside[kind] + self.values[kind], NEVER)
        # What all other children are worth for the rest is at most what all are together.
        together = self.tables.together(kind)
        for child in set(children):
            if self.tables.best(child, 0) < 0:
                self.outside[child][:] = -NEVER
                continue
            found = _best_above(with_own, together)[: len(self.outside[child])]
            np.maximum(
                self.outside[child][: len(found)], found, out=self.outside[child][: len(found)]
            )


def _best_above(whole: Array, rest: Array) -> Array:
    """Return for 0, 1, 2 .. VMs the best of a whole and the rest: whole[v + w] + rest[w]."""
    # As a max-plus product with the reversed table.
    product = maxplus(whole, rest[::-1], len(whole) + len(rest))
    found: Array = np.maximum(product[len(rest) - 1 :], NEVER)
    return found
