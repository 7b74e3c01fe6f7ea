"""The exact plan: the places of a whole group that cost the least Hop-Byte.

plan          the public entry, on counts per host name
solve_sizes   the plan of a group with constraints, at the largest size that fits
solve         the plan of a number of VMs
  _best         the best switch of the required level, or root, for the whole group
  GroupTree     the tables of switches, bottom up (knapsack), from the hosts of leaves (leaf_hosts)
  rejected      the Rejection
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from hpc_sched.core.constraints import level_of
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.group_tree import GroupTree
from hpc_sched.core.plan.knapsack import IMPOSSIBLE, Choice
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import leaf_sums, rooms_below
from hpc_sched.topology.model import Topology


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

    Exact on trees of any depth; a group never spans islands. Equal cost: fewer leaves, then less
    excess capacity in the used leaves, then the group's tie order. O(count * capacity).

    :param capacity: host to the number of VMs that it still takes
    :param members: host to the number of the group's VMs on it
    :param require: the level of which one switch must hold the whole group, members included
    :param max_leaves: the most leaf switches of the whole group, members included
    :param group_id: key of the tie order
    :raises ValueError: for a negative number, ``max_leaves`` below 1, or an unknown level
    """
    problem = Problem.from_counts(
        topology=topology, capacity=capacity, members=members, awaiting=count, group_id=group_id
    )
    # The level must be one of the given topology; the problem's has hosts added to it.
    level_of(topology, require)
    return solve(problem, count, require=require, max_leaves=max_leaves)


def solve_sizes(problem: Problem, sizes: Sequence[int], preferred: int = 0) -> Plan | Rejection:
    """Return the plan that keeps the group's constraints, at the first size that fits.

    The preferred level comes before a larger size. Without a plan: the Rejection of the last size.

    :param sizes: numbers of VMs to plan for, largest first; the last one must fit
    :param preferred: the fewest VMs for which ``prefer`` holds: any single VM of a group is
        under one switch
    :raises ValueError: for an unknown level
    """
    constraints = problem.constraints
    attempts = [(constraints.require, size) for size in sizes]
    if not attempts:
        raise ValueError("sizes: expected at least one number of VMs")
    required = level_of(problem.topology, constraints.require)
    # A preference for the required level, or a wider one, adds nothing.
    if constraints.prefer is not None and level_of(problem.topology, constraints.prefer) < required:
        preferences = [(constraints.prefer, size) for size in sizes if size >= preferred]
        attempts = preferences + attempts
    for level, size in attempts:
        answer = solve(problem, size, require=level, max_leaves=constraints.max_leaves)
        if isinstance(answer, Plan):
            break
    return answer


def solve_most(problem: Problem, count: int) -> Plan | Rejection:
    """Return a plan, without constraints, of the most of ``count`` VMs that fit on one island."""
    gang = largest_gang(problem, level_of(problem.topology, None), with_members=True)
    return solve(problem, min(count, gang.vms if gang is not None else 0))


def solve(
    problem: Problem, count: int, *, require: str | None = None, max_leaves: int | None = None
) -> Plan | Rejection:
    """Return the plan of ``count`` VMs of a problem, as :func:`plan` does.

    :raises ValueError: as :func:`plan` does
    """
    if max_leaves is not None and max_leaves < 1:
        raise ValueError(f"max_leaves is {max_leaves}: expected at least 1")
    level = level_of(problem.topology, require)
    # With the bound there is a row for every number of leaves: try without it first.
    has_room = bool((rooms_below(problem, level, max_leaves) >= count).any())
    found = _best(problem, count, level, None) if has_room else None
    if found is not None and max_leaves is not None:
        tree, _, choice = found
        if len({leaf for leaf, _ in choice.counts} | tree.member_leaves) > max_leaves:
            found = _best(problem, count, level, max_leaves)
    if found is None:
        return rejected(problem, count, require=require, max_leaves=max_leaves)
    return _plan_of(problem, *found)


def _best(
    problem: Problem, count: int, level: int, max_leaves: int | None
) -> tuple[GroupTree, int, Choice] | None:
    """Return the best switch of a level for ``count`` VMs, and the best way below it."""
    switches, domain = problem.topology.switches, problem.topology.groups[level - 1]
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
    totals = [
        (score - tree.weights.saving * (2 * switches[top].level - 1) * tree.pairs, top, used)
        for top in candidates.tolist()
        for used, row in enumerate(tree.node(top).table)
        if row and (score := row.at(count)) > IMPOSSIBLE
    ]
    if not totals:
        return None
    best = max(total for total, _, _ in totals)
    equals = [(top, used) for total, top, used in totals if total == best]
    ways = [(tree.node(top).best(used, count), top) for top, used in equals]
    choice, top = max(ways, key=lambda way: (way[0].leaf_set, -int(problem.tie[way[1]])))
    return tree, top, choice


def _plan_of(problem: Problem, tree: GroupTree, top: int, choice: Choice) -> Plan:
    topology = problem.topology
    counts = dict(choice.counts)
    order = _slot_order(problem, counts)
    places = [
        topology.hosts[host]
        for leaf in order
        for host in leaf_hosts.places(problem, tree.hosts[leaf], counts[leaf])
    ]
    hosts = Counter(places)
    everyone = hosts.copy()
    for i in np.flatnonzero(problem.members):
        everyone[topology.hosts[i]] += int(problem.members[i])
    return Plan(
        hosts=dict(hosts),
        places=tuple(places),
        leaves={topology.switches[leaf].name: counts[leaf] for leaf in order},
        hop_bytes=hop_bytes_of_counts(topology=topology, counts=everyone),
        switch=topology.switches[top].name,
    )


def _slot_order(problem: Problem, counts: Mapping[int, int]) -> list[int]:
    """Return the leaves so that the first slots, however many are used, are near each other."""
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
