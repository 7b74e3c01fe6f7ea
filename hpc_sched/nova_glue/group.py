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
from nova import context as nova_context
from nova import objects
from nova.scheduler import host_manager
from numpy.typing import NDArray
from oslo_log import log as logging

from hpc_sched.core.problem import Problem, tie_order
from hpc_sched.nova_glue import allocations, db, fabric, hosts, policy
from hpc_sched.nova_glue import request as request_
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it was when the request was first seen."""

    # (host, nodename or None) to VMs there; the nodename is None where only the service host
    # is known
    members: Counter[tuple[str, str | None]]
    queue: tuple[str, ...]  # uuids known to await a place, in the order of the places
    left: int  # VMs of this request still to be placed
    is_move: bool
    problems: tuple[str, ...] = ()  # why the answer is not whole

    @property
    def awaiting(self) -> int:
        """VMs of the group that want a place: at least those of this request."""
        return max(len(self.queue), self.left)


class GroupState:
    """A group through one request.

    Made at first sight of a RequestSpec and kept as long as that lives; used by the one
    thread that serves the request. What the request itself has placed since then shows in
    HostState.num_instances against its value at first sight, without further reads.
    """

    def __init__(
        self,
        request: request_.Request,
        group: Group,
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
        members = Counter[str]()
        for (host, node), count in group.members.items():
            members[name_at.get((host, node)) or current.name_of(host, node)] += count
        self.topology: Topology = current.topology.including([*names, *members])
        self._tie = tie_order(self.topology, request.group_id)
        self.host_index: Array = np.array(
            [self.topology.index_of(name) for name in names], dtype=np.int64
        )
        self._members = np.zeros(len(self.topology.hosts), dtype=np.int64)
        for name, count in members.items():
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
        members = self._members.copy()
        np.add.at(members, self.host_index, self._placed_at)
        return members

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
            state = GroupState(request, read(request, states), states, fabric.current())
        with _registry.lock:
            _registry.states[spec] = state
    if state is not None:
        state.observe(spec.instance_uuid)
    return state


def read(request: request_.Request, states: Sequence[host_manager.HostState]) -> Group:
    """Return members and awaiting of a group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created), one in each
    cell that holds a VM of the group, and look-ups in Placement as
    :func:`allocations.nodes_of` says. Where a part does not answer, what HostState and the
    RequestSpec know takes its place, with one WARNING.
    """
    context = nova_context.get_admin_context()
    try:
        group = _read(context, request, states)
    except Exception as error:
        LOG.exception("Cannot read group %s from the API database", request.group_id)
        own = request.instance_uuid
        members = _members_by_states(request.member_uuids - {own}, states)
        # A VM that has a host already moves; Nova shows it where it is.
        is_move = any(own in state.instances for state in states)
        count = 1 if is_move else request.count
        group = Group(members, (), count, is_move, (f"API database: {error}",))
    if group.problems:
        LOG.warning(
            "Group %s: placed with what the scheduler itself knows of some VMs: %s",
            request.group_id,
            "; ".join(group.problems),
        )
    return group


def _read(
    context: nova_context.RequestContext,
    request: request_.Request,
    states: Sequence[host_manager.HostState],
) -> Group:
    own = request.instance_uuid
    vms = db.group_vms(context, request.group_uuid, request.member_uuids | {own})
    by_uuid = {vm.uuid: vm for vm in vms}
    own_cell = by_uuid[own].cell_id if own in by_uuid else None
    is_move = own_cell is not None
    if request.group_uuid is None and not is_move:
        # A new implicit group: nobody but this request knows of it.
        return Group(Counter(), (own,), request.count, False)
    if request.group_uuid is None and own_cell is not None:
        answers = db.siblings(context, own, own_cell)
    else:
        by_cell: dict[int, list[str]] = {}
        for vm in vms:
            if vm.cell_id is not None and vm.uuid != own:
                by_cell.setdefault(vm.cell_id, []).append(vm.uuid)
        answers = db.placed_vms(context, by_cell)
    problems = [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]

    members: Counter[tuple[str, str | None]] = Counter()
    in_flight = []
    for placed in answers.vms:
        if placed.uuid == own:
            continue
        if placed.host:
            members[(placed.host, placed.nodename)] += 1
        elif placed.building:
            in_flight.append(placed.uuid)
    silent = {vm.uuid for vm in vms if vm.cell_id in answers.silent} - {own}
    members.update(_members_by_states(silent, states))

    unmapped = [vm for vm in vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    orphans = [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]
    if not is_move and own not in waiting:
        waiting.append(own)
    nodes, trouble = allocations.nodes_of(
        context,
        sorted(in_flight) + _may_be_in_flight(waiting, own, request, is_move) + orphans,
        {state.uuid: state.nodename for state in states},
    )
    if trouble:
        problems.append(trouble)
    host_of = {state.nodename: state.host for state in states}
    for node in nodes.values():
        members[(host_of.get(node, node), node)] += 1
    if is_move:
        # Others that await a place have requests of their own.
        return Group(members, (own,), 1, True, tuple(problems))
    # Orphans may want a place for ever: they steer the choice of leaf, but take no place from
    # the VMs that are being scheduled.
    queue = tuple(uuid for uuid in waiting + orphans if uuid not in nodes)
    return Group(members, queue, request.count, False, tuple(problems))


def _may_be_in_flight(
    waiting: list[str], own: str, request: request_.Request, is_move: bool
) -> list[str]:
    """Return those of the VMs with build requests that may hold an allocation.

    The request's own VMs do not when it is first seen. Build requests older than the first of
    them are others'; of the younger ones as many are its own as it has VMs to place.
    """
    if is_move:
        return [uuid for uuid in waiting if uuid != own]
    at = waiting.index(own)
    older, younger = waiting[:at], waiting[at + 1 :]
    return older + (younger if len(younger) >= request.count else [])


def _members_by_states(
    uuids: frozenset[str] | set[str], states: Sequence[host_manager.HostState]
) -> Counter[tuple[str, str | None]]:
    """Return the VMs among ``uuids`` that the scheduler's own cache sees on candidates."""
    members: Counter[tuple[str, str | None]] = Counter()
    seen: set[str] = set()
    if not uuids:
        return members
    for state in states:
        here = (uuids & set(state.instances)) - seen
        if here:
            seen |= here
            members[(state.host, state.nodename)] += len(here)
    return members
