"""What a HostState tells about the room on its host."""

from collections.abc import Mapping

import os_resource_classes as orc
from nova.scheduler import host_manager

from hpc_sched.core.capacity import host_capacity

MB_PER_GB = 1024


def capacity(state: host_manager.HostState, demand: Mapping[str, int]) -> int:
    """Return how many more VMs of a demand a host takes, before any policy of the group.

    A bare-metal node (a host that reports no vcpus) takes one. A host that Placement has
    offered takes at least one, whatever HostState says: Placement knows better.
    """
    if not state.vcpus_total:
        return 1
    fits = host_capacity(free(state), demand)
    return max(fits, 1) if state.allocation_candidates else fits


def whole(state: host_manager.HostState, demand: Mapping[str, int]) -> int:
    """Return how many VMs of a demand a host takes while it has none."""
    if not state.vcpus_total:
        return 1
    disk = state.total_usable_disk_gb * (state.disk_allocation_ratio or 1.0)
    amounts = {
        orc.VCPU: state.vcpus_total * (state.cpu_allocation_ratio or 1.0),
        orc.MEMORY_MB: state.total_usable_ram_mb * (state.ram_allocation_ratio or 1.0),
        orc.DISK_GB: disk,
        orc.PCPU: float(state.vcpus_total),
    }
    return host_capacity(amounts, demand)


def free(state: host_manager.HostState) -> dict[str, float]:
    """Return what is free on a host by resource class, as far as its HostState tells.

    total * ratio - used in the units of Placement. What is reserved for the host counts as
    used memory in free_ram_mb. Disk goes by disk_mb_used, for free_disk_mb is capped by
    disk_available_least, which is 0 or negative on some hosts.
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
    return amounts
