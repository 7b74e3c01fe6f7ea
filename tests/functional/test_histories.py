"""Members and awaiting VMs, whatever has happened to the group before.

Every test brings a group into a state through the API, notes what API and Placement say of it,
sends one more request for the group and compares what the plugin read with the note.
"""

import datetime
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nova import context, objects
from nova.conductor import manager as conductor_manager
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_utils import timeutils
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest
from hpc_sched.nova_glue.claim import group_turns
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from tests.functional.cloud_kinds import MOVES, TWO_BY_FOUR
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.truth import believed, nodes, true_members

pytestmark = cloud_mark(TWO_BY_FOUR)

# Nodes of one compute service, ironic
METAL = ["node-a", "node-b", "node-c", "node-d"]


def moves(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on real computes every night."""
    why = pytest.mark.nightly("moves", "moves on real computes, read as those of the tier ci")
    return cloud_mark(MOVES)(why(test))


def one_move(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on real computes in the tier ci: the one of its kind of move."""
    return cloud_mark(MOVES)(pytest.mark.ci(test))


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("small")
    shared_cloud.flavor("small2", memory_mb=1024)
    shared_cloud.flavor("classed", extra_specs={"hpc:app_class": "sync"})
    return shared_cloud


@pytest.fixture
def boot(cloud: TestedCloud) -> Iterator[Callable[..., list[str]]]:
    made: list[str] = []

    def boot_(flavor: str = "small", **kwargs: object) -> list[str]:
        servers = cloud.boot(flavor, **kwargs)
        made.extend(servers)
        return servers

    yield boot_
    cloud.remove(made)


@pytest.fixture
def next_request(cloud: TestedCloud, boot, monkeypatch) -> Callable[..., None]:
    """Send one more multi-create for a group and compare what was read with the truth."""

    def send(
        group: str, count: int = 2, expected: Counter[str] | None = None, followers: int = 0
    ) -> None:
        truth = true_members(cloud, group) if expected is None else expected
        with believed(monkeypatch) as seen:
            cloud.wait(boot(count=count, group=group))
        [read] = seen
        assert nodes(read) == truth
        assert (read.awaiting, read.followers) == (count + followers, followers)
        assert not read.is_move
        assert read.problems == ()

    return send


@pytest.fixture
def move(cloud: TestedCloud, monkeypatch) -> Callable[..., None]:
    """Move a VM and compare what was read of its group with the truth without it."""

    def do(group: str, server: str, action: Callable[[dict[str, str]], object]) -> None:
        truth = true_members(cloud, group, without=server)
        with believed(monkeypatch) as seen:
            action(cloud.api.get_server(server))
        assert [nodes(read) for read in seen] == [truth]
        assert [(read.is_move, read.awaiting) for read in seen] == [(True, 1)]

    return do


@pytest.fixture
def group(cloud: TestedCloud) -> str:
    return cloud.server_group("group", "soft-anti-affinity")


def test_a_multi_create_and_growth_by_later_requests(cloud, boot, group, next_request):
    next_request(group, 4, Counter())
    next_request(group, 3)
    next_request(group, 1)


def test_single_creates_in_a_row(cloud, boot, group, next_request):
    for _ in range(3):
        cloud.wait(boot(group=group))
    next_request(group)


def test_several_vms_of_the_group_on_one_host_count_each(cloud, boot, next_request):
    group = cloud.server_group("dense", "soft-affinity")
    hosts = cloud.hosts_of(boot(count=3, group=group))
    assert len(set(hosts.values())) == 1
    next_request(group)


def test_deleted_members_do_not_count(cloud, boot, group, next_request):
    servers = boot(count=3, group=group)
    cloud.wait(servers)
    cloud.api.delete_server(servers[0])
    cloud._wait_until_deleted({"id": servers[0]})
    next_request(group)


def test_a_member_in_error_counts_where_it_is(cloud, boot, group, next_request):
    servers = boot(count=3, group=group)
    cloud.wait(servers)
    cloud.api.post_server_action(servers[0], {"os-resetState": {"state": "error"}})
    next_request(group)


def test_a_member_that_never_found_a_host_does_not_count(cloud, boot, group, next_request):
    servers = boot(count=2, group=group)
    cloud.wait(servers)
    cloud.flavor("too large", vcpus=17)
    lost = cloud.boot("too large", group=group)
    assert cloud.wait(lost)[lost[0]]["status"] == "ERROR"
    next_request(group)
    cloud.remove(lost)


@one_move
def test_an_offloaded_member_awaits_a_place_until_it_is_unshelved(
    cloud, boot, group, next_request, move
):
    servers = boot(count=3, group=group)
    cloud.wait(servers)
    cloud._shelve_server({"id": servers[0]}, expected_state="SHELVED_OFFLOADED")
    next_request(group, followers=1)
    move(group, servers[0], cloud._unshelve_server)
    next_request(group)


@moves
def test_a_shelved_member_that_keeps_its_host_counts(cloud, boot, group, next_request):
    cloud.flags(shelved_offload_time=-1)
    try:
        servers = boot(count=3, group=group)
        cloud.wait(servers)
        cloud._shelve_server({"id": servers[0]}, expected_state="SHELVED")
        next_request(group)
    finally:
        cloud.flags(shelved_offload_time=0)


@one_move
def test_a_cold_migration_leaves_the_moved_vm_out_until_it_has_arrived(
    cloud, boot, group, next_request, move
):
    servers = boot(count=3, group=group)
    cloud.wait(servers)
    move(group, servers[1], cloud._migrate_server)
    next_request(group)
    cloud._confirm_resize({"id": servers[1]})
    next_request(group)


@one_move
def test_a_resize_leaves_the_moved_vm_out_until_it_has_arrived(
    cloud, boot, group, next_request, move
):
    servers = boot(count=3, group=group)
    cloud.wait(servers)
    move(group, servers[2], lambda server: cloud._resize_server(server, "small2"))
    next_request(group)
    cloud._revert_resize({"id": servers[2]})
    next_request(group)


@one_move
def test_a_live_migration_leaves_the_moved_vm_out_until_it_has_arrived(
    cloud, boot, group, next_request, move
):
    servers = boot(count=3, group=group)
    cloud.wait(servers)

    def live_migrate(server):
        cloud.api.post_server_action(
            server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        )
        cloud._wait_for_migration_status(server, ["running"])
        migrations = cloud.api.api_get(f"/servers/{server['id']}/migrations").body["migrations"]
        cloud.api.force_complete_migration(server["id"], migrations[0]["id"])
        cloud._wait_for_migration_status(server, ["completed"])
        cloud._wait_for_state_change(cloud.api.get_server(server["id"]), "ACTIVE")

    move(group, servers[0], live_migrate)
    next_request(group)


@moves
def test_an_evacuation_leaves_the_moved_vm_out_until_it_has_arrived(
    cloud, boot, group, next_request, move
):
    servers = boot(count=3, group=group)
    hosts = cloud.hosts_of(servers)
    dead = cloud.computes[hosts[servers[0]]]
    dead.stop()
    service = cloud.api.get_services(host=dead.host, binary="nova-compute")[0]
    cloud.api.put_service(service["id"], {"forced_down": True})
    try:
        move(group, servers[0], lambda server: cloud._evacuate_server(server))
        next_request(group)
    finally:
        dead.start()
        cloud.api.put_service(service["id"], {"forced_down": False})


@moves
def test_a_vm_of_an_implicit_group_moves_with_its_siblings_in_mind(cloud, boot, monkeypatch):
    servers = boot("classed", count=3)
    hosts = cloud.hosts_of(servers)
    with believed(monkeypatch) as seen:
        cloud._migrate_server({"id": servers[0]})
    [read] = seen
    assert nodes(read) == Counter(hosts[server] for server in servers[1:])
    assert (read.is_move, read.awaiting) == (True, 1)
    cloud._confirm_resize({"id": servers[0]})


def test_a_vm_that_its_compute_has_not_claimed_counts_by_its_allocation(
    cloud, boot, group, next_request, monkeypatch
):
    held: list[tuple[Any, Any, dict[str, Any]]] = []
    build = cloud._build

    def hold(context_: Any, instance: Any, **said: Any) -> None:
        held.append((context_, instance, said))

    with monkeypatch.context() as patch:
        patch.setattr(cloud, "_build", hold)
        servers = boot(count=3, group=group)
        assert not objects.BuildRequestList.get_all(context.get_admin_context())
        truth = true_members(cloud, group)
        assert sum(truth.values()) == 3
        with believed(monkeypatch) as seen:
            more = boot(count=2, group=group)
    for in_cell, instance, said in held:
        with instance.obj_alternate_context(in_cell):
            build(in_cell, instance, **said)
    cloud.wait(servers + more)
    [read] = seen
    assert nodes(read) == truth
    assert read.awaiting == 2


def test_a_vm_that_its_conductor_has_not_mapped_counts_by_its_allocation(
    cloud, boot, group, monkeypatch
):
    go_on, held_back = threading.Event(), threading.Event()
    real = conductor_manager.ComputeTaskManager._recheck_quota

    def held(*args: object, **kwargs: object) -> object:
        if not held_back.is_set():
            held_back.set()
            go_on.wait(60)
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(conductor_manager.ComputeTaskManager, "_recheck_quota", held)
        # On a thin cloud a request returns when its VMs are built.
        first = threading.Thread(target=boot, kwargs={"count": 3, "group": group})
        first.start()
        try:
            assert held_back.wait(60)
            servers = cloud.api.get_server_group(group)["members"]
            truth = Counter()
            providers = {rp["uuid"]: rp["name"] for rp in cloud._get_all_providers()}
            for server in servers:
                for provider in cloud._get_allocations_by_server_uuid(server):
                    truth[providers[provider]] += 1
            with believed(monkeypatch) as seen:
                more = boot(count=2, group=group)
        finally:
            go_on.set()
            first.join()
    cloud.wait(servers + more)
    [read] = seen
    assert sum(truth.values()) == 3
    assert nodes(read) == truth
    assert read.awaiting == 2


@pytest.fixture
def metal(cloud: TestedCloud) -> Iterator[list[str]]:
    """Start a compute service with nodes; both are gone after the test, like its VMs."""
    compute = cloud.start_service("compute", host="ironic")
    compute.manager.driver._set_nodes(METAL)
    compute.manager.update_available_resource(context.get_admin_context())
    yield METAL
    compute.stop()
    [service] = cloud.api.get_services(host="ironic", binary="nova-compute")
    cloud.api.api_delete(f"/os-services/{service['id']}")


@one_move
def test_members_on_nodes_of_one_compute_service_count_by_node(cloud, metal, boot, next_request):
    cloud.flavor("metal", extra_specs={"trait:CUSTOM_METAL": "required"})
    cloud._create_trait("CUSTOM_METAL")
    for node in metal:
        cloud._set_provider_traits(cloud._get_provider_uuid_by_name(node), ["CUSTOM_METAL"])
    group = cloud.server_group("metal", "soft-anti-affinity")
    servers = boot("metal", count=3, group=group)
    hosts = cloud.hosts_of(servers)
    assert len(set(hosts.values())) == 3
    assert set(hosts.values()) <= set(metal)
    next_request(group)


def test_orphaned_build_requests_take_no_place_from_the_vms_that_are_scheduled(cloud, boot, group):
    """A conductor that crashes leaves its build requests for ever; here since hours.

    The rows hold no instance that the API could show: they go before it is asked again.
    """
    servers = boot(count=2, group=group)
    truth = Counter(cloud.hosts_of(servers).values())
    orphans = sorted(getattr(uuids, f"orphan{number}") for number in range(6))
    context_ = context.get_admin_context()
    hours_ago = timeutils.utcnow() - datetime.timedelta(hours=3)
    objects.InstanceGroup.add_members(context_, group, orphans)
    with api_db.context_manager.writer.using(context_) as session:
        for orphan in orphans:
            session.add(
                api_models.BuildRequest(
                    instance_uuid=orphan, project_id="p", instance="{}", created_at=hours_ago
                )
            )
            session.add(api_models.InstanceMapping(instance_uuid=orphan, project_id="p"))
    try:
        request = request_spec.RequestedGroup(
            instance_uuid=uuids.new,
            group_uuid=group,
            policy="soft-anti-affinity",
            max_per_host=None,
            member_uuids=frozenset(),
            count=2,
            query=NovaQuery((ResourceRequest((RequestGroup("", {"VCPU": 1}),)),)),
            hpc_specs=HPCSpecs("sync", Constraints(), "prefer", (), ()),
        )
        look_up = functools.partial(group_turns.turn_of(None).look_up, anew=True)
        read = group_members.read(request, [], look_up)
    finally:
        with api_db.context_manager.writer.using(context_) as session:
            for model in (api_models.BuildRequest, api_models.InstanceMapping):
                session.query(model).filter(model.instance_uuid.in_(orphans)).delete()
        group_id = objects.InstanceGroup.get_by_uuid(context_, group).id
        objects.InstanceGroup._remove_members_in_db(context_, group_id, orphans)
    assert nodes(read) == truth
    assert read.queue[0] == uuids.new
    assert sorted(read.queue[1:]) == orphans
    assert read.awaiting == 7
