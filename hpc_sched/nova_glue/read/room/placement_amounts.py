"""What is free in Placement on the hosts of one request, as far as it has been read."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import os_resource_classes as orc
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.providers import Amounts, Inventory
from hpc_sched.nova_glue.io import placement, request_deadline
from hpc_sched.nova_glue.read.room import compared_hosts
from hpc_sched.nova_glue.read.room.allocation_candidates import (
    AllocationCandidates,
    Candidate,
    amounts_of,
)

LOG = logging.getLogger(__name__)

# Classes of which a HostState has the amounts.
HOST_CLASSES = frozenset({orc.VCPU, orc.PCPU, orc.MEMORY_MB, orc.DISK_GB})
# Providers that are read one by one; of more, all of a resource class are read at once.
FEW = 8
# Hosts of one plan beyond which all hosts are read at once.
MANY = 32


class PlacementAmounts:
    """The free amounts of providers, read at most once a request, less its claims since."""

    def __init__(
        self,
        states: Sequence[host_manager.HostState],
        demand: Mapping[str, int],
        candidates: AllocationCandidates,
    ) -> None:
        # Returns what the request has claimed for VMs that Nova has not placed: Placement counts
        # it as used, and it is free for them.
        self.held: Callable[[], Iterable[Candidate]] = tuple
        self._states = states
        self._demand = demand
        self._candidates = candidates
        self._free: dict[Inventory, int] = {}
        self.providers: set[str] = set()  # that were read
        self.sharing: set[str] = set()  # those in candidates of several hosts
        self._is_all_read = False  # whether all hosts were read, or could not be
        self._has_failed = False  # whether Placement has not answered: it is not asked again
        # Whether a host has more or less than its HostState says, and not for instances in flight.
        self.differ_from_reports = False

    def free(self, candidates: Iterable[Amounts]) -> dict[Inventory, int]:
        """Return what is free for some candidates; more than enough where it was not read."""
        return {
            key: self._free.get(key, 0) if key[0] in self.providers else UNBOUNDED * amount
            for found in candidates
            for key, amount in found.items()
        }

    def is_known(self, i: int) -> bool:
        """True if the amounts of a host were read, or compared with its HostState."""
        state = self._states[i]
        return state.uuid in self.providers or compared_hosts.find(state) is not None

    def claim(self, claimed: Amounts) -> None:
        """Subtract a claim of the request."""
        self._free |= {key: self._free.get(key, 0) - claimed[key] for key in claimed}

    def read_beyond_hosts(self) -> bool:
        """Read the providers of devices and shared disks; return whether any are demanded.

        No call if a HostState has the amounts of all that is demanded. Else two calls for each
        provider, if these are few, or one for each resource class.
        """
        if HOST_CLASSES.issuperset(self._demand) and not any(
            len(found.get("allocations", ())) > 1
            for state in self._states
            if state.vcpus_total
            # Any of them: Placement lists those with a shared disk in no order.
            for found in state.allocation_candidates
        ):
            return False
        least: dict[str, int] = {}  # resource class to the least amount of a candidate
        elsewhere: dict[str, str] = {}  # provider to a host
        for i, state in enumerate(self._states):
            for (provider, name), amount in (
                item for found in self._candidates.amounts(i) for item in found.items()
            ):
                if state.vcpus_total and (provider != state.uuid or name not in HOST_CLASSES):
                    if elsewhere.setdefault(provider, state.uuid) != state.uuid:
                        self.sharing.add(provider)
                    least[name] = min(least.get(name, amount), amount)
        if len(elsewhere) <= FEW:
            self._keep(placement.read_providers(sorted(elsewhere)))
            return bool(elsewhere)
        self._keep(placement.read_trees({name: amount} for name, amount in sorted(least.items())))
        if not self._has_failed:
            self._keep(placement.read_providers(sorted(elsewhere.keys() - self.providers)[:FEW]))
        return True

    def read_hosts(self, positions: Iterable[int]) -> None:
        """Read hosts that were not compared with their HostStates.

        Two calls for each, or one for all hosts if there are many.
        """
        if self._is_all_read or self._has_failed:
            return
        unread = {
            provider: None
            for i in positions
            if self._states[i].vcpus_total and compared_hosts.find(self._states[i]) is None
            for found in self._candidates.amounts(i)
            for provider, _ in found
            if provider not in self.providers
        }
        if len(unread) > MANY:
            self.read_all()
        else:
            self._keep(placement.read_providers(list(unread)))

    def read_all(self) -> bool:
        """Read all hosts, if that was not done; return False if it was. One call."""
        if self._is_all_read:
            return False
        self._is_all_read = True
        classes = self._of_hosts()
        if classes and not self._has_failed:
            self._keep(placement.read_trees([classes]))
        return True

    def _of_hosts(self) -> dict[str, int]:
        """Return the demanded classes of which a HostState has the amounts."""
        return {name: amount for name, amount in self._demand.items() if name in HOST_CLASSES}

    def refresh(self, positions: Iterable[int] | None) -> bool:
        """Read hosts again; False without an answer.

        Two calls for each provider of a few hosts, mostly two for all.

        :param positions: of the hosts; None for all
        """
        few = [] if positions is None else self._providers(positions)
        if self._has_failed:
            return False
        if few and len(few) <= MANY:
            self.providers.difference_update(few)
            self._keep(placement.read_providers(few))
        else:
            self.providers.clear()
            self._is_all_read = True
            # Bare metal has classes of its own alone.
            self._keep(placement.read_trees([self._of_hosts() or self._demand]))
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
        self._take_over(found.stocks)
        return {
            (provider, name): max(stock.used - stock.capacity, 0)
            for provider, stocks in found.stocks.items()
            for name, stock in stocks.items()
        }

    def _providers(self, positions: Iterable[int]) -> list[str]:
        return list(
            dict.fromkeys(
                provider
                for i in positions
                for found in self._candidates.amounts(i)
                for provider, _ in found
            )
        )

    def _note_full(self) -> None:
        """Note the hosts that a list of all with room for one VM does not have.

        Such a list may have been cut by a limit of Placement's: one more call for all hosts of
        which the same is demanded, and two for each that is full and has claims of the request.
        """
        alike: defaultdict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for state in self._states:
            if state.uuid not in self.providers:
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
            shared = full & self._held_providers()
            self._keep(placement.read_providers(sorted(shared)))
            full -= shared
            self._free.update(((uuid, name), 0) for uuid in full for name, _ in demand)
            self.providers |= full

    def _held_providers(self) -> set[str]:
        """Return the providers of what the request holds."""
        return {key[0] for candidate in self.held() for key in amounts_of(candidate)}

    def _take_over(self, read: Mapping[str, Mapping[str, placement.Stock]]) -> None:
        """Set what is free on providers that have just been read; what the request holds is."""
        self._free |= {
            (provider, name): stock.capacity - stock.used
            for provider, stocks in read.items()
            for name, stock in stocks.items()
        }
        for candidate in self.held() if read else ():
            for (provider, name), amount in amounts_of(candidate).items():
                if provider in read:
                    self._free[provider, name] = self._free.get((provider, name), 0) + amount
        self.providers |= read.keys()

    def _keep(self, found: placement.ProviderStocks) -> None:
        new = found.stocks.keys() - self.providers
        self._take_over({provider: found.stocks[provider] for provider in new})
        # No HostState has what the request itself has claimed.
        compared_now = new - self._held_providers()
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
