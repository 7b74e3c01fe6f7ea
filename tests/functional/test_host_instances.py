"""The instances on each host and their applications, read from the real databases of a Nova."""

import datetime
import json
import threading
from collections.abc import Callable, Iterator

import nova.conf
import pytest
from nova import context as nova_context
from nova import objects
from oslo_utils import timeutils
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import (
    colocated_instances,
    instance_applications,
    member_moves,
    member_records,
)
from hpc_sched.nova_glue.read.instances.member_records import CellMember
from tests.counted_calls import calls_of
from tests.functional import faults, rows
from tests.functional.claims import claims_on, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.states import host_state, ours, wishing
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud

CONF = nova.conf.CONF

HOSTS = [f"n{number}" for number in range(1, 9)]
SYNC = wishing(app_class="sync", app_name="LU", cache_score=16)


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> Iterator[TestedCloud]:
    shared_cloud.flags(cell_timeout=BUSY_MACHINE, group="hpc_sched")
    faults.start_afresh()
    yield shared_cloud
    rows.clear(shared_cloud)


@pytest.fixture
def allocate(cloud: TestedCloud, providers: dict[str, str]) -> Iterator[Callable[..., None]]:
    """Give a VM allocations on some nodes; released after the test."""
    made: list[str] = []

    def allocate_(vm: str, *nodes: str) -> None:
        resources = {"resources": {"VCPU": 1, "MEMORY_MB": 512}}
        body = {
            "allocations": {providers[node]: resources for node in nodes},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        made.append(vm)
        assert cloud.placement.put(f"/allocations/{vm}", version="1.28", body=body).status == 204

    yield allocate_
    for vm in made:
        cloud.placement.delete(f"/allocations/{vm}", version="1.28")


@pytest.fixture
def providers(cloud: TestedCloud) -> Iterator[dict[str, str]]:
    """Return node to provider."""
    with claims_on(cloud, dict.fromkeys(HOSTS, 0)) as claims:
        yield claims.provider_of


def states_of(cloud: TestedCloud, hosts=HOSTS):
    states = [host_state(host) for host in hosts]
    for state in states:
        state.cell_uuid = cloud.cell_mappings["cell1"].uuid
    return states


def seen(cloud: TestedCloud, spec=None) -> dict[str, list[Application]]:
    """Return what a request finds on each host, hosts without VMs left out."""
    states = states_of(cloud)
    found = colocated_instances.read(spec or request(), states)
    assert found.host_instances.problems == ()
    return {state.host: found.on(state) for state in states if found.on(state)}


def test_the_class_name_and_score_of_a_running_vm_come_from_its_flavor(cloud):
    rows.add_vms(cloud, ["n1", "n2"], extra_specs=SYNC)
    there = Application("sync", "LU", 16.0, "r-rows")
    assert seen(cloud) == {"n1": [there], "n2": [there]}


def test_hints_count_where_they_are_allowed_and_the_cache_follows_the_option(cloud):
    hints = {"hpc:app_class": ["async"], "hpc:cache_score": ["7.5"]}
    rows.add_vms(cloud, ["n1"], hints=hints)
    assert seen(cloud)["n1"] == [Application("none", None, 0.0, "r-rows")]
    cloud.flags(allow_user_hints=True, group="hpc_sched")
    assert seen(cloud)["n1"] == [Application("async", None, 7.5, "r-rows")]


def test_hosts_whose_service_is_down_or_disabled_are_found_with_two_queries(cloud, providers):
    context = nova_context.get_admin_context()
    rows.set_down(cloud, "n2", True)
    with nova_context.target_cell(context, cloud.cell_mappings["cell1"]) as in_cell:
        service = objects.Service.get_by_compute_host(in_cell, "n3")
        service.disabled = True
        service.save()
    with collected() as sent:
        hosts = ["n1", "n2", "n3", "n9"]
        found = member_records.down_hosts(context, hosts, with_disabled=True).rows
    # Without a record it was removed.
    assert found == ["n2", "n3", "n9"]
    assert len(sent) == 2
    assert member_records.down_hosts(context, hosts, with_disabled=False).rows == ["n2", "n9"]
    with collected() as sent:
        assert not member_records.down_hosts(context, [], with_disabled=True).rows
    assert not sent


def test_a_place_that_only_placement_names_is_on_the_service_of_its_node(cloud, providers):
    """Placement knows nodenames, which libvirt takes from the host's full name."""
    context = nova_context.get_admin_context()
    with nova_context.target_cell(context, cloud.cell_mappings["cell1"]) as in_cell:
        for host in ("n1", "n2"):
            node = objects.ComputeNode.get_first_node_by_host_for_old_compat(in_cell, host)
            node.hypervisor_hostname = f"{host}.example.com"
            node.save()
    rows.set_down(cloud, "n2", True)
    names = ["n1.example.com", "n2.example.com", "n9.example.com"]
    records = member_records.GroupRecords(
        *("own", [], [], None, frozenset(), frozenset(), True, []), is_partial=False
    )
    records.others += [CellMember(name, "n8", "n8", False, is_host_down=True) for name in "ab"]
    there = dict(zip("ab", names, strict=False))
    found = member_moves.after_moves(context, records, states_of(cloud, ["n3"]), there)
    # It has a place, though its host is full by now and no candidate.
    assert [vm.uuid for vm in found.placed] == ["a"]
    assert [vm.uuid for vm in found.leaving] == ["b"]
    assert member_records.down_hosts(context, names, with_disabled=True).rows == names[1:]


def test_a_host_is_down_by_the_option_as_it_is_now(cloud, providers):
    """Nova's servicegroup API keeps the option as it was when the API was made."""
    context, seconds = nova_context.get_admin_context(), CONF.service_down_time
    with nova_context.target_cell(context, cloud.cell_mappings["cell1"]) as in_cell:
        service = objects.Service.get_by_compute_host(in_cell, "n1")
        service.last_seen_up = timeutils.utcnow() - datetime.timedelta(seconds=seconds // 2)
        service.save()
    assert member_records.down_hosts(context, ["n1"], with_disabled=False).rows == []
    cloud.flags(service_down_time=seconds // 4)
    assert member_records.down_hosts(context, ["n1"], with_disabled=False).rows == ["n1"]


def test_vms_that_say_nothing_have_the_default_class_where_they_belong_with_others(cloud):
    rows.add_vms(cloud, ["n1"])
    rows.add_vms(cloud, ["n2"], group=uuids.group)
    rows.add_vms(cloud, ["n3"], siblings=2)
    found = seen(cloud)
    assert [found[host][0].app_class for host in ("n1", "n2", "n3")] == ["none", "sync", "none"]
    assert found["n2"][0].group == uuids.group
    cloud.flags(implicit_groups=True, group="hpc_sched")
    assert seen(cloud)["n3"][0].app_class == "sync"


def test_only_vms_that_hold_room_count_and_never_the_one_that_is_scheduled(cloud):
    gone, shelved, error, own, hidden = rows.add_vms(cloud, ["n1", "n2", "n3", "n4", "n5"])
    rows.change_vm(cloud, gone, deleted=1)
    rows.change_vm(cloud, shelved, host=None, node=None, vm_state="shelved_offloaded")
    rows.change_vm(cloud, error, vm_state="error")
    rows.change_vm(cloud, hidden, hidden=True)
    assert list(seen(cloud, request(uuid=own))) == ["n3"]


@pytest.mark.default
def test_a_vm_that_moves_is_on_both_hosts_until_that_has_ended(cloud):
    [vm] = rows.add_vms(cloud, ["n1"])
    sides = sides_of("n2", "n1")
    rows.change_vm(cloud, vm, vm_state="resized")
    rows.add_migration(cloud, vm, status="finished", migration_type="resize", **sides)
    assert set(seen(cloud)) == {"n1", "n2"}
    other = request(extra_specs={"hpc:app_class": "extreme"}).flavor
    plain = request().flavor
    rows.set_flavors(cloud, vm, cur=plain, old=other, new=plain)
    assert {host: there[0].app_class for host, there in seen(cloud).items()} == {
        "n1": "none",
        "n2": "extreme",
    }
    rows.clear(cloud)
    [vm] = rows.add_vms(cloud, ["n1"])
    rows.add_migration(cloud, vm, status="confirmed", migration_type="resize", **sides)
    assert set(seen(cloud)) == {"n1"}


def sides_of(source: str, destination: str | None) -> dict[str, str | None]:
    """Return the columns of a migration."""
    return {
        "source_compute": source,
        "source_node": source,
        "dest_compute": destination,
        "dest_node": destination,
    }


def test_an_evacuated_vm_is_on_both_hosts_once_its_destination_is_claimed(cloud, allocate):
    """The compute of the destination notes itself much later, and one claim holds both."""
    claimed, unclaimed = rows.add_vms(cloud, ["n1", "n1"], extra_specs=SYNC)
    for vm in (claimed, unclaimed):
        rows.change_vm(cloud, vm, task_state="rebuilding")
        rows.add_migration(
            cloud, vm, status="accepted", migration_type="evacuation", **sides_of("n1", None)
        )
    allocate(claimed, "n1", "n3")
    allocate(unclaimed, "n1")
    assert {host: len(there) for host, there in seen(cloud).items()} == {"n1": 2, "n3": 1}


def test_a_vm_that_has_no_host_yet_is_where_placement_holds_its_place(cloud, allocate):
    vm, shelved, gone = rows.add_vms(cloud, [None, None, None], extra_specs=SYNC)
    allocate(vm, "n5")
    rows.change_vm(cloud, shelved, vm_state="shelved_offloaded", task_state="spawning")
    allocate(shelved, "n6")
    rows.change_vm(cloud, gone, task_state="deleting")
    allocate(gone, "n7")
    assert set(seen(cloud)) == {"n5", "n6"}


def test_an_allocation_of_a_numa_node_alone_is_on_the_host_above_it(cloud, allocate, providers):
    [vm] = rows.add_vms(cloud, [None], extra_specs=SYNC)
    placement, child = cloud.placement, uuids.n4_numa0
    made = {"name": "n4_numa0", "uuid": child, "parent_provider_uuid": providers["n4"]}
    assert placement.post("/resource_providers", made, version="1.20").status == 200
    inventories = {name: {"total": 4096} for name in ("VCPU", "MEMORY_MB")}
    placement.put(
        f"/resource_providers/{child}/inventories",
        {"resource_provider_generation": 0, "inventories": inventories},
        version="1.20",
    )
    providers["n4_numa0"] = child
    allocate(vm, "n4_numa0")
    assert set(seen(cloud)) == {"n4"}


def test_those_on_their_way_are_looked_up_newest_first(cloud, allocate):
    """However many VMs were given up long ago."""
    old = datetime.datetime(2020, 1, 1)
    stuck = rows.add_vms(cloud, [None] * 3)
    for vm in stuck:
        rows.change_vm(cloud, vm, created_at=old, updated_at=old)
    [vm] = rows.add_vms(cloud, [None])
    rows.change_vm(cloud, vm, updated_at=timeutils.utcnow())
    allocate(vm, "n2")
    cloud.flags(in_flight_lookups=2, group="hpc_sched")
    states = states_of(cloud)

    def read():
        found = colocated_instances.read(request(), states)
        return [state.host for state in states if found.on(state)], found.host_instances

    hosts, occupancy = read()
    assert hosts == ["n2"]
    assert occupancy.problems == ("more than in_flight_lookups=2 VMs in flight",)
    # None of those that may have a place was left out.
    assert occupancy.in_flight_unknown is None
    for vm in stuck:
        rows.change_vm(cloud, vm, updated_at=timeutils.utcnow())
    _, occupancy = read()
    assert occupancy.in_flight_unknown == "more than in_flight_lookups=2 VMs in flight"


def test_records_of_moves_that_a_crash_has_left_behind_say_nothing(cloud):
    [vm] = rows.add_vms(cloud, ["n1"])
    for status, source, destination in (
        ("pre-migrating", "n2", "n3"),
        ("running", "n4", "n5"),
        ("finished", "n6", "n7"),
    ):
        rows.add_migration(
            cloud, vm, status=status, migration_type="migration", **sides_of(source, destination)
        )
    assert set(seen(cloud)) == {"n1"}
    # Of a VM that does move the last record counts.
    rows.change_vm(cloud, vm, task_state="migrating")
    for _ in range(2):
        rows.add_migration(
            cloud, vm, status="running", migration_type="live-migration", **sides_of("n1", "n8")
        )
    assert {host: len(there) for host, there in seen(cloud).items()} == {"n1": 1, "n8": 1}
    unnamed = sides_of("n1", "n8") | {"source_node": None}
    rows.add_migration(cloud, vm, status="running", migration_type="live-migration", **unnamed)
    assert {host: len(there) for host, there in seen(cloud).items()} == {"n1": 1, "n8": 1}


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "{}", '{"nova_object.data": null}', '{"cur": {"nova_object.data": 1}}'],
)
def test_a_row_that_cannot_be_read_says_nothing_and_spoils_no_other(cloud, caplog, text: str):
    spec, flavor, _ = rows.add_vms(cloud, ["n1", "n2", "n3"], extra_specs=SYNC)
    rows.write_over(cloud, spec, request_spec=text)
    rows.write_over(cloud, flavor, flavor=text)
    states = states_of(cloud)
    found = colocated_instances.read(request(), states)
    classes = {state.host: there.app_class for state in states for there in found.on(state)}
    assert classes == {"n1": "sync", "n2": "none", "n3": "sync"}
    # One line for the request, naming both.
    [warned] = [text for text in ours(caplog) if "cannot be read" in text]
    assert f"the request of instance {spec}" in warned
    assert f"the flavor of instance {flavor}" in warned


ODD = {"vcpus": "x", "memory_mb": [1], "root_gb": 1e300, "ephemeral_gb": 0}


def test_a_flavor_whose_sizes_are_no_numbers_spoils_no_other(cloud):
    text = json.dumps({"cur": {"nova_object.data": ODD}, "old": None, "new": None})
    moving, _ = rows.add_vms(cloud, ["n1", "n2"], extra_specs=SYNC)
    rows.write_over(cloud, moving, flavor=text)
    rows.change_vm(cloud, moving, task_state="resize_migrating")
    rows.add_migration(
        cloud, moving, status="migrating", migration_type="resize", **sides_of("n1", "n3")
    )
    states = states_of(cloud)
    found = colocated_instances.read(request(), states)
    assert {state.host for state in states if found.on(state)} == {"n1", "n2"}
    [problem] = found.host_instances.problems
    assert f"the flavors of instance {moving} in Nova's database cannot be read: vcpus" in problem


def test_a_resize_counts_with_its_new_flavor_before_the_destination_knows_of_it(cloud, allocate):
    """Nova's scheduler has given the place; the new flavor is in the API database alone."""
    extreme = cloud.flavor("to-be-extreme", vcpus=2, extra_specs=wishing(app_class="extreme"))
    [new_id] = [
        flavor.id
        for flavor in objects.FlavorList.get_all(nova_context.get_admin_context())
        if flavor.flavorid == extreme
    ]
    [vm] = rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
    rows.change_vm(cloud, vm, task_state="resize_prep")
    rows.add_migration(
        cloud,
        vm,
        status="pre-migrating",
        migration_type="resize",
        old_instance_type_id=1,
        new_instance_type_id=new_id,
        **sides_of("n1", None),
    )
    allocate(vm, "n4")
    found = {host: [one.app_class for one in there] for host, there in seen(cloud).items()}
    assert found == {"n1": ["sync"], "n4": ["extreme"]}


def test_a_resize_on_the_same_host_counts_with_both_flavors(cloud, allocate):
    [vm] = rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
    old = request(extra_specs=SYNC).flavor
    new = request(extra_specs=wishing(app_class="extreme")).flavor
    types = {"old_instance_type_id": 1, "new_instance_type_id": 2}
    rows.change_vm(cloud, vm, task_state="resize_prep")
    rows.set_flavors(cloud, vm, cur=old, old=None, new=new)
    rows.add_migration(
        cloud, vm, status="pre-migrating", migration_type="resize", **types, **sides_of("n1", None)
    )
    allocate(vm, "n1")

    def classes() -> list[str]:
        return sorted(one.app_class for one in seen(cloud)["n1"])

    assert classes() == ["extreme", "sync"]
    rows.change_migrations(cloud, vm, status="migrating", **sides_of("n1", "n1"))
    assert classes() == ["extreme", "sync"]
    rows.change_vm(cloud, vm, task_state=None, vm_state="resized", instance_type_id=2)
    rows.set_flavors(cloud, vm, cur=new, old=old, new=new)
    rows.change_migrations(cloud, vm, status="finished")
    assert classes() == ["extreme", "sync"]
    rows.change_vm(cloud, vm, vm_state="active")
    rows.change_migrations(cloud, vm, status="confirmed")
    assert classes() == ["extreme"]


def test_a_vm_that_comes_back_from_soft_deletion_is_what_it_was(cloud, monkeypatch):
    """Its request is not read together with thousands of others while it is queued to go."""
    monkeypatch.setattr(databases, "MAX_UUIDS", 1)
    server_group = {"group": uuids.group}
    vm, _, _ = rows.add_vms(cloud, ["n1", "n2", "n3"], extra_specs=SYNC, **server_group)
    rows.queue_for_delete([vm], True)
    assert seen(cloud)["n1"][0].group == "r-rows"
    rows.queue_for_delete([vm], False)
    assert seen(cloud)["n1"][0].group == uuids.group


def test_a_resized_vm_is_read_again(cloud):
    [vm] = rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
    assert seen(cloud)["n1"][0].app_class == "sync"
    rows.set_flavors(cloud, vm, cur=request(extra_specs=wishing(app_class="extreme")).flavor)
    rows.change_vm(cloud, vm, instance_type_id=2)
    assert seen(cloud)["n1"][0].app_class == "extreme"


def test_queries_do_not_depend_on_hosts_or_vms_once_vms_are_known(cloud):
    costs = []
    for more in (2, 2, 0, 1500, 0):
        if more:
            rows.add_vms(cloud, [HOSTS[i % 8] for i in range(more)], extra_specs=SYNC)
        with collected() as sent:
            seen(cloud)
        costs.append(len(sent))
    # Build requests, cells and VMs; for VMs that are not cached requests, cells and flavors.
    assert costs == [6, 6, 3, 6, 3]


def test_what_is_known_of_vms_is_not_forgotten_while_their_cell_does_not_answer(cloud):
    rows.add_vms(cloud, HOSTS, extra_specs=SYNC)
    known = seen(cloud)
    with faults.cell_at(cloud, "cell1", faults.closed_port()):
        states = states_of(cloud)
        found = colocated_instances.read(request(), states)
        assert found.host_instances.down_cells
        assert {state.host: found.on(state) for state in states} == known
    faults.forget()
    with collected() as sent:
        assert seen(cloud) == known
    assert len(sent) == 3
    # Once a reading is complete, those that are gone are forgotten.
    rows.clear(cloud)
    seen(cloud)
    assert not instance_applications.cache.creations
    assert not instance_applications.cache.applications


@pytest.mark.parametrize("failing", ["hpc_sched shared read", "hpc_sched read"])
def test_what_is_known_of_vms_is_not_forgotten_while_no_thread_can_be_started(
    cloud, monkeypatch, failing: str
):
    start = threading.Thread.start

    def start_if_any(thread: threading.Thread) -> None:
        if thread.name.startswith(failing):
            raise RuntimeError("can't start new thread")
        start(thread)

    rows.add_vms(cloud, HOSTS, extra_specs=SYNC)
    known = seen(cloud)
    monkeypatch.setattr(threading.Thread, "start", start_if_any)
    states = states_of(cloud)
    found = colocated_instances.read(request(), states)
    assert {state.host: found.on(state) for state in states} == known
    assert "no thread can be started" in found.host_instances.problems[0]


def test_a_vm_whose_request_cannot_be_read_is_unknown_unless_its_flavor_names_a_class(
    cloud, monkeypatch
):
    rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
    rows.add_vms(cloud, ["n2"])
    monkeypatch.setattr(instance_applications, "_read_creations", lambda _c, new, _p: ({}, new))
    states = states_of(cloud)
    found = colocated_instances.read(request(), states).host_instances
    [named], [unknown] = (found.on(state) for state in states[:2])
    assert named.application is not None
    assert named.application.name == "LU"
    assert unknown.application is None


def test_what_is_known_of_vms_is_not_forgotten_after_an_error_of_ours(cloud, monkeypatch):
    def broken(*_: object, **_options: object) -> None:
        raise ZeroDivisionError("ours")

    rows.add_vms(cloud, HOSTS, extra_specs=SYNC)
    known = seen(cloud)
    monkeypatch.setattr(instance_applications, "read", broken)
    states = states_of(cloud)
    found = colocated_instances.read(request(), states)
    assert {state.host: found.on(state) for state in states} == known
    assert found.host_instances.problems == ("VMs on all hosts: ZeroDivisionError: ours",)


def test_a_vm_that_was_on_its_way_when_its_cell_fell_silent_is_not_forgotten(cloud, allocate):
    """It has a host since, and no build request any more."""
    extreme = wishing(app_class="extreme")
    [vm] = rows.add_vms(cloud, [None], extra_specs=extreme)
    allocate(vm, "n3")
    [there] = seen(cloud)["n3"]
    assert there.app_class == "extreme"
    rows.change_vm(cloud, vm, host="n3", node="n3", vm_state="active")
    with faults.cell_at(cloud, "cell1", faults.closed_port()):
        for _ in range(2):
            states = states_of(cloud)
            found = colocated_instances.read(request(), states)
            assert {state.host: found.on(state) for state in states if found.on(state)} == {
                "n3": [there]
            }
        # Deleted meanwhile: Placement says so.
        cloud.placement.delete(f"/allocations/{vm}", version="1.28")
        assert colocated_instances.read(request(), states).on(states[2]) == []


def test_an_evacuated_vm_is_on_every_host_that_it_has_an_allocation_on(cloud, allocate):
    """An allocation stays on a dead host, here n2, until its compute is back."""
    cloud.flags(in_flight_lookups=64, group="hpc_sched")
    for left in ("n1", "n2", "n4"):
        [vm] = rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
        rows.change_vm(cloud, vm, task_state="rebuilding")
        rows.add_migration(
            cloud, vm, status="accepted", migration_type="evacuation", **sides_of("n1", None)
        )
        allocate(vm, *{"n1", left, "n3"})
    found = {host: len(there) for host, there in seen(cloud).items()}
    assert found == {"n1": 3, "n2": 1, "n3": 3, "n4": 1}


def test_ten_thousand_running_vms_are_read_within_seconds(cloud):
    rows.add_vms(cloud, [HOSTS[i % 8] for i in range(10_000)], extra_specs=SYNC)
    found: list[dict[str, list[Application]]] = []
    first, later = (calls_of(lambda: found.append(seen(cloud))) for _ in range(2))
    assert [sum(map(len, each.values())) for each in found] == [10_000] * 2
    print(f"first request {first} calls, later ones {later}")
    assert first < 200 * 10_000
    assert later < 30 * 10_000
