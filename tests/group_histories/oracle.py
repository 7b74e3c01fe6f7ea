"""The oracle: how many VMs of a group fit, over all sets of leaves that they may use.

Each VM takes one slot, and constraints speak of switches: all placements are those within one of
the sets of leaves that keep the constraints, and of each set the slots count. Nothing of this is
the planner's.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tests.group_histories.fabrics import LEAVES, Fabric, leaves_of


@dataclass(frozen=True)
class Wish:
    """What a flavor requests for a group."""

    require: str | None = None  # a level
    prefer: str | None = None
    max_leaves: int | None = None
    group_size: int | None = None
    app_class: str | None = None

    @classmethod
    def of(cls, text: str) -> Wish:
        """Return the wish of ``require=leaf group_size=3``."""
        stated = dict(one.split("=") for one in text.split())
        numbers = {name: int(value) for name, value in stated.items() if value.isdigit()}
        return cls(**{**stated, **numbers})

    @property
    def extra_specs(self) -> dict[str, str]:
        """The extra specs of the flavor."""
        stated = {name: value for name, value in vars(self).items() if value is not None}
        return {f"hpc:{name}": str(value) for name, value in stated.items()}

    @property
    def is_guarantee(self) -> bool:
        """True if a request is refused where it cannot be kept."""
        return self.require is not None or self.max_leaves is not None


@dataclass(frozen=True)
class Bound:
    """Where the VMs of a group may be."""

    level: str | None = None  # all under one switch of it; None: under any
    most_leaves: int | None = None
    one_root: bool = False

    @classmethod
    def of(cls, wish: Wish, *, one_root: bool) -> Bound:
        """Return the bound that guarantees make."""
        return cls(wish.require, wish.max_leaves, one_root)

    def keeps(self, fabric: Fabric, leaves: Collection[str]) -> bool:
        """True if VMs under these leaves keep it."""
        if self.level is not None and len({fabric.switch(self.level, one) for one in leaves}) > 1:
            return False
        if self.one_root and len({fabric.switch(None, one) for one in leaves}) > 1:
            return False
        return self.most_leaves is None or len(leaves) <= self.most_leaves

    def on_one(self, level: str | None) -> Bound:
        """Return the same, and all VMs under one switch of a level; None: one root."""
        if level is None:
            return replace(self, one_root=True)
        return replace(self, level=level)


def sets_of_leaves(fabric: Fabric, bound: Bound, members: Collection[str]) -> Iterator[str]:
    """Yield the sets of leaves that a group may use, next to members on some nodes."""
    used = leaves_of(members)
    for number in range(1, len(LEAVES) + 1):
        for chosen in itertools.combinations(LEAVES, number):
            if used <= set(chosen) and bound.keeps(fabric, chosen):
                yield "".join(chosen)


def most(
    fabric: Fabric, bound: Bound, members: Collection[str], rooms: Mapping[str, int]
) -> int | None:
    """Return how many VMs fit next to members; None if these break the bound themselves.

    :param members: the node of each
    :param rooms: node to the VMs that it takes
    """
    found = [
        sum(room for node, room in rooms.items() if node[0] in leaves)
        for leaves in sets_of_leaves(fabric, bound, members)
    ]
    return max(found, default=None)
