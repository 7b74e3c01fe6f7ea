"""Groups with devices where Placement offers a part of the candidates alone.

``[placement] max_allocation_candidates`` cuts its list, and nothing in the answer says so.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nova import exception, objects
from nova.pci import request as pci_request
from nova.scheduler.client import report
from oslo_upgradecheck.upgradecheck import Code

from hpc_sched.core.hopbyte import hop_bytes
from hpc_sched.core.plan import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.status import finding
from hpc_sched.status.checks import placement_candidates
from hpc_sched.status.inspected_cloud import InspectedCloud
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
from tests.functional.room_oracle import Oracle
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

#         core
#       /      \
#   leaf-a    leaf-b
#   a1  a2    b1  b2
LEAVES = {"leaf-a": ["a1", "a2"], "leaf-b": ["b1", "b2"]}
ALIAS = {"vendor_id": "10de", "product_id": "2230", "device_type": "type-PCI", "name": "gpu"}
# Four devices a host, two a VM: 12 candidates, of which 6 differ.
FOUR_DEVICES = Host(children={f"gpu{number}": {"CUSTOM_GPU": 1} for number in range(4)})
TWO_DEVICES = {"resources1:CUSTOM_GPU": "1", "resources2:CUSTOM_GPU": "1", "group_policy": "none"}

pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def hosts(cloud: TestedCloud, tmp_path: Path) -> Iterator[DeviceHosts]:
    with device_hosts_on(cloud, tmp_path, LEAVES) as hosts:
        loaded_topology.load()
        yield hosts


@pytest.fixture
def cut(cloud: TestedCloud) -> Iterator[Callable[[int, str], None]]:
    """Have Placement offer a number of candidates at most, in one of its two orders."""
    config = cloud.placement_fixture.conf_fixture.conf
    names = ("max_allocation_candidates", "allocation_candidates_generation_strategy")

    def cut(most: int, strategy: str) -> None:
        for name, value in zip(names, (most, strategy), strict=True):
            config.set_override(name, value, "placement")

    yield cut
    for name in names:
        config.clear_override(name, "placement")


@pytest.mark.parametrize(
    ("count", "specs", "expected"),
    [
        pytest.param(4, {"hpc:require": "leaf"}, [4], id="4 under one leaf, as they must be"),
        pytest.param(8, {}, [4, 4], id="8 on all hosts"),
        pytest.param(4, {}, [4], id="4 under one leaf, as they may be"),
    ],
)
def test_a_group_has_the_room_of_the_hosts_though_candidates_were_cut(
    hosts: DeviceHosts, cut, monkeypatch, count: int, specs: dict[str, str], expected: list[int]
):
    cut(8, "breadth-first")
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    spec = device_request(count=count, extra_specs=TWO_DEVICES | specs)
    with counted_claims(monkeypatch) as claims:
        placed = hosts_of(hosts.place(spec, hosts.scheduler))
    topology = loaded_topology.current().topology
    leaves = Counter(topology.leaf_of(host) for host in placed)
    assert sorted(leaves.values()) == expected
    assert claims == {True: count}


def test_each_vm_gets_a_candidate_of_its_own_without_gang_claims(
    hosts: DeviceHosts, cut, monkeypatch
):
    """Placement offers one candidate a host; the second VM there claims one that was added."""
    cut(4, "breadth-first")
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    hosts.cloud.flags(gang_claims=False, group="hpc_sched")
    spec = device_request(count=8, extra_specs=TWO_DEVICES)
    with counted_claims(monkeypatch) as claims:
        placed = hosts_of(hosts.place(spec, hosts.scheduler))
    assert set(Counter(placed).values()) == {2}
    assert claims == {True: 8}


def test_no_candidate_is_added_of_a_device_that_gives_more_at_once(
    hosts: DeviceHosts, cut, monkeypatch
):
    cut(4, "breadth-first")
    whole = {"CUSTOM_GPU": {"total": 4, "min_unit": 2}}
    host = Host(children={"gpu0": {"CUSTOM_GPU": 2}, "gpu1": whole})
    hosts.build({name: host for below in LEAVES.values() for name in below})
    with counted_claims(monkeypatch) as claims:
        spec = device_request(count=8, extra_specs={"resources:CUSTOM_GPU": "1"})
        placed = hosts_of(hosts.place(spec, hosts.scheduler))
    assert set(Counter(placed).values()) == {2}
    assert claims == {True: 8}


def test_vms_with_devices_on_their_cells_have_the_room_of_a_host_with_many_devices(
    drawn_hosts: DeviceHosts, cut, monkeypatch
):
    """3 of 20 devices are more combinations than are listed, and few of them are on one cell."""
    devices = {f"gpu{number:02}": number % 2 for number in range(20)}
    host = Host(
        vcpus=32,
        memory_mb=131072,
        cells=[cell(0), cell(1)],
        children={name: {"CUSTOM_PCI_10DE_2230": 1} for name in devices},
        pools=[gpus(1, numa_node=on) | {"child": name} for name, on in devices.items()],
    )
    drawn_hosts.build({"a1": host})
    wanted = {
        "hw:cpu_policy": "dedicated",
        "hw:pci_numa_affinity_policy": "required",
        "pci_passthrough:alias": "gpu:3",
    }
    # With one device, and each of 11 others: one of them at least is on the same cell.
    cut(11 * 18, "breadth-first")
    with counted_claims(monkeypatch) as claims:
        spec = device_request(count=6, vcpus=4, extra_specs=wanted)
        drawn_hosts.place(spec, drawn_hosts.scheduler)
    assert claims == {True: 6}


def test_a_refusal_says_that_hosts_were_not_offered(hosts: DeviceHosts, cut, caplog):
    cut(8, "depth-first")
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    spec = device_request(count=4, extra_specs=TWO_DEVICES | {"hpc:require": "leaf"})
    why = "largest gang that fits under one leaf: 2; CUSTOM_GPU runs out first; "
    with pytest.raises(
        exception.NoValidHost, match=f"{why}not all hosts with room were offered, by a limit"
    ):
        hosts.place(spec, hosts.scheduler)
    operator = (
        "; 1 of 4 hosts with room for one VM are candidates: [placement] max_allocation_candidates "
        "of Placement has cut its list"
    )
    assert operator in caplog.text


def test_a_host_with_too_few_devices_is_none_that_was_not_offered(hosts: DeviceHosts, cut, caplog):
    cut(8, "breadth-first")
    one_device = Host(children={"gpu0": {"CUSTOM_GPU": 1}})
    hosts.build({"a1": FOUR_DEVICES, "a2": FOUR_DEVICES, "b1": one_device, "b2": one_device})
    spec = device_request(count=5, extra_specs=TWO_DEVICES)
    why = "largest gang that fits: 4; CUSTOM_GPU runs out first$"
    with pytest.raises(exception.NoValidHost, match=why):
        hosts.place(spec, hosts.scheduler)
    assert "with room for one VM" not in caplog.text


def test_hosts_that_filters_have_removed_are_not_said_to_be_cut_by_a_limit(
    hosts: DeviceHosts, cut, monkeypatch, caplog
):
    """Placement has offered some candidates of each host, all hosts together."""
    cut(16, "breadth-first")
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    manager = hosts.scheduler.host_manager
    real = manager.get_filtered_hosts

    def filtered(found, *args, **kwargs):
        return real([one for one in found if one.host in LEAVES["leaf-a"]], *args, **kwargs)

    monkeypatch.setattr(manager, "get_filtered_hosts", filtered)
    with pytest.raises(exception.NoValidHost, match=r"not all hosts with room were offered$"):
        hosts.place(device_request(count=5, extra_specs=TWO_DEVICES), hosts.scheduler)
    assert "2 of 4 hosts with room for one VM are candidates: Nova's filters have" in caplog.text


def test_hosts_beside_the_one_that_is_requested_are_none_that_were_not_offered(
    hosts: DeviceHosts, caplog
):
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    spec = device_request(count=3, extra_specs=TWO_DEVICES)
    node = hosts.nodes["a1"]
    spec.requested_destination = objects.Destination(
        host=node.host, node=node.hypervisor_hostname, allow_cross_cell_move=False
    )
    why = "largest gang that fits: 2; CUSTOM_GPU runs out first$"
    with pytest.raises(exception.NoValidHost, match=why):
        hosts.place(spec, hosts.scheduler)
    assert "with room for one VM" not in caplog.text


def test_a_refusal_says_that_nova_has_limited_a_request_without_a_server_group(
    hosts: DeviceHosts, caplog
):
    hosts.cloud.flags(max_placement_results=2, group="scheduler")
    hosts.build({name: Host(vcpus=1) for below in LEAVES.values() for name in below})
    spec = device_request(count=3, extra_specs={"hpc:app_class": "sync"})
    spec.instance_group, spec.scheduler_hints = None, {}
    why = r"that fits: 2; .*not all hosts with room were offered, by a limit of the cloud"
    with pytest.raises(exception.NoValidHost, match=why):
        hosts.place(spec, hosts.scheduler)
    operator = (
        "2 of 4 hosts with room for one VM are candidates: [scheduler] max_placement_results (2)"
    )
    assert operator in caplog.text


def test_a_refusal_says_nothing_of_hosts_that_a_filter_has_removed(hosts: DeviceHosts, caplog):
    """Of a group with anti-affinity no list of all hosts is read."""
    hosts.build({name: Host() for below in LEAVES.values() for name in below})
    spec = device_request(count=3, policy="anti-affinity")
    spec.ignore_hosts = ["b1", "b2"]
    with pytest.raises(exception.NoValidHost, match=r"largest gang that fits: 2$"):
        hosts.place(spec, hosts.scheduler)
    assert "max_allocation_candidates" not in caplog.text


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        pytest.param(4, Code.WARNING, "many-devices: about 21840 candidates", id="4 of 8 devices"),
        pytest.param(2, Code.SUCCESS, "1 flavor with devices, at most 20000", id="2 of 8 devices"),
    ],
)
def test_the_status_check_warns_of_flavors_with_many_candidates(
    hosts: DeviceHosts, wanted: int, code: Code, says: str
):
    eight = Host(children={f"gpu{number}": {"CUSTOM_GPU": 1} for number in range(8)})
    hosts.build({f"h{number:02}": eight for number in range(13)})
    groups = {f"resources{number}:CUSTOM_GPU": "1" for number in range(wanted)}
    flavor = objects.Flavor(
        hosts.context,
        name="many-devices",
        flavorid="many-devices",
        memory_mb=1024,
        vcpus=1,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        extra_specs=groups | {"group_policy": "none"},
    )
    flavor.create()
    try:
        found = finding.merged(placement_candidates.check_candidates(InspectedCloud()))
    finally:
        flavor.destroy()
    assert found.code == code
    assert says in found.details
    if code is Code.WARNING:
        assert "max_allocation_candidates = 1000 and" in found.details
        assert "max_placement_results = 1000 too" in found.details


#           core
#       /    |    \
#  leaf-a  leaf-b  leaf-c
#  a1 a2   b1 b2   c1-c3
DRAWN = {"leaf-a": ["a1", "a2"], "leaf-b": ["b1", "b2"], "leaf-c": ["c1", "c2", "c3"]}
DRAWN_FLAVORS: tuple[dict[str, str], ...] = (
    TWO_DEVICES,
    TWO_DEVICES | {"group_policy": "isolate"},
    TWO_DEVICES | {"trait1:CUSTOM_RED": "required"},
    TWO_DEVICES | {"resources3:CUSTOM_GPU": "1"},
    {"resources:CUSTOM_GPU": "1"},
    {"resources:VGPU": "2"},
    {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "none"},
    {"resources:VGPU": "1", "resources1:CUSTOM_GPU": "1"},
    {"pci_passthrough:alias": "gpu:2"},
)
FEW = 3


def drawn(seed: int) -> tuple[dict[str, Host], dict[str, str], int]:
    """Return hosts with devices, partly in use, a flavor that wants some, and a number of VMs."""
    numbers = random.Random(seed)

    def host() -> Host:
        names = [f"gpu{number}" for number in range(numbers.randint(1, 5))]
        name = "CUSTOM_PCI_10DE_2230" if "pci_passthrough:alias" in flavor else "CUSTOM_GPU"
        in_use = {one: numbers.random() < 0.2 for one in names}
        devices = {one: {name: {"total": 1, "reserved": int(in_use[one])}} for one in names}
        most = numbers.choice([1, 4])
        shared = {
            f"pgpu{number}": {"VGPU": {"total": numbers.randint(2, 4), "max_unit": most}}
            for number in range(numbers.randint(1, 2))
        }
        return Host(
            vcpus=numbers.choice([3, 8]),
            children=devices | shared,
            traits={one: ["CUSTOM_RED"] for one in names if numbers.random() < 0.5},
            pools=[gpus(1) | {"child": one} for one in names if not in_use[one]],
        )

    flavor = dict(numbers.choice(DRAWN_FLAVORS))
    kinds = [host() for _ in range(3)]
    if numbers.random() < 0.5:
        flavor["hpc:require"] = "leaf"
    found = {name: numbers.choice(kinds) for below in DRAWN.values() for name in below}
    return found, flavor, numbers.randint(2, 8)


@pytest.fixture
def drawn_hosts(cloud: TestedCloud, tmp_path: Path) -> Iterator[DeviceHosts]:
    with device_hosts_on(cloud, tmp_path, DRAWN) as hosts:
        pci_request.get_alias_from_config.cache_clear()
        cloud.flags(alias=[json.dumps(ALIAS)], group="pci")
        cloud.flags(pci_in_placement=True, group="filter_scheduler")
        loaded_topology.load()
        yield hosts
        pci_request.get_alias_from_config.cache_clear()


@contextmanager
def offered_hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Collect the providers of which Placement offers Nova anything."""
    real, found = report.SchedulerReportClient.get_allocation_candidates, set()

    def get(*args):
        answer = real(*args)
        found.update(uuid for one in answer[0] or () for uuid in one["allocations"])
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "get_allocation_candidates", get)
        yield found


@pytest.mark.parametrize(
    "seed",
    [
        *range(FEW),
        *(
            pytest.param(n, marks=pytest.mark.nightly("rooms", "100 clouds of cut candidates"))
            for n in range(FEW, 100)
        ),
    ],
)
@pytest.mark.parametrize(
    "limit",
    [(8, "breadth-first"), (8, "depth-first"), (16, "breadth-first"), (16, "depth-first"), None],
)
def test_a_group_on_a_drawn_cloud_is_at_the_optimum_of_the_hosts_that_were_offered(
    drawn_hosts: DeviceHosts, cut, monkeypatch, seed: int, limit: tuple[int, str] | None
):
    found, flavor, count = drawn(seed)
    drawn_hosts.build(found)
    spec = device_request(count=count, extra_specs=flavor)
    rooms = Oracle(drawn_hosts, spec.obj_clone()).rooms(count)
    if limit is not None:
        cut(*limit)
    refusal, placed = "", []
    with counted_claims(monkeypatch) as claims, offered_hosts(monkeypatch) as offered:
        try:
            placed = hosts_of(drawn_hosts.place(spec, drawn_hosts.scheduler))
        except exception.NoValidHost as error:
            refusal = str(error)
    uuids = drawn_hosts.provider_of
    left = {name: rooms[name] if uuids[name] in offered else 0 for name in rooms}
    topology = loaded_topology.current().topology
    best, best_of_all = (
        plan(
            topology=topology,
            capacity=each,
            members={},
            count=count,
            require=flavor.get("hpc:require"),
        )
        for each in (left, rooms)
    )
    is_said = "not all hosts with room were offered" in refusal
    if isinstance(best, Plan):
        cost = hop_bytes(topology=topology, placement=dict(enumerate(placed)))
        assert (cost, len(placed)) == (best.hop_bytes, count), (refusal, Counter(placed), left)
        assert claims == {True: count}
    elif offered:
        assert refusal
        assert not claims
        # Placement has told Nova of all hosts, or the reason is said.
        assert is_said or not isinstance(best_of_all, Plan), (refusal, left, rooms)
        assert not is_said or limit is not None
