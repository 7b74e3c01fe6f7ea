"""The GroupRequest of a group on a snapshot, as the scheduler would build it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hpc_sched.core import extra_specs
from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.objectives.stated_objective import stated_objective
from hpc_sched.core.plan.gathering import Gathering
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.enabled_plugins import GROUP_FILTER, HOMOGENEITY_FILTER
from hpc_sched.snapshot import colocated_vms, hypervisor_processors, nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.isolated_groups import uplinks_of_others
from hpc_sched.snapshot.room import filter_caps, flavor_request, pci_aliases, snapshot_rooms
from hpc_sched.snapshot.snapshot_model import Flavor, Server
from hpc_sched.topology.model import Topology

# Statuses of VMs that are deleted to their users: they are members of no group.
GONE = ("DELETED", "SOFT_DELETED")


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
    # Extra specs that are assumed for a group, over the flavor's own.
    constraints: Mapping[str, str] = field(default_factory=dict)
    is_single: bool = False  # whether it is about one VM, which need not belong to a group

    @property
    def extra_specs(self) -> Mapping[str, str]:
        """The flavor's extra specs with the constraints."""
        return {**self.flavor.extra_specs, **self.constraints}

    @property
    def moved_uuids(self) -> frozenset[str]:
        """The uuids of ``moves``."""
        return frozenset(server.uuid for server in self.moves)

    @property
    def in_server_group(self) -> bool:
        """True if the VMs are in a server group."""
        return bool(self.group_id or self.policy)


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotRequest:
    """A query on a cloud, with its GroupRequest."""

    cloud: Cloud
    request: GroupQuery
    hpc_specs: HPCSpecs
    group: GroupRequest  # rows are the hypervisors of the snapshot
    rooms: snapshot_rooms.SnapshotRooms  # what is free; the check of the group

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
            self.cloud,
            self.request,
            self.hpc_specs,
            self.cloud.topology,
            self.group.room,
            self.rooms,
        )

    @property
    def fault(self) -> str | None:
        """Why HPCGroupFilter refuses the request whatever is free, or None."""
        specs, snapshot = self.hpc_specs, self.cloud.snapshot
        is_checked = nova_options.enabled(snapshot).has_filter(GROUP_FILTER)
        is_new = is_checked and not self.request.moves
        if specs.is_unclear or (is_new and specs.faults):
            return "; ".join(specs.faults)
        if (is_checked or snapshot.filters is None) and not self.request.moves:
            own = _hpc_specs(self.cloud, self.request.flavor.extra_specs)
            if fault := own.group_fault(
                in_server_group=self.request.in_server_group,
                count=self.request.count,
                is_implicit=self._is_implicit,
            ):
                return fault
        if not is_new:
            return None
        if (fault := self.group.policy_fault) or not self.group.constraints.bound_final_size:
            return fault
        return self.group.contradiction(self.empty_room())

    def empty_room(self) -> Array:
        """Return the VMs that each host would take without any VM. Shape (topology.hosts,)."""
        empty = np.zeros(len(self.group.topology.hosts), dtype=np.int64)
        empty[self.group.hosts_of_rows] = snapshot_rooms.empty_room(
            self.cloud.snapshot, self.request.flavor, self.request.boots_from_volume
        )
        return empty

    @property
    def _is_implicit(self) -> bool:
        """True if several VMs of the flavor are a group without a server group."""
        return extra_specs.is_implicit_group(
            self.request.flavor.extra_specs, {}, nova_options.defaults(self.cloud.snapshot)
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on what is wrong in the request, and on what the room does not count."""
        flavor, snapshot = self.request.flavor, self.cloud.snapshot
        is_checked = nova_options.enabled(snapshot).has_filter(GROUP_FILTER)
        # Whether the scheduler takes the VMs of the query for a group, if only of class none.
        is_group = (
            self.hpc_specs.app_class == "none"
            or not self.hpc_specs.is_planned
            or self.request.in_server_group
            or self._is_implicit
        )
        profile = flavor.extra_specs.get("accel:device_profile")
        unfitted = pci_aliases.only_nova_fits(flavor, snapshot)
        uncounted = filter_caps.unknown(snapshot)
        further = {
            "the flavor names no hpc:app_class and implicit_groups is off: only the VMs of a "
            "server group are placed so": is_checked and not is_group,
            f"the accelerators of device profile {profile} are not counted": profile,
            f"{' and '.join(unfitted)} are not checked: that takes Nova, and a snapshot that was "
            "saved where nova.conf names its databases": (
                unfitted and not self.rooms.are_devices_fitted
            ),
            f"how many VMs {', '.join(uncounted)} let a host take is not known": uncounted,
        }
        return [
            *self.hpc_specs.faults,
            *self.hpc_specs.ignored,
            *pci_aliases.notes(flavor, snapshot),
            *(text for text, holds in further.items() if holds),
        ]


def of(cloud: Cloud, request: GroupQuery) -> SnapshotRequest:
    """Return a query on a cloud. Linear in hypervisors and VMs.

    Room, traits, policy, services and the VMs on hosts are taken into account; availability
    zones, images and networks are not.
    """
    runs = _application(cloud, request)
    hpc_specs = _hpc_specs(cloud, request.extra_specs)
    if _is_unplanned(cloud, request):
        runs = _application(cloud, request, in_group=False)
        hpc_specs = hpc_specs.unplanned(runs.app_class)
    topology = cloud.topology
    if hpc_specs.is_flat:
        topology = Topology.from_tree({"cloud": list(topology.hosts)}, levels=("cloud",))
    # They can stay on their hosts, even if these take no other VMs.
    own = Counter(vm.place for vm in request.moves)
    least = np.array([own[node.place] for node in cloud.snapshot.hypervisors])
    rooms = snapshot_rooms.of(
        cloud,
        request.flavor,
        least,
        boots_from_volume=request.boots_from_volume,
        moves=request.moves,
        is_whole=not request.moves and hpc_specs.constraints.group_size is None,
    )
    beside = colocated_vms.rooms(cloud, runs, request.moved_uuids)
    room = np.maximum(np.minimum(rooms.left, beside), least)
    group = _group_request(cloud, request, hpc_specs, topology, room, rooms)
    return SnapshotRequest(cloud, request, hpc_specs, group, rooms)


def moved(state: SnapshotRequest, server: Server) -> GroupRequest:
    """Return the request to move one of a query's members, next to the others.

    Rooms are those of the query: what the VM itself takes is not free. Linear in hypervisors.

    :param state: of a query about one VM more
    """
    members = tuple(vm for vm in state.request.members if vm.uuid != server.uuid)
    query = replace(state.request, members=members, moves=(server,))
    group, cloud = state.group, state.cloud
    return _group_request(cloud, query, state.hpc_specs, group.topology, group.room, state.rooms)


def _application(cloud: Cloud, request: GroupQuery, *, in_group: bool = True) -> Application:
    runs, _ = extra_specs.application(
        request.flavor.extra_specs, {}, nova_options.defaults(cloud.snapshot), in_group=in_group
    )
    return replace(runs, group=request.group_id or None)


def _is_unplanned(cloud: Cloud, request: GroupQuery) -> bool:
    """True if the query is a single VM without a server group that MDOBP places.

    With assumed constraints it is about a group.
    """
    if not request.is_single or request.in_server_group or request.constraints:
        return False
    return nova_options.enabled(cloud.snapshot).has_mdobp and mdobp_classes.places(
        _application(cloud, request, in_group=False).app_class,
        nova_options.defaults(cloud.snapshot).mdobp_classes,
    )


def _hpc_specs(cloud: Cloud, specs: Mapping[str, str]) -> HPCSpecs:
    return extra_specs.read(
        specs, {}, cloud.description.request_levels, nova_options.defaults(cloud.snapshot)
    )


def _group_request(
    cloud: Cloud,
    request: GroupQuery,
    hpc_specs: HPCSpecs,
    topology: Topology,
    room: Array,
    rooms: snapshot_rooms.SnapshotRooms,
) -> GroupRequest:
    snapshot = cloud.snapshot
    rates = nova_options.fragmentation_rates(snapshot)
    enabled = nova_options.enabled(snapshot)
    places = [node.place for node in snapshot.hypervisors]
    # Followers of the group do not count: the answer is on the VMs that are queried.
    living = [vm for vm in request.members if vm.status not in GONE]
    by_type = hpc_specs.homogeneous != "false" and enabled.has_filter(HOMOGENEITY_FILTER)
    there = [
        (vm.created, vm.uuid, vm.host or "", cloud.host_of[vm.uuid])
        for vm in living
        if vm.uuid in cloud.host_of
    ]
    made = GroupRequest.of(
        topology,
        hpc_specs,
        group_id=request.group_id,
        policy=request.policy,
        max_per_host=request.max_per_host,
        places=places,
        names=[cloud.name_at[place] for place in places],
        room=room,
        members=Counter((service, host) for *_, service, host in there),
        left=request.count,
        awaiting=request.count,
        packing=colocated_vms.mdobp_input(
            cloud,
            _application(cloud, request),
            flavor_request.demand_of(request.flavor, boots_from_volume=request.boots_from_volume),
            request.policy,
            request.moved_uuids,
        )
        if hpc_specs.by_mdobp and enabled.has_mdobp
        else None,
        processors=hypervisor_processors.of(cloud, request.members, room) if by_type else None,
        check=rooms,
        objective=stated_objective(
            hpc_specs,
            topology,
            nova_options.objective_options(snapshot),
            partial(
                uplinks_of_others, cloud, [vm.uuid for vm in (*request.members, *request.moves)]
            ),
        ),
        rates=rates,
        empty=snapshot_rooms.empty_room(snapshot, request.flavor, request.boots_from_volume)
        if rates
        else None,
    )
    if not nova_options.option(snapshot, "gather_groups"):
        return made
    youngest = max(there)[-1] if there else None
    gathering = Gathering.of(made.problem(), youngest, is_move=bool(request.moves))
    return replace(made, gathering=gathering)
