"""Hosts with devices, NUMA cells and shared disks, in Nova's database and in Placement alone.

As :mod:`tests.functional.claims`, with whole trees of providers: what nova-compute would report of
such hosts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nova import objects
from nova.objects.pci_device_pool import PciDevicePool
from nova.pci import request as pci_request
from nova.scheduler import manager
from nova.scheduler import utils as scheduler_utils
from nova.virt import hardware
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.read.room import compared_hosts
from tests.functional import host_rows, nova_objects
from tests.functional.claims import ClaimsOnly
from tests.functional.clouds import sample_options
from tests.functional.provider_rows import Provider

KIB = 1024
# Page sizes of x86 in KiB.
SMALL, HUGE = 4, 2048


@dataclass(frozen=True)
class Host:
    """What one host has; amounts by resource class are totals, or whole inventories."""

    vcpus: int = 16
    memory_mb: int = 65536
    disk_gb: int = 1000
    # Of the host's own provider, beside VCPU, MEMORY_MB and DISK_GB or in place of them.
    inventories: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # classes that the host's own provider does not have
    children: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    traits: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of children
    cells: Sequence[objects.NUMACell] = ()
    pools: Sequence[Mapping[str, Any]] = ()  # PCI devices; "child" names their provider
    reported: Mapping[str, Any] = field(default_factory=dict)  # fields of the compute node
    shares: str | None = None  # a storage pool whose aggregate the host is in


def cell(
    number: int,
    *,
    cpus: int = 16,
    memory_mb: int = 65536,
    pinned: int = 0,
    used_mb: int = 0,
    huge: int = 0,
    is_shared: bool = False,
) -> objects.NUMACell:
    """Return a NUMA cell without hyperthreads.

    :param pinned: processors that instances have pinned
    :param huge: pages of 2 MiB, all free
    :param is_shared: whether its processors are shared, not for pinning
    """
    first = number * cpus
    own = set(range(first, first + cpus))
    small = (memory_mb * KIB - huge * HUGE) // SMALL
    pages = [
        objects.NUMAPagesTopology(
            size_kb=SMALL, total=small, used=used_mb * KIB // SMALL, reserved=0
        ),
        objects.NUMAPagesTopology(size_kb=HUGE, total=huge, used=0, reserved=0),
    ]
    return objects.NUMACell(
        id=number,
        cpuset=own if is_shared else set(),
        pcpuset=set() if is_shared else own,
        memory=memory_mb,
        cpu_usage=0,
        memory_usage=used_mb,
        pinned_cpus=set(sorted(own)[:pinned]),
        siblings=[{one} for one in sorted(own)],
        mempages=pages,
        network_metadata=objects.NetworkMetadata(physnets=set(), tunneled=False),
        socket=number,
    )


def gpus(count: int, *, numa_node: int | None = None, **tags: str) -> dict[str, Any]:
    """Return a pool of PCI devices of one kind."""
    return {
        "vendor_id": "10de",
        "product_id": "2230",
        "numa_node": numa_node,
        "count": count,
        "tags": {"dev_type": "type-PCI", **tags},
    }


class DeviceHosts(ClaimsOnly):
    """Clouds of such hosts, one after the other, on one Placement."""

    def __init__(self, cloud: NovaCloud) -> None:
        super().__init__(cloud)
        self.nodes: dict[str, objects.ComputeNode] = {}  # by host
        self.aggregates: dict[str, str] = {}  # storage pool to its aggregate

    def build(
        self, hosts: Mapping[str, Host], storage: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Make the hosts, and storage pools that some of them share, with a new scheduler."""
        self.aggregates |= {name: uuidutils.generate_uuid() for name in storage or {}}
        pools = [
            Provider(
                uuidutils.generate_uuid(),
                name=name,
                inventories=_inventories(inventories),
                traits=["MISC_SHARES_VIA_AGGREGATE"],
                aggregates=[self.aggregates[name]],
            )
            for name, inventories in (storage or {}).items()
        ]
        children = {
            name: {child: uuidutils.generate_uuid() for child in host.children}
            for name, host in hosts.items()
        }
        self.nodes |= host_rows.add(
            self.cloud, {name: _fields(host, children[name]) for name, host in hosts.items()}
        )
        self.provider_of |= {name: self.nodes[name].uuid for name in hosts}
        trees = []
        for name, host in hosts.items():
            shared = [self.aggregates[host.shares]] if host.shares else []
            trees += _tree(host, self.nodes[name], children[name], shared)
        self.add_providers([*pools, *trees])
        self.scheduler = manager.SchedulerManager()

    def put(self, uuid: str, what: str, body: Mapping[str, Any]) -> None:
        """Change a provider through Placement's API: its inventories, aggregates or traits."""
        path = f"/resource_providers/{uuid}"
        found = self.cloud.placement.get(path, version="1.36").body
        generation = {"resource_provider_generation": found["generation"]}
        answer = self.cloud.placement.put(
            f"{path}/{what}", version="1.36", body=generation | dict(body)
        )
        assert answer.status == 200, answer.body


@contextmanager
def device_hosts_on(
    cloud: NovaCloud, folder: Path, leaves: Mapping[str, list[str]]
) -> Iterator[DeviceHosts]:
    """Yield what builds hosts on a cloud, with Nova's filters for devices beside the sample's.

    The hosts are removed afterwards.
    """
    options = sample_options(folder, leaves)
    filters = ("filter_scheduler", "enabled_filters")
    options[filters] = ["NUMATopologyFilter", "PciPassthroughFilter", *options[filters]]
    compared_hosts.forget_all()
    hosts = DeviceHosts(cloud)
    hosts.set_options(options)
    try:
        yield hosts
    finally:
        hosts.remove()


def _fields(host: Host, children: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the compute node of a host.

    :param children: name to uuid of the providers below that of the host
    """
    pools = [
        PciDevicePool.from_dict(
            {key: value for key, value in pool.items() if key not in ("tags", "child")}
            | dict(pool["tags"])
            | ({"rp_uuid": children[pool["child"]]} if "child" in pool else {})
        )
        for pool in host.pools
    ]
    return {
        "memory_mb": host.memory_mb,
        "vcpus_used": _pinned(host),
        "memory_mb_used": sum(one.memory_usage for one in host.cells),
        "vcpus": host.vcpus,
        "local_gb": host.disk_gb,
        "free_disk_gb": host.disk_gb,
        "pci_device_pools": objects.PciDevicePoolList(objects=pools),
        "numa_topology": (
            objects.NUMATopology(cells=list(host.cells))._to_json() if host.cells else None
        ),
        **host.reported,
    }


def _tree(
    host: Host,
    node: objects.ComputeNode,
    children: Mapping[str, str],
    aggregates: Sequence[str],
) -> Iterator[Provider]:
    """Yield the provider of a host, then those of its children."""
    usual: dict[str, Any] = {
        "VCPU": host.vcpus,
        "MEMORY_MB": host.memory_mb,
        "DISK_GB": host.disk_gb,
    }
    if host.cells:
        used = sum(one.memory_usage for one in host.cells)
        usual["MEMORY_MB"] = {"total": host.memory_mb, "reserved": used}
        usual["VCPU"] = sum(len(one.cpuset) for one in host.cells)
        own = sum(len(one.pcpuset) for one in host.cells)
        usual["PCPU"] = {"total": own, "reserved": _pinned(host)}
    yield Provider(
        node.uuid,
        name=node.host,
        inventories=_inventories(
            {
                key: value
                for key, value in {**usual, **host.inventories}.items()
                if key not in host.without and value != 0
            }
        ),
        traits=["OWNER_NOVA"],
        aggregates=aggregates,
    )
    for child, inventories in host.children.items():
        yield Provider(
            children[child],
            parent=node.uuid,
            name=f"{node.host}_{child}",
            inventories=_inventories(inventories),
            traits=["OWNER_NOVA", *host.traits.get(child, ())],
        )


def _pinned(host: Host) -> int:
    return sum(len(one.pinned_cpus) for one in host.cells)


def _inventories(amounts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        name: {"total": amount} if isinstance(amount, int) else dict(amount)
        for name, amount in amounts.items()
    }


def device_request(
    *,
    count: int = 1,
    group: str | None = None,
    policy: str = "soft-affinity",
    vcpus: int = 1,
    memory_mb: int = 1024,
    disk_gb: int = 1,
    extra_specs: Mapping[str, str] | None = None,
) -> objects.RequestSpec:
    """Return a RequestSpec with NUMA topology and PCI requests, as nova-api makes them."""
    flavor = nova_objects.flavor(
        vcpus=vcpus, memory_mb=memory_mb, disk_gb=disk_gb, extra_specs=extra_specs
    )
    spec = nova_objects.request_spec(
        flavor,
        nova_objects.server_group(group or uuidutils.generate_uuid(), policy),
        count=count,
        uuid=uuidutils.generate_uuid(),
    )
    spec.numa_topology = hardware.numa_get_constraints(flavor, spec.image)
    spec.pci_requests = pci_request.get_pci_requests_from_flavor(flavor)
    spec.generate_request_groups_from_pci_requests()
    return spec


@contextmanager
def counted_claims(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[bool]]:
    """Count the claims that Placement accepts (True) and refuses (False)."""
    real, found = scheduler_utils.claim_resources, Counter()

    def claim(*args, **kwargs):
        won = real(*args, **kwargs)
        found[bool(won)] += 1
        return won

    with monkeypatch.context() as patch:
        patch.setattr(scheduler_utils, "claim_resources", claim)
        yield found
