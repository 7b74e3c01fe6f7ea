"""What one live migration would gain for a server group that is apart, on a snapshot."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.core.counterfactual.best_move import Move, best_move, is_apart, level_name
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.snapshot import request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.groups import server_groups
from hpc_sched.snapshot.snapshot_model import Group, Server

# The states in which Nova migrates a VM live.
STATES = ("ACTIVE", "PAUSED")


@dataclass(frozen=True, slots=True)
class GroupMove:
    """The live migration that gains most for a group that is apart."""

    level: str  # of which one switch should hold the group
    server: Server | None = None  # None if no migration gains anything
    move: Move | None = None


def of(cloud: Cloud, group: Group) -> GroupMove | None:
    """Return the live migration that gains most; None for a group that is not apart.

    None as well for one that is not placed by topology. Each VM is placed with its own flavor, as
    the scheduler would, next to the others; on no host that is down or disabled. Takes as long as a
    plan for each flavor, and a few more.
    """
    members = server_groups.placed_of(cloud, group)
    up = {node.place for node in cloud.snapshot.hypervisors if node.up}
    by_kind = defaultdict[object, list[Server]](list)
    for vm in members:
        by_kind[vm.flavor.name, str(vm.flavor), vm.boots_from_volume].append(vm)
    found: list[tuple[Move, Server]] = []
    level = None
    for vms in by_kind.values():
        state = _state(cloud, group, members, vms[0])
        if state.is_flat or not is_apart(state.group):
            continue
        level = level_name(state.group)
        movable = [vm for vm in vms if vm.status in STATES and vm.place in up]
        found += _best(state, movable)
    if level is None:
        return None
    if not found:
        return GroupMove(level)
    move, server = min(found, key=lambda one: (one[0].key, one[1].name, one[1].uuid))
    return GroupMove(level, server, move)


def _best(
    state: request_builder.SnapshotRequest, movable: Sequence[Server]
) -> list[tuple[Move, Server]]:
    """Return the best move of some VMs of one flavor, and the first of the VMs there, by name."""
    first: dict[str, Server] = {}
    for vm in movable:
        first.setdefault(state.cloud.host_of[vm.uuid], vm)

    def moved_from(source: str) -> GroupRequest:
        return request_builder.moved(state, first[source])

    move = best_move(state.group, first, moved_from)
    return [] if move is None else [(move, first[move.source])]


def _state(
    cloud: Cloud, group: Group, members: tuple[Server, ...], model: Server
) -> request_builder.SnapshotRequest:
    """Return the request for one more VM like one of a group's."""
    query = request_builder.GroupQuery(
        flavor=model.flavor,
        count=1,
        group_id=group.uuid,
        policy=group.policy,
        max_per_host=server_groups.most_per_host(group.policy, group.max_per_host),
        members=members,
        boots_from_volume=model.boots_from_volume,
    )
    return request_builder.of(cloud, query)
