"""The Rejection of a group, with the largest groups that fit instead."""

from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds, level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Gang, Rejection
from hpc_sched.core.plan.switch_rooms import rooms_below


def rejected(problem: Problem, count: int, bounds: Bounds) -> Rejection:
    """Return the Rejection of ``count`` VMs without a plan. O(hosts * levels)."""
    topology = problem.topology
    level = level_of(topology, bounds.level)
    conflict = conflict_of(problem, bounds)
    used = len(np.unique(topology.leaf_index[problem.members > 0]))
    best = None
    if conflict is None:
        best = largest_gang(problem, level, bounds, with_members=True, most=count)
    return Rejection(
        count=count,
        members=int(problem.members.sum()),
        bounds=bounds.required_of(used, count),
        gangs=tuple(
            gang
            for number in range(1, topology.depth + 1)
            if (gang := largest_gang(problem, number)) is not None
        ),
        best=best,
        conflict=conflict,
    )


def largest_gang(
    problem: Problem,
    level: int,
    bounds: Bounds = UNBOUND,
    *,
    with_members: bool = False,
    most: int | None = None,
) -> Gang | None:
    """Return the largest group under one switch of a level, or None without any host.

    Equal switches: the first in tie order. O(hosts).

    :param bounds: on the leaves of the group, the members' leaves included
    :param with_members: whether the members must be under the same switch
    :param most: the VMs that are wanted, see :func:`rooms_below`
    """
    topology = problem.topology
    domain = topology.groups[level - 1]
    if not len(domain):
        return None
    rooms = rooms_below(problem, level, bounds, most)
    only_members = with_members and problem.members.any()
    switches = np.unique(domain[problem.members > 0] if only_members else domain)
    roomiest = switches[rooms[switches] == rooms[switches].max()]
    best = int(roomiest[np.argmin(problem.tie.among(roomiest))])
    name = topology.switches[best]
    return Gang(level=topology.levels[level - 1], vms=int(rooms[best]), switch=name.name)


def conflict_of(problem: Problem, bounds: Bounds, level: int | None = None) -> str | None:
    """Return how members break bounds whatever VMs are added, or None; no names.

    :param level: of which one switch must hold them; by default that of the bounds
    """
    topology, name = problem.topology, bounds.level if level is None else None
    level = level_of(topology, bounds.level) if level is None else level
    has_members = problem.members > 0
    tops = len(np.unique(topology.groups[level - 1][has_members]))
    if tops > 1 and name is None:
        return f"its members stand on {tops} islands, and no group is spread over islands"
    if tops > 1:
        return f"its members stand under {tops} switches of level {name}, one is required"
    leaves = len(np.unique(topology.leaf_index[has_members]))
    if bounds.most_leaves is not None and leaves > bounds.most_leaves:
        return f"its members use {leaves} leaf switches, at most {bounds.most_leaves} are allowed"
    return None


def broken_by(problem: Problem, planned: Array, bounds: Bounds) -> str | None:
    """Return how members and some VMs more break bounds, or None.

    :param planned: VMs per host, shape (hosts,)
    """
    leaf = problem.topology.leaf_index
    before, vms = np.unique(leaf[problem.members > 0]), int(planned.sum())
    missing = bounds.missing_leaves(len(before), vms)
    if len(np.setdiff1d(leaf[planned > 0], before)) < missing:
        least = bounds.required_of(len(before), vms).least_leaves
        return f"at least {least} leaf switches are required"
    everyone = replace(problem, members=problem.members + planned)
    conflict = conflict_of(everyone, bounds)
    if conflict is None and bounds.parts is not None:
        from hpc_sched.core.plan.segmented.unfinished import unfinished

        conflict = unfinished(problem, planned, bounds)
    return conflict
