"""The plan by an objective under a hard policy that Nova checks by services of many nodes.

An isolated group keeps its guarantee: below the switch that holds all of it, it uses the uplinks of
every switch with a part of it, and no others. So for each switch it is planned on the hosts from
which no uplink up to there is used by others. A plan of least bottleneck is not made: the group is
planned by hops.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import level_of
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan_by_service import plan_by_service


def plan(request: PlacementInput, policy: HardPolicy, sizes: Sequence[int]) -> Plan | Rejection:
    """Return the plan of a group with an objective, as :func:`plan_by_service` does.

    For an isolated group the plan of least Hop-Byte below a switch of the lowest level that has
    one, not proven best; one :func:`plan_by_service` for each switch at most.
    """
    objective, by_hops = request.objective, replace(request, objective=None)
    if not isinstance(objective, Isolation) or not sizes[-1]:
        return plan_by_service(by_hops, policy, sizes)
    found: list[Plan] = []
    for level in range(1, level_of(request.topology, request.constraints.bounds.level) + 1):
        for hosts in _free_below(request, objective, level):
            among = by_hops.among(hosts[request.hosts_of_rows])
            if _most(policy, among.room) < sizes[-1]:
                # Of hundreds of leaves mostly all, at a small part of the cost of a plan.
                continue
            answer = plan_by_service(among, policy, sizes)
            if isinstance(answer, Plan):
                found.append(replace(answer, is_proven=False))
        if any(one.count == sizes[0] for one in found):
            break
    if found:
        return min(found, key=lambda one: (-one.count, one.hop_bytes))
    bounds = request.constraints.bounds
    return replace(
        rejected(by_hops.problem(), sizes[-1], bounds), best=None, gangs=(), is_isolated=True
    )


def _most(policy: HardPolicy, room: Array) -> int:
    """Return how many VMs some hosts take at most. O(hypervisors)."""
    if policy.policy != "anti-affinity":
        return int(room.sum())
    return int(np.minimum(policy.per_service(room), policy.allowed).sum())


def _free_below(request: PlacementInput, objective: Isolation, level: int) -> Iterator[Mask]:
    """Yield the hosts below each switch of a level that others keep from no uplink up to there.

    Shape (hosts,). None for a switch that would not hold all members so. In tie order.
    """
    topology = request.topology
    is_free = np.ones(len(topology.hosts), dtype=np.bool_)
    for below in topology.groups[: level - 1]:
        is_free &= ~objective.is_used[below]
    above, members = topology.groups[level - 1], request.members > 0
    ranks = request.tie.ranks
    for switch in sorted(np.unique(above).tolist(), key=lambda one: int(ranks[one])):
        hosts = is_free & (above == switch)
        if hosts[members].all():
            yield hosts
