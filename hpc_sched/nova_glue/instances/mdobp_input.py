"""The input of MDOBP: a VM's demand and the free resources of hosts."""

from collections.abc import Mapping, Sequence

import nova.conf
import os_resource_classes as orc
from nova.scheduler import host_manager

from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.request_spec import RequestedGroup
from hpc_sched.nova_glue.room import host_state_room

CONF = nova.conf.CONF


def packing(
    request: RequestedGroup,
    states: Sequence[host_manager.HostState],
    colocated: ColocatedInstances | None,
) -> MDOBPInput:
    """Return the input of MDOBP, a row per HostState: vcpus, memory and, by option, disk.

    Usable is what the host reports as free plus what its VMs hold. The total would include
    memory reserved for the host, which tilts the angle in favour of empty hosts; it is taken
    only if the VMs are not known. In-flight VMs, which the host does not report yet, are
    subtracted from the free amount.
    """
    free, usable = [], []
    for state in states:
        left = _free(state)
        there = None if colocated is None else colocated.holding(state)
        if there is None:
            whole, coming = host_state_room.totals(state), _size([])
        else:
            held = _size([vm for vm in there if not vm.in_flight])
            coming = _size([vm for vm in there if vm.in_flight])
            whole = {name: left.get(name, 0.0) + held[name] for name in held}
        free.append({name: left.get(name, 0.0) - coming[name] for name in coming})
        usable.append(whole)
    return MDOBPInput.of(
        request.demand,
        free,
        usable,
        policy=request.policy,
        with_disk=CONF.hpc_sched.mdobp_disk,
    )


def _free(state: host_manager.HostState) -> dict[str, float]:
    try:
        return host_state_room.free(state)
    except (OverflowError, TypeError, ValueError):
        return {}  # missing or invalid numbers of one host must not stop the others


def _size(vms: Sequence[PlacedInstance]) -> Mapping[str, float]:
    """Return the sum of the resources that some VMs hold."""
    vcpus = float(sum(vm.vcpus for vm in vms))
    return {
        orc.VCPU: vcpus,
        orc.PCPU: vcpus,
        orc.MEMORY_MB: float(sum(vm.memory_mb for vm in vms)),
        orc.DISK_GB: float(sum(vm.disk_gb for vm in vms)),
    }
