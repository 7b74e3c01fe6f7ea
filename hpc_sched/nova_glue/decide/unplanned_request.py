"""A request whose VMs have no plan: MDOBP alone chooses their hosts, one VM after the other."""

from collections.abc import Sequence

import numpy as np
from nova import objects
from nova.scheduler import host_manager

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.mdobp import UnplannedVMs
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members, mdobp_input
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.nova_claims import NovaClaims
from hpc_sched.nova_glue.read.room import compared_hosts, host_state_room
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.topology.tree import name_rank


class UnplannedRequest:
    """A single VM, or VMs of class ``none``, and the claims of their request.

    Nothing is claimed ahead of Nova, and no decision is logged. Used by the thread that serves the
    request. Arrays are in the order of the first call's HostStates.
    """

    def __init__(
        self,
        spec: objects.RequestSpec,
        states: Sequence[host_manager.HostState],
        colocated: ColocatedInstances,
    ) -> None:
        """Read HostStates and RequestSpec before the first claim. No query.

        :param colocated: the VMs that run on the hosts
        """
        demand, policy = NovaQuery.of(spec).demand, request_spec.policy_of(spec)
        packing = mdobp_input.packing(demand, policy, states, colocated)
        members = np.zeros(len(states), dtype=np.int64)
        if packing.members_first:
            # As Nova's own weighers of soft policies count them.
            others = request_spec.members_of(spec) - {spec.instance_uuid}
            there = group_members.members_on(states, others)
            members += np.array([there[state.host, state.nodename] for state in states])
        # Placement has found room for one VM on each host.
        room = np.full(len(states), UNBOUNDED, dtype=np.int64)
        if request_spec.count_of(spec) > 1:
            room[:] = [
                host_state_room.capacity(state, demand, compared_hosts.excess_of(state))
                for state in states
            ]
        self._vms = UnplannedVMs(packing, members, name_rank([s.nodename for s in states]), room)
        self.nova = NovaClaims(states, ())

    def keys(self) -> Array:
        """Return the sort keys of the candidates for the next VM, smallest first."""
        event = self.nova.last
        keys: Array = self._vms.keys(event.placed, event.lost)[event.candidates]
        return keys
