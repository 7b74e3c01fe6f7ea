"""The final size of a group: which numbers of its VMs fit, and whether it can ever be reached."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.by_service import service_rooms
from hpc_sched.core.by_service.service_rooms import GroupRoom
from hpc_sched.core.constraints import level_of
from hpc_sched.core.constraints.group_size import GroupSize
from hpc_sched.core.constraints.max_leaves import MaxLeaves
from hpc_sched.core.constraints.min_size import MinSize
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang
from hpc_sched.core.plan.result import Gang
from hpc_sched.topology import plurals


def sizes_that_fit(
    request: PlacementInput, problem: Problem, most_on_one_service: Callable[[], int]
) -> Sequence[int]:
    """Return ``request.sizes``, and between them the most VMs that fit.

    :param most_on_one_service: called with policy affinity
    """
    sizes = request.sizes
    bounds = request.constraints.bounds
    level = level_of(request.topology, bounds.level)
    room: Gang | GroupRoom | None
    policy = request.hard_policy
    if policy is not None and policy.counts_nodes:
        room = service_rooms.largest(request, policy, level, bounds, wanted=request.whole)
    elif isinstance(request.objective, Isolation):
        from hpc_sched.core.plan.bottleneck.isolated_counts import largest_isolated

        room = largest_isolated(problem, request.objective, level)
    else:
        room = largest_gang(problem, level, bounds, with_members=True, most=request.whole)
    most = min(request.whole, room.vms if room is not None else 0)
    if policy is not None and policy.policy == "affinity":
        most = min(most, most_on_one_service())
    return tuple(sorted({*sizes, max(most, sizes[-1])}, reverse=True))


def of_final_size(request: PlacementInput, empty: Array) -> str | None:
    """Return why the final size of a group can never fit in the most leaf switches, or None.

    :param empty: VMs that each host takes while it has none, shape (hosts,)
    """
    constraints = request.constraints
    bounds, one = constraints.bounds, MinSize if constraints.min_size else GroupSize
    size = constraints.min_size or constraints.group_size
    if bounds.most_leaves is None or size is None:
        return None
    if request.server_group_policy == "anti-affinity" and request.hard_policy is not None:
        empty = np.minimum(empty, request.hard_policy.max_per_service)
    without_vms = replace(
        request.problem_of(request.room), capacity=empty, members=np.zeros_like(empty)
    )
    # That it must use some leaves is checked for the VMs that exist, as they come.
    at_most = replace(bounds, least_leaves=0)
    level = level_of(request.topology, bounds.level)
    gang = largest_gang(without_vms, level, at_most, most=size)
    most = 0 if gang is None else gang.vms
    if size <= most:
        return None
    parts = bounds.guaranteed_parts
    return (
        f"{MaxLeaves.spec.name}={bounds.most_leaves} and {one.spec.name}={size} "
        f"contradict each other: at most {most} VMs of this flavor fit in "
        f"{plurals.text(bounds.most_leaves, 'leaf switch')}"
        + ("" if parts is None else f"; {parts.needs} are required")
    )
