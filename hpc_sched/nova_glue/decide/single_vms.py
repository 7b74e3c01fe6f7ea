"""VMs without a group: their hosts in the order in which they fill broken switches."""

from collections.abc import Sequence

import numpy as np
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import utils as scheduler_utils

from hpc_sched.core.arrays import Array
from hpc_sched.core.fragmentation.fill_order import FillOrder
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.nova_claims import NovaClaims
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery


class SingleVMs:
    """VMs of one request without a group, and the claims of their request.

    The room on hosts is what HostStates say. Nothing is claimed ahead of Nova, and no decision is
    logged. Used by the thread that serves the request. Arrays are in the order of the first call's
    HostStates.
    """

    def __init__(
        self, spec: objects.RequestSpec, states: Sequence[host_manager.HostState], fabric: Fabric
    ) -> None:
        """Read HostStates and RequestSpec before the first claim. No query. O(HostStates)."""
        demand = NovaQuery.of(spec).demand
        names, unknown = fabric.names.find_all([(state.host, state.nodename) for state in states])
        fabric.report_unknown(unknown)
        topology = fabric.topology.including(names)
        hosts = np.array([topology.index_of(name) for name in names], dtype=np.int64)
        capacity, excess = host_state_room.capacity, compared_hosts.excess_of
        room = [capacity(state, demand, excess(state)) for state in states]
        self._room = np.array(room, dtype=np.int64)
        self._order = FillOrder.of(topology, hosts, host_state_room.empty_of_states(states, demand))
        self._in_use = np.array([state.num_instances > 0 for state in states], dtype=np.bool_)
        self.nova = NovaClaims(states, ())

    def keys(self) -> Array:
        """Return the sort keys of the candidates for the next VM, smallest first.

        Hosts that are full come after all others, those that lost a claim of the request after
        these.
        """
        event = self.nova.last
        left = self._room - event.placed
        keys = self._order.keys(left, self._in_use | (event.placed > 0))
        behind = (left <= 0).astype(np.int64)
        behind[event.lost] = 2
        keys += behind * (keys.max(initial=0) + 1)
        found: Array = keys[event.candidates]
        return found


def served(
    known: SingleVMs | None,
    spec: objects.RequestSpec,
    states: Sequence[host_manager.HostState],
) -> SingleVMs | None:
    """Return the VMs of a request, updated by its claims; None if they are in a group, or HPC.

    :param known: what was returned at an earlier call for the request
    """
    if scheduler_utils.request_is_rebuild(spec) or request_spec.is_or_was_group(spec):
        return None
    if request_spec.application_of(spec)[0].app_class != "none":
        return None
    if known is None or not known.nova.hosts.knows(states):
        known = SingleVMs(spec, states, loaded_topology.current())
    known.nova.observe(spec.instance_uuid, states)
    return known
