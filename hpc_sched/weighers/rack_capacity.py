"""RackCapacityWeigher: the build plan of Gupta et al. 2012."""

import nova.conf
import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.classic.build_plan import build_plan
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.weighers.group_weigher import TopologyWeigher

CONF = nova.conf.CONF


class RackCapacityWeigher(TopologyWeigher):
    """Takes racks by rack capacity and hosts by host capacity (Gupta2012, Algorithm 1).

    The racks are the leaf switches. As in the paper, the plan is built once, for the request's
    first VM, and ignores the group's members. ``rack_selection = best_fit`` starts with the
    racks that have the least excess capacity.
    """

    multiplier = "rack_capacity_weight_multiplier"

    def _order(self, group: GroupPlacement, request: GroupRequest) -> Array:
        problem = self._limited(group, request).problem()
        order = group.decisions.rack_order
        if order is None:
            order = group.decisions.rack_order = build_plan(problem, CONF.hpc_sched.rack_selection)
        is_full = problem.capacity[order] <= 0
        return order[np.argsort(is_full, kind="stable")]
