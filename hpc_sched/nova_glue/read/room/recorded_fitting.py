"""NUMA cells and PCI devices outside the scheduler: read from the cells, fitted by Nova's code."""

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from nova import context as nova_context
from nova import exception, objects
from nova.conf import CONF
from nova.db.main import models as main_models
from nova.objects import pci_device_pool
from nova.pci import request as pci_request
from nova.pci import stats
from nova.scheduler import host_manager
from nova.virt import hardware

from hpc_sched import exceptions
from hpc_sched.core.room.device_fitting import RecordedDevices
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.room.nova_fitting import DeviceUse, NovaFitting

Place = tuple[str, str]  # service host and nodename


class RecordedFitting(NovaFitting):
    """Fits VMs of one flavor, whose image says nothing of cells and devices."""

    __slots__ = ()

    def start(self, devices: RecordedDevices) -> DeviceUse:
        """Return the present use of a compute node's devices.

        :raises exceptions.SnapshotError: for texts that Nova cannot read
        """
        state = host_manager.HostState("", "", None)
        state.cpu_allocation_ratio = devices.cpu_allocation_ratio
        state.ram_allocation_ratio = devices.ram_allocation_ratio
        try:
            if devices.numa_topology:
                state.numa_topology = objects.NUMATopology.obj_from_db_obj(devices.numa_topology)
            pools = pci_device_pool.from_pci_stats(devices.pci_stats)
            state.pci_stats = stats.PciDeviceStats(state.numa_topology, stats=pools)
        except Exception as failure:
            raise exceptions.SnapshotError(
                f"devices of a hypervisor: expected what Nova stores: {failure!r:.200}"
            ) from failure
        return super().start(state)


def fitting_of(
    vcpus: int,
    memory_mb: int,
    extra_specs: Mapping[str, str],
    *,
    aliases: Sequence[str],
    request_ids: Sequence[str],
    pci_in_placement: bool,
) -> RecordedFitting | None:
    """Return the fitting of a flavor, or None if it requests neither cells nor devices.

    Sets [pci] alias and pci_in_placement for this process.

    :param aliases: [pci] alias, each a JSON object
    :param request_ids: of the request for each alias of the flavor, in their order
    :raises exceptions.SnapshotError: for a flavor or aliases that Nova refuses
    """
    if list(CONF.pci.alias) != list(aliases):
        CONF.set_override("alias", list(aliases), "pci")
    if CONF.filter_scheduler.pci_in_placement != pci_in_placement:
        CONF.set_override("pci_in_placement", pci_in_placement, "filter_scheduler")
    pci_request.get_alias_from_config.cache_clear()
    flavor = objects.Flavor(vcpus=vcpus, memory_mb=memory_mb, extra_specs=dict(extra_specs))
    image = objects.ImageMeta(properties=objects.ImageMetaProps())
    try:
        numa_topology = hardware.numa_get_constraints(flavor, image)
        policy = hardware.get_pci_numa_policy_constraint(flavor, image)
        requests = pci_request.get_pci_requests_from_flavor(flavor, policy).requests
    except (exception.NovaException, ValueError) as failure:
        raise exceptions.SnapshotError(f"Nova refuses the flavor: {failure}") from failure
    for request, uuid in zip(requests, request_ids, strict=False):
        request.request_id = uuid
    spec = objects.RequestSpec(
        numa_topology=numa_topology,
        pci_requests=objects.InstancePCIRequests(requests=requests),
    )
    return RecordedFitting.of(spec)


def read() -> tuple[dict[Place, RecordedDevices], list[str]]:
    """Return the devices of all compute nodes, and a text for each cell that does not answer.

    One query for the cells and one in each.

    :raises exceptions.UnansweredError: if the API database does not answer
    """
    node = main_models.ComputeNode
    query = sa.select(
        node.host,
        node.hypervisor_hostname,
        node.numa_topology,
        node.pci_stats,
        node.cpu_allocation_ratio,
        node.ram_allocation_ratio,
    ).where(node.deleted == 0)
    context = nova_context.get_admin_context()
    answers = databases.read_cells(context, None, lambda c, _: databases.cell_rows(c, query))
    return {
        (row.host, row.hypervisor_hostname): RecordedDevices(
            row.numa_topology,
            _without_empty(row.pci_stats),
            float(row.cpu_allocation_ratio or 1.0),
            float(row.ram_allocation_ratio or 1.0),
        )
        for row in answers.rows
    }, answers.problems


def _without_empty(pools: str | None) -> str | None:
    """Return the text of PCI pools, or None if it lists none: most hosts have none."""
    try:
        return pools if pools and json.loads(pools)["nova_object.data"]["objects"] else None
    except (KeyError, TypeError, ValueError):
        return pools
