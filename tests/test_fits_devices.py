"""Groups on hosts with devices: fits and group show count as Placement allocates.

::

                    core1
             /                 \\
           pod1               pod2            each host: 16 VCPU, 64 GB, CUSTOM_GPU 8,
        /       \\           /      \\         two physical GPUs of 2 VGPUs, the first RED,
     leaf01   leaf02     leaf03   leaf04      two PCI devices of a provider each
     n01-n04  n05-n08    n09-n12  n13-n16
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping

import pytest
from msgspec.structs import replace

from hpc_sched.cli import main
from hpc_sched.core.room.provider_tree import SHARES, Provider, ProviderInventory
from hpc_sched.snapshot.snapshot_model import Flavor, Hypervisor, Snapshot
from hpc_sched.snapshot.source import snapshot_file
from tests import snapshots
from tests.snapshots import HOSTS, group, server

ALIAS = '{"name": "gpu", "vendor_id": "10de", "product_id": "2331", "traits": "red"}'
DEVICE = "CUSTOM_PCI_10DE_2331"


def kind(specs: Mapping[str, str], disk: int = 0) -> Flavor:
    return Flavor("kind", 1, 1024, disk, extra_specs={"hpc:app_class": "sync", **specs})


def providers(host: str, used: Mapping[str, int], *, has_disk: bool) -> tuple[Provider, ...]:
    def stock(of: str, **amounts: int) -> dict[str, ProviderInventory]:
        return {
            name: ProviderInventory(amount, used.get(f"{of}.{name}", 0))
            for name, amount in amounts.items()
        }

    sizes = {"VCPU": 16, "MEMORY_MB": 65536, "CUSTOM_GPU": 8}
    sizes |= {"DISK_GB": 1000} if has_disk else {}
    below = [
        Provider("pgpu0", host, stock("pgpu0", VGPU=2), ("CUSTOM_RED",)),
        Provider("pgpu1", host, stock("pgpu1", VGPU=2)),
        Provider("pci0", host, stock("pci0", **{DEVICE: 1}), ("CUSTOM_RED",)),
        Provider("pci1", host, stock("pci1", **{DEVICE: 1}), ("CUSTOM_RED",)),
    ]
    root = Provider(host, None, stock("host", **sizes), (), () if has_disk else ("rack",))
    renamed = (Provider(f"{host}/{p.uuid}", p.parent, p.inventories, p.traits) for p in below)
    return (root, *renamed)


def cloud(
    used: Mapping[str, Mapping[str, int]] | None = None,
    *,
    pool: int | None = None,
    servers: Iterable = (),
    **fields,
) -> Snapshot:
    """Return the cloud; of some hosts something is used, the disk may come from a pool."""
    found = snapshots.snapshot(servers, **fields)

    def node(one: Hypervisor) -> Hypervisor:
        own = providers(one.nodename, (used or {}).get(one.nodename, {}), has_disk=pool is None)
        return replace(one, providers=own)

    shared = ()
    if pool is not None:
        stock = {"DISK_GB": ProviderInventory(pool)}
        shared = (Provider("pool", None, stock, (SHARES,), ("rack",)),)
    return replace(found, hypervisors=tuple(map(node, found.hypervisors)), shared_providers=shared)


@pytest.fixture
def fits(tmp_path, capsys):
    """Run a command on a snapshot; return its exit code, JSON and standard error."""

    def run(snapshot: Snapshot, *arguments: str):
        path = tmp_path / "state.json"
        snapshot_file.write(path, snapshot)
        code = main.main([*arguments, "--snapshot", str(path), "-f", "json"])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return run


def largest(fits, snapshot: Snapshot) -> list[int]:
    code, rows, _ = fits(snapshot, "fits", "--flavor", "kind")
    assert code == 0
    return [row["VMs"] for row in rows]


@pytest.mark.parametrize(
    ("specs", "a_host"),
    [
        pytest.param({}, 16, id="processors"),
        pytest.param({"resources:CUSTOM_GPU": "4"}, 2, id="four of eight"),
        pytest.param({"resources:VGPU": "1"}, 4, id="one of each of two physical GPUs"),
        pytest.param({"resources:VGPU": "3"}, 0, id="not more than one physical GPU has"),
        pytest.param(
            {"resources1:VGPU": "1", "trait1:CUSTOM_RED": "required"}, 2, id="the red ones"
        ),
        pytest.param(
            {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"},
            2,
            id="one of each physical GPU",
        ),
        pytest.param({"trait:CUSTOM_NONE": "required"}, 0, id="a trait that no host has"),
        pytest.param({"pci_passthrough:alias": "gpu:1"}, 2, id="a PCI device"),
        pytest.param({"pci_passthrough:alias": "gpu:2"}, 1, id="both PCI devices"),
        pytest.param({"resources:PCPU": "1"}, 0, id="pinned processors"),
    ],
)
def test_the_room_of_a_host_is_what_placement_allocates(fits, specs, a_host):
    snapshot = cloud(flavors=[kind(specs)], pci_aliases=(ALIAS,), pci_in_placement=True)
    assert largest(fits, snapshot) == [4 * a_host, 8 * a_host, 16 * a_host]


USER, HOST = (
    "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER",
    "COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST",
)


@pytest.mark.parametrize(
    ("secrets", "specs", "vms"),
    [
        pytest.param((), {}, [64, 128, 256], id="computes before Nova 33 do not name them"),
        pytest.param((USER,), {}, [64, 64, 64], id="of the user where nothing is said"),
        pytest.param((USER, HOST), {"hw:tpm_secret_security": "host"}, [64, 64, 64], id="host"),
        pytest.param((USER,), {"hw:tpm_secret_security": "host"}, [0, 0, 0], id="no such host"),
    ],
)
def test_a_vtpm_goes_to_hosts_that_keep_its_secrets_as_the_flavor_says(fits, secrets, specs, vms):
    """The hosts of leaf01 alone name how they keep them."""
    tpm = ("COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_TIS")
    snapshot = cloud(flavors=[kind({"hw:tpm_version": "2.0", **specs})])

    def node(one: Hypervisor) -> Hypervisor:
        root, *below = one.providers
        named = secrets if one.nodename <= "n04" else ()
        return replace(one, providers=(dataclasses.replace(root, traits=(*tpm, *named)), *below))

    changed = replace(snapshot, hypervisors=tuple(map(node, snapshot.hypervisors)))
    assert largest(fits, changed) == vms


def test_devices_in_use_count_and_the_group_goes_where_enough_are_free(fits):
    used = {host: {"host.CUSTOM_GPU": 6} for host in HOSTS if host > "n04"}
    snapshot = cloud(used, flavors=[kind({"resources:CUSTOM_GPU": "4"})])
    assert largest(fits, snapshot) == [8, 8, 8]
    code, rows, _ = fits(snapshot, "fits", "--flavor", "kind", "--count", "8")
    assert (code, [row["Leaf"] for row in rows]) == (0, ["leaf01"])


def test_hosts_with_one_pool_take_together_what_it_has(fits):
    snapshot = cloud(pool=45, flavors=[kind({}, disk=10)])
    assert largest(fits, snapshot) == [4, 4, 4]
    code, [row], _ = fits(snapshot, "fits", "--flavor", "kind", "--count", "4", "--summary")
    assert (code, row["Fits"], row["Hosts"]) == (0, True, 1)
    spread = ("--policy", "anti-affinity", "--summary")
    code, [row], _ = fits(snapshot, "fits", "--flavor", "kind", "--count", "4", *spread)
    assert (code, row["Hosts"]) == (0, 4)
    code, [row], _ = fits(snapshot, "fits", "--flavor", "kind", "--count", "5", "--summary")
    assert (code, row["Fits"]) == (3, False)
    assert "DISK_GB runs out first" in row["Reason"]


def test_a_refusal_names_the_device_that_runs_out_first(fits):
    snapshot = cloud(flavors=[kind({"resources:CUSTOM_GPU": "4"})])
    args = ("fits", "--flavor", "kind", "--count", "9", "--level", "leaf", "--summary")
    code, [row], _ = fits(snapshot, *args)
    assert code == 3
    assert "CUSTOM_GPU runs out first" in row["Reason"]


def test_an_added_host_has_devices_of_its_own(fits):
    used = {host: {"host.CUSTOM_GPU": 8} for host in HOSTS}
    snapshot = cloud(used, flavors=[kind({"resources:CUSTOM_GPU": "4"})])
    args = ("fits", "--flavor", "kind", "--count", "4", "--summary")
    assert fits(snapshot, *args)[0] == 3
    assert fits(snapshot, *args, "--add", "leaf01=x[1-2]:like=n01")[0] == 0


def test_the_least_possible_of_a_group_counts_its_own_devices_as_free(fits):
    # Both VMs of each of two hosts have four GPUs; no other host has any left.
    own = kind({"resources:CUSTOM_GPU": "4"})
    vms = [server(f"vm{n}", host, own) for n, host in enumerate(("n01", "n01", "n09", "n09"))]
    used = {host: {"host.CUSTOM_GPU": 8, "host.VCPU": 2} for host in HOSTS}
    snapshot = cloud(used, servers=vms, groups=[group("job", vms)])
    code, [row], _ = fits(snapshot, "group", "show", "job", "--summary")
    # 2 + 2 on two pods: four pairs of five hops.
    assert (code, row["Hop-Byte"], row["Least possible"]) == (0, 20, 20)
    freed = {**used, "n02": {}}
    snapshot = cloud(freed, servers=vms, groups=[group("job", vms)])
    code, [row], _ = fits(snapshot, "group", "show", "job", "--summary")
    assert (row["Hop-Byte"], row["Least possible"]) == (20, 4)


@pytest.mark.parametrize(
    ("specs", "aliases", "note"),
    [
        ({"pci_passthrough:alias": "gpu:1"}, None, "no nova.conf says what the aliases are"),
        ({"pci_passthrough:alias": "fpga:1"}, (ALIAS,), "PCI alias fpga is not counted"),
        ({"pci_passthrough:alias": "gpu:1"}, (ALIAS,), "PCI devices are not checked"),
        ({"hw:cpu_policy": "dedicated"}, (), "NUMA cells are not checked"),
        ({"hw:numa_nodes": "2"}, (), "NUMA cells are not checked"),
        ({"accel:device_profile": "p"}, (), "device profile p are not counted"),
    ],
)
def test_a_note_says_what_is_not_counted(fits, specs, aliases, note):
    snapshot = cloud(flavors=[kind(specs)], pci_aliases=aliases)
    assert note in fits(snapshot, "fits", "--flavor", "kind")[2]


def test_a_flavor_without_devices_has_no_note(fits):
    assert fits(cloud(flavors=[kind({})]), "fits", "--flavor", "kind")[2] == ""


def test_a_snapshot_without_providers_counts_sums_of_resources(fits):
    capacity = {"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 1000, "VGPU": 4}
    snapshot = snapshots.snapshot(
        capacity=capacity, flavors=[kind({"resources1:VGPU": "3", "trait1:CUSTOM_RED": "required"})]
    )
    assert largest(fits, snapshot) == [4, 8, 16]


def test_an_unusual_alias_is_refused_or_ignored_but_never_a_bug(fits):
    aliases = ("", "[]", "{", '{"name": 5}', '{"name": "gpu", "resource_class": "my gpu"}')
    for text in ("gpu:1", "gpu", "gpu:-1", ":", "gpu:1,,5:1", "gpu:99999999999999999999"):
        found = kind({"pci_passthrough:alias": text})
        snapshot = cloud(flavors=[found], pci_aliases=aliases, pci_in_placement=True)
        assert fits(snapshot, "fits", "--flavor", "kind")[0] == 0
