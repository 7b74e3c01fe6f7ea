"""A group's final size and its constraints, on an empty cloud."""

import numpy as np

from hpc_sched import exceptions
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.read.room import host_state_room


def check(state: GroupState) -> None:
    """Check that the group's final size fits its constraints on an empty cloud.

    Reads the sizes of all hosts before a request is refused, nothing else.

    :raises exceptions.RefusedError: if the constraints contradict each other
    """
    hpc_specs = state.request.hpc_specs
    if state.group.is_move or hpc_specs.is_flat or not hpc_specs.constraints.bound_final_size:
        return
    group, demand = state.group_request(), state.request.demand
    own = [host_state_room.empty_capacity(host, demand) for host in state.candidates]
    # Hosts that are no candidates count as the largest candidate.
    capacity = np.full(len(state.topology.hosts), max(own, default=0), dtype=np.int64)
    capacity[state.host_index] = own
    if group.contradiction(capacity) is None:
        return
    # Those that are full now may be larger than all candidates.
    sizes = host_state_room.empty_capacities(demand)
    if sizes is None:
        return
    capacity[:] = 0
    for (host, node), size in sizes.items():
        name = state.fabric.name_of(host, node)
        if name in state.topology:
            capacity[state.topology.index_of(name)] = size
    capacity[state.host_index] = own
    if found := group.contradiction(capacity):
        raise exceptions.RefusedError(found)
