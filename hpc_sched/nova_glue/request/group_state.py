"""The state of one group while one request is scheduled: who has a place, who awaits one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import nova.conf
import numpy as np
from nova.scheduler import host_manager
from numpy.typing import NDArray
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.core import server_group_policy
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.extra_specs import GROUP_SIZE
from hpc_sched.core.plan.problem import Problem, tie_order
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.enabling import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue.instances import group_members
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.request import request_spec
from hpc_sched.nova_glue.request.claim_observer import ClaimObserver
from hpc_sched.nova_glue.request.decision_record import Record
from hpc_sched.nova_glue.request.planning import Planning
from hpc_sched.nova_glue.room import host_state_room, mdobp_input
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

Array = NDArray[np.int64]


class GroupState:
    """A group through one request.

    Made at first sight of a RequestSpec and kept as long as that lives; used by the one
    thread that serves the request. What the request itself has placed since then shows in
    HostState.num_instances against its value at first sight, without further reads.
    """

    def __init__(
        self,
        request: request_spec.Request,
        group: group_members.GroupMembership,
        states: Sequence[host_manager.HostState],
        current: loaded_topology.Fabric,
        colocated: ColocatedInstances | None = None,
    ) -> None:
        """Take in what has been read.

        :param colocated: what runs on the hosts already; read where the request minds it
        """
        self.request = request
        self.colocated = colocated
        self.group = group
        self.fabric = current
        self._first = ClaimObserver(states)
        self._states = self._first.states
        names, unknown = loaded_topology.names_in(current, self._states)
        current.report_unknown(unknown)
        # A host that is a candidate is known by one name, also as the place of a member.
        name_at = {
            (state.host, state.nodename): name for state, name in zip(states, names, strict=True)
        }
        places = Counter[str]()
        for (host, node), count in group.members.items():
            places[name_at.get((host, node)) or current.name_of(host, node)] += count
        # Where the fabric does not matter the cloud is one leaf.
        self.is_flat = not request.by_topology and not request.hpc_specs.needs_place
        self.topology: Topology = (
            Topology.from_tree({"cloud": list(dict.fromkeys([*names, *places]))})
            if self.is_flat
            else current.topology.including([*names, *places])
        )
        self._tie = tie_order(self.topology, request.group_id)
        self.host_index: Array = np.array(
            [self.topology.index_of(name) for name in names], dtype=np.int64
        )
        self._members = np.zeros(len(self.topology.hosts), dtype=np.int64)
        for name, count in places.items():
            self._members[self.topology.index_of(name)] += count
        self._room = np.array(
            [host_state_room.capacity(state, request.demand) for state in self._states],
            dtype=np.int64,
        )
        self._beside = self._room_beside()
        self._packing = (
            mdobp_input.packing(request, self._states, colocated) if request.by_mdobp else None
        )
        self._bound = server_group_policy.bound(
            request.policy,
            request.max_per_host,
            group.members,
            [(state.host, state.nodename) for state in self._states],
            self.topology.leaf_index[self.host_index],
        )
        self._queue = list(group.queue)
        self._current_uuid: str | None = None
        self._placed_at = np.zeros(len(self._states), dtype=np.int64)
        self._weighed: Sequence[Any] = ()
        self._lost: set[int] = set()
        self.capacity: Array = self._capacity()
        self.planning = Planning(self)
        self.record = Record()
        self.build_plan: Array | None = None  # the hosts in the order of RackCapacityWeigher
        self._warned = False

    @property
    def candidates(self) -> Sequence[host_manager.HostState]:
        """The HostStates of first sight: what passed the filters before ours."""
        return self._states

    def knows(self, states: Sequence[host_manager.HostState]) -> bool:
        """Tell whether all these HostStates are the ones of first sight."""
        return self._first.knows(states)

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of first sight."""
        return self._first.positions(states)

    def observe(self, instance_uuid: str) -> None:
        """Take in what has happened since the last VM, now that this one is to be placed."""
        placed_at = self._first.placed()
        if placed_at.sum() > self.placed and self._current_uuid in self._queue:
            self._queue.remove(self._current_uuid)
        self._note_lost_claims(placed_at)
        self._placed_at = placed_at
        self._current_uuid = instance_uuid
        self.capacity = self._capacity()

    def warn_of_faults(self) -> None:
        """Log once what of the request's wishes is ignored, where nobody has refused them."""
        if self.request.hpc_specs.faults and not self._warned:
            self._warned = True
            LOG.warning(
                "Ignored for instance %s: %s",
                self.request.instance_uuid,
                "; ".join(self.request.hpc_specs.faults),
            )

    def rejection(self, answer: Rejection, among: Array) -> exceptions.RefusedError:
        """Return the refusal that tells a Rejection to operator and tenant.

        :param among: positions of the candidates
        """
        if self.request.policy == "affinity" and not answer.conflict:
            if self.members.any():
                what, room = "need the members' host: largest gang that fits there", self.capacity
            else:
                what, room = "need one host: largest gang that fits on one host", self.room
            most = int(room[among].max(initial=0))
            if most < answer.count:
                return exceptions.RefusedError(
                    f"{answer.count} VMs of a group with policy affinity {what}: {most}"
                )
        size = self.request.hpc_specs.constraints.group_size
        why = f" ({GROUP_SIZE}={size})" if size is not None and answer.count > self.left else ""
        operator, tenant = answer.operator + why, answer.tenant + why
        if self.left_out:
            whys = ", ".join(f"{count} by {why}" for why, count in sorted(self.left_out.items()))
            operator += f"; hosts left out for the VMs that they have: {whys}"
            tenant += "; hosts are left out for the VMs that they have"
        return exceptions.RefusedError(operator, tenant)

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
        taker = next((w for w in weighed if self._first.index.get(id(w.obj)) == rose[0]), None)
        if taker is None:
            return
        self._lost.discard(int(rose[0]))
        for host in weighed:
            if host.weight > taker.weight:
                self._lost.add(self._first.index[id(host.obj)])

    @property
    def awaiting(self) -> int:
        """VMs of the group that want a place now, those already placed left out."""
        return max(self.group.awaiting - self.placed, self.left, 0)

    @property
    def left(self) -> int:
        """VMs of this request that are still to be placed, the current one included."""
        return max(self.group.left - self.placed, 0)

    @property
    def placed(self) -> int:
        """VMs that this request has placed so far."""
        return int(self._placed_at.sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many VMs to plan for, the most wanted first, down to what must fit.

        The VMs of this request must; with ``require`` the group must as large as it will
        become. VMs of other requests, and build requests that nobody works on any more,
        only steer the choice.
        """
        required = self.request.hpc_specs.constraints.require is not None
        must = max(self.left, self._grown) if required else self.left
        wanted = {max(self.awaiting, self._grown), self.active, must}
        return tuple(sorted((count for count in wanted if count >= must), reverse=True))

    @property
    def active(self) -> int:
        """VMs of the group that somebody works on, and those that it will grow by."""
        return max(self.awaiting - self.group.orphans, self.left, self._grown)

    @property
    def _grown(self) -> int:
        """VMs that the group lacks of the size that it will have."""
        size = self.request.hpc_specs.constraints.group_size or 0
        return 0 if self.group.is_move else max(size - int(self.members.sum()), 0)

    @property
    def members(self) -> Array:
        """VMs of the group per host of the topology, with those of this request."""
        return self._members + self._per_host(self._placed_at)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether each host of the topology has VMs that this request has placed."""
        return self._per_host(self._placed_at) > 0

    @property
    def slot(self) -> int:
        """Which of the group's places belongs to the current VM."""
        return self._queue.index(self._current_uuid) if self._current_uuid in self._queue else 0

    @property
    def room(self) -> Array:
        """How many more VMs each HostState of first sight takes, whatever the policy."""
        room: Array = np.maximum(np.minimum(self._room, self._beside) - self._placed_at, 0)
        return room

    def _room_beside(self) -> Array:
        """Return how many VMs each HostState of first sight takes beside the VMs of others."""
        room = np.full(len(self._states), UNBOUNDED, dtype=np.int64)
        if self.colocated is not None:
            if DEDICATED_FILTER in self.request.bounded_by:
                room = np.minimum(room, self.colocated.dedicated_room(self._states))
            if INTERFERENCE_FILTER in self.request.bounded_by:
                room = np.minimum(room, self.colocated.limited_room(self._states))
        return room

    @property
    def left_out(self) -> dict[str, int]:
        """How many hosts the VMs of others keep from the group, by the reason."""
        if self.colocated is None:
            return {}
        found = Counter(self.colocated.removed)
        # The hosts that a filter has removed are not among the candidates.
        found["the VMs of others"] += int(self.kept_out.sum())
        return dict(+found)

    @property
    def kept_out(self) -> NDArray[np.bool_]:
        """Whether each HostState has room that the VMs of others do not leave to the group."""
        kept_out: NDArray[np.bool_] = (self._room > self._placed_at) & (
            self._beside <= self._placed_at
        )
        return kept_out

    def _capacity(self) -> Array:
        """Return how many more VMs each HostState of first sight takes, policy included."""
        return server_group_policy.apply(self._bound, self._open_room, self._placed_at, self.sizes)

    @property
    def _open_room(self) -> Array:
        """The room of the HostStates that have not lost a claim."""
        room = self.room
        room[self.lost] = 0
        return room

    @property
    def lost(self) -> Array:
        """Positions of the HostStates that lost a claim of this request."""
        return np.array(sorted(self._lost), dtype=np.int64)

    def problem(self, among: Array | None = None) -> Problem:
        """Return the problem as it is now; hosts that lost a claim take no more VMs.

        :param among: positions of the HostStates that are candidates; all by default
        """
        return Problem(
            topology=self.topology,
            capacity=self._per_host(self.capacity, among),
            members=self.members,
            awaiting=self.awaiting,
            tie=self._tie,
            constraints=NO_CONSTRAINTS if self.is_flat else self.request.hpc_specs.constraints,
            pack_hosts=self.request.pack_hosts,
            packing=self._packing_now(),
        )

    def _packing_now(self) -> MDOBPInput | None:
        """Return the packing per host of the topology, what the request has placed taken off."""
        if self._packing is None:
            return None
        now = self._packing.after(self._placed_at)
        free = np.zeros((len(self.topology.hosts), len(now.demand)))
        usable = np.zeros_like(free)
        free[self.host_index], usable[self.host_index] = now.free, now.usable
        return dataclasses.replace(now, free=free, usable=usable)

    def problems_by_policy(self, among: Array | None = None) -> Iterator[Problem]:
        """Yield problems whose plans keep a hard policy of services that own many nodes.

        :meth:`problem` compares leaves; there the places of one service may count in several.

        :param among: positions of the HostStates that are candidates; all by default
        """
        rooms = server_group_policy.by_service(
            self._bound, self._open_room, self._placed_at, self.sizes
        )
        problem = self.problem()
        for bounded in rooms:
            yield dataclasses.replace(problem, capacity=self._per_host(bounded, among))

    def keeps_policy(self, hosts: Mapping[str, int]) -> bool:
        """Tell whether planned VMs per host keep the group's hard policy service by service."""
        if self._bound is None:
            return True
        planned = np.array(
            [hosts.get(self.topology.hosts[i], 0) for i in self.host_index.tolist()], np.int64
        )
        return server_group_policy.keeps(self._bound, planned, self._placed_at)

    def open_hosts(self, among: Array) -> NDArray[np.bool_]:
        """Return the hosts of the topology that could take a VM in another one's stead.

        Of a service that may take no more than one VM of the group every node could be it.
        """
        room = server_group_policy.open_room(self._bound, self._open_room, self._placed_at)
        return self._per_host(room, among) > 0

    def _per_host(self, room: Array, among: Array | None = None) -> Array:
        """Return numbers per HostState as numbers per host of the topology."""
        if among is not None:
            room = room.copy()
            outside = np.ones(len(room), dtype=np.bool_)
            outside[among] = False
            room[outside] = 0
        per_host = np.zeros(len(self.topology.hosts), dtype=np.int64)
        np.add.at(per_host, self.host_index, room)
        return per_host

    def empty_problem(self, size_of: Mapping[str, int] | None = None) -> Problem:
        """Return the problem on a cloud without any VM, every host being a candidate.

        :param size_of: nodename to the VMs that a host takes while it has none, for those that
            are no candidates; without it they count as the largest of the candidates
        """
        whole = np.array(
            [host_state_room.empty_capacity(state, self.request.demand) for state in self._states],
            dtype=np.int64,
        )
        most = server_group_policy.most_per_host(self.request.max_per_host)
        largest = min(int(whole.max(initial=0)), most)
        capacity = np.full(len(self.topology.hosts), largest, dtype=np.int64)
        if size_of is not None:
            capacity[:] = 0
            for node, size in size_of.items():
                name = self.fabric.name_of(node, node)
                if name in self.topology:
                    capacity[self.topology.index_of(name)] = min(size, most)
        capacity[self.host_index] = np.minimum(whole, most)
        return dataclasses.replace(
            self.problem(), capacity=capacity, members=np.zeros_like(capacity)
        )
