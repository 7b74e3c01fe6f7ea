"""The VMs of one request that its HostStates take."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.candidate_enumeration import AllocationCandidate
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.core.room.hypervisor_rooms import HypervisorRooms
from hpc_sched.core.room.providers import Amounts, Inventory, most_by_class, without
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room
from hpc_sched.nova_glue.read.room.allocation_candidates import AllocationCandidates
from hpc_sched.nova_glue.read.room.nova_fitting import NovaFitting
from hpc_sched.nova_glue.read.room.placement_amounts import PlacementAmounts
from hpc_sched.nova_glue.read.room.providers.nova_query import HOST_CLASSES, NovaQuery
from hpc_sched.nova_glue.read.room.providers.offered_candidates import Candidate, amounts_of
from hpc_sched.topology import plurals

LOG = logging.getLogger(__name__)

HELD = "held for some minutes for VMs that follow others of their group"
# Time for counting on hosts outside a plan; those that are not reached keep their bound.
MAX_SECONDS = 1.0


class HostRooms(HypervisorRooms):
    """The room on the HostStates of one request.

    The bound is what the HostStates say, which costs nothing. Placement has the last word on
    resource classes, Nova's own code on NUMA cells and PCI devices: both are asked about hosts
    that a plan uses for more than one VM, and about all hosts once one of them takes less than its
    bound. Placement and Nova's filters have found room for one VM on every host.

    To verify a plan takes two calls to Placement for each host that was not compared yet, and one
    for all hosts if one of them differs from its HostState.
    """

    def __init__(
        self,
        states: Sequence[host_manager.HostState],
        query: NovaQuery,
        fitting: NovaFitting | None,
        *,
        most_per_host: int = UNBOUNDED,
    ) -> None:
        """Bound the rooms; read Placement if HostStates do not have all that is demanded.

        :param most_per_host: VMs of the request that the group's policy allows on a host
        """
        self._states = states
        self._demand = demand = query.demand
        self._most_per_host = most_per_host
        # VMs that each takes fewer, as room is held for VMs of other groups.
        self._held_for_others = np.zeros(len(states), dtype=np.int64)
        self.candidates = AllocationCandidates(states)
        self._placement = PlacementAmounts(states, query, self.candidates.offered)
        self._has_failed = False  # whether a failure of Nova's code was logged
        self._empty: Array | None = None  # see empty_of(), once it was computed
        self._until = 0.0  # monotonic time at which hosts outside a plan are left out
        capacity, excess = host_state_room.capacity, compared_hosts.excess_of
        bounds = [capacity(state, demand, excess(state)) for state in states]
        rooms = np.array(bounds, dtype=np.int64)
        super().__init__(
            rooms,
            np.ones_like(rooms),
            np.zeros_like(rooms),
            sharing=self._placement.trees.sharing,
            fitting=fitting,
            devices=states,
        )
        if self._placement.read_beyond_hosts():
            self._bound_by_placement()

    def observe(self, placed: Array, lost: Sequence[int]) -> None:
        """Note the VMs that hosts have taken, and the positions of hosts that refused one."""
        for i in np.flatnonzero(placed > self.placed).tolist():
            for _ in range(int(placed[i] - self.placed[i])):
                claimed, was_planned = self.candidates.claimed(i)
                self._placement.free.claim(claimed)
                if not was_planned:
                    self._known[i] = placed[i]
        self.placed = placed.copy()
        for i in lost:
            compared_hosts.forget(self._states[i])

    def arrange(self, positions: Array) -> None:
        """Put first the allocation candidate that each host's next VM shall claim."""
        # A host outside the plan has taken a VM: its first candidate may be used up.
        used_up = (self.placed >= self._known) & (self.placed < self.room)
        self._verify(positions[used_up[positions]].tolist(), self.placed + 1)
        self.candidates.arrange(positions)

    def read_all(self) -> bool:
        """Read all hosts in Placement, if that was not done; return whether any room rose."""
        before = self.room
        if not self._placement.read_all():
            return False
        self._bound_by_placement()
        return bool((self.room > before).any())

    def hold(self, held: Callable[[], Iterable[Candidate]]) -> None:
        """Set what returns the candidates that are claimed for VMs that Nova has not placed."""
        self._placement.free.held = held

    def keep_free(self, number: Array) -> None:
        """Leave room on hosts that is held for others.

        :param number: VMs that each HostState takes fewer, shape (HostStates,)
        """
        self._held_for_others = number

    def lacking(self) -> Iterator[tuple[str, str]]:
        """Yield why there is less room than hosts have, for the operator and for the tenant.

        One call to Placement, and one for each class of devices.
        """
        if held := int(self._held_for_others.sum()):
            yield (
                f"{plurals.text(held, 'place')} {HELD} ('hpc-sched check claims' lists them)",
                f"places {HELD}, try again in some minutes",
            )
        missing = self._placement.not_offered(
            self._fits_alone if self._fitting is not None else None
        )
        if missing is not None:
            yield missing.operator, missing.tenant

    def refresh(self, positions: Sequence[int] | None) -> bool:
        """Read hosts again after others have claimed there; return whether Placement answered.

        :param positions: of the hosts; None for all
        """
        has_answered = self._placement.refresh(positions)
        for i in range(len(self._states)) if positions is None else positions:
            if self._states[i].uuid in self._placement.free.providers:
                self._take_over(i)
        return has_answered

    def overbooked(self, positions: Sequence[int], seconds: float) -> dict[int, Amounts] | None:
        """Read hosts with claims of the request; return those that hold more than they have.

        And by how much, by the inventories of their candidates. None without an answer. The rooms
        of all hosts that were reached are then what was read.

        :param positions: of the hosts, in the order in which they are read
        :param seconds: in which to read; hosts that are not reached are not returned
        """
        excess = self._placement.read_claimed(positions, seconds)
        if excess is None:
            return None
        found: dict[int, Amounts] = {}
        for i in positions:
            providers = self.candidates.offered.providers(i)
            keys = {key for key in excess if key[0] in providers and key[1] in self._demand}
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
        self.room[claimed] = np.maximum(self.room[claimed], (self.placed + held)[claimed])
        if self.caps is not None:
            self.caps.allow(np.where(held > 0, self.placed + held, 0))

    def _fits_alone(self, i: int, one: AllocationCandidate) -> bool:
        """True if NUMA cells and PCI devices of a host allow a VM with one candidate now."""
        assert self._fitting is not None
        use = self._fitting.start(self._states[i])
        return self._fitting.claim(use, one.mappings) is not None

    def _left_of(self, room: Array) -> Array:
        left: Array = np.maximum(super()._left_of(room) - self._held_for_others, 0)
        return left

    def _take_over(self, i: int) -> None:
        """Set the room of a host to what was read of it."""
        most = self._placement_bound(i)
        # Cells and PCI devices are not in Placement: a room that they bound stays.
        self.room[i] = most if self._fitting is None else min(self.room[i], most)
        self._known[i] = self.placed[i]

    def _bound_by_placement(self) -> None:
        """Set the rooms by the amounts that were read; claims are not searched."""
        room = self.room.copy()
        for i, state in enumerate(self._states):
            if not state.vcpus_total or not state.allocation_candidates:
                continue
            placed = int(self.placed[i])
            most = max(self._placement_bound(i), placed + (0 if placed else 1))
            is_verified = self._known[i] > max(placed, 1)
            may_rise = state.uuid in self._placement.free.providers and not is_verified
            room[i] = most if may_rise else min(int(room[i]), most)
        self.room = room

    def _placement_bound(self, i: int) -> int:
        """Return the VMs that a host takes at most by what was read, those placed included."""
        return int(self.placed[i]) + min([UNBOUNDED, *self._most_by_class(i).values()])

    def _by_class(self) -> dict[str, Array]:
        found = {name: np.full_like(self.room, UNBOUNDED) for name in self._demand}
        for i, state in enumerate(self._states):
            most = self._most_by_class(i)
            for name, amount in self._demand.items():
                found[name][i] = (
                    most[name]
                    if most.get(name, UNBOUNDED) < UNBOUNDED
                    else host_state_room.capacity(state, {name: amount})
                )
        return found

    def _most_by_class(self, i: int) -> Mapping[str, int]:
        placement, root = self._placement, self._states[i].uuid
        if placement.has_tree(i):
            return placement.trees.most_by_class(root)
        candidates = self._amounts(i)
        found = most_by_class(placement.free.of(candidates), candidates)
        if placement.may_be_cut(i):
            # Those that were offered may have devices in common.
            return {name: most for name, most in found.items() if name in HOST_CLASSES}
        return found

    def _candidates(self, i: int) -> list[Candidate]:
        """Return the candidates of a host for a VM, of different amounts.

        Those in its tree, offered or not, if that was read.
        """
        placement, root = self._placement, self._states[i].uuid
        if not placement.has_tree(i):
            return self.candidates.offered.different(i)
        return self.candidates.offered.matching(i, placement.trees.candidates(root))

    def _amounts(self, i: int) -> list[Amounts]:
        return list(map(amounts_of, self._candidates(i)))

    def _mappings(self, i: int) -> list[Mapping[str, Any]]:
        return [found["mappings"] for found in self._candidates(i)]

    def _free(self, _i: int, candidates: Sequence[Amounts]) -> dict[Inventory, int]:
        return self._placement.free.of(candidates)

    def _shared_by(self, i: int) -> frozenset[Inventory]:
        own, sharing = (
            self._states[i].uuid,
            self._placement.trees.sharing & self._placement.free.providers,
        )
        return frozenset(
            key
            for found in self._amounts(i)
            for key in found
            if key[0] != own and key[0] in sharing
        )

    def _is_exact(self, i: int) -> bool:
        return self._placement.is_known(i)

    def _is_exhausted(self) -> bool:
        return super()._is_exhausted() or clock.current.monotonic() > self._until

    def _verify_plan(self, planned: Array, total: Array, unsure: Sequence[int]) -> bool:
        # A host of the plan shows whether Placement has more than nova-compute reports.
        sample = np.flatnonzero(planned)[:1].tolist() if self._most_per_host > 1 else []
        self._placement.read_hosts(unsure or sample)
        is_lower = super()._verify_plan(planned, total, unsure)
        if self._placement.differ_from_reports or any(
            self._placement_bound(i) < total[i] for i in unsure
        ):
            self.read_all()
        self._until = clock.current.monotonic() + MAX_SECONDS
        return is_lower

    def _order(self, i: int, fitting: DeviceFitting | None, *args: Any) -> tuple[int, ...]:
        try:
            order = super()._order(i, fitting, *args)
        except Exception:
            if fitting is None:
                raise
            # What a host reports of its cells or devices is not what Nova's code expects.
            if not self._has_failed:
                LOG.exception("Host %s is left out of plans", self._states[i].nodename)
            self._has_failed, order = True, ()
        if order:
            found = self._candidates(i)
            self.candidates.plan(i, [found[number] for number in order])
        else:
            self.candidates.plan(i, ())
        return order

    def _claims(self, i: int, number: int, taken: Amounts) -> list[Amounts]:
        if self._fitting is None:
            return super()._claims(i, number, taken)
        free = without(self._placement.free.of(self._amounts(i)), taken)
        found: list[Amounts] = []
        for claimed in map(amounts_of, self.candidates.next_claims(i, number)):
            if any(free[key] < amount for key, amount in claimed.items()):
                break
            free = without(free, claimed)
            found.append(claimed)
        return found


def empty_of(rooms: HostRooms) -> Array:
    """Return the VMs that each HostState takes while it has none. Shape (HostStates,).

    By its totals; of devices by the trees in Placement, where they were read. Once a request.
    """
    if rooms._empty is None:
        placement, states = rooms._placement, rooms._states
        sizes = host_state_room.empty_of_states(states, rooms._demand)
        for i, state in enumerate(states):
            if placement.has_tree(i):
                most = placement.trees.most_by_class(state.uuid, is_empty=True)
                # No class may be common to the alternatives of a request.
                sizes[i] = min([sizes[i], *most.values()])
        rooms._empty = sizes
    return rooms._empty
