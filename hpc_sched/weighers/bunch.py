"""BunchWeigher: Dudina et al. 2013 as published."""

import nova.conf
import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.classic import listing_1
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.weighers.base import TopologyWeigher

CONF = nova.conf.CONF


class BunchWeigher(TopologyWeigher):
    """Packs a group under as few leaf switches as possible (Dudina2013, Listing 1).

    The weight is the rank of the host, or with ``bunch_weight_scale = listing1`` the published
    weight of its leaf.
    """

    multiplier = "bunch_weight_multiplier"

    def _weights(self, state: GroupState, positions: Array) -> list[float]:
        if CONF.hpc_sched.bunch_weight_scale != "listing1":
            return super()._weights(state, positions)
        problem = self._limited(state, state.group_request(positions)).problem()
        leaf = problem.topology.leaf_index[state.host_index[positions]]
        numbers = np.where(self._open(state, positions), listing_1.leaf_weights(problem)[leaf], 0)
        return [float(number) for number in numbers]

    def _order(self, state: GroupState, group: GroupRequest) -> Array:
        return listing_1.host_order(self._limited(state, group).problem(), slot=state.claims.slot)
