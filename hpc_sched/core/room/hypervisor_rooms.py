"""The VMs of one request that hypervisors take: bounds at first, exact for those of a plan."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.claim_search import MAX_FITS, claim_order, fitted_order
from hpc_sched.core.room.device_fitting import DeviceFitting
from hpc_sched.core.room.providers import Amounts, Inventory, without

if TYPE_CHECKING:
    from hpc_sched.core.room.host_caps import RequestCaps

# Returns the first claims on the host at an index, up to a number, as far as they fit once some
# amounts have been taken.
Claims = Callable[[int, int, Mapping[Inventory, int]], Sequence[Amounts]]


class HypervisorRooms(ABC):
    """The room on the hypervisors of one request, which a plan has verified where it uses them.

    What hypervisors offer and have free is what HostStates and Placement say, or a snapshot: a
    class for each says it. Three things depend on the plan: what hypervisors share, claims on
    one hypervisor that must fit together, where candidates or devices differ, and the caps of
    rules that count VMs.

    Arrays are over the hypervisors. Used by one thread.
    """

    def __init__(
        self,
        bound: Array,
        known: Array,
        least: Array,
        *,
        sharing: Set[Any],
        fitting: DeviceFitting | None,
        devices: Sequence[Any],
        caps: "RequestCaps | None" = None,
    ) -> None:
        """Start with bounds.

        :param bound: VMs that each takes at most, shape (hypervisors,)
        :param known: VMs for which each has room without a check, shape (hypervisors,)
        :param least: VMs that each takes in any case, shape (hypervisors,)
        :param sharing: what several hypervisors share; empty if nothing
        :param fitting: of NUMA cells and PCI devices; None if none are requested
        :param devices: of each hypervisor, which the fitting starts with; None if not known
        :param caps: of rules that count VMs; None without any
        """
        # VMs that each takes at most, those placed included.
        self.room = bound
        self.placed: Array = np.zeros_like(bound)  # VMs of the request that each has taken
        self._known = known
        self._least = least
        self._sharing = sharing
        self._fitting = fitting
        self._devices = devices
        self.caps = caps
        self._fits = 0  # claims that were fitted
        # Resource class to the least that a shared provider had for each; for refusals.
        self._shared: dict[str, Array] = {}

    @property
    def left(self) -> Array:
        """The VMs that each hypervisor still takes at most. Shape (hypervisors,)."""
        return self._capped(self._left_of(self.room))

    def verified(self, planned: Array, left: int | None = None) -> Array:
        """Return the VMs that each hypervisor still takes at most, exact where some are planned.

        Later calls never return more for a hypervisor. Shape (hypervisors,).

        :param planned: VMs planned on each hypervisor, shape (hypervisors,)
        :param left: of them, VMs of the request; all by default
        """
        total = np.where(planned > 0, planned + self.placed, 0)
        if self._verify_plan(planned, total, self._unverified(total)):
            self._verify_all()
        if self.caps is not None:
            count = int(planned.sum())
            if self.caps.verify(planned, self.placed, count if left is None else left):
                self.ask_caps(count)
        if not self._sharing:
            return self.left
        # What a hypervisor does not take after all is left to the others.
        planned = np.minimum(planned, self.left)
        room = self.room
        # The rooms themselves stay: another plan has other limits.
        for name, limit in shared_limits(planned, self._shared_by, self._claims).items():
            limit = limit + self.placed
            self._shared[name] = np.minimum(self._shared.get(name, limit), limit)
            room = np.minimum(room, limit)
        return self._capped(self._left_of(room))

    def ask_caps(self, count: int, *, is_whole: bool = False) -> Array:
        """Ask the caps of all hypervisors, until the effort is exhausted; return :attr:`left`.

        :param count: VMs to place
        :param is_whole: whether all of them are those of the request
        """
        if self.caps is not None:
            total = self.placed + np.minimum(self.left, count)
            self.caps.ask_all(total, self.placed, is_whole=is_whole)
        return self.left

    def by_resource(self) -> dict[str, Array]:
        """Return the VMs that each hypervisor still takes if one resource alone counted.

        By resource class, or another name of what is demanded, or of a cap; arrays of shape
        (hypervisors,).
        """
        found = self._by_class()
        for name, limit in self._shared.items():
            left = np.maximum(limit - self.placed, 0)
            found[name] = np.minimum(found.get(name, left), left)
        if self._fitting is not None:
            found[self._fitting.name] = self._left_of(self.room)
        return found if self.caps is None else found | self.caps.by_name(self.placed)

    @abstractmethod
    def _by_class(self) -> dict[str, Array]:
        """Return :meth:`by_resource` by the resource classes of each hypervisor alone."""

    @abstractmethod
    def _amounts(self, i: int) -> Sequence[Amounts]:
        """Return the amounts of each allocation candidate of a hypervisor."""

    @abstractmethod
    def _mappings(self, i: int) -> Sequence[Mapping[str, Any]]:
        """Return the request groups of each candidate of a hypervisor, to their providers."""

    @abstractmethod
    def _free(self, i: int, candidates: Sequence[Amounts]) -> dict[Inventory, int]:
        """Return what is free on a hypervisor for its candidates."""

    @abstractmethod
    def _shared_by(self, i: int) -> frozenset[Inventory]:
        """Return the inventories of candidates that a hypervisor does not have for itself."""

    def _is_exact(self, i: int) -> bool:
        """True if all is known of a hypervisor; others are verified again for a plan."""
        return True

    def _is_exhausted(self) -> bool:
        """True if hypervisors outside a plan are no longer verified: they keep their bound."""
        return self._fits >= MAX_FITS

    def _left_of(self, room: Array) -> Array:
        left: Array = np.maximum(room, np.maximum(self._least, self.placed)) - self.placed
        return left

    def _capped(self, left: Array) -> Array:
        if self.caps is None:
            return left
        least = np.maximum(self._least, self.placed)
        return np.minimum(left, np.maximum(self.caps.limit, least) - self.placed)

    def _unverified(self, total: Array) -> list[int]:
        """Return the hypervisors that are not known to take some numbers of VMs."""
        found: list[int] = np.flatnonzero(total > self._known).tolist()
        return found

    def _verify_plan(self, _planned: Array, total: Array, unsure: Sequence[int]) -> bool:
        """Verify hypervisors of a plan up to some totals; return whether any takes fewer."""
        return self._verify(unsure, total)

    def _verify(self, hypervisors: Iterable[int], total: Array) -> bool:
        """Count VMs on hypervisors up to some numbers; return whether any takes fewer."""
        is_lower = False
        for i in hypervisors:
            wanted = int(total[i])
            self._known[i] = found = self._count(i, wanted)
            if found < wanted:
                is_lower = True
                self.room[i] = min(int(self.room[i]), found)
        return is_lower

    def _verify_all(self) -> None:
        """Count the VMs on all hypervisors until the effort is exhausted.

        A hypervisor that takes less than its bound is seldom the only one of its kind.
        """
        for i in self._unverified(self.room):
            if self._is_exhausted():
                return
            known = self._known[i]
            self._verify([i], self.room)
            if not self._is_exact(i):
                self._known[i] = min(known, self.room[i])

    def _count(self, i: int, total: int) -> int:
        """Return the VMs, up to a total, that a hypervisor takes."""
        placed = int(self.placed[i])
        candidates = self._amounts(i)
        most = min(total, int(self.room[i])) - placed
        if not candidates:
            return placed + most
        order = self._order(i, self._fitting, candidates, self._free(i, candidates), most)
        return max(placed + len(order), int(self._least[i]))

    def _order(
        self,
        i: int,
        fitting: DeviceFitting | None,
        candidates: Sequence[Amounts],
        free: Amounts,
        most: int,
    ) -> tuple[int, ...]:
        """Return the candidates of the largest number of VMs, in order of the claims."""
        if fitting is None or (devices := self._devices[i]) is None:
            return claim_order(candidates, free, most)
        mappings = self._mappings(i)

        def fit(use: Any, number: int) -> Any:
            self._fits += 1
            return fitting.claim(use, mappings[number])

        return fitted_order(candidates, free, most, fitting.start(devices), fit)

    def _claims(self, i: int, number: int, taken: Amounts) -> list[Amounts]:
        """Return the first claims on a hypervisor that fit once some amounts have been taken."""
        candidates = self._amounts(i)
        free = without(self._free(i, candidates), taken)
        return [candidates[j] for j in self._order(i, None, candidates, free, number)]


def shared_limits(
    planned: Array, shared: Callable[[int], frozenset[Inventory]], claims: Claims
) -> dict[str, Array]:
    """Return the VMs that each host may have of a plan, by resource class that has too little.

    The hosts with the most planned VMs keep their places; the others get what is left. Which
    hosts should give way for the least Hop-Byte is not searched. UNBOUNDED for hosts that do not
    use such an inventory. Empty if there is enough for the plan.

    :param planned: VMs planned on each host, shape (hosts,)
    :param shared: returns the inventories that the host at an index does not have for itself
    """
    count = int(planned.sum())
    taken: dict[Inventory, int] = {}
    lacking: set[Inventory] = set()
    limit = np.full(len(planned), UNBOUNDED, dtype=np.int64)
    order = np.argsort(-planned, kind="stable").tolist()
    for i in order:
        if planned[i] and (keys := shared(i)):
            found = claims(i, int(planned[i]), taken)
            limit[i] = len(found)
            if len(found) < planned[i]:
                lacking |= keys
            for claimed in found:
                for key in keys & claimed.keys():
                    taken[key] = taken.get(key, 0) + claimed[key]
    if not lacking:
        return {}
    for i in order:
        if not planned[i] and lacking & shared(i):
            limit[i] = len(claims(i, count, taken))
    return {name: limit for _, name in sorted(lacking)}


def scarcest(
    by_resource: Mapping[str, Array], among: Mask, count: int, *, on_one: bool = False
) -> str | None:
    """Return the resource that runs out first, or None if there are enough of all.

    It is the one without which the most VMs more would fit; equal ones: the one that alone allows
    the fewest, then the name. O(resources * hypervisors).

    :param by_resource: VMs that each hypervisor takes if one resource alone counted
    :param among: the hypervisors to look at, shape (hypervisors,)
    :param count: VMs that do not fit
    :param on_one: whether one of the hypervisors must take them all
    """
    names = sorted(by_resource)
    if not names or not among.any():
        return None
    alone = np.minimum(np.array([by_resource[name][among] for name in names]), UNBOUNDED)

    def fits(rooms: Array) -> int:
        return int(rooms.max() if on_one else rooms.sum())

    if fits(alone.min(axis=0)) >= count:
        return None

    def without_it(i: int) -> int:
        others = np.delete(alone, i, axis=0)
        return fits(others.min(axis=0, initial=UNBOUNDED))

    return names[min(range(len(names)), key=lambda i: (-without_it(i), fits(alone[i]), names[i]))]
