"""The provider trees of the hosts of one request, and the candidates for a VM in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory, ProviderTree
from hpc_sched.core.room.providers import Amounts
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.core.room.tree_candidates import TreeCandidates
from hpc_sched.nova_glue.io.placement import ProviderStocks
from hpc_sched.nova_glue.read.room.providers.nova_query import HOST_CLASSES

# Resource class, and an amount of it from one provider.
_Part = tuple[str, int]


class HostTrees:
    """What was read of the structure of hosts in Placement.

    Amounts are read again and change with each claim: they are not kept here. Used by the thread
    that serves the request.
    """

    def __init__(self, requests: Sequence[ResourceRequest]) -> None:
        self._candidates = TreeCandidates(requests)
        self._found = ProviderStocks()
        self._below: dict[str, list[str]] = {}  # root to the providers of its tree
        self._reach: defaultdict[str, set[str]] = defaultdict(set)  # root to providers it shares
        self.sharing: set[str] = (
            set()
        )  # providers from which VMs on several hosts may get something
        # Amounts that one provider may be requested for, and those that have it.
        self._parts = _parts(requests)
        self._takers: dict[_Part, set[str]] = {part: set() for part in self._parts}
        self._read: set[_Part] = set()

    def add(self, found: ProviderStocks) -> None:
        """Take over trees that were read."""
        below: defaultdict[str, list[str]] = defaultdict(list)
        for uuid in sorted(found.nodes):
            below[found.nodes[uuid].root].append(uuid)
        self._below |= below
        self._found.nodes |= found.nodes
        self._found.stocks.update((uuid, found.stocks[uuid]) for uuid in found.nodes)
        for uuids in sorted(map(sorted, found.shared)):
            self.reach(uuids)

    def reach(self, uuids: Iterable[str]) -> None:
        """Note providers that one candidate takes of: hosts share those of other trees."""
        every = list(uuids)
        for uuid in every:
            self._reach[self.root_of(uuid)].update(every)

    def root_of(self, provider: str) -> str:
        """Return the root of a provider's tree, itself if that was not read."""
        node = self._found.nodes.get(provider)
        return provider if node is None else node.root

    def has(self, root: str) -> bool:
        """True if a host's tree was read."""
        return root in self._below

    def note_offered(self, candidate: Amounts) -> None:
        """Note which providers have what a candidate takes of them."""
        for (uuid, name), amount in candidate.items():
            if (takers := self._takers.get((name, amount))) is not None:
                takers.add(uuid)

    def unread_parts(self) -> list[_Part]:
        """Return the amounts of which it is not known whether all providers take them.

        Units matter: a VM may get no more than one share of a device, for instance.
        """
        return [
            (name, amount)
            for name, amount in self._parts
            if (name, amount) not in self._read
            and any(
                name in stocks
                and stocks[name].capacity - stocks[name].used >= amount
                and uuid not in self._takers[name, amount]
                for uuid, stocks in self._found.stocks.items()
            )
        ]

    def add_takers(self, part: _Part, providers: Iterable[str]) -> None:
        """Note all providers that take an amount."""
        self._read.add(part)
        self._takers[part] |= set(providers)

    def candidates(
        self, root: str, free: Callable[[str], Mapping[str, int]]
    ) -> Sequence[AllocationCandidate]:
        """Return the candidates that take something of a host whose tree was read.

        :param free: returns what is free of a provider now, by resource class
        """
        found = self._candidates.of(self._tree(root, free))
        return [one for one in found if any(uuid == root for uuid, _ in one.amounts)]

    def with_repeats(
        self, root: str, free: Callable[[str], Mapping[str, int]]
    ) -> Iterator[AllocationCandidate]:
        """Yield the candidates that Placement has for a host, those of equal amounts too."""
        found = self._candidates.with_repeats(self._tree(root, free))
        return (one for one in found if any(uuid == root for uuid, _ in one.amounts))

    def most_by_class(
        self, root: str, free: Callable[[str], Mapping[str, int]]
    ) -> Mapping[str, int]:
        """Return the VMs that a host takes if one class alone counted; parameters as above."""
        return self._candidates.most_by_class(self._tree(root, free))

    def with_room(self, free: Callable[[str], Mapping[str, int]]) -> set[str]:
        """Return the roots of the trees that were read in which one VM may have room."""
        most = {root: self.most_by_class(root, free).values() for root in self._below}
        return {root for root in most if min(most[root], default=1) > 0}

    def providers(self, root: str) -> list[str]:
        """Return the providers of a host whose tree was read, those that it shares included."""
        own = self._below[root]
        return [*own, *sorted(self._reach.get(root, set()) - set(own))]

    def _tree(self, root: str, free: Callable[[str], Mapping[str, int]]) -> ProviderTree:
        own = set(self._below[root])
        every = {uuid: self._provider(uuid, free(uuid)) for uuid in self.providers(root)}

        def order(uuid: str) -> tuple[object, ...]:
            # Hosts whose equal devices are free in another order are of one kind.
            found = every[uuid]
            stocks = sorted((name, one.capacity) for name, one in found.inventories.items())
            return uuid != root, found.parent != root, stocks, found.traits, uuid

        return ProviderTree(
            tuple(every[uuid] for uuid in sorted(own, key=order)),
            tuple(every[uuid] for uuid in sorted(every.keys() - own)),
        )

    def _provider(self, uuid: str, free: Mapping[str, int]) -> Provider:
        node = self._found.nodes.get(uuid)
        return Provider(
            uuid,
            None if node is None else node.parent,
            {name: self._inventory(uuid, name, amount) for name, amount in sorted(free.items())},
            () if node is None else tuple(sorted(node.traits)),
        )

    def _inventory(self, uuid: str, name: str, free: int) -> ProviderInventory:
        """Return what is free of a class, with the most that a VM gets of what it may request."""
        amounts = [amount for one, amount in self._parts if one == name]
        most = None
        if any((name, amount) in self._read for amount in amounts):
            taken = [amount for amount in amounts if uuid in self._takers[name, amount]]
            most = max(taken, default=min(amounts) - 1)
        return ProviderInventory(max(free, 0), max_unit=most)


def _parts(requests: Iterable[ResourceRequest]) -> list[_Part]:
    """Return the amounts above 1 of each class of devices that one provider may be requested for.

    Several groups may be of one provider, unless they are isolated.
    """
    found: set[_Part] = set()
    for request in requests:
        sums: defaultdict[str, set[int]] = defaultdict(lambda: {0})
        for group in request.groups:
            for name in group.resources.keys() - HOST_CLASSES:
                amount = group.resources[name]
                is_alone = bool(group.suffix) and request.group_policy == "isolate"
                sums[name] |= {amount} | {amount + (0 if is_alone else one) for one in sums[name]}
        found |= {(name, amount) for name, each in sums.items() for amount in each if amount > 1}
    return sorted(found)
