"""The largest group that fits under one switch of each level."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hpc_sched.core.by_service import service_rooms
from hpc_sched.core.constraints import server_group_policy
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import conflict_of, largest_gang
from hpc_sched.core.plan.result import Gang, UnprovenGang
from hpc_sched.core.processor_choice import by_processor


def gangs(request: GroupRequest) -> list[Gang]:
    """Return the largest group that fits under one switch of each level, bottom up.

    Together with the request's members, within the bounds on leaves, under the server group's
    policy, and on one processor type if that is required. An UnprovenGang where a larger one may
    fit as well.
    """
    kinds = [request]
    if request.homogeneous == "true" and request.processors is not None:
        is_known = request.processors.fault_of_members() is None
        # Without a type no hypervisor may be used: every level has room for none.
        none = request.among(np.zeros(len(request.room), dtype=np.bool_))
        kinds = [kind for _, kind in by_processor(request) if is_known] or [none]
    found = (_largest(level, kinds) for level in range(1, request.topology.depth + 1))
    return [gang for gang in found if gang is not None]


def _largest(level: int, kinds: Iterable[GroupRequest]) -> Gang | None:
    """Return the largest group under one switch of a level over all kinds; ties: the first."""
    found, at_most = list[Gang](), 0
    for request in kinds:
        policy, bounds = request.hard_policy, request.constraints.bounds
        if policy is not None and policy.counts_nodes:
            room = service_rooms.largest(request, policy, level, bounds)
            if room is not None:
                found.append(room.gang(request.topology, level))
                at_most = max(at_most, room.at_most)
                continue
        for problem in _on_one_service(request, level):
            if isinstance(request.objective, Isolation) and not conflict_of(problem, bounds, level):
                found.append(_isolated(problem, request.objective, level))
            elif (gang := largest_gang(problem, level, bounds, with_members=True)) is not None:
                # Members that are not under one switch: no group with them is.
                found.append(replace(gang, vms=0) if conflict_of(problem, bounds, level) else gang)
    best = max(found, key=lambda gang: gang.vms, default=None)
    if best is not None and best.vms < at_most:
        return UnprovenGang(best.level, best.vms, best.switch)
    return best


def _isolated(problem: Problem, isolation: Isolation, level: int) -> Gang:
    """Return the largest group without uplinks of others; unproven with bounds on leaves."""
    # For few groups.
    from hpc_sched.core.plan.bottleneck.isolated_counts import largest_isolated

    gang = replace(
        largest_isolated(problem, isolation, level), level=problem.topology.levels[level - 1]
    )
    if problem.constraints.bounds.count_leaves:
        return UnprovenGang(gang.level, gang.vms, gang.switch)
    return gang


def _on_one_service(request: GroupRequest, level: int) -> list[Problem]:
    """Return the problem with exact rooms below a level; for affinity: on the roomiest service.

    One problem for each service of many nodes with members, or if bounds count leaves: the roomiest
    service may be on too many.
    """
    problem, policy = request.problem_of(request.capacity_at(level)), request.hard_policy
    if policy is None or policy.policy != "affinity":
        return [problem]
    has_members = bool(problem.members.any())
    is_bound = has_members or request.constraints.bounds.count_leaves
    if is_bound and not policy.has_single_nodes:
        alone = server_group_policy.by_service(policy, request.room, [1], 0 * request.room)
        return [request.problem_of(room) for room in alone] or [problem]
    if has_members:
        return [problem]
    domain = request.topology.groups[level - 1][request.hosts_of_rows]
    switches = len(request.topology.switches)
    # One number for each pair of service and switch.
    pairs = policy.service * switches + domain
    rooms = np.bincount(pairs, weights=request.room)
    if not len(rooms):
        return [problem]
    first = np.full(len(rooms), len(pairs))
    np.minimum.at(first, pairs, np.argsort(policy.order))
    best = min(np.flatnonzero(rooms == rooms.max()).tolist(), key=lambda pair: int(first[pair]))
    return [replace(problem, capacity=request.per_host(np.where(pairs == best, request.room, 0)))]
