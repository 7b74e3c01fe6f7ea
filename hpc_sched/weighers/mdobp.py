"""MDOBPWeigher: multi-dimensional online bin packing of Gupta et al. 2013."""

from collections.abc import Sequence

import numpy as np
from nova.scheduler import weights

from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.sharing import mdobp
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.answer import ranks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.phases import Call
from hpc_sched.nova_glue.read.room import cache_limits
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.weighers.group_weigher import GroupWeigher

# Weights are not normalised. With the default multiplier of 180 a step is 9, more than the sum
# of Nova's resource weighers.
STEP = 0.05


class MDOBPWeigher(GroupWeigher):
    """Prefers the host whose free resources have the shape of the VM (Gupta2013, MDOBP).

    The smallest angle between the demand of the VM and the free resources of the host; equal
    angles: the fuller host, then the name. For groups of class ``sync`` it chooses the host inside
    a leaf, and a topology weigher the leaf; for class ``async``, for single VMs and for class
    ``none`` it chooses among all hosts. Classes that ``mdobp_classes`` does not name, and
    ``extreme``, get no weights.

    Hosts with VMs of others whose applications, or the VM's own, gain by sharing a host
    (``interference_file``) come before others: after a soft policy of the server group, before the
    angle.

    A step of its ranks is more than Nova's own weighers, and all steps together are less than a
    step of the topology weigher.
    """

    multiplier = "mdobp_weight_multiplier"
    # With these bounds Nova does not normalise the weights of each call to 0..1.
    minval = 0.0
    maxval = 1.0

    def __init__(self) -> None:
        """Load the topology and the index; raises as their ``start`` functions do."""
        super().__init__()
        cache_limits.start()

    def places(self, group: GroupPlacement) -> bool:
        """True for the classes that ``mdobp_classes`` names."""
        return group.inputs.request.by_mdobp

    def group_weights(self, group: GroupPlacement) -> list[float]:
        """Return ranks in steps, inside each leaf if a topology weigher orders these."""
        request = group.request(group.event.candidates)
        if (
            not group.inputs.request.hpc_specs.by_topology
            or not configured_plugins.enabled().has_topology_weigher
        ):
            keys = ranks.host_keys(group, self._order(group, request))
            return _as_weights(ranks.dense_ranks(keys), STEP)
        keys = ranks.host_keys(group, super()._order(group, request))
        return _as_weights(*ranks.ranks_in_leaves(group, keys, STEP))

    def unplanned_weights(
        self, session: PlacementSession, call: Call, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return ranks in steps for a VM of a class that ``mdobp_classes`` names; [] for others."""
        request = session.unplanned(call)
        if request is None:
            return []
        request.nova.remember(weighed)
        return _as_weights(ranks.dense_ranks(request.keys()), STEP)

    def _order(self, group: GroupPlacement, request: GroupRequest) -> Array:
        """Return all hosts of the topology, best one for the next VM first, on any leaf."""
        problem = request.problem()
        if group.inputs.request.hpc_specs.is_flat or problem.packing is None:
            # The whole cloud is one leaf of the plan.
            return super()._order(group, request)
        order = mdobp.order(problem.packing, problem.members, problem.topology.name_rank)
        if (preferred := request.on_preferred()) is None:
            return order
        is_other = preferred.problem().capacity[order] <= 0
        return order[np.argsort(is_other, kind="stable")]


def _as_weights(found: Array, step: float) -> list[float]:
    return [float(rank) * step for rank in found]
