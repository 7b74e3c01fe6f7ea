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
    is_node = not state.vcpus_total  # bare metal, whose HostState has no amounts
    excess = compared_hosts.excess_of(state)
    amounts = {} if is_node else host_state_room.free(state, excess)
    others = max(
        (
            -(-held.get(name, 0) // amount)
            for name, amount in demand.items()
            if amount > 0 and name not in amounts
        ),
        default=0,
    )
    if is_node:
        return others
    left = {name: amount - held.get(name, 0) for name, amount in amounts.items()}
    bound = host_state_room.capacity(state, demand, excess)
    return max(bound - host_capacity(left, demand), others, 0)
