"""The plan under a hard policy that Nova checks by compute service, where one has many nodes.

On bare metal one service owns nodes below many leaves. The capacity of each leaf is exact then,
but not that of several leaves together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds, level_of, server_group_policy
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.planner import attempts, solve
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit

# Plans that are made to find the best one of a number of VMs.
MAX_PLANS = 100
# Plans without a limit that are made after the limit while none keeps the policy.
MAX_LATE_PLANS = 10

# The plan within rooms per hypervisor.
_Solve = Callable[[Array, TimeLimit], Plan | Rejection]
_hop_bytes = attrgetter("hop_bytes")


def plan_by_service(
    request: PlacementInput,
    policy: HardPolicy,
    sizes: Sequence[int],
    planned: Array,
    limit: TimeLimit,
) -> Plan | Rejection:
    """Return the plan of least Hop-Byte that keeps the policy, at the first size that fits.

    It may cost more than the least (``is_proven`` is False) if the limit has passed, or if
    MAX_PLANS did not suffice; with bounds on leaves, these may not suffice to find any plan, nor
    MAX_LATE_PLANS after the limit.

    :param sizes: numbers of VMs to plan for, largest first; the last one must fit
    :param planned: VMs per hypervisor of a plan that breaks the policy
    """
    is_proven, rooms = True, list[Array]()
    if policy.policy == "affinity":
        rooms = list(server_group_policy.by_service(policy, request.room, sizes, planned))
    for bounds, size in attempts(request.problem(), sizes, request.active):
        solved = partial(_solved, request, bounds, size)
        if policy.policy == "affinity":
            found, is_exact = _on_one(rooms, solved, limit)
        else:
            level = level_of(request.topology, bounds.level)
            found, is_exact = _on_several(request, policy, level, solved, limit, MAX_PLANS)
        is_proven &= is_exact
        if found is not None:
            return replace(found, is_proven=is_proven)
    if policy.policy == "anti-affinity":
        return rejected_by_service(request, sizes[-1])
    if rooms:
        return rejected(request.problem_of(rooms[-1]), sizes[-1], request.constraints.bounds)
    # No service takes all VMs; the Rejection lists what fits.
    return rejected(request.problem(), sizes[-1], UNBOUND)


def rejected_by_service(request: PlacementInput, count: int) -> Rejection:
    """Return the Rejection of ``count`` VMs under anti-affinity, with gangs that do fit.

    With bounds on leaves a larger one may fit as well: which VMs of a service are below which leaf
    is not searched.
    """
    levels = range(1, request.topology.depth + 1)
    return rejected(
        request.problem(),
        count,
        request.constraints.bounds,
        by_level=[request.problem_of(request.capacity_at(level)) for level in levels],
    )


def _solved(
    request: PlacementInput, bounds: Bounds, size: int, room: Array, limit: TimeLimit
) -> Plan | Rejection:
    return solve(request.problem_of(room), size, bounds, limit)


def _on_one(rooms: Iterable[Array], solved: _Solve, limit: TimeLimit) -> tuple[Plan | None, bool]:
    """Return the best plan within one of some rooms, and whether that is proven."""
    plans = [plan for room in rooms if isinstance(plan := solved(room, limit), Plan)]
    best = min(plans, key=_hop_bytes, default=None)
    return best, all(plan.is_proven for plan in plans)


def _on_several(
    request: PlacementInput,
    policy: HardPolicy,
    level: int,
    solved: _Solve,
    limit: TimeLimit,
    most: int,
) -> tuple[Plan | None, bool]:
    """Return the best plan that keeps anti-affinity, and whether that is proven.

    Branch and bound: with capacities that are exact for each leaf alone, no plan that keeps the
    policy costs less than the best plan. If that breaks the policy, plans are made within its
    :func:`server_group_policy.branches`, those of the cheapest plan first.

    :param level: of which one switch must hold the group
    :param most: plans that are made
    """

    def keeps(plan: Plan, room: Array) -> bool:
        return server_group_policy.keeps(policy, request.per_hypervisor(plan, room))

    room = request.capacity
    plan = solved(room, limit)
    if isinstance(plan, Rejection):
        return None, True
    if keeps(plan, room):
        return plan, plan.is_proven
    best: Plan | None = None
    for number in range(2, level + 1):
        # It keeps the policy below each single switch of this level.
        narrower = request.capacity_at(number)
        found = solved(narrower, limit)
        if isinstance(found, Plan) and keeps(found, narrower):
            best = min(best or found, found, key=_hop_bytes)
    if best is None and not request.constraints.bounds.count_leaves:
        return None, True
    if best is None and limit.has_passed():
        # The best plan may keep the policy where another one does not.
        return _on_several(request, policy, level, solved, NO_LIMIT, MAX_LATE_PLANS)
    is_proven, made = plan.is_proven, 1
    waiting = [(plan.hop_bytes, made, room, plan)]
    while waiting and (best is None or waiting[0][0] < best.hop_bytes):
        if best is None and limit.has_passed():
            limit, most = NO_LIMIT, min(most, made + MAX_LATE_PLANS)
        if made >= most or (best is not None and limit.has_passed()):
            return best, False
        _, _, room, plan = heappop(waiting)
        planned = request.per_hypervisor(plan, room)
        for less in server_group_policy.branches(policy, room, planned):
            # A group that fits is not refused because one plan takes long.
            found = solved(less, NO_LIMIT if best is None else limit)
            made += 1
            if isinstance(found, Rejection):
                continue
            is_proven &= found.is_proven
            if keeps(found, less):
                best = min(best or found, found, key=_hop_bytes)
            else:
                heappush(waiting, (found.hop_bytes, -made, less, found))
    return best, is_proven
