"""Rooms where HostState, Placement and Nova's defaults disagree."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report
from oslo_utils import uuidutils

from hpc_sched.nova_glue.read.instances import in_flight_instances
from tests.functional import faults
from tests.functional.claims import hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.device_hosts import (
    DeviceHosts,
    Host,
    cell,
    counted_claims,
    device_hosts_on,
    device_request,
)
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

#            core
#        /          \
#     leaf-a       leaf-b
#     a1-a4        b1-b4
LEAVES = {leaf: [f"{leaf[-1]}{number}" for number in range(1, 5)] for leaf in ("leaf-a", "leaf-b")}
EVERY = [host for below in LEAVES.values() for host in below]
LEAF_B = LEAVES["leaf-b"]
TIMEOUT = 2  # seconds
PINNED = {"hw:cpu_policy": "dedicated"}
# 16 processors of a host for pinning, 16 shared.
MIXED = Host(vcpus=32, memory_mb=131072, cells=[cell(0), cell(1, is_shared=True)])


pytestmark = [cloud_mark(EMPTY), pytest.mark.usefixtures("nothing_is_held")]


@pytest.fixture
def build(cloud: TestedCloud, tmp_path: Path) -> Iterator[Callable[..., DeviceHosts]]:
    """Build a cloud that is removed after the test."""
    faults.forget()
    with device_hosts_on(cloud, tmp_path, LEAVES) as started:

        def build_(found: Mapping[str, Host], **others: object) -> DeviceHosts:
            started.build(found, **others)
            return started

        yield build_
    faults.forget()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, int]]:
    """Place a group without a refused claim; return its VMs by host."""

    def place_(cloud: DeviceHosts, count: int, **wanted: object) -> dict[str, int]:
        with counted_claims(monkeypatch) as claims:
            spec = device_request(count=count, **wanted)
            found = hosts_of(cloud.place(spec, cloud.scheduler))
        assert claims == {True: count}
        return dict(Counter(found))

    return place_


def use_vcpus(cloud: DeviceHosts, number: int) -> None:
    """Have nova-compute report a number of processors in use on all hosts."""
    cell1 = cloud.cloud.cell_mappings["cell1"]
    with nova_context.target_cell(cloud.context, cell1) as in_cell:
        for node in cloud.nodes.values():
            node._context = in_cell
            node.vcpus_used = number
            node.save()


def allocate(cloud: DeviceHosts, host: str, resources: Mapping[str, int]) -> str:
    """Allocate for an instance of somebody else on a host; return its uuid."""
    consumer = uuidutils.generate_uuid()
    cloud.consumers.append(consumer)
    body = {
        "allocations": {cloud.provider_of[host]: {"resources": dict(resources)}},
        "project_id": consumer,
        "user_id": consumer,
        "consumer_generation": None,
    }
    answer = cloud.cloud.placement.put(f"/allocations/{consumer}", version="1.36", body=body)
    assert answer.status == 204, answer.body
    return consumer


def test_pinned_vms_fit_though_few_shared_processors_are_left(build, place):
    """By default Nova asks Placement for PCPU, and for VCPU in its place."""
    inventory = {"VCPU": {"total": 16, "reserved": 12}}
    host = Host(vcpus=32, memory_mb=131072, cells=MIXED.cells, inventories=inventory)
    wanted = {**PINNED, "hpc:require": "leaf"}
    placed = place(build(dict.fromkeys(LEAF_B[:2], host)), 8, vcpus=4, extra_specs=wanted)
    assert placed == {"b1": 4, "b2": 4}


@pytest.mark.parametrize("policy", ["affinity", "soft-affinity"])
def test_reserved_processors_which_nova_compute_counts_as_used(build, place, policy):
    reserved = {"VCPU": {"total": 16, "reserved": 2, "allocation_ratio": 4.0}}
    host = Host(reported={"cpu_allocation_ratio": 4.0}, inventories=reserved)
    cloud = build(dict.fromkeys(EVERY, host))
    use_vcpus(cloud, 2)
    if policy == "affinity":
        with pytest.raises(exception.NoValidHost, match="largest gang that fits on one host: 14"):
            place(cloud, 15, vcpus=4, policy=policy)
    else:
        assert sorted(place(cloud, 15, vcpus=4, policy=policy).values()) == [1, 14]


def test_instances_in_flight_take_room_on_every_host(build, place):
    cloud = build(dict.fromkeys(LEAF_B, Host()))
    for host in LEAF_B:
        allocate(cloud, host, {"VCPU": 4, "MEMORY_MB": 1024})
    with pytest.raises(exception.NoValidHost, match="largest gang that fits on one host: 3"):
        place(cloud, 4, vcpus=4, policy="affinity")
    assert sorted(place(cloud, 8, vcpus=4).values()) == [2, 3, 3]


def test_pinned_vms_in_flight_take_room_on_every_host(build, place):
    host = Host(vcpus=32, memory_mb=131072, cells=[cell(0), cell(1)])
    cloud = build(dict.fromkeys(LEAF_B, host))
    for name in LEAF_B:
        allocate(cloud, name, {"PCPU": 8, "MEMORY_MB": 1024})
    wanted = {"vcpus": 10, "policy": "affinity", "extra_specs": PINNED}
    assert list(place(cloud, 2, **wanted).values()) == [2]
    cloud.release()
    for name in LEAF_B:
        allocate(cloud, name, {"PCPU": 8, "MEMORY_MB": 1024})
    with pytest.raises(exception.NoValidHost, match="largest gang that fits on one host: 3"):
        place(cloud, 4, vcpus=8, policy="affinity", extra_specs=PINNED)


def test_pinned_vms_that_leave_or_come_change_no_room_for_shared_processors(build, place):
    cloud = build(dict.fromkeys(EVERY, MIXED))
    for used in (0, 16, 0):
        pinned = [allocate(cloud, host, {"PCPU": used}) for host in EVERY if used]
        use_vcpus(cloud, used)
        assert list(place(cloud, 8, vcpus=2).values()) == [8]
        with pytest.raises(exception.NoValidHost, match="largest gang that fits on one host: 8"):
            place(cloud, 12, vcpus=2, policy="affinity")
        cloud.release()
        assert len(pinned) == (len(EVERY) if used else 0)


@pytest.mark.parametrize("disk_gb", [0, 40])
def test_vms_use_a_second_pool_or_local_disks_where_a_pool_has_too_little(build, place, disk_gb):
    without = () if disk_gb else ("DISK_GB",)
    host = Host(disk_gb=disk_gb, without=without, shares="first", vcpus=8)
    first = 20 if disk_gb else 100
    cloud = build(
        dict.fromkeys(LEAF_B, host),
        storage={"first": {"DISK_GB": first}, "second": {"DISK_GB": 100}},
    )
    for name in LEAF_B if not disk_gb else ():
        both = {"aggregates": list(cloud.aggregates.values())}
        cloud.put(cloud.provider_of[name], "aggregates", both)
    wanted = {"vcpus": 2, "disk_gb": 10, "extra_specs": {"hpc:require": "leaf"}}
    assert list(place(cloud, 16, **wanted).values()) == [4, 4, 4, 4]


@pytest.mark.parametrize("pool_first", [False, True])
def test_a_pool_is_shared_whatever_candidate_is_first(build, place, monkeypatch, pool_first):
    asked = report.SchedulerReportClient.get_allocation_candidates

    def ordered(self, context, resources):
        requests, *others = asked(self, context, resources)
        requests.sort(key=lambda found: len(found["allocations"]), reverse=pool_first)
        return requests, *others

    monkeypatch.setattr(report.SchedulerReportClient, "get_allocation_candidates", ordered)
    host = Host(disk_gb=40, shares="pool", vcpus=8)
    cloud = build(dict.fromkeys(LEAF_B, host), storage={"pool": {"DISK_GB": 20}})
    wanted = {"vcpus": 2, "disk_gb": 10, "extra_specs": {"hpc:require": "leaf"}}
    assert list(place(cloud, 16, **wanted).values()) == [4, 4, 4, 4]


def test_pairs_of_distinct_physical_gpus_use_all_of_three(build, place):
    host = Host(vcpus=64, children={f"pgpu{number}": {"VGPU": 16} for number in range(3)})
    cloud = build({"b1": host})
    pair = {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"}
    assert place(cloud, 24, extra_specs=pair) == {"b1": 24}


def test_ratios_beyond_all_numbers_of_vms(build, place):
    whole = {"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 1000}
    huge = {name: {"total": n, "allocation_ratio": 1e20} for name, n in whole.items()}
    cloud = build(dict.fromkeys(LEAF_B, Host(inventories=huge)))
    assert sum(place(cloud, 8, vcpus=4, extra_specs={"hpc:require": "leaf"}).values()) == 8


def test_bare_metal_nodes_are_not_read(build, place, monkeypatch):
    sizes = ("VCPU", "MEMORY_MB", "DISK_GB")
    node = Host(vcpus=0, memory_mb=0, disk_gb=0, inventories={"CUSTOM_METAL": 1}, without=sizes)
    cloud = build(dict.fromkeys(LEAF_B, node))
    nothing = {f"resources:{name}": "0" for name in sizes}
    wanted = {**nothing, "resources:CUSTOM_METAL": "1", "hpc:require": "leaf"}
    with faults.look_ups_at(monkeypatch, faults.closed_port()) as asked:
        assert list(place(cloud, 3, extra_specs=wanted).values()) == [1, 1, 1]
    assert not [url for url in asked if not url.startswith("/allocations/")]


def test_a_slow_list_of_all_hosts_does_not_stop_look_ups_of_members(build, place, monkeypatch):
    cloud = build({"b1": Host(children={f"pgpu{number}": {"VGPU": 2} for number in range(9)})})
    real = report.SchedulerReportClient.get

    def slow(self, url, version=None, global_request_id=None):
        if faults.is_read() and url.startswith("/allocation_candidates"):
            time.sleep(TIMEOUT + 1)
        return real(self, url, version=version, global_request_id=global_request_id)

    monkeypatch.setattr(report.SchedulerReportClient, "get", slow)
    with faults.timeout(TIMEOUT):
        place(cloud, 3, extra_specs={"resources:VGPU": "1"})
    found = in_flight_instances.places_of(cloud.context, [uuidutils.generate_uuid()], [])
    assert found.problem is None
