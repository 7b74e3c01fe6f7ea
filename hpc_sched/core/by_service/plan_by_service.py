"""The plan under a hard policy that Nova checks by compute service, where one has many nodes.

On bare metal one service owns nodes below many leaves. The capacity of each leaf is exact then,
but not that of several leaves together. Whether a group fits is decided before any plan is made,
without a clock: see :mod:`hpc_sched.core.by_service.service_rooms`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from operator import attrgetter

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.by_service import service_rooms
from hpc_sched.core.by_service.service_rooms import GroupRoom
from hpc_sched.core.constraints import UNBOUND, Bounds, level_of, server_group_policy
from hpc_sched.core.constraints.server_group_policy import HardPolicy
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.planner import attempts, solve
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import StepLimit, TimeLimit

# Plans that are made to find the best one of a number of VMs, hypervisors of all of them together,
# and steps of the planner: mostly 0.1 s, at most 0.6 s on 2,000 nodes. Without a clock the answer
# is the same whatever else the scheduler does.
MAX_PLANS = 100
MAX_ROWS = 50_000
MAX_STEPS = 5_000

_hop_bytes, _vms = attrgetter("hop_bytes"), attrgetter("vms")


def plan_by_service(
    request: PlacementInput, policy: HardPolicy, sizes: Sequence[int]
) -> Plan | Rejection:
    """Return the plan of least Hop-Byte that keeps anti-affinity, at the first size that fits.

    It may cost more than the least (``is_proven`` is False) if the plans, or steps, that may be
    made did not suffice. Which size fits, and a Rejection, do not depend on them. A group is
    refused without a proof (``Rejection.at_most``) if the leaves that it needs are not found in a
    fixed number of steps.

    :param sizes: numbers of VMs to plan for, largest first; the last one must fit
    """
    for bounds, size in attempts(request.problem(), sizes, request.active):
        level = level_of(request.topology, bounds.level)
        room = service_rooms.largest(request, policy, level, bounds, wanted=size)
        if room is not None and room.vms >= size:
            return _best(_Attempt(request, policy, bounds, size, StepLimit(MAX_STEPS)), room)
    # The last attempt is that of the last size within the group's own bounds.
    if room is not None and room.at_most < size:
        room = service_rooms.largest(request, policy, level, bounds)
    return _rejected(request, size, room)


def _rejected(request: PlacementInput, count: int, most: GroupRoom | None) -> Rejection:
    """Return the Rejection of ``count`` VMs under anti-affinity.

    :param most: the largest group that fits; None if members break a bound
    """
    topology = request.topology
    answer = rejected(request.problem(), count, request.constraints.bounds)
    below = range(1, topology.depth + 1)
    gangs = [largest_gang(request.problem_of(request.capacity_at(at)), at) for at in below]
    best = at_most = None
    if most is not None and most.is_proven:
        best = most.gang(topology, level_of(topology, request.constraints.bounds.level))
    elif most is not None:
        at_most = most.at_most
    found = tuple(gang for gang in gangs if gang is not None)
    return replace(answer, gangs=found, best=best, at_most=at_most)


@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """A number of VMs that fit within bounds under anti-affinity."""

    request: PlacementInput
    policy: HardPolicy
    bounds: Bounds
    size: int
    limit: StepLimit

    @property
    def level(self) -> int:
        """The level of which one switch must hold the group."""
        return level_of(self.request.topology, self.bounds.level)

    @property
    def most_plans(self) -> int:
        """The number of plans that may be made."""
        return min(MAX_PLANS, max(MAX_ROWS // len(self.request.room), 1))

    def solved(self, room: Array) -> Plan | Rejection:
        """Return the best plan within rooms per hypervisor."""
        return solve(self.request.problem_of(room), self.size, self.bounds, self.limit)

    def keeps(self, plan: Plan, room: Array) -> bool:
        """True if a plan, made within some rooms, keeps the policy."""
        planned = self.request.per_hypervisor(plan, room)
        return server_group_policy.keeps(self.policy, planned)

    def first_plans(self, known: GroupRoom) -> Iterator[Plan]:
        """Yield plans that keep the policy: one on known leaves, others as far as there are any."""
        request, policy = self.request, self.policy
        rooms = [service_rooms.room_on(request, policy, known, self.bounds)]
        for level in range(2, self.level + 1):
            near = service_rooms.largest(request, policy, level, self.bounds, self.size, sums=0)
            if near is not None and near.vms >= self.size and near != known:
                rooms.append(service_rooms.room_on(request, policy, near, self.bounds))
            # It keeps the policy below each single switch of this level.
            rooms.append(request.capacity_at(level))
        for room in rooms:
            plan = self.solved(room)
            if isinstance(plan, Plan) and self.keeps(plan, room):
                yield plan


def _best(attempt: _Attempt, known: GroupRoom) -> Plan:
    """Return the best plan that keeps anti-affinity.

    Branch and bound: with capacities that are exact for each leaf alone, no plan that keeps the
    policy costs less than the best plan. If that breaks the policy, plans are made within its
    :func:`server_group_policy.branches`, those of the cheapest plan first.

    :param known: leaves on which the group fits
    """
    room = attempt.request.capacity
    plan = attempt.solved(room)
    assert isinstance(plan, Plan)
    if attempt.keeps(plan, room):
        return plan
    best = min(attempt.first_plans(known), key=_hop_bytes)
    is_proven, made = plan.is_proven, 1
    waiting = [(plan.hop_bytes, made, room, plan)]
    while waiting and waiting[0][0] < best.hop_bytes:
        if made >= attempt.most_plans or attempt.limit.has_passed():
            return replace(best, is_proven=False)
        _, _, room, plan = heappop(waiting)
        planned = attempt.request.per_hypervisor(plan, room)
        for less in server_group_policy.branches(attempt.policy, room, planned):
            found = attempt.solved(less)
            made += 1
            if isinstance(found, Rejection):
                continue
            is_proven &= found.is_proven
            if attempt.keeps(found, less):
                best = min(best, found, key=_hop_bytes)
            else:
                heappush(waiting, (found.hop_bytes, -made, less, found))
    return replace(best, is_proven=is_proven)


def plan_on_one_service(
    request: PlacementInput,
    policy: HardPolicy,
    sizes: Sequence[int],
    planned: Array,
    limit: TimeLimit,
) -> Plan | Rejection:
    """Return the plan of least Hop-Byte that keeps affinity, at the first size that fits.

    :param sizes: numbers of VMs to plan for, largest first; the last one must fit
    :param planned: VMs per hypervisor of a plan that breaks the policy
    """
    rooms = [*server_group_policy.by_service(policy, request.room, sizes, planned)]
    # The services are compared by Hop-Byte.
    is_proven = request.objective is None or len(rooms) < 2
    for bounds, size in attempts(request.problem(), sizes, request.active):
        answers = [solve(request.problem_of(room), size, bounds, limit) for room in rooms]
        plans = [answer for answer in answers if isinstance(answer, Plan)]
        is_proven &= all(plan.is_proven for plan in plans)
        if plans:
            return replace(min(plans, key=_hop_bytes), is_proven=is_proven)
    if not policy.has_single_nodes:
        return rejected_on_one_service(request, policy, sizes[-1])
    if rooms:
        return rejected(request.problem_of(rooms[-1]), sizes[-1], request.constraints.bounds)
    # No service takes all VMs; the Rejection lists what fits.
    return rejected(request.problem(), sizes[-1], UNBOUND)


def rejected_on_one_service(request: PlacementInput, policy: HardPolicy, count: int) -> Rejection:
    """Return the Rejection of ``count`` VMs under affinity, with what fits on any one service.

    O(services * hosts * levels).
    """
    rooms = server_group_policy.by_service(policy, request.room, [1], np.zeros_like(request.room))
    bounds = request.constraints.bounds
    alone = [rejected(request.problem_of(room), count, bounds) for room in rooms]
    answer = rejected(request.problem(), count, bounds)
    if not alone:
        return answer
    best = max((one.best for one in alone if one.best is not None), key=_vms, default=None)
    by_level = zip(*(one.gangs for one in alone), strict=True)
    return replace(answer, best=best, gangs=tuple(max(same, key=_vms) for same in by_level))
