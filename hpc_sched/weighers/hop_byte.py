"""HopByteWeigher: follows the exact plan; the recommended topology weigher."""

from __future__ import annotations

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue.request.group_state import GroupState
from hpc_sched.weighers.base import Array, TopologyWeigher


class HopByteWeigher(TopologyWeigher):
    """Sends each VM of a group to its place in the plan of least Hop-Byte.

    Behind the VM's own place come the other planned ones, then the second choices by what one
    VM more would cost there, so that a lost claim falls on the best host that is left. The
    plan is made anew as soon as a VM has gone elsewhere. Where the whole group does not fit,
    and no filter has refused it, as many VMs as possible are planned, wishes left aside.
    """

    multiplier = "hop_byte_weight_multiplier"

    def _order(self, state: GroupState, group: GroupRequest) -> Array:
        return group.host_order(state.plan(group), state.claims.slot)
