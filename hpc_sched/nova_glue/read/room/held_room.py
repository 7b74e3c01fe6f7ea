"""The room that is held for VMs of other groups, which follow one that has moved."""

from collections.abc import Mapping, Sequence

import numpy as np
from nova.scheduler import host_manager

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import host_capacity
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room


def lost(
    states: Sequence[host_manager.HostState],
    demand: Mapping[str, int],
    taken: Mapping[str, Mapping[str, int]],
) -> Array:
    """Return how many VMs fewer each HostState takes for what is held there.

    Exact for resource classes of the HostState, else rounded up to VMs. Shape (HostStates,).
    O(HostStates).

    :param taken: nodename to what is held, by resource class
    """
    found: Array = np.zeros(len(states), dtype=np.int64)
    for i, state in enumerate(states if taken else ()):
        if held := taken.get(state.nodename):
            found[i] = _lost_on(state, demand, held)
    return found


def _lost_on(
    state: host_manager.HostState, demand: Mapping[str, int], held: Mapping[str, int]
) -> int:
    if not state.vcpus_total:  # bare metal, whose HostState has no amounts
        return _instances_in(held, demand)
    excess = compared_hosts.excess_of(state)
    try:
        amounts = host_state_room.free(state, excess)
        left = {name: amount - held.get(name, 0) for name, amount in amounts.items()}
        fewer = host_state_room.capacity(state, demand, excess) - host_capacity(left, demand)
    except (OverflowError, TypeError, ValueError):
        # Missing or invalid numbers of one host must not stop the others.
        return _instances_in(held, demand)
    others = {name: amount for name, amount in demand.items() if name not in amounts}
    return max(fewer, _instances_in(held, others))


def _instances_in(held: Mapping[str, int], demand: Mapping[str, int]) -> int:
    """Return how many instances could not have what is held, rounded up."""
    found = (-(-held.get(name, 0) // amount) for name, amount in demand.items() if amount > 0)
    return max(found, default=0)
