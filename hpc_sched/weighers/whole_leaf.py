"""WholeLeafWeigher: single VMs on broken leaves, so that whole ones stay free for groups."""

from collections.abc import Sequence

from nova.scheduler import weights

from hpc_sched import conf
from hpc_sched.nova_glue.answer import ranks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.phases import Call
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.weighers.group_weigher import CONF, GroupWeigher


class WholeLeafWeigher(GroupWeigher):
    """Fills broken leaves and pods with VMs that are in no group and not HPC.

    By the price of broken switches for one VM: the room below the leaf and the pod of a host, in
    proportion to what the largest empty one takes, least first. In a leaf hosts with VMs come
    before those without, the fuller first. Hosts that are equal in that have equal weights.

    Requests of a group and classes other than ``none`` get no weights, and no request does while
    the multiplier is 0, as delivered. HostStates say what room there is: no query, no call.
    O(hosts log hosts) for each VM.
    """

    multiplier = "whole_leaf_weight_multiplier"

    def places(self, group: GroupPlacement) -> bool:
        """Return False: groups are left to the other weighers."""
        return False

    def unplanned_weights(
        self, session: PlacementSession, call: Call, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return dense ranks for a VM that is in no group and not HPC; [] for others."""
        if not conf.number(CONF, self.multiplier) and not self._differs(call.states):
            return []
        # As delivered it is off.
        from hpc_sched.nova_glue.decide import single_vms

        found = single_vms.served(session.single_vms, call.spec, call.states)
        if found is None:
            return []
        session.single_vms = found
        found.nova.remember(weighed)
        return [float(rank) for rank in ranks.dense_ranks(found.keys())]
