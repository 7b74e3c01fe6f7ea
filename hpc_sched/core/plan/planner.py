"""The exact plan: the places of a whole group that cost the least Hop-Byte.

plan        the public entry, on counts per host name
solve       the same on a Problem
  _best       the best switch of the required level, or root, to hold everyone
  GroupTree   their tables, bottom up (knapsack), from the hosts of each leaf (filling)
  rejected    what would have fitted
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.constraints import level_of
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.group_tree import GroupTree
from hpc_sched.core.plan.knapsack import IMPOSSIBLE, NEVER, Choice
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import leaf_sums, rooms_below
from hpc_sched.topology.model import Topology

Array = NDArray[np.int64]


def plan(
    *,
    topology: Topology,
    capacity: Mapping[str, int],
    members: Mapping[str, int],
    count: int,
    require: str | None = None,
    max_leaves: int | None = None,
    group_id: str = "",
) -> Plan | Rejection:
    """Return the places of ``count`` VMs that cost the least Hop-Byte together with the members.

    Exact on trees of any depth; islands are never spanned. Equal cost: fewer leaves, then less
    excess capacity in the leaves that VMs go to, then the group's own order of leaves.
    O(count * places) with tables bounded by both.

    :param capacity: host to how many more VMs it takes
    :param members: host to how many VMs of the group stand there
    :param require: the level of which one switch must hold the whole group, members included
    :param max_leaves: the most leaf switches that the group may use, members included
    :param group_id: by which equally good leaves are ordered
    :raises ValueError: for a negative number, ``max_leaves`` below 1, or a level that the
        topology does not have
    """
    problem = Problem.from_counts(
        topology=topology,
        capacity=capacity,
        members=members,
        awaiting=count,
        group_id=group_id,
    )
    # The level is one of the topology that was given, not of the one with hosts added to it.
    level_of(topology, require)
    return solve(problem, count, require=require, max_leaves=max_leaves)


def solve(
    problem: Problem, count: int, *, require: str | None = None, max_leaves: int | None = None
) -> Plan | Rejection:
    """Return the plan of ``count`` VMs of a problem, as :func:`plan` does.

    :raises ValueError: as :func:`plan` does
    """
    if max_leaves is not None and max_leaves < 1:
        raise ValueError(f"max_leaves is {max_leaves}: expected at least 1")
    level = level_of(problem.topology, require)
    # The bound on leaves costs a table for every number of leaves: first without it.
    has_room = bool((rooms_below(problem, level, max_leaves) >= count).any())
    found = _best(problem, count, level, None) if has_room else None
    if found is not None and max_leaves is not None and found.leaves > max_leaves:
        found = _best(problem, count, level, max_leaves)
    if found is None:
        return rejected(problem, count, require=require, max_leaves=max_leaves)
    return _plan_of(problem, found)


@dataclass(frozen=True, slots=True)
class _Found:
    """The best way below one switch."""

    domain: int
    leaves: int  # leaves of the whole group, members' included
    choice: Choice
    hosts: dict[int, leaf_hosts.LeafHosts]


def _best(problem: Problem, count: int, level: int, max_leaves: int | None) -> _Found | None:
    """Return the best way to place ``count`` VMs below one switch of a level."""
    domain = problem.topology.groups[level - 1]
    with_members = np.unique(domain[problem.members > 0])
    if len(with_members) > 1:
        return None
    room = rooms_below(problem, level, max_leaves)
    candidates = with_members if len(with_members) else np.unique(domain)
    candidates = candidates[room[candidates] >= count]
    if not len(candidates):
        return None
    tree = GroupTree.of(problem, count, max_leaves)
    if tree is None:
        return None
    best: int | None = None
    equals: list[tuple[int, int]] = []
    for top in candidates.tolist():
        farthest = 2 * problem.topology.switches[top].level - 1
        for used, row in enumerate(tree.below(top).table):
            score = NEVER if row is None else row.at(count)
            if score <= IMPOSSIBLE:
                continue
            key = score - tree.digits.saving * farthest * tree.everyone
            if best is None or key > best:
                best, equals = key, []
            if key == best:
                equals.append((top, used))
    if best is None:
        return None
    ways = [(tree.below(top).best(used, count), top) for top, used in equals]
    choice, top = max(ways, key=lambda way: (way[0].leaves, -int(problem.tie[way[1]])))
    leaves = {leaf for leaf, _ in choice.counts} | tree.member_leaves
    return _Found(top, len(leaves), choice, tree.hosts)


def _plan_of(problem: Problem, found: _Found) -> Plan:
    topology = problem.topology
    counts = dict(found.choice.counts)
    order = _slot_order(problem, counts)
    places = [
        topology.hosts[host]
        for leaf in order
        for host in leaf_hosts.places(problem, found.hosts[leaf], counts[leaf])
    ]
    hosts: dict[str, int] = {}
    for host in places:
        hosts[host] = hosts.get(host, 0) + 1
    everyone = dict(hosts)
    for i in np.flatnonzero(problem.members):
        name = topology.hosts[i]
        everyone[name] = everyone.get(name, 0) + int(problem.members[i])
    return Plan(
        hosts=hosts,
        places=tuple(places),
        leaves={topology.switches[leaf].name: counts[leaf] for leaf in order},
        hop_bytes=hop_bytes_of_counts(topology=topology, counts=everyone),
        switch=topology.switches[found.domain].name,
    )


def _slot_order(problem: Problem, counts: Mapping[int, int]) -> list[int]:
    """Return the planned leaves branch by branch, those with most VMs of the group first.

    The first slots of a plan are then near each other, whichever of them come to be used.
    """
    if len(counts) == 1:
        return list(counts)
    topology = problem.topology
    everyone = leaf_sums(problem, problem.members)
    for leaf, count in counts.items():
        everyone[leaf] += count
    leaf_at, first = np.unique(topology.leaf_index, return_index=True)
    keys: dict[int, list[int]] = {leaf: [] for leaf in counts}
    for group in topology.groups[::-1]:
        branch = dict(zip(leaf_at.tolist(), group[first].tolist(), strict=True))
        size = np.bincount(group[first], weights=everyone[leaf_at], minlength=len(everyone))
        for leaf, key in keys.items():
            key += [-int(size[branch[leaf]]), int(problem.tie[branch[leaf]])]
    return sorted(counts, key=lambda leaf: keys[leaf])
