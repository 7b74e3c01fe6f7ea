"""NUMA cells and PCI devices of a snapshot: fitted by Nova's code, as in the scheduler.

::

    host: 32 VCPU, 32 PCPU in two cells of 16; 8 PCI devices, 4 in each cell
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from nova import context as nova_context
from nova import objects
from nova.objects import fields
from nova.pci import request as pci_request
from nova.pci import stats
from nova.scheduler import host_manager
from nova.virt import hardware
from oslo_utils import uuidutils
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched import exceptions
from hpc_sched.cli.common import nova_conf
from hpc_sched.core.room.device_fitting import RecordedDevices
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory
from hpc_sched.nova_glue.read.room import recorded_fitting
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms
from hpc_sched.nova_glue.read.room.nova_fitting import NovaFitting
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.request_builder import GroupQuery
from hpc_sched.snapshot.snapshot_model import Flavor, Hypervisor, Snapshot
from hpc_sched.topology import Topology
from tests.functional import nova_objects, provider_rows
from tests.functional.cloud_kinds import TWO_BY_FOUR
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

ALIAS = '{"name": "gpu", "vendor_id": "10de", "product_id": "2331"}'
STOCKS = {"VCPU": 32, "PCPU": 32, "MEMORY_MB": 131072, "DISK_GB": 1000}
FABRIC = Topology.from_tree({"core": {"leaf1": ["n1"], "leaf2": ["n2"]}})

pytestmark = [cloud_mark(TWO_BY_FOUR), pytest.mark.usefixtures("provider")]


@pytest.fixture
def provider(shared_cloud: TestedCloud) -> Iterator[None]:
    """Have a resource provider of the host's size, without a compute node."""
    inventories = {name: {"total": total} for name, total in STOCKS.items()}
    provider_rows.write(
        [provider_rows.Provider(uuids.n1, name="recorded", inventories=inventories)]
    )
    yield
    provider_rows.remove([uuids.n1])


@pytest.fixture
def node(shared_cloud: TestedCloud) -> Iterator[objects.ComputeNode]:
    """Return the compute node of n1, which a test may change."""
    context = nova_context.get_admin_context()
    with nova_context.target_cell(context, shared_cloud.cell_mappings["cell1"]) as in_cell:
        found = objects.ComputeNode.get_by_host_and_nodename(in_cell, "n1", "n1")
        before = {
            name: getattr(found, name)
            for name in ("numa_topology", "pci_device_pools", "cpu_allocation_ratio")
        }
        yield found
        for name, value in before.items():
            setattr(found, name, value)
        found.save()


def cells(pinned: int = 0) -> objects.NUMATopology:
    """Return two cells of 16 processors; of the first, some are pinned."""
    return objects.NUMATopology(
        cells=[
            objects.NUMACell(
                id=number,
                cpuset=set(range(16 * number, 16 * number + 16)),
                pcpuset=set(range(16 * number, 16 * number + 16)),
                memory=65536,
                cpu_usage=0,
                memory_usage=0,
                mempages=[objects.NUMAPagesTopology(size_kb=4, total=2**24, used=0)],
                siblings=[{cpu} for cpu in range(16 * number, 16 * number + 16)],
                pinned_cpus=set(range(pinned)) if number == 0 else set(),
                network_metadata=objects.NetworkMetadata(physnets=set(), tunneled=False),
                socket=number,
            )
            for number in (0, 1)
        ]
    )


def pools(counts: Mapping[int, int]) -> objects.PciDevicePoolList:
    """Return PCI devices of each cell."""
    return objects.PciDevicePoolList(
        objects=[
            objects.PciDevicePool(
                vendor_id="10de",
                product_id="2331",
                numa_node=node,
                count=count,
                tags={"dev_type": fields.PciDeviceType.STANDARD},
            )
            for node, count in counts.items()
        ]
    )


def cloud(devices: Mapping[str, RecordedDevices | None]) -> Cloud:
    inventories = {name: ProviderInventory(amount) for name, amount in STOCKS.items()}
    snapshot = Snapshot(
        taken="now",
        hypervisors=tuple(
            Hypervisor(
                name,
                name,
                True,
                True,
                STOCKS,
                {},
                providers=(Provider(getattr(uuids, name), None, inventories),),
                devices=found,
            )
            for name, found in devices.items()
        ),
        servers=(),
        groups=(),
        flavors=(),
        pci_aliases=(ALIAS,),
    )
    found = Cloud.of(snapshot, FABRIC)
    return dataclasses.replace(found, fittings=nova_conf.fitting_of)


def asked(found: Cloud, vcpus: int, specs: Mapping[str, str], count: int = 1):
    flavor = Flavor("f", vcpus, 1024, extra_specs={"hpc:app_class": "sync", **specs})
    return request_builder.of(found, GroupQuery(flavor, count))


def text_of(topology: objects.NUMATopology) -> str:
    return topology._to_json()


def scheduler_room(vcpus: int, specs: Mapping[str, str], recorded: RecordedDevices) -> int:
    """Return what the scheduler's rooms are on one such host."""
    flavor = nova_objects.flavor(vcpus=vcpus, memory_mb=1024, disk_gb=0, extra_specs=specs)
    spec = nova_objects.request_spec(flavor, None, count=1, uuid=uuidutils.generate_uuid())
    image = objects.ImageMeta(properties=objects.ImageMetaProps())
    spec.numa_topology = hardware.numa_get_constraints(flavor, image)
    spec.pci_requests = pci_request.get_pci_requests_from_flavor(flavor)
    state = host_manager.HostState("n1", "n1", uuids.cell1)
    state.uuid = uuids.n1
    state.vcpus_total, state.total_usable_ram_mb, state.total_usable_disk_gb = 32, 131072, 1000
    state.free_ram_mb = 131072
    state.cpu_allocation_ratio = state.ram_allocation_ratio = state.disk_allocation_ratio = 1.0
    if recorded.numa_topology:
        state.numa_topology = objects.NUMATopology.obj_from_db_obj(recorded.numa_topology)
    found = objects.pci_device_pool.from_pci_stats(recorded.pci_stats)
    state.pci_stats = stats.PciDeviceStats(state.numa_topology, stats=found)
    query = NovaQuery.of(spec)
    state.allocation_candidates = [
        {"allocations": {uuids.n1: {"resources": query.demand}}, "mappings": {"": [uuids.n1]}}
    ]
    rooms = HostRooms([state], query, NovaFitting.of(spec))
    return int(np.minimum(rooms.room, rooms.verified(rooms.room))[0])


@pytest.mark.parametrize(
    ("vcpus", "specs", "recorded", "room"),
    [
        pytest.param(
            10, {"hw:cpu_policy": "dedicated"}, (0, None), 2, id="pinned cores in one cell each"
        ),
        pytest.param(
            10, {"hw:cpu_policy": "dedicated"}, (8, None), 1, id="with pinned cores in use"
        ),
        pytest.param(
            20,
            {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"},
            (0, None),
            1,
            id="over both cells",
        ),
        pytest.param(1, {"pci_passthrough:alias": "gpu:4"}, (0, {0: 4, 1: 4}), 2, id="devices"),
        pytest.param(1, {"pci_passthrough:alias": "gpu:3"}, (0, {0: 4, 1: 1}), 1, id="few left"),
        pytest.param(1, {"pci_passthrough:alias": "gpu:1"}, (0, {}), 0, id="no devices"),
        pytest.param(
            4,
            {"hw:cpu_policy": "dedicated", "pci_passthrough:alias": "gpu:2"},
            (0, {0: 4}),
            2,
            id="cores in the cell of the devices",
        ),
    ],
)
def test_the_room_is_the_scheduler_s(vcpus, specs, recorded, room):
    pinned, devices = recorded
    stored = None if devices is None else json.dumps(pools(devices).obj_to_primitive())
    found = RecordedDevices(text_of(cells(pinned)), stored)
    state = asked(cloud({"n1": found}), vcpus, specs)
    assert state.notes == []
    rooms = [gang.vms for gang in group_fit.largest(state)]
    assert rooms == [room, room]
    if room:
        assert scheduler_room(vcpus, specs, found) == room
        over = asked(cloud({"n1": found}), vcpus, specs, room + 1)
        fit = group_fit.fit(over)
        assert fit.plan is None
        assert "runs out first" in (fit.reason or "")


def test_hosts_that_were_not_read_keep_their_bound_and_a_note_says_so():
    read = RecordedDevices(text_of(cells()))
    state = asked(cloud({"n1": read, "n2": None}), 10, {"hw:cpu_policy": "dedicated"})
    assert [gang.vms for gang in group_fit.largest(state)] == [3, 5]
    [note] = state.notes
    assert note.startswith("NUMA cells are not checked")


def test_texts_that_nova_cannot_read_are_an_error_of_the_snapshot():
    for devices in (
        RecordedDevices("{"),
        RecordedDevices(pci_stats='{"nova_object.namespace": 1}'),
    ):
        state = asked(cloud({"n1": devices}), 10, {"hw:cpu_policy": "dedicated"})
        with pytest.raises(exceptions.SnapshotError, match="expected what Nova stores"):
            group_fit.fit(state)


def test_a_flavor_that_nova_refuses_is_an_error_of_the_snapshot():
    found = cloud({"n1": RecordedDevices(text_of(cells()))})
    with pytest.raises(exceptions.SnapshotError, match="Nova refuses the flavor"):
        asked(found, 10, {"hw:cpu_policy": "mixed"})


def test_the_devices_of_compute_nodes_are_read_from_the_cells(node):
    node.numa_topology = text_of(cells())
    node.pci_device_pools = pools({0: 4})
    node.cpu_allocation_ratio = 2.0
    node.save()
    found, problems = recorded_fitting.read()
    assert problems == []
    assert found["n2", "n2"] == RecordedDevices()
    recorded = found["n1", "n1"]
    assert recorded.cpu_allocation_ratio == 2.0
    state = asked(cloud({"n1": recorded}), 1, {"pci_passthrough:alias": "gpu:2"})
    assert [gang.vms for gang in group_fit.largest(state)] == [2, 2]
