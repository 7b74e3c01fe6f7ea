"""Groups that lose their leaf together, and the room for them elsewhere.

::

      a1          a2          a3          b1         four leaves of 8 hosts
   g0 g0 g1    .  .  .     .  x  x     x  x  x       g0, g1: the groups; x: VMs of others
   g1 g1 g2    x  x  x     x  x  x     x  x  .
   g2 .        x  x        x  .        .  .

The room is tight, but all groups fit, each under one leaf, in whatever order they come.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.cloud.deployment import LEAVES
from tests.contention import fabric
from tests.contention.bursts import Request

MOST_GROUPS, LEAST_SIZE = 4, 2
HALVES = 0.25  # fraction of the rounds in which two VMs share a host
DRAWN = 300  # rooms, of which one of the tightest is taken
SLACK = 2  # places more than the tightest has
Leaf = tuple[int, int]  # hosts with a place for one VM, and with places for two


@dataclass(frozen=True)
class Loss:
    """Groups on one leaf, and what others use of the leaves that they may go to."""

    home: str  # leaf
    groups: tuple[Request, ...]
    others: Mapping[str, int]  # host to VCPUs of a VM of another group
    order: tuple[str, ...]  # in which the hosts of the leaf lose their VMs


def draw(numbers: random.Random, is_dead: bool) -> Loss:
    """Return a loss.

    :param is_dead: the leaf is; otherwise the groups may also return to what others leave of it
    """
    home = numbers.choice(LEAVES)
    places = 2 if numbers.random() < HALVES else 1  # on a host
    sizes = _sizes(numbers, places)
    leaves = [leaf for leaf in LEAVES if leaf != home or not is_dead]
    room = _room(numbers, sizes, places, len(leaves))
    vcpus = fabric.VCPUS // places
    others: dict[str, int] = {}
    for leaf, (one, two) in zip(leaves, room, strict=True):
        hosts = numbers.sample(fabric.LEAVES[leaf], fabric.HOSTS_A_LEAF)
        whole = two if places == 2 else one
        others |= dict.fromkeys(hosts[one + two :], fabric.VCPUS)
        others |= dict.fromkeys(hosts[whole : one + two], vcpus)
    groups = tuple(
        Request(
            tuple(f"g{number}-{vm}" for vm in range(1, size + 1)),
            vcpus,
            f"g{number}",
            "anti-affinity",
            {"require": "leaf"},
        )
        for number, size in enumerate(sizes)
    )
    order = numbers.sample(fabric.LEAVES[home], fabric.HOSTS_A_LEAF)
    return Loss(home, groups, others, tuple(order))


def fit_in_any_order(sizes: Sequence[int], room: Sequence[Leaf], places: int) -> bool:
    """True if each group gets a leaf, whichever comes next and wherever it goes.

    By brute force. Where a VM takes a whole host, a group goes to a leaf with the least room that
    has enough; otherwise to any.

    :param places: of a free host
    """

    @cache
    def fit(left: tuple[int, ...], now: tuple[Leaf, ...]) -> bool:
        return not left or all(
            bool(after := list(_after(size, now, places)))
            and all(fit(tuple(sorted(_without(left, size))), one) for one in after)
            for size in set(left)
        )

    return fit(tuple(sorted(sizes)), tuple(sorted(room)))


def _after(size: int, room: tuple[Leaf, ...], places: int) -> Iterator[tuple[Leaf, ...]]:
    """Yield the room that a group may leave."""
    fitting = [leaf for leaf in set(room) if sum(leaf) >= size]
    if places == 1:
        fitting = [leaf for leaf in fitting if sum(leaf) == min(map(sum, fitting))]
    for leaf in fitting:
        one, two = leaf
        for halved in range(max(size - one, 0), min(size, two) + 1):
            after = (one - (size - halved) + halved, two - halved)
            yield tuple(sorted([*_without(room, leaf), after]))


def _sizes(numbers: random.Random, places: int) -> list[int]:
    """Return the sizes of groups that fit on one empty leaf, however the hosts are chosen."""
    empty = (fabric.HOSTS_A_LEAF, 0) if places == 1 else (0, fabric.HOSTS_A_LEAF)
    count = numbers.randint(2, MOST_GROUPS)
    while True:
        found = [numbers.randint(LEAST_SIZE, fabric.HOSTS_A_LEAF) for _ in range(count)]
        if fit_in_any_order(found, [empty], places):
            return found


def _room(numbers: random.Random, sizes: Sequence[int], places: int, leaves: int) -> list[Leaf]:
    """Return room for groups of these sizes, one of the tightest that were drawn."""
    hosts = range(fabric.HOSTS_A_LEAF + 1)
    kinds = [(n, 0) for n in hosts]
    if places == 2:
        kinds = [(n, m) for n, m in itertools.product(hosts, hosts) if n + m in hosts]
    drawn = [[numbers.choice(kinds) for _ in range(leaves)] for _ in range(DRAWN)]
    found: list[list[Leaf]] = []
    # From the tightest on: to search the others takes longest.
    for room in sorted(drawn, key=_places):
        if found and _places(room) > _places(found[0]) + SLACK:
            break
        if fit_in_any_order(sizes, room, places):
            found.append(room)
    return numbers.choice(found)


def _places(room: Collection[Leaf]) -> int:
    return sum(one + 2 * two for one, two in room)


def _without(values: Sequence, value: object) -> list:  # type: ignore[type-arg]
    found = list(values)
    found.remove(value)
    return found
