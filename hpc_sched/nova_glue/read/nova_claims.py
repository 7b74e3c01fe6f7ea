"""What Nova does for a request between its calls: the VMs that HostStates take, and lost claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched import clock
from hpc_sched.core.arrays import Array


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
        return self._are_all(states) or self.index.keys() >= set(map(id, states))

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of the first call."""
        if self._are_all(states):
            return np.arange(len(states))
        return np.array([self.index[id(state)] for state in states], dtype=np.int64)

    def placed(self) -> Array:
        """Return the VMs of the request that each HostState has taken. Shape (HostStates,)."""
        return self._count() - self._num_instances

    @property
    def nova_has_released(self) -> bool:
        """True once Nova has released its claims of the request after NoValidHost."""
        # Nova marks the HostStates so.
        return any(self.states[i].updated is None for i in np.flatnonzero(self.placed() > 0))

    def _are_all(self, states: Sequence[host_manager.HostState]) -> bool:
        """True if these are all HostStates in the order of the first call, as is most common."""
        return states == self.states

    def _count(self) -> Array:
        # A list is faster than a generator here, and this is done for all hosts several times.
        return np.array([state.num_instances for state in self.states], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """What Nova has done for a request up to one of its calls: taken, lost or dropped hosts.

    Arrays are over the HostStates of the first call.
    """

    at: float  # monotonic time of the call
    candidates: Array  # positions of the HostStates that are left, shape (candidates,)
    placed: Array  # VMs of the request that each HostState has taken, shape (HostStates,)
    lost: Array  # positions of the HostStates that lost a claim of the request, shape (lost,)
    instance: str | None = None  # uuid of the VM to place next; None before the first call
    slot: int = 0  # number of the plan's place that belongs to it

    @property
    def number(self) -> int:
        """Number of VMs that the request has placed."""
        return int(self.placed.sum())


class NovaClaims:
    """Nova's claims for one request, seen at its calls."""

    def __init__(self, states: Sequence[host_manager.HostState], queue: Sequence[str]) -> None:
        """Start before the first claim.

        :param queue: uuids of the VMs without a place, in the order of the plan's places
        """
        self.hosts = ClaimObserver(states)
        self.last = Event(
            clock.current.monotonic(),
            candidates=np.arange(len(states)),
            placed=np.zeros(len(states), dtype=np.int64),
            lost=np.zeros(0, dtype=np.int64),
        )
        self._queue = list(queue)
        self._weighed: Sequence[Any] = ()

    def observe(self, instance: str, states: Sequence[host_manager.HostState]) -> Event:
        """Return what Nova has done up to a call.

        :param instance: uuid of the VM to place next
        :param states: the candidates of the call
        """
        placed, before = self.hosts.placed(), self.last
        if placed.sum() > before.number and before.instance in self._queue:
            self._queue.remove(before.instance)
        self.last = Event(
            clock.current.monotonic(),
            self.hosts.positions(states),
            placed,
            self._lost(placed),
            instance,
            self._queue.index(instance) if instance in self._queue else 0,
        )
        return self.last

    def taken_since(self) -> list[int]:
        """Return the positions of the HostStates that took a VM since the last :meth:`observe`."""
        found: list[int] = np.flatnonzero(self.hosts.placed() > self.last.placed).tolist()
        return found

    def remember(self, weighed: Sequence[Any]) -> None:
        """Keep Nova's own list of weighed hosts until the next VM.

        Nova adds the final weights to it after the weigher has returned. The next call then
        reads from them in which order the hosts were tried.
        """
        self._weighed = weighed

    def _lost(self, placed: Array) -> Array:
        """Return the hosts that lost a claim: Nova tried them before the one that took a VM."""
        before = self.last
        weighed, self._weighed = self._weighed, ()
        # With host_subset_size above 1 Nova's first choice is random and shows nothing.
        if not weighed or CONF.filter_scheduler.host_subset_size > 1:
            return before.lost
        rose = np.flatnonzero(placed > before.placed).tolist()
        index = self.hosts.index
        taker = next((w for w in weighed if [index.get(id(w.obj))] == rose), None)
        if taker is None:
            return before.lost
        tried = [index[id(host.obj)] for host in weighed if host.weight > taker.weight]
        return np.union1d(np.setdiff1d(before.lost, rose), np.array(tried, dtype=np.int64))
