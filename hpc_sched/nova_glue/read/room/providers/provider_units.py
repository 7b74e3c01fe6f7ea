"""What one VM may get of one provider at once, as its inventory has units and a maximum."""

from collections import defaultdict
from collections.abc import Iterable, Set
from typing import TypeAlias

from hpc_sched.core.room.provider_tree import ProviderInventory
from hpc_sched.core.room.providers import Amounts
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.nova_glue.io.placement import ProviderStocks
from hpc_sched.nova_glue.read.room.providers.nova_query import HOST_CLASSES

# Resource class, and an amount of it from one provider.
Part: TypeAlias = tuple[str, int]


class ProviderUnits:
    """Which providers give an amount of devices that a request may have of one of them.

    Summaries of Placement do not have min_unit, max_unit and step_size, and a call for each
    provider would take long: one call has all providers that give an amount.
    """

    def __init__(self, requests: Iterable[ResourceRequest]) -> None:
        self._parts = _parts(requests)
        self._takers: dict[Part, set[str]] = {part: set() for part in self._parts}
        self._read: set[Part] = set()

    def note_offered(self, candidate: Amounts) -> None:
        """Note which providers have what a candidate takes of them."""
        for (uuid, name), amount in candidate.items():
            if (takers := self._takers.get((name, amount))) is not None:
                takers.add(uuid)

    def note_singles(self, providers: Set[str]) -> None:
        """Note that all providers of some candidates take 1 of what they have."""
        for (_, amount), takers in self._takers.items():
            if amount == 1:
                takers |= providers

    def unread(self, found: ProviderStocks, roots: Set[str]) -> list[Part]:
        """Return the amounts of which it is not known whether all providers take them.

        Units matter: a VM may get no more than one share of a device, for instance.

        :param roots: of the trees whose providers are looked at
        """
        return [
            (name, amount)
            for name, amount in self._parts
            if (name, amount) not in self._read
            and any(
                name in stocks
                and found.nodes[uuid].root in roots
                and stocks[name].capacity - stocks[name].used >= amount
                and uuid not in self._takers[name, amount]
                for uuid, stocks in found.stocks.items()
            )
        ]

    def add_takers(self, part: Part, providers: Iterable[str]) -> None:
        """Note all providers that take an amount."""
        self._read.add(part)
        self._takers[part] |= set(providers)

    def inventory(self, uuid: str, name: str, free: int) -> ProviderInventory:
        """Return what is free of a class, with the most that a VM gets of what it may request."""
        amounts = [amount for one, amount in self._parts if one == name]
        most = None
        if any((name, amount) in self._read for amount in amounts):
            taken = [
                amount
                for amount in amounts
                if (name, amount) not in self._read or uuid in self._takers[name, amount]
            ]
            most = max(taken, default=min(amounts) - 1)
        return ProviderInventory(max(free, 0), max_unit=most)


def _parts(requests: Iterable[ResourceRequest]) -> list[Part]:
    """Return the amounts of each class of devices that one provider may be requested for.

    Several groups may be of one provider, unless they are isolated.
    """
    found: set[Part] = set()
    for request in requests:
        sums: defaultdict[str, set[int]] = defaultdict(lambda: {0})
        for group in request.groups:
            for name in group.resources.keys() - HOST_CLASSES:
                amount = group.resources[name]
                is_alone = bool(group.suffix) and request.group_policy == "isolate"
                sums[name] |= {amount} | {amount + (0 if is_alone else one) for one in sums[name]}
        found |= {(name, amount) for name, each in sums.items() for amount in each if amount}
    return sorted(found)
