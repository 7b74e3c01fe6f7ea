"""MDOBPWeigher: multi-dimensional online bin packing of Gupta et al. 2013."""

from collections.abc import Sequence

import numpy as np
from nova import objects
from nova.scheduler import weights

from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.sharing import mdobp
from hpc_sched.enabled_plugins import MDOBP_LEAVES
from hpc_sched.nova_glue import configured_plugins, served_requests
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.read.room import cache_limits
from hpc_sched.weighers.base import GroupWeigher, dense_ranks, host_keys

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

    def _places(self, state: GroupState) -> bool:
        return state.request.by_mdobp

    def _weights(self, state: GroupState, positions: Array) -> list[float]:
        group = state.group_request(positions)
        if (
            not state.request.hpc_specs.by_topology
            or not configured_plugins.enabled().has_topology_weigher
        ):
            keys = host_keys(state, positions, self._order(state, group))
            return _as_weights(dense_ranks(keys))
        keys = host_keys(state, positions, super()._order(state, group))
        _, leaf = np.unique(
            state.topology.leaf_index[state.host_index[positions]], return_inverse=True
        )
        sizes = np.bincount(leaf)
        # Leaf by leaf, the worst host of each first.
        worst_first = np.lexsort((-keys, leaf))
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[worst_first] = np.arange(len(keys)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        most = (MDOBP_LEAVES + 1) / (len(sizes) + 1)
        step = min(STEP, most / max(int(sizes.max()) - 1, 1))
        return _as_weights(ranks, step)

    def _unplanned_weights(
        self, spec: objects.RequestSpec, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        states = [host.obj for host in weighed]
        request = served_requests.get_unplanned(spec, states)
        if request is None:
            return []
        request.claims.remember(weighed)
        return _as_weights(dense_ranks(request.keys(states)))

    def _order(self, state: GroupState, group: GroupRequest) -> Array:
        """Return all hosts of the topology, best one for the next VM first, on any leaf."""
        problem = group.problem()
        if state.request.hpc_specs.is_flat or problem.packing is None:
            # The whole cloud is one leaf of the plan.
            return super()._order(state, group)
        order = mdobp.order(problem.packing, problem.members, problem.topology.name_rank)
        if (preferred := group.on_preferred()) is None:
            return order
        is_other = preferred.problem().capacity[order] <= 0
        return order[np.argsort(is_other, kind="stable")]


def _as_weights(ranks: Array, step: float = STEP) -> list[float]:
    return [float(rank) * step for rank in ranks]
