"""The least Hop-Byte cost that a group can have on a tree with the room that is left."""

import math

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.problem import Problem

_NEVER = np.iinfo(np.int64).min // 4  # the saving of a number of VMs that does not fit


def least_hop_bytes(problem: Problem) -> float:
    """Return the least Hop-Byte cost of members plus awaiting, with equal traffic.

    The cost in closed form (Dudina2013) is a constant less what each host and switch saves, so
    the best split is a knapsack from the hosts up: ``saved[k]`` is the most that k new VMs can
    save below a switch. O(awaiting * capacity) in all, tables bounded by both. Infinity where
    the group does not fit on one island.
    """
    topology = problem.topology
    children: dict[int, list[int]] = {}
    for s, switch in enumerate(topology.switches):
        children.setdefault(switch.parent, []).append(s)
    best = math.inf
    for root in children[-1]:
        saved, members = _table(problem, root, children)
        if members != int(problem.members.sum()) or len(saved) <= problem.awaiting:
            continue
        everyone = math.comb(members + problem.awaiting, 2)
        farthest = 2 * topology.switches[root].level - 1
        best = min(best, farthest * everyone - int(saved[problem.awaiting]))
    return best


def _table(
    problem: Problem, switch: int, children: dict[int, list[int]]
) -> tuple[NDArray[np.int64], int]:
    """Return what 0..k new VMs can save below a switch, and the members below it."""
    topology = problem.topology
    level, parent = topology.switches[switch].level, topology.switches[switch].parent
    saved = np.zeros(1, dtype=np.int64)
    members = 0
    if level == 1:
        for host in np.flatnonzero(topology.leaf_index == switch):
            here = int(problem.members[host])
            most = min(int(problem.capacity[host]), problem.awaiting)
            members += here
            if here or most:
                saved = _combine(saved, _pairs(here, most + 1), problem.awaiting)
    for child in children.get(switch, []):
        below, there = _table(problem, child, children)
        members += there
        saved = _combine(saved, below, problem.awaiting)
    if parent >= 0:
        rise = topology.switches[parent].level - level
        saved = saved + 2 * rise * _pairs(members, len(saved))
    return saved, members


def _pairs(members: int, length: int) -> NDArray[np.int64]:
    """Return C(members + k, 2) for k = 0 .. length - 1."""
    count = np.arange(members, members + length, dtype=np.int64)
    return count * (count - 1) // 2


def _combine(left: NDArray[np.int64], right: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the best sums of two tables for every number of VMs up to ``most``."""
    length = min(len(left) + len(right) - 1, most + 1)
    result = np.full(length, _NEVER, dtype=np.int64)
    for k in range(min(len(right), length)):
        span = min(len(left), length - k)
        np.maximum(result[k : k + span], left[:span] + right[k], out=result[k : k + span])
    return result
