"""Hosts with devices, NUMA cells and shared disks, in Nova's database and in Placement alone.

As :mod:`tests.functional.claims`, with whole trees of providers: what nova-compute would report of
such hosts. A cloud is removed again after each test.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from nova import context as nova_context
from nova import objects
from nova.objects.pci_device_pool import PciDevicePool
from nova.pci import request as pci_request
from nova.scheduler import manager
from nova.scheduler import utils as scheduler_utils
from nova.virt import hardware
from oslo_utils import timeutils, uuidutils

from tests.functional import nova_objects
from tests.functional.claims import ClaimsOnly

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


def _inventory(amount: Any) -> dict[str, Any]:
    return {"total": amount} if isinstance(amount, int) else dict(amount)


class DeviceHosts(ClaimsOnly):
    """Clouds of such hosts, one after the other, on one Placement."""

    def __init__(self, cloud: Any) -> None:
        super().__init__(cloud)
        self.scheduler: manager.SchedulerManager | None = None
        self._nodes: list[tuple[objects.Service, objects.ComputeNode, objects.HostMapping]] = []
        self._providers: list[str] = []
        self._pools: dict[str, str] = {}  # storage pool to its aggregate
        self._generations: dict[str, int] = {}  # of providers
        self._classes: set[str] = set()  # resource classes that exist

    def build(
        self, hosts: Mapping[str, Host], storage: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Make the hosts, and storage pools that some of them share, with a new scheduler."""
        for name, inventories in (storage or {}).items():
            uuid = self._provider(name, None, inventories)
            self._pools[name] = uuidutils.generate_uuid()
            self._put(uuid, "aggregates", {"aggregates": [self._pools[name]]})
            self._put(uuid, "traits", {"traits": ["MISC_SHARES_VIA_AGGREGATE"]})
        mapped = self.cloud.cell_mappings["cell1"]
        with nova_context.target_cell(self.context, mapped) as in_cell:
            for name, host in hosts.items():
                self._add(in_cell, mapped, name, host)
        self.scheduler = manager.SchedulerManager()

    def remove(self) -> None:
        """Remove all claims and hosts."""
        self.release()
        for service, node, mapping in self._nodes:
            mapped = self.cloud.cell_mappings["cell1"]
            with nova_context.target_cell(self.context, mapped) as in_cell:
                for thing in (node, service):
                    thing._context = in_cell
                    thing.destroy()
            mapping.destroy()
        for uuid in reversed(self._providers):
            answer = self.cloud.placement.delete(f"/resource_providers/{uuid}", version="1.36")
            assert answer.status == 204, answer.body
        self._nodes.clear()
        self._providers.clear()
        self._pools.clear()
        self.provider_of.clear()

    def _add(self, in_cell: Any, mapped: Any, name: str, host: Host) -> None:
        service = objects.Service(
            in_cell, host=name, binary="nova-compute", topic="compute", report_count=1
        )
        service.create()
        service.last_seen_up = timeutils.utcnow()
        service.save()
        children = {child: uuidutils.generate_uuid() for child in host.children}
        pools = [
            PciDevicePool.from_dict(
                {key: value for key, value in pool.items() if key not in ("tags", "child")}
                | dict(pool["tags"])
                | ({"rp_uuid": children[pool["child"]]} if "child" in pool else {})
            )
            for pool in host.pools
        ]
        pinned = sum(len(one.pinned_cpus) for one in host.cells)
        node = nova_objects.compute_node(
            in_cell,
            host=name,
            service_id=service.id,
            memory_mb=host.memory_mb,
            vcpus_used=pinned,
            memory_mb_used=sum(one.memory_usage for one in host.cells),
            **{
                "vcpus": host.vcpus,
                "local_gb": host.disk_gb,
                "free_disk_gb": host.disk_gb,
                "pci_device_pools": objects.PciDevicePoolList(objects=pools),
                "numa_topology": (
                    objects.NUMATopology(cells=list(host.cells))._to_json() if host.cells else None
                ),
                **host.reported,
            },
        )
        node.create()
        mapping = objects.HostMapping(self.context, host=name, cell_mapping=mapped)
        mapping.create()
        self._nodes.append((service, node, mapping))
        self.provider_of[name] = node.uuid
        usual = {"VCPU": host.vcpus, "MEMORY_MB": host.memory_mb, "DISK_GB": host.disk_gb}
        if host.cells:
            used = sum(one.memory_usage for one in host.cells)
            usual["MEMORY_MB"] = {"total": host.memory_mb, "reserved": used}
            shared = sum(len(one.cpuset) for one in host.cells)
            own = sum(len(one.pcpuset) for one in host.cells)
            usual["VCPU"] = shared
            usual["PCPU"] = {"total": own, "reserved": pinned}
        own = {
            key: value
            for key, value in {**usual, **host.inventories}.items()
            if key not in host.without and value != 0
        }
        self._provider(name, None, own, node.uuid)
        self._put(node.uuid, "traits", {"traits": ["OWNER_NOVA"]})
        if host.shares:
            self._put(node.uuid, "aggregates", {"aggregates": [self._pools[host.shares]]})
        for child, inventories in host.children.items():
            self._provider(f"{name}_{child}", node.uuid, inventories, children[child])
            traits = ["OWNER_NOVA", *host.traits.get(child, ())]
            self._put(children[child], "traits", {"traits": traits})

    def _provider(
        self,
        name: str,
        parent: str | None,
        inventories: Mapping[str, Any],
        uuid: str | None = None,
    ) -> str:
        uuid = uuid or uuidutils.generate_uuid()
        body = {"name": name, "uuid": uuid} | ({"parent_provider_uuid": parent} if parent else {})
        answer = self.cloud.placement.post("/resource_providers", version="1.36", body=body)
        assert answer.status == 200, answer.body
        self._providers.append(uuid)
        self._generations[uuid] = 0
        for resource_class in inventories.keys() - self._classes:
            self._classes.add(resource_class)
            if resource_class.startswith("CUSTOM_"):
                self.cloud.placement.put(
                    f"/resource_classes/{resource_class}", version="1.36", body=None
                )
        found = {key: _inventory(amount) for key, amount in inventories.items()}
        self._put(uuid, "inventories", {"inventories": found})
        return uuid

    def _put(self, uuid: str, what: str, body: Mapping[str, Any]) -> None:
        for trait in body.get("traits", ()):
            if trait.startswith("CUSTOM_"):
                self.cloud.placement.put(f"/traits/{trait}", version="1.36", body=None)
        path = f"/resource_providers/{uuid}"
        if uuid not in self._generations:
            found = self.cloud.placement.get(path, version="1.36").body
            self._generations[uuid] = found["generation"]
        generation = {"resource_provider_generation": self._generations[uuid]}
        answer = self.cloud.placement.put(
            f"{path}/{what}", version="1.36", body=generation | dict(body)
        )
        assert answer.status == 200, answer.body
        self._generations[uuid] = answer.body["resource_provider_generation"]


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
