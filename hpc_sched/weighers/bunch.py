"""BunchWeigher: Dudina et al. 2013 as published."""

import nova.conf
import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.classic import listing_1
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue.answer import ranks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.weighers.group_weigher import TopologyWeigher

CONF = nova.conf.CONF


class BunchWeigher(TopologyWeigher):
    """Packs a group under as few leaf switches as possible (Dudina2013, Listing 1).

    The weight is the rank of the host, or with ``bunch_weight_scale = listing1`` the published
    weight of its leaf.
    """

    multiplier = "bunch_weight_multiplier"

    def group_weights(self, group: GroupPlacement) -> list[float]:
        """Return the dense ranks of the candidates, or the published weights of their leaves."""
        if CONF.hpc_sched.bunch_weight_scale != "listing1":
            return super().group_weights(group)
        request = group.request(group.event.candidates)
        weight = listing_1.leaf_weights(self._limited(group, request).problem())
        numbers = np.where(self._open(group, request), weight[ranks.leaves_of(group)], 0)
        return [float(number) for number in numbers]

    def _order(self, group: GroupPlacement, request: GroupRequest) -> Array:
        problem = self._limited(group, request).problem()
        return listing_1.host_order(problem, slot=group.event.slot)
