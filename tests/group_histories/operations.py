"""What happens to VMs and hosts: what Nova's API, conductor and computes do.

Those that ask the scheduler are functions of an actor: they stop once more where the scheduler has
answered and the compute has not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nova.compute import task_states, vm_states

from tests.group_histories.cloud import OWNER, GroupCloud
from tests.group_histories.servers import Group, Server
from tests.protocol.actors import Wait
from tests.protocol.nova_model import Scheduler, uuid_of
from tests.protocol.nova_rows import CELL, CELL0

_SHELVED, _OFFLOADED = vm_states.SHELVED, vm_states.SHELVED_OFFLOADED


def write_request(cloud: GroupCloud, servers: Sequence[Server]) -> None:
    """Write what nova-api does for the VMs of a request."""
    group = servers[0].group
    cloud.rows.add_request(
        [server.uuid for server in servers], None if group.is_deleted else group.uuid
    )


def add_group(cloud: GroupCloud, group: Group) -> None:
    """Create a server group."""
    cloud.rows.add_group(group.uuid)


def remove_group(cloud: GroupCloud, group: Group) -> None:
    """Delete a server group; its VMs live."""
    cloud.rows.remove_group(group.uuid)


def create(cloud: GroupCloud, scheduler: Scheduler, servers: Sequence[Server]) -> None:
    """Place new VMs."""
    try:
        nodes = cloud.schedule(scheduler, servers, ignored=None, is_move=False)
    except Exception:
        for server in servers:
            server.state = "failed"
            cloud.rows.remove_build_request(server.uuid)
            cloud.rows.map_to(server.uuid, CELL0)
        raise
    for server in servers:
        _enter_cell(cloud, server)
    _pause(cloud)
    for server, node in zip(servers, nodes, strict=True):
        _arrive(cloud, server, node)


def place(cloud: GroupCloud, servers: Sequence[Server], node_of: Mapping[str, str]) -> None:
    """Let new VMs run, each on the node of its name."""
    for server in servers:
        node = node_of[server.name]
        cloud.hold(server.uuid, [node])
        _enter_cell(cloud, server)
        _arrive(cloud, server, node)


def evacuate(cloud: GroupCloud, scheduler: Scheduler, server: Server) -> None:
    """Rebuild a VM elsewhere; it holds its source until the host is back."""
    source = server.node
    assert source is not None
    _begin(cloud, server, task_states.REBUILDING)
    try:
        [goal] = cloud.schedule(scheduler, [server], ignored=source, is_move=True)
    except Exception:
        server.state, server.task = vm_states.ERROR, None
        cloud.save(server)
        raise
    _pause(cloud)
    server.left_on.append(source)
    _arrive(cloud, server, goal)


def migrate(cloud: GroupCloud, scheduler: Scheduler, server: Server) -> None:
    """Migrate a VM cold, and confirm it."""
    _migrate(cloud, scheduler, server, task_states.RESIZE_PREP)
    confirm(cloud, server)


def live_migrate(cloud: GroupCloud, scheduler: Scheduler, server: Server) -> None:
    """Migrate a VM live."""
    _migrate(cloud, scheduler, server, task_states.MIGRATING)
    confirm(cloud, server)


def resize(cloud: GroupCloud, scheduler: Scheduler, server: Server) -> None:
    """Migrate a VM cold; it holds its source until that is confirmed or reverted."""
    _migrate(cloud, scheduler, server, task_states.RESIZE_PREP)
    server.state = vm_states.RESIZED
    cloud.save(server)


def unshelve(cloud: GroupCloud, scheduler: Scheduler, server: Server) -> None:
    """Place a VM that was shelved and offloaded."""
    _begin(cloud, server, task_states.UNSHELVING)
    try:
        [goal] = cloud.schedule(scheduler, [server], ignored=None, is_move=True)
    except Exception:
        _begin(cloud, server, None)
        raise
    _begin(cloud, server, task_states.SPAWNING)
    _pause(cloud)
    _arrive(cloud, server, goal)


#: What a request for one VM does, by its kind.
MOVES: Mapping[str, Callable[[GroupCloud, Scheduler, Server], None]] = {
    "evacuate": evacuate,
    "migrate": migrate,
    "live": live_migrate,
    "resize": resize,
    "unshelve": unshelve,
}


def confirm(cloud: GroupCloud, server: Server) -> None:
    """Give up the source of a migration."""
    cloud.hold(server.migration, [])
    server.source, server.moved, server.state = None, [], vm_states.ACTIVE
    cloud.save(server)


def revert(cloud: GroupCloud, server: Server) -> None:
    """Return to the source of a migration."""
    source, *server.left_on = server.moved
    cloud.hold(server.migration, [])
    server.source, server.moved = None, []
    cloud.hold(server.uuid, [source, *server.left_on])
    _arrive(cloud, server, source)


def shelve(cloud: GroupCloud, server: Server) -> None:
    """Shelve a VM and offload it: it gives up its host."""
    server.state, server.node, server.left_on = _OFFLOADED, None, []
    cloud.hold(server.uuid, [])
    cloud.save(server)


def park(cloud: GroupCloud, server: Server) -> None:
    """Shelve a VM on its host."""
    server.state = _SHELVED
    cloud.save(server)


def restore(cloud: GroupCloud, server: Server) -> None:
    """Restore a VM that was soft-deleted, or shelved on its host."""
    server.state = vm_states.ACTIVE
    cloud.save(server)


def soft_delete(cloud: GroupCloud, server: Server) -> None:
    """Delete a VM that is reclaimed later."""
    server.state = vm_states.SOFT_DELETED
    cloud.save(server)


def delete(cloud: GroupCloud, server: Server) -> None:
    """Delete a VM with all that it holds."""
    server.state, server.node, server.source = "deleted", None, None
    server.left_on, server.moved = [], []
    cloud.rows.end_instance(server.uuid)
    for consumer in (server.uuid, server.migration):
        cloud.hold(consumer, [])


def end_service(cloud: GroupCloud, service: str, how: str) -> None:
    """Let a compute service be ``forced`` down, ``dead``, ``gone`` or ``disabled``."""
    cloud.out[service] = how
    if how == "gone":
        cloud.rows.remove_service(service)
    else:
        states = {"is_down": how == "forced", "is_dead": how == "dead"}
        cloud.rows.set_service(service, **states, is_disabled=how == "disabled")


def start_service(cloud: GroupCloud, service: str) -> None:
    """Let a compute service be up: it removes what was evacuated from it."""
    del cloud.out[service]
    cloud.rows.set_service(service)
    for server in cloud.servers.values():
        left = [node for node in server.left_on if cloud.fabric.service(node) != service]
        # What a migration has taken over stays with it.
        if left != server.left_on and server.node is not None:
            server.left_on = left
            cloud.hold(server.uuid, [server.node, *left])


def _migrate(cloud: GroupCloud, scheduler: Scheduler, server: Server, task: str) -> None:
    """Move a VM that runs, whose migration holds the source."""
    source = server.node
    assert source is not None
    # It takes what an evacuation has left as well.
    server.source, server.moved, server.left_on = source, [source, *server.left_on], []
    _move_allocations(cloud, server.uuid, server.migration)
    _begin(cloud, server, task)
    try:
        [goal] = cloud.schedule(scheduler, [server], ignored=source, is_move=True)
    except Exception:
        _move_allocations(cloud, server.migration, server.uuid)
        _, *server.left_on = server.moved
        server.source, server.moved = None, []
        _begin(cloud, server, None)
        raise
    _pause(cloud)
    _arrive(cloud, server, goal)


def _enter_cell(cloud: GroupCloud, server: Server) -> None:
    server.state = vm_states.BUILDING
    cloud.rows.remove_build_request(server.uuid)
    cloud.rows.map_to(server.uuid, CELL)
    cloud.save(server)


def _begin(cloud: GroupCloud, server: Server, task: str | None) -> None:
    server.task = task
    cloud.save(server)


def _pause(cloud: GroupCloud) -> None:
    """Stop until the history lets the compute begin."""
    cloud.stage.wait(Wait(cloud.stage.now))


def _arrive(cloud: GroupCloud, server: Server, node: str) -> None:
    server.state, server.task, server.node = vm_states.ACTIVE, None, node
    cloud.save(server)


def _move_allocations(cloud: GroupCloud, source: str, goal: str) -> None:
    """Give what a consumer holds to another one."""
    record, nodes = cloud.placement.consumers[source], cloud.held(source)
    allocations = {uuid_of(node): {"resources": amounts} for node, amounts in nodes.items()}
    body = {
        goal: {"allocations": allocations, "consumer_generation": None, **OWNER},
        source: {"allocations": {}, "consumer_generation": record.generation, **OWNER},
    }
    answer = cloud.placement.send("POST", "/allocations", body)
    assert answer, answer.text
