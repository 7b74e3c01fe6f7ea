"""The Rejection of a group, with the largest groups that fit instead."""

from collections.abc import Sequence

import numpy as np

from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Gang, Rejection
from hpc_sched.core.plan.switch_rooms import rooms_below


def rejected(
    problem: Problem,
    count: int,
    *,
    require: str | None,
    max_leaves: int | None,
    by_level: Sequence[Problem] = (),
) -> Rejection:
    """Return the Rejection of ``count`` VMs without a plan. O(hosts * levels).

    :param by_level: problems whose capacities have exact sums below the switches of one level
        each, bottom up, where those of ``problem`` do not
    """
    topology = problem.topology
    problems = by_level or [problem] * topology.depth
    level = level_of(topology, require)
    conflict = conflict_of(problem, level, require, max_leaves)
    best = None
    if conflict is None:
        best = largest_gang(problems[level - 1], level, max_leaves=max_leaves, with_members=True)
    return Rejection(
        count=count,
        members=int(problem.members.sum()),
        require=require,
        max_leaves=max_leaves,
        gangs=tuple(
            gang
            for number, exact in enumerate(problems, start=1)
            if (gang := largest_gang(exact, number)) is not None
        ),
        best=best,
        conflict=conflict,
    )


def largest_gang(
    problem: Problem, level: int, *, max_leaves: int | None = None, with_members: bool = False
) -> Gang | None:
    """Return the largest group under one switch of a level, or None without any host.

    Equal switches: the first in tie order. O(hosts).

    :param max_leaves: the most leaves of the group, the members' leaves included
    :param with_members: whether the members must be under the same switch
    """
    topology = problem.topology
    domain = topology.groups[level - 1]
    if not len(domain):
        return None
    rooms = rooms_below(problem, level, max_leaves)
    only_members = with_members and problem.members.any()
    switches = np.unique(domain[problem.members > 0] if only_members else domain)
    best = min(switches.tolist(), key=lambda s: (-int(rooms[s]), int(problem.tie[s])))
    name = topology.switches[best]
    return Gang(level=topology.levels[level - 1], vms=int(rooms[best]), switch=name.name)


def conflict_of(
    problem: Problem, level: int, require: str | None, max_leaves: int | None
) -> str | None:
    """Return how members break a constraint at the level ``require``, or None; no names."""
    topology = problem.topology
    has_members = problem.members > 0
    tops = len(np.unique(topology.groups[level - 1][has_members]))
    if tops > 1 and require is None:
        return f"its members stand on {tops} islands, and no group is spread over islands"
    if tops > 1:
        return f"its members stand under {tops} switches of level {require}, one is required"
    leaves = len(np.unique(topology.leaf_index[has_members]))
    if max_leaves is not None and leaves > max_leaves:
        return f"its members use {leaves} leaf switches, at most {max_leaves} are allowed"
    return None
