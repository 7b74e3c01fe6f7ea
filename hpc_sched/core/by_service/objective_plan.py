"""The plan by an objective under a hard policy that Nova checks by services of many nodes.

An isolated group keeps its guarantee: below the switch that holds all of it, it uses the uplinks of
every switch with a part of it, and no others. So for each level it is planned below one switch of
it, on the hosts from which no uplink up to there is used by others. A plan of least bottleneck is
not made: the group is planned by hops.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.by_service.plan_by_service import plan_by_service
from hpc_sched.core.constraints import level_of
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Plan, Rejection


def plan(request: PlacementInput, policy: HardPolicy, sizes: Sequence[int]) -> Plan | Rejection:
    """Return the plan of a group with an objective, as :func:`plan_by_service` does.

    For an isolated group the plan of least Hop-Byte below a switch of the lowest level that has
    one, not proven best; one :func:`plan_by_service` for each level at most.
    """
    objective, by_hops = request.objective, replace(request, objective=None)
    if not isinstance(objective, Isolation) or not sizes[-1]:
        return plan_by_service(by_hops, policy, sizes)
    topology, constraints = request.topology, request.constraints
    is_free = np.ones(len(topology.hosts), dtype=np.bool_)
    found: list[Plan] = []
    for level in range(1, level_of(topology, constraints.bounds.level) + 1):
        if level > 1:
            is_free &= ~objective.is_used[topology.groups[level - 2]]
        if not is_free[request.members > 0].all():
            break
        below = replace(
            by_hops, constraints=constraints.changed(require=topology.request_levels[level - 1])
        )
        answer = plan_by_service(below.among(is_free[request.hosts_of_rows]), policy, sizes)
        if isinstance(answer, Plan):
            found.append(replace(answer, is_proven=False))
            if answer.count == sizes[0]:
                break
    if found:
        return min(found, key=lambda one: (-one.count, one.hop_bytes))
    return replace(
        rejected(by_hops.problem(), sizes[-1], constraints.bounds),
        best=None,
        gangs=(),
        is_isolated=True,
    )
