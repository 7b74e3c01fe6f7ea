"""One group during one request: the values read at the first call, and its claims since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import nova.conf
import numpy as np
from nova.scheduler import host_manager
from numpy.typing import NDArray
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.core import server_group_policy
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.extra_specs import GROUP_SIZE, MAX_LEAVES
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import tie_order
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue.instances import group_members
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.request import request_spec
from hpc_sched.nova_glue.request.claim_observer import GroupClaims
from hpc_sched.nova_glue.request.planning import Planning
from hpc_sched.nova_glue.room import host_state_room, mdobp_input
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

Array = NDArray[np.int64]


class GroupState:
    """A group during one request.

    Built when a RequestSpec is first seen and kept as long as it; used by the one thread that
    serves the request. Arrays over HostStates are in the order of the first call.
    """

    def __init__(
        self,
        request: request_spec.RequestedGroup,
        group: group_members.GroupMembership,
        states: Sequence[host_manager.HostState],
        current: loaded_topology.Fabric,
        colocated: ColocatedInstances | None = None,
    ) -> None:
        """Build the parts of the GroupRequest that do not change.

        :param colocated: the VMs that run on the hosts; None if they are not needed
        """
        self.request = request
        self.colocated = colocated
        self.group = group
        self.fabric = current
        self.claims = GroupClaims(states, group.queue)
        self.planning = Planning()
        # Hosts in the order of RackCapacityWeigher; indices in topology.hosts, shape (hosts,).
        self.build_plan: Array | None = None
        self.is_logged = False  # whether the decision is logged
        self.removed: Counter[str] = Counter()  # reason to hosts that hpc_sched removed
        self.is_bounded = False  # whether the plan was made without these hosts
        self._is_warned = False
        self._now: GroupRequest | None = None

        states = self.candidates
        places = [(state.host, state.nodename) for state in states]
        names, unknown = loaded_topology.names_in(current, states)
        current.report_unknown(unknown)
        # A candidate has the same name as the place of a member.
        name_at = dict(zip(places, names, strict=True))
        members = Counter[str]()
        for (host, node), count in group.members.items():
            members[name_at.get((host, node)) or current.name_of(host, node)] += count
        self.is_flat = request.hpc_specs.is_flat
        self.topology: Topology = (
            Topology.from_tree({"cloud": list(dict.fromkeys([*names, *members]))})
            if self.is_flat
            else current.topology.including([*names, *members])
        )
        self._tie = tie_order(self.topology, request.group_id)
        # Shape (HostStates,): index in topology.hosts.
        self.host_index: Array = np.array(
            [self.topology.index_of(name) for name in names], dtype=np.int64
        )
        self._members = np.zeros(len(self.topology.hosts), dtype=np.int64)
        for name, count in members.items():
            self._members[self.topology.index_of(name)] += count
        self._room = np.array(
            [host_state_room.capacity(state, request.demand) for state in states], dtype=np.int64
        )
        self._colocation_room = self._room_by_colocation()
        self._packing = (
            mdobp_input.packing(request, states, colocated) if request.by_mdobp else None
        )
        self._hard_policy = server_group_policy.hard_policy(
            request.policy,
            request.max_per_host,
            group.members,
            places,
            self.topology.leaf_index[self.host_index],
        )

    @property
    def candidates(self) -> Sequence[host_manager.HostState]:
        """The HostStates of the first call, as the filters before hpc_sched's leave them."""
        return self.claims.hosts.states

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of the first call."""
        return self.claims.hosts.positions(states)

    def observe(self, instance_uuid: str) -> None:
        """Update the claims; ``instance_uuid`` is the VM to place next."""
        self.claims.observe(instance_uuid)
        self._now = None

    def group_request(self, positions: Array | None = None) -> GroupRequest:
        """Return the group after the claims so far; built once a VM.

        Hosts that lost a claim have no room. O(hosts of the topology).

        :param positions: of the HostStates that are candidates; all by default
        """
        if self._now is None:
            self._now = self._build()
        now = replace(self._now, left_out=self.left_out)
        if positions is None:
            return now
        candidates = np.zeros(len(self._room), dtype=np.bool_)
        candidates[positions] = True
        return now.among(candidates)

    def _build(self) -> GroupRequest:
        request, placed = self.request, self.claims.placed
        room = self.room
        room[self.claims.lost] = 0
        members = self._members.copy()
        np.add.at(members, self.host_index, placed)
        policy = self._hard_policy
        final_size = request.hpc_specs.constraints.group_size or 0
        return GroupRequest(
            topology=self.topology,
            tie=self._tie,
            host_index=self.host_index,
            room=room,
            members=members,
            left=self.left,
            awaiting=self.awaiting,
            orphans=self.group.orphans,
            missing=0 if self.group.is_move else max(final_size - int(members.sum()), 0),
            constraints=NO_CONSTRAINTS if self.is_flat else request.hpc_specs.constraints,
            server_group_policy=request.policy,
            hard_policy=None if policy is None else policy.with_placed(placed),
            pack_hosts=request.pack_hosts,
            packing=None if self._packing is None else self._packing.after(placed),
            homogeneous=request.hpc_specs.homogeneous,
        )

    def plan(self, request: GroupRequest) -> Plan | Rejection:
        """Return the plan of the group: the rest of the last one if that still holds."""
        return self.planning.plan(request, placed=self.claims.number)

    @property
    def awaiting(self) -> int:
        """Number of VMs of the group without a place."""
        return max(self.group.awaiting - self.claims.number, self.left, 0)

    @property
    def left(self) -> int:
        """Number of VMs of this request without a place, the current one included."""
        return max(self.group.left - self.claims.number, 0)

    @property
    def room(self) -> Array:
        """VMs that each HostState takes, before the server group's policy. Shape (HostStates,)."""
        room = np.minimum(self._room, self._colocation_room) - self.claims.placed
        return np.maximum(room, 0)

    def _room_by_colocation(self) -> Array:
        """Return the VMs that each HostState takes next to those of others. Shape (HostStates,)."""
        room = np.full(len(self._room), UNBOUNDED, dtype=np.int64)
        if self.colocated is not None:
            if DEDICATED_FILTER in self.request.bounded_by:
                room = np.minimum(room, self.colocated.dedicated_room(self.candidates))
            if INTERFERENCE_FILTER in self.request.bounded_by:
                room = np.minimum(room, self.colocated.limited_room(self.candidates))
        return room

    @property
    def kept_out(self) -> NDArray[np.bool_]:
        """Whether each HostState is full because of the VMs of others. Shape (HostStates,)."""
        placed = self.claims.placed
        return (self._room > placed) & (self._colocation_room <= placed)

    @property
    def left_out(self) -> dict[str, int]:
        """Reason to the number of hosts that are full because of the VMs of others."""
        if self.colocated is None:
            return {}
        found = Counter(self.colocated.removed)
        # The hosts that a filter has removed are not among the candidates.
        found["the VMs of others"] += int(self.kept_out.sum())
        return dict(+found)

    def count_removed(self, why: str, number: int, *, bounds_plan: bool = True) -> None:
        """Count hosts that a filter of hpc_sched removed.

        :param bounds_plan: whether the plan was made without them
        """
        if number:
            self.removed[why] += number
            self.is_bounded |= bounds_plan

    def warn_of_faults(self) -> None:
        """Log ignored constraints once per request."""
        if self.request.hpc_specs.faults and not self._is_warned:
            self._is_warned = True
            LOG.warning(
                "Ignored for instance %s: %s",
                self.request.instance_uuid,
                "; ".join(self.request.hpc_specs.faults),
            )

    def check_final_size(self) -> None:
        """Check that the group's final size fits its constraints on an empty cloud.

        Reads the sizes of all hosts before a request is refused, nothing else.

        :raises exceptions.RefusedError: if the constraints contradict each other
        """
        said = self.request.hpc_specs.constraints
        if said.max_leaves is None or said.group_size is None or self.group.is_move:
            return
        group = self.group_request()
        most = group.most_of_empty(self._empty_capacity())
        if said.group_size <= most:
            return
        # Hosts that are full now may be larger than all candidates.
        sizes = host_state_room.empty_capacities(self.request.demand)
        if sizes is None:
            return
        most = group.most_of_empty(self._empty_capacity(sizes))
        if said.group_size > most:
            raise exceptions.RefusedError(
                f"{MAX_LEAVES}={said.max_leaves} and {GROUP_SIZE}="
                f"{said.group_size} contradict each other: at most {most} VMs of this flavor "
                f"fit in {plurals.text(said.max_leaves, 'leaf switch')}"
            )

    def _empty_capacity(self, size_of: Mapping[str, int] | None = None) -> Array:
        """Return the VMs that each host of the topology takes while it is empty. Shape (hosts,).

        :param size_of: nodename to the VMs that the empty host takes, for hosts that are no
            candidates; without it they count as the largest candidate
        """
        whole = np.array(
            [
                host_state_room.empty_capacity(state, self.request.demand)
                for state in self.candidates
            ],
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
        return capacity
