"""The largest group that fits under one switch of each level."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import conflict_of, largest_gang
from hpc_sched.core.plan.result import Gang
from hpc_sched.core.processor_choice import by_processor


def gangs(request: GroupRequest) -> list[Gang]:
    """Return the largest group that fits under one switch of each level, bottom up.

    Together with the request's members, within the bounds on leaves, under the server group's
    policy, and on one processor type if that is required.
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
    found = []
    for request in kinds:
        problem = _on_one_service(request, level)
        bounds = problem.constraints.bounds
        if (gang := largest_gang(problem, level, bounds, with_members=True)) is not None:
            # Members that are not under one switch: no group with them is.
            found.append(replace(gang, vms=0) if conflict_of(problem, bounds, level) else gang)
    return max(found, key=lambda gang: gang.vms, default=None)


def _on_one_service(request: GroupRequest, level: int) -> Problem:
    """Return the problem with exact rooms below a level; for affinity: on the roomiest service."""
    problem, policy = request.problem_of(request.capacity_at(level)), request.hard_policy
    if policy is None or policy.policy != "affinity" or problem.members.any():
        return problem
    domain = request.topology.groups[level - 1][request.hosts_of_rows]
    switches = len(request.topology.switches)
    # One number for each pair of service and switch.
    pairs = policy.service * switches + domain
    rooms = np.bincount(pairs, weights=request.room)
    if not len(rooms):
        return problem
    first = np.full(len(rooms), len(pairs))
    np.minimum.at(first, pairs, np.argsort(policy.order))
    best = min(np.flatnonzero(rooms == rooms.max()).tolist(), key=lambda pair: int(first[pair]))
    return replace(problem, capacity=request.per_host(np.where(pairs == best, request.room, 0)))
