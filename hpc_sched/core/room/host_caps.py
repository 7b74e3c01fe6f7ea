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
    """The caps of one request on its hypervisors, asked where a plan needs them.

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
    def known(cls, limits: Mapping[str, Array]) -> Self:
        """Return caps that are known: VMs that each hypervisor takes, by name; not empty."""
        found = cls((), len(next(iter(limits.values()))))
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
        total = np.minimum(total, self.limit)
        unsure: list[int] = np.flatnonzero(total > self._known).tolist()
        for number, cap in enumerate(self._caps):
            for kind, alike in by_key(zip(cap.kinds(unsure), unsure, strict=True)).items():
                if is_exhausted():
                    # The caps of some are not known: they are asked once a plan uses them.
                    return bool((self.limit < total).any())
                most = int((total - placed)[alike].max())
                count = self._count(number, kind, alike[0], most)
                if count < most:
                    self._limit(cap.name, alike, placed[alike] + count)
        self._known[unsure] = total[unsure]
        return bool((self.limit < total).any())

    def _limit(self, name: str, alike: Sequence[int], limit: Array) -> None:
        self.limit[alike] = np.minimum(self.limit[alike], limit)
        found = self._limits.setdefault(name, np.full_like(self.limit, UNBOUNDED))
        found[alike] = np.minimum(found[alike], limit)

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

        if not refuses(most - 1):
            return most
        # Hypervisors of other kinds mostly take the same number.
        near, high = self._last.get(number, low), most - 1
        if low < near <= high:
            low, high = (low, near - 1) if refuses(near - 1) else (near, high)
        if low == near < high and refuses(near):
            high = near
        self._last[number] = found = bisect_left(range(high), True, low, high, key=refuses)
        return found
