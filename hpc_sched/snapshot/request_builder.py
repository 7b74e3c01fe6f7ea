"""The GroupRequest of a group on a snapshot, as the scheduler would build it."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core import extra_specs
from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED, host_capacity
from hpc_sched.core.extra_specs import HPCSpecs
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.enabled_plugins import GROUP_FILTER, HOMOGENEITY_FILTER
from hpc_sched.snapshot import colocation, hypervisor_processors, nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Flavor, Hypervisor, Server, demand_of
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """A group of VMs of one flavor, to be placed on a snapshot."""

    flavor: Flavor
    count: int
    group_id: str = ""  # uuid of the server group; key of the tie order
    policy: str | None = None
    max_per_host: int | None = None  # most VMs of the group on one service host; None: unbounded
    members: tuple[Server, ...] = ()  # VMs of the group; those with a host have a place
    boots_from_volume: bool = False
    moves: tuple[Server, ...] = ()  # existing VMs that the query places again

    @property
    def demand(self) -> dict[str, int]:
        """Resource class to amount of one VM."""
        return demand_of(self.flavor, boots_from_volume=self.boots_from_volume)


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotRequest:
    """A query on a cloud, with its GroupRequest."""

    cloud: Cloud
    request: GroupQuery
    hpc_specs: HPCSpecs
    group: GroupRequest  # rows are the hypervisors of the snapshot

    @property
    def is_flat(self) -> bool:
        """True if the group is not placed by topology."""
        return self.group.topology is not self.cloud.topology

    @property
    def on_fabric(self) -> GroupRequest:
        """The group on the cloud's fabric, even if its class is not placed by topology."""
        if not self.is_flat:
            return self.group
        return _group_request(
            self.cloud, self.request, self.hpc_specs, self.cloud.topology, self.group.room
        )

    @property
    def fault(self) -> str | None:
        """Why HPCGroupFilter refuses the request whatever is free, or None."""
        specs, nodes = self.hpc_specs, self.cloud.snapshot.hypervisors
        is_checked = nova_options.enabled(self.cloud.snapshot).has_filter(GROUP_FILTER)
        is_new = is_checked and not self.request.moves
        if specs.is_unclear or (is_new and specs.faults):
            return "; ".join(specs.faults)
        if not is_new or not self.group.constraints.bound_final_size:
            return None
        empty = np.zeros(len(self.group.topology.hosts), dtype=np.int64)
        empty[self.group.hosts_of_rows] = [
            _room(node, self.request.demand, node.capacity) for node in nodes
        ]
        return self.group.contradiction(empty)


def of(cloud: Cloud, request: GroupQuery) -> SnapshotRequest:
    """Return a query on a cloud. Linear in hypervisors and VMs.

    Room, policy, services and the VMs on hosts are taken into account; availability zones,
    traits, images and networks are not.
    """
    hpc_specs = extra_specs.read(
        request.flavor.extra_specs, {}, cloud.levels, nova_options.defaults(cloud.snapshot)
    )
    topology = cloud.topology
    if hpc_specs.is_flat:
        topology = Topology.from_tree({"cloud": list(topology.hosts)}, levels=("cloud",))
    gone = frozenset(server.uuid for server in request.moves)
    runs, _ = extra_specs.application(
        request.flavor.extra_specs, {}, nova_options.defaults(cloud.snapshot), in_group=True
    )
    room = np.minimum(
        _rooms(cloud, request),
        colocation.rooms(cloud, replace(runs, group=request.group_id or None), gone),
    )
    # They can stay on their hosts, even if these take no other VMs.
    own = Counter(vm.place for vm in request.moves)
    room = np.maximum(room, [own[node.host, node.nodename] for node in cloud.snapshot.hypervisors])
    group = _group_request(cloud, request, hpc_specs, topology, room)
    return SnapshotRequest(cloud, request, hpc_specs, group)


def _group_request(
    cloud: Cloud, request: GroupQuery, hpc_specs: HPCSpecs, topology: Topology, room: Array
) -> GroupRequest:
    snapshot = cloud.snapshot
    enabled = nova_options.enabled(snapshot)
    places = [(node.host, node.nodename) for node in snapshot.hypervisors]
    by_mdobp = hpc_specs.shares_hosts and enabled.has_mdobp
    by_type = hpc_specs.homogeneous != "false" and enabled.has_filter(HOMOGENEITY_FILTER)
    return GroupRequest.of(
        topology,
        hpc_specs,
        group_id=request.group_id,
        policy=request.policy,
        max_per_host=request.max_per_host,
        places=places,
        names=[cloud.name_at[place] for place in places],
        room=room,
        members=Counter(
            (server.host or "", cloud.host_of[server.uuid])
            for server in request.members
            if server.uuid in cloud.host_of
        ),
        left=request.count,
        awaiting=request.count,
        packing=_packing(cloud, request) if by_mdobp else None,
        processors=hypervisor_processors.of(cloud, request.members, room) if by_type else None,
    )


def _packing(cloud: Cloud, request: GroupQuery) -> MDOBPInput:
    nodes = cloud.snapshot.hypervisors
    return MDOBPInput.of(
        request.demand,
        [
            {name: most - node.used.get(name, 0.0) for name, most in node.capacity.items()}
            for node in nodes
        ],
        [node.capacity for node in nodes],
        policy=request.policy,
        with_disk=nova_options.option(cloud.snapshot, "mdobp_disk"),
    )


def _rooms(cloud: Cloud, request: GroupQuery) -> Array:
    """Return the VMs that fit into each hypervisor's free resources. Shape (hypervisors,)."""
    held: defaultdict[tuple[str, str] | None, Counter[str]] = defaultdict(Counter)
    for vm in request.moves:
        held[vm.place].update(demand_of(vm.flavor, boots_from_volume=vm.boots_from_volume))
    demand, rooms = request.demand, []
    for node in cloud.snapshot.hypervisors:
        own = held[node.host, node.nodename]
        free = {
            name: most - max(node.used.get(name, 0.0) - own[name], 0.0)
            for name, most in node.capacity.items()
        }
        rooms.append(_room(node, demand, free) if cloud.takes_vms(node) else 0)
    return np.array(rooms, dtype=np.int64)


def _room(node: Hypervisor, demand: Mapping[str, int], free: Mapping[str, float]) -> int:
    # Disk may come from a shared provider. A host without any other demanded resource class is
    # not among Placement's candidates.
    if any(name not in node.capacity for name in demand if name != "DISK_GB"):
        return 0
    is_bare_metal = not (node.capacity.get("VCPU") or node.capacity.get("PCPU"))
    return min(host_capacity(free, demand), 1 if is_bare_metal else UNBOUNDED)
