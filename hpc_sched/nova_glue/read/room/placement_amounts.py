"""What is free in Placement on the hosts of one request, as far as it has been read."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.providers import Inventory
from hpc_sched.nova_glue.io import placement, request_deadline
from hpc_sched.nova_glue.read.room import compared_hosts
from hpc_sched.nova_glue.read.room.providers import hosts_not_offered
from hpc_sched.nova_glue.read.room.providers.free_amounts import FreeAmounts
from hpc_sched.nova_glue.read.room.providers.host_trees import HostTrees
from hpc_sched.nova_glue.read.room.providers.hosts_not_offered import HostsNotOffered
from hpc_sched.nova_glue.read.room.providers.nova_query import HOST_CLASSES, NovaQuery
from hpc_sched.nova_glue.read.room.providers.offered_candidates import (
    OfferedCandidates,
    amounts_of,
)

LOG = logging.getLogger(__name__)

# Providers that are read one by one; of more, all of a resource class are read at once.
FEW = 8
# Hosts of one plan beyond which all hosts are read at once.
MANY = 32
# Candidates of each host that show what devices give.
SOME = 8
# Hosts that are read one by one for one plan.
MOST_AT_ONCE = 64
# Devices beyond which the trees of all hosts are read: that is one candidate a host, and no more
# than one a device where hosts with a device are read.
MANY_DEVICES = 4096


class PlacementAmounts:
    """Reads the providers of hosts, at most once a request unless a claim is refused."""

    def __init__(
        self,
        states: Sequence[host_manager.HostState],
        query: NovaQuery,
        candidates: OfferedCandidates,
    ) -> None:
        self._states = states
        self._demand = query.demand
        self._candidates = candidates
        self._query = query
        self.free = FreeAmounts()
        self.trees = HostTrees(query.requests, self.free)
        self._is_beyond_hosts = False  # whether devices or shared disks are demanded
        self._sought: set[int] = set()  # hosts that were read alone, with devices
        # Whether hosts were read after a claim: Nova's list may lack hosts that are free now.
        self._is_refreshed = False
        # Hosts in an answer of Placement about all of them; None: none was read.
        self._listed: int | None = None
        self._is_all_read = False  # whether all hosts were read, or could not be
        self._has_failed = False  # whether Placement has not answered: it is not asked again
        # Whether a host has more or less than its HostState says, and not for instances in flight.
        self.differ_from_reports = False

    def has_tree(self, i: int) -> bool:
        """True if the tree of a host is read, with the amounts of all its providers."""
        root = self._states[i].uuid
        return self.trees.has(root) and self.free.providers.issuperset(self.trees.providers(root))

    def may_be_cut(self, i: int) -> bool:
        """True if Placement may have offered some candidates of a host: its tree is unread."""
        is_unread = self._is_beyond_hosts and not self._has_failed and i not in self._sought
        return is_unread and not self.has_tree(i)

    def is_known(self, i: int) -> bool:
        """True if the amounts of a host were read, or compared with its HostState."""
        state = self._states[i]
        return state.uuid in self.free.providers or compared_hosts.find(state) is not None

    def read_beyond_hosts(self) -> bool:
        """Read the trees of hosts; return whether devices or shared disks are demanded.

        No call if a HostState has the amounts of all that is demanded. Else one for the trees of
        all hosts with the device, one more where shared processors may replace pinned ones, and
        two for each of a few providers in other trees. One for each amount that a VM may get of one
        device, if some devices may not give it.
        """
        if HOST_CLASSES.issuperset(self._demand) and not any(
            len(found.get("allocations", ())) > 1
            for state in self._states
            if state.vcpus_total
            # Any of them: Placement lists those with a shared disk in no order.
            for found in state.allocation_candidates
        ):
            return False
        offered = {
            state.uuid: self._candidates.providers(i)
            for i, state in enumerate(self._states)
            if state.vcpus_total
        }
        self._is_beyond_hosts = bool(offered)
        if not offered:
            return False
        self._note_units(offered)
        self._read_list(self._device_of(offered))
        hosts_of: Counter[str] = Counter()
        for root, providers in sorted(offered.items()):
            hosts_of.update(providers)
            if self.trees.has(root):
                others = sorted(one for one in providers if self.trees.root_of(one) != root)
                self.trees.reach([root, *others])
                self.trees.sharing.update(others)
        self.trees.sharing |= {one for one, number in hosts_of.items() if number > 1}
        few = [*self.trees.sharing, *(hosts_of if len(hosts_of) <= FEW else ())]
        if not self._has_failed:
            unread = sorted(set(few) - self.free.providers)[:FEW]
            self._keep(placement.read_providers(unread))
        return True

    def _note_units(self, offered: Mapping[str, set[str]]) -> None:
        """Note what devices give by the candidates of Placement, before any others are added."""
        self.trees.units.note_singles(set().union(*offered.values()))
        for state in self._states:
            for candidate in state.allocation_candidates[:SOME]:
                self.trees.units.note_offered(amounts_of(candidate))

    def _device_of(self, offered: Mapping[str, set[str]]) -> dict[str, int]:
        """Return the device that all hosts of the request have, {} if these are too many.

        Hosts without it are left out of an answer, but each device is a candidate there.
        """
        if sum(map(len, offered.values())) > MANY_DEVICES:
            return {}
        return dict([*self._query.devices.items()][:1])

    def _read_list(self, device: Mapping[str, int] | None = None) -> None:
        """Read the trees of all hosts with room, and with a device."""
        found = self._read_trees(self._query.of_trees(device))
        if found.problem is None:
            self._listed = len({node.root for node in found.nodes.values()})

    def _read_trees(self, queries: Sequence[str]) -> placement.ProviderStocks:
        found = placement.read_trees(queries)
        if self._is_beyond_hosts:
            self.trees.add(found, _cells(self._states))
        self._keep(found)
        roots = {state.uuid for state in self._states}
        unread = [] if self._has_failed else self.trees.units.unread(found, roots)
        for name, amount in unread[:FEW]:
            takers = placement.read_with_room({name: amount})
            if takers.problem is None:
                self.trees.units.add_takers((name, amount), takers.stocks)
        return found

    def read_hosts(self, positions: Iterable[int]) -> None:
        """Read hosts that were not compared with their HostStates.

        Two calls for each, or one for all hosts if there are many. With devices one for each whose
        tree is not known: a limit of Placement's may have cut the list of all.
        """
        if self._has_failed:
            return
        if self._is_beyond_hosts:
            self._read_unknown(positions)
            return
        if self._is_all_read:
            return
        unread = {
            provider: None
            for i in positions
            if self._states[i].vcpus_total and compared_hosts.find(self._states[i]) is None
            for provider in sorted(self._candidates.providers(i) - self.free.providers)
        }
        if len(unread) > MANY:
            self.read_all()
        else:
            self._keep(placement.read_providers(list(unread)))

    def _read_unknown(self, positions: Iterable[int]) -> None:
        """Read hosts with devices whose trees are not known: lists of all hosts may be cut.

        One call for each of some, two for each provider of those that are full.
        """
        unknown = [
            i
            for i in positions
            if self._states[i].vcpus_total and not self.has_tree(i) and i not in self._sought
        ][:MOST_AT_ONCE]
        self._sought.update(unknown)
        if unknown:
            uuids = [self._states[i].uuid for i in unknown]
            queries = self._query.of_trees()
            self._read_trees([f"{query}&in_tree={uuid}" for uuid in uuids for query in queries])
            full = self._providers(i for i in unknown if not self.has_tree(i))
            unread = [one for one in full if one not in self.free.providers]
            self._keep(placement.read_providers(unread))

    def read_all(self) -> bool:
        """Read all hosts, if that was not done; return False if it was. One call."""
        if self._is_all_read:
            return False
        self._is_all_read = True
        if self._has_failed:
            return True
        if self._is_beyond_hosts:
            self._read_unknown(range(len(self._states)))
        elif not HOST_CLASSES.isdisjoint(self._demand):
            self._read_list()
        return True

    def not_offered(
        self, fits: Callable[[int, AllocationCandidate], bool] | None
    ) -> HostsNotOffered | None:
        """Return the hosts that a limit has kept from being candidates, if one is known to have.

        :param fits: whether the filters of Nova that remove candidates let one of a host pass; None
            if they have none to remove
        """
        first = next((one for one in self._states if one.allocation_candidates), None)
        if self._has_failed or self._is_refreshed or first is None or self._query.has_host:
            return None
        own = {
            name: amount
            for (uuid, name), amount in amounts_of(first.allocation_candidates[0]).items()
            if uuid == first.uuid and name in HOST_CLASSES
        }
        hosts = range(len(self._states)) if self._is_beyond_hosts else ()
        # A host whose disk is elsewhere has no room where that is full.
        is_own = own.keys() == self._demand.keys() & HOST_CLASSES
        listed = self._listed if is_own else None
        rooms = self.trees.rooms()
        with_room = {root for root, has_room in rooms.items() if has_room}
        return hosts_not_offered.find(
            self._states,
            self._query,
            own=own,
            listed=listed,
            full=rooms.keys() - with_room,
            elsewhere=len(with_room - {state.uuid for state in self._states}),
            has_more=lambda: hosts_not_offered.has_more(
                self._states, filter(self.has_tree, hosts), self._candidates, self.trees, fits
            ),
        )

    def refresh(self, positions: Iterable[int] | None) -> bool:
        """Read hosts again; False without an answer.

        Two calls for each provider of a few hosts, mostly two for all.

        :param positions: of the hosts; None for all
        """
        few = [] if positions is None else self._providers(positions)
        self._is_refreshed = True
        if self._has_failed:
            return False
        if few and len(few) <= MANY:
            self.free.providers.difference_update(few)
            self._keep(placement.read_providers(few))
        else:
            self.free.providers.clear()
            self._is_all_read = True
            self._sought.clear()
            self._read_list()
            self._note_full()
        return not self._has_failed

    def read_claimed(self, positions: Iterable[int], seconds: float) -> dict[Inventory, int] | None:
        """Read hosts again on which the request has claims; return their inventories.

        As what they hold beyond what they have, at least 0; None without an answer. Two calls for
        each provider; those that are not reached in time are left out. They are not compared with
        HostStates, which do not have the claims.

        :param seconds: in which to read
        """
        found = placement.read_providers(self._providers(positions), seconds)
        if found.problem is not None:
            LOG.debug("Hosts are not read after a claim: %s", found.problem)
            return None
        self.free.take_over(found.stocks)
        return {
            (provider, name): max(stock.used - stock.capacity, 0)
            for provider, stocks in found.stocks.items()
            for name, stock in stocks.items()
        }

    def _providers(self, positions: Iterable[int]) -> list[str]:
        """Return the providers from which a VM may get something on some hosts."""
        found: dict[str, None] = {}
        for i in positions:
            every = self._candidates.providers(i)
            if self.trees.has(root := self._states[i].uuid):
                every |= {
                    one
                    for one in self.trees.providers(root)
                    if not self._demand.keys().isdisjoint(self.free.of_provider(one).keys())
                }
            found |= dict.fromkeys(sorted(every))
        return list(found)

    def _note_full(self) -> None:
        """Note the hosts that a list of all with room for one VM does not have.

        Such a list may have been cut by a limit of Placement's: one more call for all hosts of
        which the same is demanded, and two for each that is full and has claims of the request.
        """
        alike: defaultdict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for state in self._states:
            if state.uuid not in self.free.providers:
                first = amounts_of(next(iter(state.allocation_candidates), {}))
                own = sorted((key[1], first[key]) for key in first if key[0] == state.uuid)
                alike[tuple(own)].append(state.uuid)
        for demand, missing in sorted(alike.items()):
            if not demand or self._has_failed:
                continue
            found = placement.read_with_room(dict(demand))
            if found.problem is not None:
                self._keep(found)
                continue
            full = set(missing) - found.stocks.keys()
            # By how much they hold too much, if the request shares them with others, no list says.
            shared = full & self.free.held_providers()
            self._keep(placement.read_providers(sorted(shared)))
            self.free.set_full(sorted(full - shared), [name for name, _ in demand])

    def _keep(self, found: placement.ProviderStocks) -> None:
        new = found.stocks.keys() - self.free.providers
        self.free.take_over({provider: found.stocks[provider] for provider in new})
        # No HostState has what the request itself has claimed.
        compared_now = new - self.free.held_providers()
        for state in self._states:
            if state.uuid in compared_now and state.vcpus_total:
                compared = compared_hosts.compare(state, found.stocks[state.uuid])
                self.differ_from_reports |= compared is not None and not (
                    self._demand.keys().isdisjoint(compared.excess)
                )
        if found.problem is not None:
            self._has_failed = True
            if request_deadline.not_yet_logged([found.problem]):
                LOG.warning("Hosts have the room that nova-compute reports: %s", found.problem)


def _cells(states: Iterable[host_manager.HostState]) -> dict[str, int]:
    """Return the NUMA cells of PCI devices by their providers, as far as they have them."""
    return {
        pool["rp_uuid"]: pool["numa_node"]
        for state in states
        for pool in (state.pci_stats.pools if state.pci_stats else ())
        if pool.get("rp_uuid") is not None and pool.get("numa_node") is not None
    }
