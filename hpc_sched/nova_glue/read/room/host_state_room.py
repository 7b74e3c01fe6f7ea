"""The room on hosts, by their HostStates and by their records in the cells."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import os_resource_classes as orc
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.main import models as main_models
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import host_capacity
from hpc_sched.nova_glue.io import databases

LOG = logging.getLogger(__name__)

# What :func:`totals` reads of a HostState.
_SIZE = attrgetter(
    *("vcpus_total", "total_usable_ram_mb", "total_usable_disk_gb"),
    *("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio"),
)

MB_PER_GB = 1024


def capacity(
    state: host_manager.HostState,
    demand: Mapping[str, int],
    excess: Mapping[str, float] | None = None,
) -> int:
    """Return the number of instances that a host still takes, before any policy of the group.

    1 for a bare-metal node, a host that reports no vcpus. At least 1 for a host that Placement
    has offered, whatever HostState says: Placement claims the resources.

    :param excess: what Placement has free beyond the HostState, by resource class
    """
    if not state.vcpus_total:
        return 1
    try:
        fits = host_capacity(free(state, excess), demand)
    except (OverflowError, TypeError, ValueError):
        fits = 0  # missing or invalid numbers of one host must not stop the others
    return max(fits, 1) if state.allocation_candidates else fits


def empty_capacity(state: Any, demand: Mapping[str, int]) -> int:
    """Return the number of instances that a host takes while it has none; 1 on bare metal.

    :param state: its HostState, or the row of its compute node with the same attributes
    """
    return host_capacity(totals(state), demand) if state.vcpus_total else 1


def empty_of_states(states: Sequence[Any], demand: Mapping[str, int]) -> Array:
    """Return :func:`empty_capacity` of each HostState, once for hosts of one size. O(hosts)."""
    known: dict[tuple[Any, ...], int] = {}
    found = []
    for state in states:
        size = _SIZE(state)
        if (capacity := known.get(size)) is None:
            capacity = known[size] = empty_capacity(state, demand)
        found.append(capacity)
    return np.array(found, dtype=np.int64)


def empty_capacities(demand: Mapping[str, int]) -> dict[tuple[str, str], int] | None:
    """Return :func:`empty_capacity` of every host in the cloud, by host and nodename.

    One query for the cells and one in each; None if a database does not answer.
    """

    node = main_models.ComputeNode
    query = sa.select(
        node.host,
        node.hypervisor_hostname,
        node.vcpus.label("vcpus_total"),
        node.memory_mb.label("total_usable_ram_mb"),
        node.local_gb.label("total_usable_disk_gb"),
        node.cpu_allocation_ratio,
        node.ram_allocation_ratio,
        node.disk_allocation_ratio,
    ).where(node.deleted == 0)
    context = nova_context.get_admin_context()
    try:
        answers = databases.read_cells(context, None, lambda c, _: databases.cell_rows(c, query))
        sizes = {
            (row.host, row.hypervisor_hostname): empty_capacity(row, demand) for row in answers.rows
        }
    except databases.OUTAGES as error:
        LOG.warning("Cannot read the sizes of hosts: %s", databases.reason(error))
    except Exception:
        LOG.exception("Cannot read the sizes of hosts")
    else:
        return None if answers.down else sizes
    return None


def totals(state: Any) -> dict[str, float]:
    """Return the capacity of a host by resource class, in the units of Placement.

    :param state: as in :func:`empty_capacity`
    """
    return {
        orc.VCPU: (state.vcpus_total or 0) * (state.cpu_allocation_ratio or 1.0),
        orc.MEMORY_MB: (state.total_usable_ram_mb or 0) * (state.ram_allocation_ratio or 1.0),
        orc.DISK_GB: (state.total_usable_disk_gb or 0) * (state.disk_allocation_ratio or 1.0),
        orc.PCPU: float(state.vcpus_total or 0),
    }


def free(
    state: host_manager.HostState, excess: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the free resources of a host by resource class, in the units of Placement.

    total * ratio - used. free_ram_mb counts memory reserved for the host as used. For disk,
    disk_mb_used is read: free_disk_mb is capped by disk_available_least, which is 0 or negative
    on some hosts.

    :param excess: what Placement has free beyond the HostState, by resource class
    """
    ram_used = state.total_usable_ram_mb - state.free_ram_mb
    disk_mb = state.total_usable_disk_gb * MB_PER_GB * (state.disk_allocation_ratio or 1.0)
    amounts = {
        orc.VCPU: state.vcpus_total * (state.cpu_allocation_ratio or 1.0) - state.vcpus_used,
        orc.MEMORY_MB: state.total_usable_ram_mb * (state.ram_allocation_ratio or 1.0) - ram_used,
        orc.DISK_GB: (disk_mb - state.disk_mb_used) / MB_PER_GB,
        # Pinned processors are never overcommitted.
        orc.PCPU: float(state.vcpus_total - state.vcpus_used),
    }
    if state.numa_topology is not None:
        cells = [cell for cell in state.numa_topology.cells if "pcpuset" in cell]
        if cells:
            amounts[orc.PCPU] = float(sum(len(cell.free_pcpus) for cell in cells))
    for name, amount in (excess or {}).items():
        amounts[name] += amount
    return amounts
