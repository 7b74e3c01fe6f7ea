"""The input of MDOBP: a VM's demand and the free resources of hosts."""

from collections.abc import Mapping, Sequence

from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched.core.sharing.cache_interference import attraction
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.room import cache_limits, host_state_room


def packing(
    demand: Mapping[str, int],
    policy: str | None,
    states: Sequence[host_manager.HostState],
    colocated: ColocatedInstances,
) -> MDOBPInput:
    """Return the input of MDOBP, a row per HostState: vcpus, memory and, by option, disk.

    Usable is what the host reports as free plus what its VMs hold. The total would include
    memory reserved for the host, which tilts the angle in favour of empty hosts; it is taken
    only if the VMs are not known. In-flight VMs, which the host does not report yet, are
    subtracted from the free amount.

    :param demand: resource class to the amount of one VM
    :param policy: of the server group
    :param colocated: the VMs on the hosts
    """
    free, usable = [], []
    for state in states:
        left = _free(state)
        there = colocated.holding(state)
        coming = there.coming if there is not None else {}
        free.append(
            {name: left.get(name, 0.0) - coming[name] for name in coming} if coming else left
        )
        if there is None:
            usable.append(host_state_room.totals(state))
        else:
            usable.append({name: left.get(name, 0.0) + held for name, held in there.held.items()})
    return MDOBPInput.of(
        demand,
        free,
        usable,
        policy=policy,
        with_disk=CONF.hpc_sched.mdobp_disk,
        attraction=_attraction(states, colocated),
    )


def _attraction(
    states: Sequence[host_manager.HostState], colocated: ColocatedInstances
) -> list[float] | None:
    """Return the attraction of each host by the interference index; None without any."""
    vm = colocated.application
    gains = cache_limits.attracting(vm.name)
    if not gains:
        return None
    apart = cache_limits.incompatible(vm.name)
    return [attraction(vm, colocated.on(state), gains, apart) for state in states]


def _free(state: host_manager.HostState) -> dict[str, float]:
    try:
        return host_state_room.free(state)
    except (OverflowError, TypeError, ValueError):
        return {}  # missing or invalid numbers of one host must not stop the others
