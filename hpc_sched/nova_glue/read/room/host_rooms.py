"""The VMs of one request that hosts take: a bound first, exact for the hosts of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.claim_search import MAX_FITS, claim_order, fitted_order
from hpc_sched.core.room.providers import Amounts, Inventory, most_by_class, without
from hpc_sched.core.room.shared_providers import shared_limits
from hpc_sched.core.room.verified_rooms import VerifiedRooms
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room
from hpc_sched.nova_glue.read.room.allocation_candidates import (
    AllocationCandidates,
    Candidate,
    amounts_of,
)
from hpc_sched.nova_glue.read.room.nova_fitting import DeviceUse, NovaFitting
from hpc_sched.nova_glue.read.room.placement_amounts import PlacementAmounts

LOG = logging.getLogger(__name__)

# Time for counting on hosts outside a plan; those that are not reached keep their bound.
MAX_SECONDS = 1.0


class HostRooms:
    """The room on the HostStates of one request, as a ``core.room.verification.RoomCheck``.

    The bound is what the HostStates say, which costs nothing. Placement has the last word on
    resource classes, Nova's own code on NUMA cells and PCI devices: both are asked about hosts
    that a plan uses for more than one VM, and about all hosts once one of them takes less than its
    bound. Placement and Nova's filters have found room for one VM on every host.

    Arrays are in the order of the HostStates. Used by the one thread that serves the request.
    """

    def __init__(
        self,
        states: Sequence[host_manager.HostState],
        demand: Mapping[str, int],
        fitting: NovaFitting | None,
        *,
        most_per_host: int = UNBOUNDED,
    ) -> None:
        """Bound the rooms; read Placement if HostStates do not have all that is demanded.

        :param most_per_host: VMs of the request that the group's policy allows on a host
        """
        self._states = states
        self._demand = demand
        self._fitting = fitting
        self._most_per_host = most_per_host
        self.candidates = AllocationCandidates(states)
        self._amounts = PlacementAmounts(states, demand, self.candidates)
        self._placed: Array = np.zeros(len(states), dtype=np.int64)
        self._fits = 0
        self._has_failed = False  # whether a failure of Nova's code was logged
        bound = [
            host_state_room.capacity(state, demand, compared_hosts.excess_of(state))
            for state in states
        ]
        # In VMs of the request, those placed included.
        self._rooms = VerifiedRooms(
            np.array(bound, dtype=np.int64), np.ones(len(states), dtype=np.int64)
        )
        if self._amounts.read_beyond_hosts():
            self._bound_by_placement()

    def verified(self, planned: Array) -> Array:
        """Return the VMs that each host still takes, exact where some are planned.

        Two calls to Placement for each host that was not compared yet, and one for all hosts if
        one of them differs from its HostState.
        """
        total = np.where(planned > 0, planned + self._placed, 0)
        unsure = self._rooms.unverified(total)
        # A host of the plan shows whether Placement has more than nova-compute reports.
        sample = np.flatnonzero(planned)[:1].tolist() if self._most_per_host > 1 else []
        self._amounts.read_hosts(unsure or sample)
        is_lower = self._rooms.verify(unsure, total, self._count)
        if self._amounts.differ_from_reports or any(
            self._placement_bound(i) < total[i] for i in unsure
        ):
            self.read_all()
        if is_lower:
            until = clock.current.monotonic() + MAX_SECONDS
            self._rooms.verify_all(
                self._count,
                lambda: self._fits >= MAX_FITS or clock.current.monotonic() > until,
                self._amounts.is_known,
            )
        if not self._amounts.providers:
            return self.left
        # What a host does not take after all is left to the others.
        limits = shared_limits(np.minimum(planned, self.left), self._shared, self._claims)
        room = self._rooms.limited({name: self._placed + found for name, found in limits.items()})
        left: Array = np.maximum(room - self._placed, 0)
        return left

    @property
    def room(self) -> Array:
        """The VMs that each host takes at most, those placed included. Shape (HostStates,)."""
        return self._rooms.room

    @property
    def left(self) -> Array:
        """The VMs that each host still takes at most. Shape (HostStates,)."""
        left: Array = np.maximum(self.room - self._placed, 0)
        return left

    def by_resource(self) -> dict[str, Array]:
        """Return the VMs that each host still takes if one resource alone counted."""
        found = {
            name: np.full(len(self._states), UNBOUNDED, dtype=np.int64) for name in self._demand
        }
        for i, state in enumerate(self._states):
            candidates = self.candidates.amounts(i)
            most = most_by_class(self._amounts.free(candidates), candidates)
            for name, amount in self._demand.items():
                number = most.get(name, UNBOUNDED)
                if number >= UNBOUNDED:  # not read
                    number = host_state_room.capacity(state, {name: amount})
                found[name][i] = number
        for name, limit in self._rooms.shared.items():
            found[name] = np.minimum(found[name], np.maximum(limit - self._placed, 0))
        if self._fitting is not None:
            found[self._fitting.name] = self.left
        return found

    def observe(self, placed: Array, lost: Sequence[int]) -> None:
        """Note the VMs that hosts have taken, and the positions of hosts that refused one."""
        for i in np.flatnonzero(placed > self._placed).tolist():
            for _ in range(int(placed[i] - self._placed[i])):
                claimed, was_planned = self.candidates.claimed(i)
                self._amounts.claim(claimed)
                if not was_planned:
                    self._rooms.known[i] = placed[i]
        self._placed = placed.copy()
        for i in lost:
            compared_hosts.forget(self._states[i])

    def arrange(self, positions: Array) -> None:
        """Put first the allocation candidate that each host's next VM shall claim."""
        # A host outside the plan has taken a VM: its first candidate may be used up.
        placed = self._placed
        used_up = (placed >= self._rooms.known) & (placed < self.room)
        self._rooms.verify(positions[used_up[positions]].tolist(), placed + 1, self._count)
        self.candidates.arrange(positions)

    def read_all(self) -> bool:
        """Read all hosts in Placement, if that was not done; return whether any room rose."""
        before = self.room
        if not self._amounts.read_all():
            return False
        self._bound_by_placement()
        return bool((self.room > before).any())

    def hold(self, held: Callable[[], Iterable[Candidate]]) -> None:
        """Set what returns the candidates that are claimed for VMs that Nova has not placed."""
        self._amounts.held = held

    def refresh(self, positions: Sequence[int] | None) -> bool:
        """Read hosts again after others have claimed there; return whether Placement answered.

        :param positions: of the hosts; None for all
        """
        has_answered = self._amounts.refresh(positions)
        for i in range(len(self._states)) if positions is None else positions:
            if self._states[i].uuid in self._amounts.providers:
                self._take_over(i)
        return has_answered

    def overbooked(self, positions: Sequence[int], seconds: float) -> dict[int, Amounts] | None:
        """Read hosts with claims of the request; return those that hold more than they have.

        And by how much, by the inventories of their candidates. None without an answer. The rooms
        of all hosts that were reached are then what was read.

        :param positions: of the hosts, in the order in which they are read
        :param seconds: in which to read; hosts that are not reached are not returned
        """
        excess = self._amounts.read_claimed(positions, seconds)
        if excess is None:
            return None
        found: dict[int, Amounts] = {}
        for i in positions:
            keys = {key for one in self.candidates.amounts(i) for key in one} & excess.keys()
            if keys:
                self._take_over(i)
            if over := {key: excess[key] for key in sorted(keys) if excess[key]}:
                found[i] = over
        return found

    def allow(self, held: Array) -> None:
        """Have room for what the request has claimed, whatever was read.

        :param held: VMs on each HostState that Nova has not placed
        """
        claimed = np.flatnonzero(held)
        least = self._placed[claimed] + held[claimed]
        self._rooms.room[claimed] = np.maximum(self._rooms.room[claimed], least)

    def _take_over(self, i: int) -> None:
        """Set the room of a host to what was read of it."""
        most = self._placement_bound(i)
        # Cells and PCI devices are not in Placement: a room that they bound stays.
        self._rooms.room[i] = most if self._fitting is None else min(self.room[i], most)
        self._rooms.known[i] = self._placed[i]

    def _bound_by_placement(self) -> None:
        """Set the rooms by the amounts that were read; claims are not searched."""
        room = self.room.copy()
        for i, state in enumerate(self._states):
            if not state.vcpus_total or not state.allocation_candidates:
                continue
            placed = int(self._placed[i])
            most = max(self._placement_bound(i), placed + (0 if placed else 1))
            is_verified = self._rooms.known[i] > max(placed, 1)
            may_rise = state.uuid in self._amounts.providers and not is_verified
            room[i] = most if may_rise else min(int(room[i]), most)
        self._rooms.room = room

    def _placement_bound(self, i: int) -> int:
        """Return the VMs that a host takes at most by what was read, those placed included."""
        candidates = self.candidates.amounts(i)
        by_class = most_by_class(self._amounts.free(candidates), candidates)
        return int(self._placed[i]) + min([UNBOUNDED, *by_class.values()])

    def _count(self, i: int, total: int) -> int:
        """Return the VMs, up to a total, that a host takes; keep the order of further claims."""
        placed = int(self._placed[i])
        candidates = self.candidates.amounts(i)
        most = min(total, int(self.room[i])) - placed
        if not candidates:
            return placed + most
        free = self._amounts.free(candidates)
        order: tuple[int, ...]
        if self._fitting is None:
            order = claim_order(candidates, free, most)
        else:
            order = self._fitted_order(self._fitting, i, candidates, free, most)
        self.candidates.plan(i, order)
        return placed + len(order)

    def _fitted_order(
        self,
        fitting: NovaFitting,
        i: int,
        candidates: Sequence[Amounts],
        free: Amounts,
        most: int,
    ) -> tuple[int, ...]:
        state = self._states[i]
        mappings = [found["mappings"] for found in state.allocation_candidates]

        def fit(use: DeviceUse, number: int) -> DeviceUse | None:
            self._fits += 1
            return fitting.claim(state, use, mappings[number])

        try:
            return fitted_order(candidates, free, most, fitting.start(state), fit)
        except Exception:
            # What a host reports of its cells or devices is not what Nova's code expects.
            if not self._has_failed:
                LOG.exception("Host %s is left out of plans", state.nodename)
            self._has_failed = True
            return ()

    def _shared(self, i: int) -> frozenset[Inventory]:
        """Return the inventories that are not a host's own, of those that were read."""
        own = self._states[i].uuid
        return frozenset(
            key
            for found in self.candidates.amounts(i)
            for key in found
            if key[0] != own and self._amounts.is_shared(key[0])
        )

    def _claims(self, i: int, number: int, taken: Amounts) -> list[Amounts]:
        candidates = self.candidates.amounts(i)
        free = without(self._amounts.free(candidates), taken)
        if self._fitting is None:
            order = claim_order(candidates, free, number)
            self.candidates.plan(i, order)
            return [candidates[n] for n in order]
        found: list[Amounts] = []
        for claimed in map(amounts_of, self.candidates.next_claims(i, number)):
            if any(free[key] < amount for key, amount in claimed.items()):
                break
            free = without(free, claimed)
            found.append(claimed)
        return found
