"""The VMs of one request that rules other than free resources allow on each hypervisor."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, Self

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.topology.grouping import by_key


class Cap(Protocol):
    """A rule that counts the VMs of a request as they are placed.

    It is taken to refuse each VM after the first one that it refuses.
    """

    @property
    def name(self) -> str:
        """The rule and where it is set, for the reason of a refusal."""

    def kinds(self, hypervisors: Sequence[int]) -> Sequence[Hashable]:
        """Return what its answers for each hypervisor depend on; equal kinds: equal answers."""

    def passes(self, i: int, added: int) -> bool:
        """True if a hypervisor takes one more VM once some have been added; never raises."""


class HostCaps:
    """Caps of one request on its hypervisors, asked where a plan needs them.

    Arrays are over the hypervisors. Used by one thread.
    """

    def __init__(self, caps: Sequence[Cap], number: int) -> None:
        """Start with no cap known, but that each hypervisor takes one VM.

        :param number: of hypervisors
        """
        self._caps = caps
        # VMs that each takes at most, those placed included; UNBOUNDED as far as not known.
        self.limit: Array = np.full(number, UNBOUNDED, dtype=np.int64)
        self._limits: dict[str, Array] = {}  # the same by the name of a cap that is reached
        self._known: Array = np.ones(number, dtype=np.int64)  # VMs for which all caps were asked
        # Cap and kind: the VMs that were asked about, and those of them that pass.
        self._counted: dict[tuple[int, Hashable], tuple[int, int]] = {}
        self._last: dict[int, int] = {}  # cap to the number of VMs that it passed when reached

    @classmethod
    def known(cls, limits: Mapping[str, Array], number: int) -> Self:
        """Return caps that are known: VMs that each hypervisor takes, by name."""
        found = cls((), number)
        found._limits = dict(limits)
        found.limit = np.minimum.reduce([found.limit, *limits.values()])
        found._known = np.full_like(found.limit, UNBOUNDED)
        return found

    @property
    def names(self) -> frozenset[str]:
        """The names of the caps."""
        return frozenset([*self._limits, *(cap.name for cap in self._caps)])

    def by_name(self, placed: Array) -> dict[str, Array]:
        """Return the VMs that each hypervisor still takes by each cap that is reached anywhere."""
        return {name: np.maximum(limit - placed, 0) for name, limit in self._limits.items()}

    def allow(self, total: Array) -> None:
        """Raise the limits to numbers of VMs that are claimed already."""
        self.limit = np.maximum(self.limit, total)

    def ask(
        self, total: Array, placed: Array, is_exhausted: Callable[[], bool] = lambda: False
    ) -> bool:
        """Ask about VMs on hypervisors up to some totals; return whether any takes fewer.

        Each cap is asked some times for each kind of hypervisor: once if all VMs pass, else
        O(log VMs) times.

        :param total: VMs of the request on each, those placed included, shape (hypervisors,)
        :param placed: VMs of the request that each has taken
        :param is_exhausted: returns whether hypervisors are left out from now on
        """
        wanted, total = total, np.minimum(total, self.limit)
        unsure: list[int] = np.flatnonzero(total > self._known).tolist()
        if unsure and not is_exhausted():
            self._ask_each(unsure, total - placed, placed, is_exhausted)
        return bool((self.limit < wanted).any())

    def _ask_each(
        self,
        unsure: Sequence[int],
        vms: Array,
        placed: Array,
        is_exhausted: Callable[[], bool],
    ) -> None:
        for number, cap in enumerate(self._caps):
            for kind, alike in by_key(zip(cap.kinds(unsure), unsure, strict=True)).items():
                if is_exhausted():
                    # The caps of some are not known: they are asked once a plan uses them.
                    return
                most = int(vms[alike].max())
                count = self._count(number, kind, alike[0], most)
                if count < most:
                    self._limit(cap.name, alike, placed[alike] + count)
        self._known[unsure] = (vms + placed)[unsure]

    def _limit(self, name: str, alike: Sequence[int], limit: Array) -> None:
        if name not in self._limits:
            self._limits[name] = np.full_like(self.limit, UNBOUNDED)
        for limits in (self.limit, self._limits[name]):
            limits[alike] = np.minimum(limits[alike], limit)

    def _count(self, number: int, kind: Hashable, i: int, most: int) -> int:
        """Return the VMs, up to a number, that a cap passes one after the other."""
        asked, count = self._counted.get((number, kind), (0, 0))
        if count == asked < most:
            asked, count = most, self._search(number, i, count, most)
            self._counted[number, kind] = asked, count
        return min(count, most)

    def _search(self, number: int, i: int, low: int, most: int) -> int:
        def refuses(added: int) -> bool:
            return not self._caps[number].passes(i, added)

        # Hypervisors of other kinds mostly take the same number.
        near, high = self._last.get(number, -1), most
        if low < near < most:
            low, high = (low, near - 1) if refuses(near - 1) else (near, most)
        if low == near < high and refuses(near):
            high = near
        if high == most:
            if not refuses(most - 1):
                return most
            high = most - 1
        self._last[number] = found = bisect_left(range(high), True, low, high, key=refuses)
        return found


class RequestCaps:
    """All caps of one request: those that last, and those of I/O operations, which end.

    A plan may have more VMs than the request: those of a group that is created one by one, or
    moves. By the time these come, operations of earlier ones have mostly ended. So the caps of
    operations apply to the VMs of the request alone: once its plan has too few places for them.
    """

    def __init__(
        self,
        lasting: HostCaps,
        operations: HostCaps,
        *,
        is_exhausted: Callable[[], bool] = lambda: False,
        counts_operations: bool = False,
    ) -> None:
        """Start with the caps of both kinds.

        :param is_exhausted: returns whether hypervisors outside a plan are no longer asked
        :param counts_operations: whether the caps of operations apply to all VMs from the start
        """
        self._lasting = lasting
        self._operations = operations
        self._is_exhausted = is_exhausted
        self._counts_operations = counts_operations

    @property
    def limit(self) -> Array:
        """The VMs that each hypervisor takes at most, those placed included."""
        limit: Array = np.minimum.reduce([one.limit for one in self._counted()])
        return limit

    @property
    def names(self) -> frozenset[str]:
        """The names of all caps."""
        return self._lasting.names | self._operations.names

    def by_name(self, placed: Array) -> dict[str, Array]:
        """Return :meth:`HostCaps.by_name` of the caps that apply."""
        return {k: v for one in self._counted() for k, v in one.by_name(placed).items()}

    def allow(self, total: Array) -> None:
        """Raise the limits to numbers of VMs that are claimed already."""
        for one in (self._lasting, self._operations):
            one.allow(total)

    def verify(self, planned: Array, placed: Array, left: int) -> bool:
        """Ask about the hypervisors of a plan; return whether it has to be made again.

        :param left: VMs of the request that are not placed
        """
        is_lower = self._lasting.ask(_total(planned, placed), placed)
        own = np.minimum(planned, left)
        if self._operations.ask(_total(own, placed), placed):
            passing = np.minimum(own, np.maximum(self._operations.limit - placed, 0)).sum()
            if passing < min(left, planned.sum()):
                self._counts_operations = is_lower = True
        return is_lower

    def ask_all(self, total: Array, placed: Array, *, is_whole: bool) -> None:
        """Ask about VMs on all hypervisors up to some totals.

        :param is_whole: whether all VMs are those of the request
        """
        self._counts_operations |= is_whole
        for one in self._counted():
            one.ask(total, placed, self._is_exhausted)

    def _counted(self) -> Sequence[HostCaps]:
        return [self._lasting, self._operations][: 1 + self._counts_operations]


def _total(planned: Array, placed: Array) -> Array:
    total: Array = np.where(planned > 0, planned + placed, 0)
    return total
