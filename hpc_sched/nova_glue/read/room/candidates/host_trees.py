"""The provider trees of the hosts of one request, and the candidates for a VM in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory, ProviderTree
from hpc_sched.core.room.providers import Amounts
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.core.room.tree_candidates import TreeCandidates
from hpc_sched.nova_glue.io.placement import ProviderStocks, Stock
from hpc_sched.nova_glue.read.room.candidates.nova_query import HOST_CLASSES

# Resource class, capacity and traits of a provider: those that agree have equal units.
_Kind = tuple[str, int, tuple[str, ...]]


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
        self._units: dict[_Kind, Stock] = {}
        # Classes of devices of which a VM gets several, so that their units matter: how many.
        self._several = {
            name: amount
            for request in requests
            for name, amount in request.demand.items()
            if amount > 1 and name not in HOST_CLASSES
        }

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

    def unread_units(self) -> list[str]:
        """Return a provider of each kind of device whose units matter and were not read."""
        first: dict[_Kind, str] = {}
        for uuid in sorted(self._found.nodes):
            for kind in self._kinds(uuid):
                if kind not in self._units:
                    first.setdefault(kind, uuid)
        return sorted(set(first.values()))

    def note_offered(self, candidate: Amounts) -> None:
        """Note that providers give all of a class that a VM demands, as one candidate does."""
        for (uuid, name), amount in candidate.items():
            if amount == self._several.get(name):
                for kind in self._kinds(uuid):
                    if kind[0] == name:
                        self._units.setdefault(kind, Stock(kind[1], 0))

    def add_units(self, found: ProviderStocks) -> None:
        """Take over the units of one provider of each kind."""
        for uuid, stocks in found.stocks.items():
            for kind in self._kinds(uuid):
                if kind[0] in stocks:
                    self._units.setdefault(kind, stocks[kind[0]])

    def _kinds(self, uuid: str) -> list[_Kind]:
        found = self._found.stocks.get(uuid, {})
        several = [name for name in found if name in self._several and found[name].capacity > 1]
        traits = tuple(sorted(self._found.nodes[uuid].traits)) if several else ()
        return [(name, found[name].capacity, traits) for name in several]

    def candidates(
        self, root: str, free: Callable[[str], Mapping[str, int]]
    ) -> Sequence[AllocationCandidate]:
        """Return the candidates that take something of a host whose tree was read.

        :param free: returns what is free of a provider now, by resource class
        """
        found = self._candidates.of(self._tree(root, free))
        return [one for one in found if any(uuid == root for uuid, _ in one.amounts)]

    def number(self, root: str, free: Callable[[str], Mapping[str, int]], most: int) -> int:
        """Return how many candidates Placement has for a host, up to ``most``, repeats included."""
        return self._candidates.number(self._tree(root, free), most)

    def most_by_class(
        self, root: str, free: Callable[[str], Mapping[str, int]]
    ) -> Mapping[str, int]:
        """Return the VMs that a host takes if one class alone counted; parameters as above."""
        return self._candidates.most_by_class(self._tree(root, free))

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
        units = {kind[0]: self._units.get(kind) for kind in self._kinds(uuid)}
        return Provider(
            uuid,
            None if node is None else node.parent,
            {name: _inventory(amount, units.get(name)) for name, amount in sorted(free.items())},
            () if node is None else tuple(sorted(node.traits)),
        )


def _inventory(free: int, units: Stock | None) -> ProviderInventory:
    if units is None:
        return ProviderInventory(max(free, 0))
    return ProviderInventory(
        max(free, 0), 0, units.min_unit, units.max_unit, max(units.step_size, 1)
    )
