"""The state of one group while one request is scheduled: who has a place, who awaits one."""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import nova.conf
import numpy as np
from nova import objects
from nova.scheduler import host_manager
from numpy.typing import NDArray

from hpc_sched.core.problem import Problem, tie_order
from hpc_sched.nova_glue import fabric, hosts, members, policy
from hpc_sched.nova_glue import request as request_
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF

Array = NDArray[np.int64]


class GroupState:
    """A group through one request.

    Made at first sight of a RequestSpec and kept as long as that lives; used by the one
    thread that serves the request. What the request itself has placed since then shows in
    HostState.num_instances against its value at first sight, without further reads.
    """

    def __init__(
        self,
        request: request_.Request,
        group: members.Group,
        states: Sequence[host_manager.HostState],
        current: fabric.Fabric,
    ) -> None:
        self.request = request
        self.group = group
        self._states = list(states)
        self._index = {id(state): i for i, state in enumerate(self._states)}
        self._at_first = self._num_instances()
        names, unknown = _names_in(current, self._states)
        current.report_unknown(unknown)
        # A host that is a candidate is known by one name, also as the place of a member.
        name_at = {
            (state.host, state.nodename): name for state, name in zip(states, names, strict=True)
        }
        places = Counter[str]()
        for (host, node), count in group.members.items():
            places[name_at.get((host, node)) or current.name_of(host, node)] += count
        self.topology: Topology = current.topology.including([*names, *places])
        self._tie = tie_order(self.topology, request.group_id)
        self.host_index: Array = np.array(
            [self.topology.index_of(name) for name in names], dtype=np.int64
        )
        self._members = np.zeros(len(self.topology.hosts), dtype=np.int64)
        for name, count in places.items():
            self._members[self.topology.index_of(name)] += count
        self._room = np.array(
            [hosts.capacity(state, request.demand) for state in self._states], dtype=np.int64
        )
        self._bound = policy.bound(
            request, group.members, self._states, self.topology.leaf_index[self.host_index]
        )
        self._queue = list(group.queue)
        self._current_uuid: str | None = None
        self._placed = 0
        self._placed_at = np.zeros(len(self._states), dtype=np.int64)
        self._weighed: Sequence[Any] = ()
        self._lost: set[int] = set()
        self.capacity: Array = self._capacity()

    def knows(self, states: Sequence[host_manager.HostState]) -> bool:
        """Tell whether all these HostStates are the ones of first sight."""
        return all(id(state) in self._index for state in states)

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of first sight."""
        return np.array([self._index[id(state)] for state in states], dtype=np.int64)

    def observe(self, instance_uuid: str) -> None:
        """Take in what has happened since the last VM, now that this one is to be placed."""
        placed_at = self._num_instances() - self._at_first
        placed = int(placed_at.sum())
        if placed > self._placed and self._current_uuid in self._queue:
            self._queue.remove(self._current_uuid)
        self._note_lost_claims(placed_at)
        self._placed = placed
        self._placed_at = placed_at
        self._current_uuid = instance_uuid
        self.capacity = self._capacity()

    def remember(self, weighed: Sequence[Any]) -> None:
        """Keep Nova's own list of weighed hosts until the next VM.

        Nova adds up the final weights in it after we have answered, so it tells next time in
        which order the hosts were tried.
        """
        self._weighed = weighed

    def _note_lost_claims(self, placed_at: Array) -> None:
        """Mark the hosts that Nova tried before the one that took the last VM.

        With host_subset_size above 1 Nova's first choice is random and says nothing.
        """
        weighed, self._weighed = self._weighed, ()
        if not weighed or CONF.filter_scheduler.host_subset_size > 1:
            return
        rose = np.flatnonzero(placed_at > self._placed_at)
        if len(rose) != 1:
            return
        taker = next((w for w in weighed if self._index.get(id(w.obj)) == rose[0]), None)
        if taker is None:
            return
        self._lost.discard(int(rose[0]))
        for host in weighed:
            if host.weight > taker.weight:
                self._lost.add(self._index[id(host.obj)])

    @property
    def awaiting(self) -> int:
        """VMs of the group that want a place now, those already placed left out."""
        return max(self.group.awaiting - self._placed, self.left, 0)

    @property
    def left(self) -> int:
        """VMs of this request that are still to be placed, the current one included."""
        return max(self.group.left - self._placed, 0)

    @property
    def members(self) -> Array:
        """VMs of the group per host of the topology, with those of this request."""
        counts = self._members.copy()
        np.add.at(counts, self.host_index, self._placed_at)
        return counts

    @property
    def slot(self) -> int:
        """Which of the group's places belongs to the current VM."""
        return self._queue.index(self._current_uuid) if self._current_uuid in self._queue else 0

    def _capacity(self) -> Array:
        """Return how many more VMs each HostState of first sight takes, policy included."""
        placed = self._placed_at
        room = np.maximum(self._room - placed, 0)
        return policy.apply(self._bound, room, placed, awaiting=self.awaiting, left=self.left)

    @property
    def lost(self) -> Array:
        """Positions of the HostStates that lost a claim of this request."""
        return np.array(sorted(self._lost), dtype=np.int64)

    def problem(self) -> Problem:
        """Return the problem as it is now; hosts that lost a claim take no more VMs."""
        room = self.capacity.copy()
        room[self.lost] = 0
        capacity = np.zeros(len(self.topology.hosts), dtype=np.int64)
        np.add.at(capacity, self.host_index, room)
        return Problem(
            topology=self.topology,
            capacity=capacity,
            members=self.members,
            awaiting=self.awaiting,
            tie=self._tie,
        )

    def _num_instances(self) -> Array:
        return np.fromiter(
            (state.num_instances for state in self._states), np.int64, len(self._states)
        )


def _names_in(
    current: fabric.Fabric, states: Sequence[host_manager.HostState]
) -> tuple[list[str], list[str]]:
    """Return the topology's name of each host, and the names it does not know.

    A short name that two hosts of the cloud would share belongs to neither.
    """
    found = [current.names.find(state.host, state.nodename) for state in states]
    nodes: dict[str, set[str]] = {}
    for name, state in zip(found, states, strict=True):
        if name is not None and name not in (state.host, state.nodename):
            nodes.setdefault(name, set()).add(state.nodename)
    shared = {name for name, same in nodes.items() if len(same) > 1}
    names, unknown = [], []
    for name, state in zip(found, states, strict=True):
        if name is None or (name in shared and name not in (state.host, state.nodename)):
            name = state.nodename or state.host
            unknown.append(name)
        names.append(name)
    return names, unknown


@dataclass
class _Registry:
    """The states of the requests being served, by RequestSpec, as long as those live."""

    states: weakref.WeakKeyDictionary[objects.RequestSpec, GroupState | None] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    lock: threading.Lock = field(default_factory=threading.Lock)


_registry = _Registry()


def state_of(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> GroupState | None:
    """Return the state of the group that a request places, or None where there is none.

    Read from the databases once, when the request is first seen; every later VM of the same
    request gets the same object, brought up to date. A reading that fails altogether is not
    tried again for this request.
    """
    with _registry.lock:
        known = spec in _registry.states
        state = _registry.states.get(spec)
    if not known or (state is not None and not state.knows(states)):
        with _registry.lock:
            _registry.states[spec] = None
        request = request_.from_spec(spec)
        state = None
        if request is not None:
            state = GroupState(request, members.read(request, states), states, fabric.current())
        with _registry.lock:
            _registry.states[spec] = state
    if state is not None:
        state.observe(spec.instance_uuid)
    return state
