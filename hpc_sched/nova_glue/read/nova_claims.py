"""The VMs of a request that HostStates have taken, and the hosts that lost a claim."""

from collections.abc import Sequence
from typing import Any

import nova.conf
import numpy as np
from nova.scheduler import host_manager

from hpc_sched.core.arrays import Array

CONF = nova.conf.CONF


class ClaimObserver:
    """The HostStates of one request, by position, and the VMs that each has taken.

    Nova raises HostState.num_instances with each claim. Its increase since the first call is the
    number of VMs that the request itself has placed.
    """

    def __init__(self, states: Sequence[host_manager.HostState]) -> None:
        self.states = list(states)
        self.index = {id(state): i for i, state in enumerate(self.states)}
        self._num_instances = self._count()

    def knows(self, states: Sequence[host_manager.HostState]) -> bool:
        """True if all these HostStates are those of the first call."""
        return all(id(state) in self.index for state in states)

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of the first call."""
        return np.array([self.index[id(state)] for state in states], dtype=np.int64)

    def placed(self) -> Array:
        """Return the VMs of the request that each HostState has taken. Shape (HostStates,)."""
        return self._count() - self._num_instances

    @property
    def is_released(self) -> bool:
        """True once Nova has released its claims of the request after NoValidHost."""
        # Nova marks the HostStates so.
        taken = np.flatnonzero(self.placed() > 0).tolist()
        return any(self.states[i].updated is None for i in taken)

    def _count(self) -> Array:
        return np.fromiter(
            (state.num_instances for state in self.states), np.int64, len(self.states)
        )


class GroupClaims:
    """The claims of one group's request so far, as of the last :meth:`observe`."""

    def __init__(self, states: Sequence[host_manager.HostState], queue: Sequence[str]) -> None:
        """Start before the first claim.

        :param queue: uuids of the VMs without a place, in the order of the plan's places
        """
        self.hosts = ClaimObserver(states)
        self.placed: Array = np.zeros(len(states), dtype=np.int64)  # shape (HostStates,)
        self._queue = list(queue)
        self.current_uuid: str | None = None  # the VM to place next
        self._weighed: Sequence[Any] = ()
        self._lost: set[int] = set()

    def observe(self, instance_uuid: str) -> None:
        """Update the claims; ``instance_uuid`` is the VM to place next."""
        placed = self.hosts.placed()
        if placed.sum() > self.number and self.current_uuid in self._queue:
            self._queue.remove(self.current_uuid)
        self._note_lost(placed)
        self.placed = placed
        self.current_uuid = instance_uuid

    def taken_since(self) -> list[int]:
        """Return the positions of the HostStates that took a VM since the last :meth:`observe`."""
        found: list[int] = np.flatnonzero(self.hosts.placed() > self.placed).tolist()
        return found

    def remember(self, weighed: Sequence[Any]) -> None:
        """Keep Nova's own list of weighed hosts until the next VM.

        Nova adds the final weights to it after the weigher has returned. The next call then
        reads from them in which order the hosts were tried.
        """
        self._weighed = weighed

    @property
    def number(self) -> int:
        """Number of VMs that the request has placed."""
        return int(self.placed.sum())

    @property
    def lost(self) -> Array:
        """Positions of the HostStates that lost a claim of the request. Shape (lost,)."""
        return np.array(sorted(self._lost), dtype=np.int64)

    @property
    def slot(self) -> int:
        """Number of the plan's place that belongs to the current VM, from 0."""
        return self._queue.index(self.current_uuid) if self.current_uuid in self._queue else 0

    def _note_lost(self, placed: Array) -> None:
        """Add the hosts that Nova tried before the one that took the last VM to :attr:`lost`."""
        weighed, self._weighed = self._weighed, ()
        # With host_subset_size above 1 Nova's first choice is random and shows nothing.
        if not weighed or CONF.filter_scheduler.host_subset_size > 1:
            return
        rose = np.flatnonzero(placed > self.placed)
        if len(rose) != 1:
            return
        index = self.hosts.index
        taker = next((w for w in weighed if index.get(id(w.obj)) == rose[0]), None)
        if taker is None:
            return
        self._lost.discard(int(rose[0]))
        self._lost.update(index[id(host.obj)] for host in weighed if host.weight > taker.weight)
