"""Groups of VMs with devices, pinned cores and shared disks land at the least Hop-Byte."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import nova.conf
import pytest
from nova import exception
from nova.pci import request as pci_request

from hpc_sched.core.hopbyte import hop_bytes
from hpc_sched.core.plan import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.claim import claim_followup
from hpc_sched.nova_glue.claim.transaction import ledger
from hpc_sched.nova_glue.io import allocations, loaded_topology
from tests.functional.claims import hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.device_hosts import (
    DeviceHosts,
    Host,
    cell,
    counted_claims,
    device_hosts_on,
    device_request,
    gpus,
)
from tests.functional.faults import wait_until
from tests.functional.room_oracle import Oracle
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

#            core
#        /          \
#     leaf-a       leaf-b
#     a1-a6        b1-b4
LEAVES = {
    "leaf-a": [f"a{number}" for number in range(1, 7)],
    "leaf-b": [f"b{number}" for number in range(1, 5)],
}
ALIAS = {"vendor_id": "10de", "product_id": "2230", "device_type": "type-PCI", "name": "gpu"}


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def hosts(cloud: TestedCloud, tmp_path: Path) -> Iterator[DeviceHosts]:
    """Return Placement and databases for the hosts of a test, with Nova's device filters."""
    with device_hosts_on(cloud, tmp_path, LEAVES) as hosts:
        # It is kept for the process otherwise.
        pci_request.get_alias_from_config.cache_clear()
        cloud.flags(alias=[json.dumps(ALIAS)], group="pci")
        yield hosts
        pci_request.get_alias_from_config.cache_clear()


@pytest.fixture
def build(hosts: DeviceHosts) -> Callable[..., DeviceHosts]:
    """Build a cloud that is removed after the test."""

    def build_(found: Mapping[str, Host], **others: object) -> DeviceHosts:
        hosts.build(found, **others)
        return hosts

    return build_


def everywhere(host: Host) -> dict[str, Host]:
    return {name: host for below in LEAVES.values() for name in below}


def in_leaf(leaf: str, host: Host, others: Host) -> dict[str, Host]:
    return {
        name: host if one == leaf else others for one, below in LEAVES.items() for name in below
    }


def check(build, monkeypatch, found, spec, count: int, **others: object) -> list[str]:
    """Place a group; return its hosts if it is at the oracle's optimum without a refused claim."""
    cloud = build(found, **others)
    oracle = Oracle(cloud, spec.obj_clone())
    topology = loaded_topology.current().topology
    require = (spec.flavor.extra_specs or {}).get("hpc:require")
    best = plan(
        topology=topology, capacity=oracle.rooms(count), members={}, count=count, require=require
    )
    with counted_claims(monkeypatch) as claims:
        if not isinstance(best, Plan):
            with pytest.raises(exception.NoValidHost) as refused:
                cloud.place(spec, cloud.scheduler)
            assert not claims
            return [str(refused.value)]
        placed = hosts_of(cloud.place(spec, cloud.scheduler))
    assert claims == {True: count}
    cost = hop_bytes(topology=topology, placement=dict(enumerate(placed)))
    assert cost == best.hop_bytes, (Counter(placed), oracle.rooms(count))
    return placed


TWO_CELLS = Host(vcpus=32, memory_mb=131072, cells=[cell(0), cell(1)])
PINNED = {"hw:cpu_policy": "dedicated"}

CASES = {
    "custom class on the host": (
        in_leaf("leaf-a", Host(inventories={"CUSTOM_GPU": 1}), Host(inventories={"CUSTOM_GPU": 2})),
        8,
        {"extra_specs": {"resources:CUSTOM_GPU": "1"}},
    ),
    "4 custom devices of 8": (
        everywhere(Host(inventories={"CUSTOM_GPU": 8})),
        8,
        {"extra_specs": {"resources:CUSTOM_GPU": "4"}},
    ),
    "VGPU under nested providers": (
        everywhere(Host(children={"pgpu1": {"VGPU": 5}, "pgpu2": {"VGPU": 4}})),
        9,
        {"extra_specs": {"resources:VGPU": "2"}},
    ),
    "two VGPUs of different providers, one with a trait": (
        everywhere(
            Host(
                children={"pgpu1": {"VGPU": 4}, "pgpu2": {"VGPU": 3}},
                traits={"pgpu1": ["CUSTOM_FAST"]},
            )
        ),
        7,
        {
            "extra_specs": {
                "resources1:VGPU": "2",
                "trait1:CUSTOM_FAST": "required",
                "resources2:VGPU": "1",
                "group_policy": "isolate",
            }
        },
    ),
    "reserved devices": (
        everywhere(Host(inventories={"CUSTOM_GPU": {"total": 8, "reserved": 3}})),
        5,
        {"extra_specs": {"resources:CUSTOM_GPU": "2"}},
    ),
    "a ratio that Placement alone has": (
        in_leaf(
            "leaf-a",
            Host(reported={"cpu_allocation_ratio": 4.0}),
            Host(reported={"cpu_allocation_ratio": 4.0}, vcpus=24),
        ),
        8,
        {"vcpus": 8},
    ),
    "a larger ratio in Placement": (
        everywhere(Host(inventories={"VCPU": {"total": 16, "allocation_ratio": 4.0}})),
        12,
        {"vcpus": 8},
    ),
    "reserved memory in Placement": (
        everywhere(Host(inventories={"MEMORY_MB": {"total": 65536, "reserved": 30000}})),
        8,
        {"memory_mb": 16384},
    ),
    "10 pinned cores on two cells": (
        everywhere(TWO_CELLS),
        6,
        {"vcpus": 10, "extra_specs": PINNED},
    ),
    "6 pinned cores on two cells": (everywhere(TWO_CELLS), 9, {"vcpus": 6, "extra_specs": PINNED}),
    "pinned cores, one cell partly taken": (
        in_leaf(
            "leaf-a",
            Host(vcpus=32, memory_mb=131072, cells=[cell(0, pinned=10), cell(1)]),
            TWO_CELLS,
        ),
        9,
        {"vcpus": 6, "extra_specs": PINNED},
    ),
    "emulator threads of their own": (
        everywhere(TWO_CELLS),
        8,
        {
            "vcpus": 5,
            "extra_specs": {**PINNED, "hw:emulator_threads_policy": "isolate"},
        },
    ),
    "40 GB on two cells of 64": (
        everywhere(Host(vcpus=32, memory_mb=131072, cells=[cell(0), cell(1)])),
        5,
        {"vcpus": 2, "memory_mb": 40960, "extra_specs": PINNED},
    ),
    "huge pages": (
        everywhere(
            Host(vcpus=32, memory_mb=131072, cells=[cell(0, huge=12288), cell(1, huge=4096)])
        ),
        6,
        {"vcpus": 2, "memory_mb": 8192, "extra_specs": {**PINNED, "hw:mem_page_size": "2048"}},
    ),
    "a guest of two cells": (
        everywhere(TWO_CELLS),
        5,
        {"vcpus": 12, "memory_mb": 2048, "extra_specs": {**PINNED, "hw:numa_nodes": "2"}},
    ),
    "4 PCI devices of 8, not in Placement": (
        everywhere(Host(pools=[gpus(8)])),
        8,
        {"extra_specs": {"pci_passthrough:alias": "gpu:4"}},
    ),
    "PCI devices on the cells of pinned cores": (
        everywhere(
            Host(
                vcpus=32,
                memory_mb=131072,
                cells=[cell(0), cell(1)],
                pools=[gpus(3, numa_node=0), gpus(1, numa_node=1)],
            )
        ),
        7,
        {
            "vcpus": 8,
            "extra_specs": {
                **PINNED,
                "pci_passthrough:alias": "gpu:1",
                "hw:pci_numa_affinity_policy": "required",
            },
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_group_lands_at_the_optimum_and_no_claim_is_refused(build, monkeypatch, case):
    found, count, wanted = CASES[case]
    check(build, monkeypatch, found, device_request(count=count, **wanted), count)


@pytest.fixture
def in_placement(hosts: DeviceHosts) -> None:
    """Request PCI devices as Nova does once all computes report them in Placement."""
    hosts.cloud.flags(pci_in_placement=True, group="filter_scheduler")


def with_devices(count: int, **host: object) -> Host:
    """Return a host with PCI devices that are resource providers, on its cells in turn."""
    return Host(
        children={f"gpu{number}": {"CUSTOM_PCI_10DE_2230": 1} for number in range(count)},
        pools=[
            gpus(1, numa_node=number % 2) | {"child": f"gpu{number}"} for number in range(count)
        ],
        **host,
    )


@pytest.mark.default
@pytest.mark.usefixtures("in_placement")
def test_pci_devices_in_placement_bound_the_room(build, monkeypatch):
    spec = device_request(count=7, extra_specs={"pci_passthrough:alias": "gpu:2"})
    check(build, monkeypatch, everywhere(with_devices(4)), spec, 7)


@pytest.mark.usefixtures("in_placement")
def test_pci_devices_in_placement_are_taken_on_the_cells_of_pinned_cores(build, monkeypatch):
    wanted = {
        **PINNED,
        "pci_passthrough:alias": "gpu:1",
        "hw:pci_numa_affinity_policy": "required",
    }
    host = with_devices(5, vcpus=32, memory_mb=131072, cells=[cell(0, pinned=6), cell(1)])
    spec = device_request(count=7, vcpus=8, extra_specs=wanted)
    check(build, monkeypatch, everywhere(host), spec, 7)


def test_hosts_that_share_a_storage_pool_share_its_room(build, monkeypatch):
    shared = Host(without=("DISK_GB",), shares="pool", vcpus=2)
    found = in_leaf("leaf-b", shared, Host(vcpus=1))
    spec = device_request(count=6, disk_gb=20, vcpus=1)
    # Leaf b alone would take 8 VMs, its storage pool 5.
    cloud = build(found, storage={"pool": {"DISK_GB": 100}})
    with counted_claims(monkeypatch) as claims:
        placed = hosts_of(cloud.place(spec, cloud.scheduler))
    assert claims == {True: 6}
    assert sorted(Counter(host[0] for host in placed).values()) in ([6], [1, 5])


def test_a_group_that_a_storage_pool_cannot_hold_is_refused(build):
    shared = Host(without=("DISK_GB",), shares="pool")
    cloud = build(everywhere(shared), storage={"pool": {"DISK_GB": 100}})
    with pytest.raises(exception.NoValidHost, match="that fits: 5; DISK_GB runs out first"):
        cloud.place(device_request(count=6, disk_gb=20), cloud.scheduler)


@pytest.mark.default
def test_a_refusal_names_the_resource_that_runs_out(build):
    found = everywhere(Host(inventories={"CUSTOM_GPU": 8}))
    wanted = {"resources:CUSTOM_GPU": "4", "hpc:require": "leaf"}
    cloud = build(found)
    why = "group of 13 needs one leaf: largest gang that fits under one leaf: 12"
    with pytest.raises(exception.NoValidHost, match=rf"{why}; CUSTOM_GPU runs out first"):
        cloud.place(device_request(count=13, extra_specs=wanted), cloud.scheduler)


def test_a_group_that_fits_by_ratios_of_placement_alone_is_not_refused(build, monkeypatch):
    ratio = {"VCPU": {"total": 16, "allocation_ratio": 4.0}}
    found = everywhere(Host(inventories=ratio))
    spec = device_request(count=32, vcpus=8, extra_specs={"hpc:require": "leaf"})
    check(build, monkeypatch, found, spec, 32)


def drawn(seed: int) -> tuple[dict[str, Host], dict[str, object]]:
    """Return hosts of two or three kinds, partly used, and a flavor that wants their devices."""
    numbers = random.Random(seed)
    kind = numbers.choice(["class", "nested", "pci", "pinned", "pages", "both"])
    vcpus = numbers.choice([1, 2, 4])
    specs: dict[str, str] = {}
    if kind == "class":
        specs["resources:CUSTOM_GPU"] = str(numbers.choice([1, 2, 4]))
    elif kind == "nested":
        specs |= {"resources1:VGPU": "2", "resources2:VGPU": "1"}
        specs["group_policy"] = numbers.choice(["none", "isolate"])
    elif kind in ("pci", "both"):
        specs["pci_passthrough:alias"] = f"gpu:{numbers.choice([1, 2])}"
        specs["hw:pci_numa_affinity_policy"] = numbers.choice(["required", "preferred"])
    if kind in ("pinned", "pages", "both"):
        vcpus = numbers.choice([3, 5, 6])
        specs["hw:cpu_policy"] = "dedicated"
        specs["hw:numa_nodes"] = "1"
    if kind == "pages":
        specs["hw:mem_page_size"] = numbers.choice(["2048", "large"])

    def host() -> Host:
        used, gpus_here = numbers.choice([0, 0, 5, 9]), numbers.choice([2, 4, 8])
        cells = [
            cell(0, pinned=used, huge=numbers.choice([2048, 6144])),
            cell(1, huge=numbers.choice([1024, 4096])),
        ]
        needs_cells = kind in ("pinned", "pages", "both")
        return Host(
            vcpus=32 if needs_cells else numbers.choice([8, 16]),
            memory_mb=131072,
            inventories={
                "CUSTOM_GPU": {"total": gpus_here, "reserved": numbers.choice([0, 1])},
            },
            children={f"pgpu{n}": {"VGPU": numbers.choice([2, 3, 5])} for n in range(3)},
            cells=cells if needs_cells else (),
            pools=[gpus(gpus_here // 2, numa_node=0), gpus(1, numa_node=1)],
        )

    kinds = [host() for _ in range(3)]
    found = {name: numbers.choice(kinds) for below in LEAVES.values() for name in below}
    return found, {"vcpus": vcpus, "memory_mb": 2048, "extra_specs": specs}


FEW = 8


@pytest.mark.parametrize(
    "seed",
    [
        *range(FEW),
        *(
            pytest.param(n, marks=pytest.mark.nightly("rooms", "60 more clouds"))
            for n in range(FEW, FEW + 60)
        ),
    ],
)
def test_a_group_on_a_drawn_cloud_lands_at_the_optimum(build, monkeypatch, seed):
    # By Hop-Byte alone.
    CONF.set_override("fragmentation_price", "0", "hpc_sched")
    found, wanted = drawn(seed)
    count = random.Random(-seed).randint(3, 12)
    if seed % 3 == 0:
        wanted["extra_specs"]["hpc:require"] = "leaf"
    check(build, monkeypatch, found, device_request(count=count, **wanted), count)


@pytest.mark.nightly("rooms", "64 claims on a cloud of 1,000 hosts")
def test_64_vms_of_4_gpus_on_1000_hosts_of_three_generations(hosts, build, monkeypatch, tmp_path):
    """One request, no refused claim, the least Hop-Byte."""
    numbers = random.Random(22)
    # 50 leaves of 20 hosts in 5 pods.
    names = [f"n{number:04}" for number in range(1000)]
    leaves = {f"leaf{n:02}": names[20 * n : 20 * n + 20] for n in range(50)}
    pods = {f"pod{n}": dict(list(leaves.items())[10 * n : 10 * n + 10]) for n in range(5)}
    hosts.cloud.flags(
        topology_file=str(write_tree(tmp_path / "topology.yaml", {"core": pods})), group="hpc_sched"
    )
    loaded_topology.load()
    gpus_of = {name: numbers.choice([4, 8, 16]) for name in names}
    cloud = build({name: Host(inventories={"CUSTOM_GPU": gpus_of[name]}) for name in names})
    spec = device_request(count=64, extra_specs={"resources:CUSTOM_GPU": "4"})
    topology = loaded_topology.current().topology
    capacity = {name: count // 4 for name, count in gpus_of.items()}
    best = plan(topology=topology, capacity=capacity, members={}, count=64)
    with counted_claims(monkeypatch) as claims:
        placed = hosts_of(cloud.place(spec, cloud.scheduler))
    assert claims == {True: 64}
    assert hop_bytes(topology=topology, placement=dict(enumerate(placed))) == best.hop_bytes


def test_the_candidates_of_a_group_are_claimed_in_one_transaction(build, monkeypatch):
    found, count, wanted = CASES["two VGPUs of different providers, one with a trait"]
    sent, real = [], allocations.write

    def write(owner, consumers):
        sent.append({consumer.uuid: consumer.allocations for consumer in consumers})
        return real(owner, consumers)

    monkeypatch.setattr(allocations, "write", write)
    check(build, monkeypatch, found, device_request(count=count, **wanted), count)
    # Nova's own claims have found the same devices: nothing is corrected afterwards.
    [claimed] = sent
    assert len(claimed) == count
    for uuid, wanted_of_one in claimed.items():
        assert ledger.same(allocations.read(uuid).allocations, wanted_of_one)


def test_another_candidate_of_the_same_host_leaves_one_allocation(build, monkeypatch):
    """A filter behind HPCGroupFilter removes the claimed candidate of the third VM."""
    cloud = build(everywhere(Host(children={"pgpu1": {"VGPU": 4}, "pgpu2": {"VGPU": 4}})))
    spec = device_request(count=4, extra_specs={"resources:VGPU": "1"})
    host_manager = cloud.scheduler.host_manager
    real, seen, removed = host_manager.get_filtered_hosts, [], []

    def filter_hosts(hosts, spec_obj, *args, **kwargs):
        left = real(hosts, spec_obj, *args, **kwargs)
        seen.append(spec_obj.instance_uuid)
        if len(seen) == 3:
            [followed] = claim_followup._followed
            place = followed.gang.places[spec_obj.instance_uuid]
            state = followed.claims.group.inputs.states[place.position]
            assert len(state.allocation_candidates) > 1
            state.allocation_candidates.remove(place.candidate)
            removed.append((spec_obj.instance_uuid, state.nodename, place.allocations))
        return left

    with monkeypatch.context() as patch:
        patch.setattr(host_manager, "get_filtered_hosts", filter_hosts)
        placed = cloud.place(spec, cloud.scheduler)
    wait_until(lambda: not claim_followup._followed)
    [(uuid, host, claimed)] = removed
    chosen = dict(zip(seen, placed, strict=True))
    assert chosen[uuid][0].nodename == host
    for vm, [selection] in chosen.items():
        wanted = json.loads(selection.allocation_request)["allocations"]
        held = allocations.read(vm).allocations
        assert ledger.same(held, wanted)
        assert ledger.same(held, claimed) is (vm != uuid and ledger.same(wanted, claimed))
