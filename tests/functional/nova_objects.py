"""Nova's objects as its services hand them over, for clouds whose hosts have no nova-compute.

For :mod:`tests.functional.claims` and for ``benchmarks/choice_cloud.py``; imports Nova alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nova import context as nova_context
from nova import objects
from oslo_utils import timeutils, uuidutils

VCPUS, MEMORY_MB, DISK_GB = 16, 65536, 1000
CPU_INFO = '{"vendor": "Intel", "model": "Icelake", "topology": {"sockets": 2, "cores": 8}}'


def compute_node(
    context: nova_context.RequestContext | None = None,
    *,
    host: str,
    service_id: int,
    vcpus_used: int = 0,
    memory_mb: int = MEMORY_MB,
    memory_mb_used: int = 0,
    disk_gb_used: int = 0,
    **fields: Any,
) -> objects.ComputeNode:
    """Return the compute node of a host, as its hypervisor would report it; it is not stored.

    :param fields: others than these, or in place of them
    """
    usual = {
        "uuid": uuidutils.generate_uuid(),
        "host": host,
        "hypervisor_hostname": host,
        "service_id": service_id,
        "vcpus": VCPUS,
        "vcpus_used": vcpus_used,
        "memory_mb": memory_mb,
        "memory_mb_used": memory_mb_used,
        "free_ram_mb": memory_mb - memory_mb_used,
        "local_gb": DISK_GB,
        "local_gb_used": disk_gb_used,
        "free_disk_gb": DISK_GB - disk_gb_used,
        "disk_available_least": DISK_GB - disk_gb_used,
        "hypervisor_type": "fake",
        "hypervisor_version": 1000,
        "cpu_info": CPU_INFO,
        "supported_hv_specs": [],
        "pci_device_pools": objects.PciDevicePoolList(objects=[]),
        "numa_topology": None,
        "host_ip": "192.0.2.1",
        "stats": {},
        "metrics": "[]",
        "cpu_allocation_ratio": 1.0,
        "ram_allocation_ratio": 1.0,
        "disk_allocation_ratio": 1.0,
        "running_vms": 0,
        "current_workload": 0,
        "mapped": 1,
    }
    return objects.ComputeNode(context, **usual | fields)


def stored_compute_node(
    in_cell: nova_context.RequestContext, cell: objects.CellMapping, host: str, **fields: Any
) -> objects.ComputeNode:
    """Return the compute node of a host, written to its cell with its service and its mapping.

    :param in_cell: targeted at the cell
    :param fields: as of :func:`compute_node`
    """
    service = objects.Service(
        in_cell, host=host, binary="nova-compute", topic="compute", report_count=1
    )
    service.create()
    service.last_seen_up = timeutils.utcnow()
    service.save()
    node = compute_node(in_cell, host=host, service_id=service.id, **fields)
    node.create()
    admin = nova_context.get_admin_context()
    objects.HostMapping(admin, host=host, cell_mapping=cell).create()
    return node


def reported_fields(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a compute node as nova-compute stores what a virt driver reports."""
    reported = objects.ComputeNode()
    reported.update_from_virt_driver({**resources, "cpu_info": resources["cpu_info"] or ""})
    fields = {name: getattr(reported, name) for name in reported.obj_what_changed()}
    fields["free_ram_mb"] = fields["memory_mb"] - fields["memory_mb_used"]
    fields["free_disk_gb"] = fields["local_gb"] - fields["local_gb_used"]
    return fields


def inventories(node: objects.ComputeNode) -> dict[str, dict[str, int]]:
    """Return the inventories of a compute node's provider; what is in use there is left out."""
    return {
        # What is in use is taken off: what is reserved must be less than the whole.
        name: {"total": max(total - used, 1), "reserved": int(total <= used)}
        for name, total, used in (
            ("VCPU", node.vcpus, node.vcpus_used),
            ("MEMORY_MB", node.memory_mb, node.memory_mb_used),
            ("DISK_GB", node.local_gb, node.local_gb_used),
        )
    }


def add_provider(send: Callable[[str, str, str, Any], None], node: objects.ComputeNode) -> None:
    """Create the resource provider of a compute node through Placement's API.

    :param send: sends a body to Placement: method, path, microversion, body
    """
    path = f"/resource_providers/{node.uuid}"
    send("post", "/resource_providers", "1.20", {"name": node.host, "uuid": node.uuid})
    with_rooms = {"resource_provider_generation": 0, "inventories": inventories(node)}
    send("put", f"{path}/inventories", "1.26", with_rooms)
    # Nova asks for providers of its own.
    with_trait = {"resource_provider_generation": 1, "traits": ["OWNER_NOVA"]}
    send("put", f"{path}/traits", "1.26", with_trait)


def flavor(
    *, vcpus: int, memory_mb: int, disk_gb: int = 1, extra_specs: Mapping[str, str] | None = None
) -> objects.Flavor:
    """Return a flavor of some amounts."""
    return objects.Flavor(
        id=1,
        name="rank",
        flavorid="rank",
        vcpus=vcpus,
        memory_mb=memory_mb,
        root_gb=disk_gb,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        disabled=False,
        extra_specs=dict(extra_specs or {}),
    )


def server_group(uuid: str, policy: str, **fields: Any) -> objects.InstanceGroup:
    """Return a server group as a RequestSpec has it, without members."""
    usual = {"name": "group", "rules": {}, "members": [], "hosts": []}
    return objects.InstanceGroup(uuid=uuid, policy=policy, policies=[policy], **usual | fields)


def request_spec(
    wanted: objects.Flavor, group: objects.InstanceGroup | None, *, count: int, uuid: str
) -> objects.RequestSpec:
    """Return a RequestSpec as nova-api and the conductor hand it over.

    :param uuid: of the first VM
    """
    return objects.RequestSpec(
        nova_context.get_admin_context(),
        flavor=wanted,
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        num_instances=count,
        instance_uuid=uuid,
        instance_group=group,
        project_id="project",
        user_id="user",
        availability_zone=None,
        scheduler_hints={"group": [group.uuid]} if group else {},
        is_bfv=False,
        requested_resources=[],
        requested_destination=None,
        request_level_params=objects.RequestLevelParams(),
        requested_networks=objects.NetworkRequestList(objects=[]),
        security_groups=objects.SecurityGroupList(objects=[]),
        pci_requests=objects.InstancePCIRequests(requests=[]),
        numa_topology=None,
        ignore_hosts=None,
        force_hosts=None,
        force_nodes=None,
        retry=None,
        limits=objects.SchedulerLimits(),
    )
