"""The provider trees of the hosts of one request, and the candidates for a VM in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.provider_tree import Provider, ProviderTree
from hpc_sched.core.room.resource_request import ResourceRequest
from hpc_sched.core.room.tree_candidates import TreeCandidates
from hpc_sched.nova_glue.io.placement import ProviderStocks
from hpc_sched.nova_glue.read.room.providers.free_amounts import FreeAmounts
from hpc_sched.nova_glue.read.room.providers.provider_units import ProviderUnits


class HostTrees:
    """What was read of the structure of hosts in Placement.

    What is free there changes with each claim, and so do their candidates. Used by the thread that
    serves the request.
    """

    def __init__(self, requests: Sequence[ResourceRequest], free: FreeAmounts) -> None:
        self._candidates = TreeCandidates(requests)
        self._free = free
        self.units = ProviderUnits(requests)
        self._found = ProviderStocks()
        self._below: dict[str, list[str]] = {}  # root to the providers of its tree
        self._reach: defaultdict[str, set[str]] = defaultdict(set)  # root to providers it shares
        self.sharing: set[str] = set()  # providers of which several hosts may take
        # PCI device's provider to its NUMA cell. Of many candidates some are listed, in the order
        # of the providers: those of devices of one cell, which Nova's filters may require, first.
        self._cells: dict[str, int] = {}

    def add(self, found: ProviderStocks, cells: Mapping[str, int]) -> None:
        """Take over trees that were read.

        :param cells: NUMA cells of PCI devices by their providers
        """
        self._cells |= cells
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

    def candidates(self, root: str) -> Sequence[AllocationCandidate]:
        """Return the candidates that take something of a host whose tree was read."""
        found = self._candidates.of(self._tree(root))
        return [one for one in found if any(uuid == root for uuid, _ in one.amounts)]

    def with_repeats(self, root: str) -> Iterator[AllocationCandidate]:
        """Yield the candidates that Placement has for a host, those of equal amounts too."""
        found = self._candidates.with_repeats(self._tree(root))
        return (one for one in found if any(uuid == root for uuid, _ in one.amounts))

    def most_by_class(self, root: str, *, is_empty: bool = False) -> Mapping[str, int]:
        """Return the VMs that a host takes if one class alone counted.

        :param is_empty: whether as if nothing were in use there
        """
        if not is_empty:
            return self._candidates.most_by_class(self._tree(root))
        stocks = self._found.stocks
        capacity = {
            uuid: {name: stock.capacity for name, stock in stocks[uuid].items()}
            for uuid in self.providers(root)
            if uuid in stocks
        }
        return self._candidates.most_by_class(self._tree(root, lambda uuid: capacity.get(uuid, {})))

    def kind(self, root: str) -> object:
        """Return what a host whose tree was read has in common with those that are alike."""
        return self._tree(root).kind()

    def rooms(self) -> dict[str, bool]:
        """Return whether one VM has a candidate in each tree whose amounts were read, by root."""
        found: dict[str, bool] = {}
        known: dict[object, bool] = {}
        for root in self._below:
            if self._free.providers.issuperset(self.providers(root)):
                if (kind := self.kind(root)) not in known:
                    known[kind] = next(self.with_repeats(root), None) is not None
                found[root] = known[kind]
        return found

    def providers(self, root: str) -> list[str]:
        """Return the providers of a host whose tree was read, those that it shares included."""
        own = self._below[root]
        return [*own, *sorted(self._reach.get(root, set()) - set(own))]

    def _tree(
        self, root: str, amounts_of: Callable[[str], Mapping[str, int]] | None = None
    ) -> ProviderTree:
        """Return the tree of a host with what is free in it.

        :param amounts_of: returns amounts of a provider in place of those
        """
        own, amounts_of = set(self._below[root]), amounts_of or self._free.of_provider
        every = {uuid: self._provider(uuid, amounts_of(uuid)) for uuid in self.providers(root)}

        def order(uuid: str) -> tuple[object, ...]:
            # Hosts whose equal devices are free in another order are of one kind.
            found = every[uuid]
            stocks = sorted((name, one.capacity) for name, one in found.inventories.items())
            cell = self._cells.get(uuid, -1)
            return uuid != root, found.parent != root, stocks, found.traits, cell, uuid

        return ProviderTree(
            tuple(every[uuid] for uuid in sorted(own, key=order)),
            tuple(every[uuid] for uuid in sorted(every.keys() - own)),
        )

    def _provider(self, uuid: str, free: Mapping[str, int]) -> Provider:
        node = self._found.nodes.get(uuid)
        return Provider(
            uuid,
            None if node is None else node.parent,
            {name: self.units.inventory(uuid, name, free[name]) for name in sorted(free)},
            () if node is None else tuple(sorted(node.traits)),
        )
