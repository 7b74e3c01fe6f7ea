"""Whether the VMs of a group can still become the parts that are required."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds, level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.segmented.rooms_of_tops import part_rooms, parts_below


def unfinished(problem: Problem, planned: Array, bounds: Bounds) -> str | None:
    """Return how members and some VMs more break the parts of a group, or None.

    They do not if they are such parts, nor if VMs that still await a place can complete them:
    any number of these.

    :param problem: awaiting counts all VMs of the group without a place, requested or not
    :param planned: VMs per host, shape (hosts,)
    """
    level = level_of(problem.topology, bounds.level)
    parts = parts_below(problem, level, bounds)
    if parts is None or not planned.any():
        return None
    after = replace(
        problem,
        members=problem.members + planned,
        capacity=np.maximum(problem.capacity - planned, 0),
    )
    vms, left = int(after.members.sum()), problem.awaiting - int(planned.sum())
    tops = np.unique(problem.topology.groups[level - 1][after.members > 0])
    for _, rooms in part_rooms(after, level, parts, bounds, tops):
        if next(rooms.divisions(parts, vms), None) is not None:
            return None
        if left > 0 and rooms.most(parts, vms, left):
            return None
    return f"{parts.needs} are required"
