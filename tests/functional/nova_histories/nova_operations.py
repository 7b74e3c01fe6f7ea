"""What happens to VMs and hosts on a whole Nova, as in ``tests/group_histories/operations.py``.

A request is a generator: it sends a call of the API, and ends once Nova has done what it says or
has refused it. Before each of its steps the cloud is read. A host that is ``gone`` is forced down:
Nova's API neither deletes a compute service that has VMs nor evacuates from a host without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from unittest import mock

from nova.compute import vm_states
from nova.scheduler.manager import SchedulerManager

from tests.functional.nova_histories import nova_rows
from tests.functional.nova_histories.nova_group_cloud import NovaGroupCloud, NovaServer
from tests.group_histories.servers import Group

Steps = Iterator[None]
_BUILT = (vm_states.ACTIVE, vm_states.ERROR, "failed")
_RESIZED, _OFFLOADED = vm_states.RESIZED, vm_states.SHELVED_OFFLOADED


def add_group(cloud: NovaGroupCloud, group: Group) -> None:
    """Create a server group."""
    cloud.group_uuids[group.name] = cloud.nova.server_group(group.name, group.policy)


def remove_group(cloud: NovaGroupCloud, group: Group) -> None:
    """Delete a server group; its VMs live."""
    cloud.nova.api.delete_server_group(cloud.group_uuids.pop(group.name))


def write_request(_cloud: NovaGroupCloud, _servers: Sequence[NovaServer]) -> None:
    """Do nothing: the call that places the VMs writes it."""


def place(cloud: NovaGroupCloud, servers: Sequence[NovaServer], node_of: Mapping[str, str]) -> None:
    """Let new VMs run, each on the node of its name: no filter is run for this request."""
    nodes = [node_of[server.name] for server in servers]

    def sorted_hosts(_manager: object, _spec: object, states: list, index: int) -> list:
        return sorted(states, key=lambda state: state.nodename != nodes[index])

    with mock.patch.object(SchedulerManager, "_get_sorted_hosts", sorted_hosts):
        _boot(cloud, servers)
        cloud.wait(lambda: all(one.state in _BUILT and one.task is None for one in servers))
    found = sorted(str(server.node) for server in servers)
    assert found == sorted(nodes), f"VMs are on {found}, and were sent to {sorted(nodes)}"
    # Nova has its own order: the names follow the nodes.
    left = list(servers)
    uuids = {server.uuid: server.node for server in servers}
    for uuid, node in uuids.items():
        server = next(one for one in left if node_of[one.name] == node)
        left.remove(server)
        server.given = uuid
    cloud.read()


def create(cloud: NovaGroupCloud, *servers: NovaServer) -> Steps:
    """Place new VMs."""
    _boot(cloud, servers)
    while not all(one.state in _BUILT and one.task is None for one in servers):
        yield


def evacuate(cloud: NovaGroupCloud, server: NovaServer) -> Steps:
    """Rebuild a VM elsewhere; it holds its source until the host is back."""
    source = server.node
    assert source is not None
    server.left_on.append(source)
    yield from _moved(cloud, server, {"evacuate": {}})
    # Nova has no task for the VM just before it is on its new node.
    while server.node == source and server.state != vm_states.ERROR:
        yield
    if server.node == source:
        server.left_on.remove(source)


def migrate(cloud: NovaGroupCloud, server: NovaServer) -> Steps:
    """Migrate a VM cold, and confirm it."""
    yield from _left(cloud, server, {"migrate": None})
    if server.state == _RESIZED:
        cloud.act(server, {"confirmResize": None})
        while server.state == _RESIZED or server.task is not None:
            yield
        server.source, server.moved = None, []


def live_migrate(cloud: NovaGroupCloud, server: NovaServer) -> Steps:
    """Migrate a VM live."""
    action = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    yield from _left(cloud, server, action)
    server.source, server.moved = None, []


def resize(cloud: NovaGroupCloud, server: NovaServer) -> Steps:
    """Migrate a VM cold, to a flavor that is equal; it holds its source until it is confirmed."""
    server.has_other = not server.has_other
    flavor = _flavor(cloud, server.group, is_other=server.has_other)
    yield from _left(cloud, server, {"resize": {"flavorRef": flavor}})
    if server.state != _RESIZED:
        server.has_other = not server.has_other


def unshelve(cloud: NovaGroupCloud, server: NovaServer) -> Steps:
    """Place a VM that was shelved and offloaded."""
    yield from _moved(cloud, server, {"unshelve": None})


#: What a request does, by its kind.
REQUESTS: Mapping[str, Callable[..., Steps]] = {
    "create": create,
    "evacuate": evacuate,
    "migrate": migrate,
    "live": live_migrate,
    "resize": resize,
    "unshelve": unshelve,
}


def confirm(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Give up the source of a migration."""
    _do(cloud, server, {"confirmResize": None}, vm_states.ACTIVE)
    server.source, server.moved = None, []


def revert(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Return to the source of a migration."""
    _do(cloud, server, {"revertResize": None}, vm_states.ACTIVE)
    _, *server.left_on = server.moved
    server.source, server.moved, server.has_other = None, [], not server.has_other


def shelve(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Shelve a VM and offload it: it gives up its host."""
    _do(cloud, server, {"shelve": None}, _OFFLOADED)
    server.left_on = []


def park(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Shelve a VM on its host."""
    cloud.nova.flags(shelved_offload_time=-1)
    _do(cloud, server, {"shelve": None}, vm_states.SHELVED)
    cloud.nova.flags(shelved_offload_time=0)


def restore(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Restore a VM that was soft-deleted, or shelved on its host."""
    name = "restore" if server.state == vm_states.SOFT_DELETED else "unshelve"
    _do(cloud, server, {name: None}, vm_states.ACTIVE)


def soft_delete(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Delete a VM that is reclaimed later."""
    cloud.nova.flags(reclaim_instance_interval=3600)
    cloud.nova.api.delete_server(server.uuid)
    cloud.nova.flags(reclaim_instance_interval=0)
    cloud.wait(lambda: server.state == vm_states.SOFT_DELETED and server.task is None)


def delete(cloud: NovaGroupCloud, server: NovaServer) -> None:
    """Delete a VM with all that it holds."""
    cloud.nova.api.delete_server(server.uuid)
    cloud.wait(lambda: server.state == "deleted")
    server.source, server.left_on, server.moved = None, [], []


def end_service(cloud: NovaGroupCloud, service: str, how: str) -> None:
    """Let a compute service be ``forced`` down, ``dead`` or ``disabled``."""
    cloud.set_out(service, "forced" if how == "gone" else how)


def start_service(cloud: NovaGroupCloud, service: str) -> None:
    """Let a compute service be up: it removes what was evacuated from it."""
    cloud.set_up(service)
    for server in cloud.servers.values():
        server.left_on = [node for node in server.left_on if node != service]
    cloud.read()


def _boot(cloud: NovaGroupCloud, servers: Sequence[NovaServer]) -> None:
    group = servers[0].group
    uuids = cloud.nova.boot(
        _flavor(cloud, group),
        count=len(servers),
        group=None if group.is_deleted else cloud.group_uuids[group.name],
        name=servers[0].name,
    )
    for server, uuid in zip(servers, uuids, strict=True):
        server.given = uuid


def _flavor(cloud: NovaGroupCloud, group: Group, *, is_other: bool = False) -> str:
    """Return the flavor of a group; the other one is equal to it."""
    specs = group.wish.extra_specs
    parts = [f"{name.removeprefix('hpc:')}_{value}" for name, value in sorted(specs.items())]
    name = "-".join(["lives", *parts, *(["other"] if is_other else [])])
    return cloud.nova.flavor(name, extra_specs=specs)


def _do(cloud: NovaGroupCloud, server: NovaServer, action: Mapping, state: str) -> None:
    cloud.act(server, action)
    cloud.wait(lambda: server.state == state and server.task is None)


def _moved(cloud: NovaGroupCloud, server: NovaServer, action: Mapping) -> Steps:
    """Send an action; end once Nova has no task for the VM."""
    cloud.act(server, action)
    yield
    while server.task is not None:
        yield


def _left(cloud: NovaGroupCloud, server: NovaServer, action: Mapping) -> Steps:
    """Move a VM that runs; its migration holds the source, with what an evacuation has left."""
    source = server.node
    assert source is not None
    yield from _moved(cloud, server, action)
    if server.node != source:
        server.given_migration = nova_rows.last_migration(cloud.nova, server.uuid)
        server.source, server.moved, server.left_on = source, [source, *server.left_on], []
