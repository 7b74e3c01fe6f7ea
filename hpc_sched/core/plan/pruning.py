"""The hosts that a group may need: those of its plan, and spares."""

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import planned_counts, spare_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.switch_rooms import leaf_sums


def permitted_hosts(problem: Problem, plan: Plan) -> Mask:
    """Return the hosts on which VMs keep ``require``, ``max_leaves`` and the plan's island.

    With ``max_leaves``: the leaves of members and plan, filled up to the bound with the next
    best ones. Shape (hosts,).
    """
    topology, bounds = problem.topology, problem.constraints.bounds
    everyone = problem.members + planned_counts(problem, plan)
    used = np.flatnonzero(everyone)
    mask = np.ones(len(topology.hosts), dtype=np.bool_)
    if len(used):
        group = topology.groups[level_of(topology, bounds.level) - 1]
        mask &= group == group[used[0]]
    if bounds.most_leaves is not None:
        leaves = list(dict.fromkeys(topology.leaf_index[used].tolist()))
        order = _leaf_order(problem, plan)
        inside = set(topology.leaf_index[mask & (problem.capacity > 0)].tolist())
        spare = [leaf for leaf in order if leaf in inside and leaf not in set(leaves)]
        leaves += spare[: max(bounds.most_leaves - len(leaves), 0)]
        mask &= np.isin(topology.leaf_index, leaves)
    return mask


def hosts_with_spares(
    problem: Problem,
    plan: Plan,
    open_hosts: Mask | None = None,
    used: Mask | None = None,
    *,
    places: int,
    hosts: int,
) -> Mask:
    """Return the hosts of the plan's leaves, and of the next best leaves as spares.

    Whole leaves, until they have ``places`` and ``hosts``, as far as ``require`` and
    ``max_leaves`` permit. Shape (hosts,). O(hosts log hosts).

    :param open_hosts: hosts that could take a VM, by default those with capacity. Shape (hosts,)
    :param used: hosts that are no spares, as they have VMs of the request. Shape (hosts,)
    :param places: capacity that the kept leaves must have together
    :param hosts: hosts with room, without the used ones, that they must have together
    """
    topology = problem.topology
    has_room = problem.capacity > 0 if open_hosts is None else open_hosts
    allowed = permitted_hosts(problem, plan) & has_room
    room = leaf_sums(problem, np.where(allowed, problem.capacity, 0))
    number = leaf_sums(problem, allowed if used is None else allowed & ~used)
    planned = [topology.switch_index(leaf) for leaf in plan.leaves]
    order = list(dict.fromkeys([*planned, *_leaf_order(problem, plan)]))
    kept: list[int] = []
    for leaf in order:
        if len(kept) >= len(planned) and places <= 0 and hosts <= 0:
            break
        kept.append(leaf)
        places -= int(room[leaf])
        hosts -= int(number[leaf])
    return np.logical_and(allowed, np.isin(topology.leaf_index, kept))


def _leaf_order(problem: Problem, plan: Plan) -> list[int]:
    """Return the leaves by the place of their best host in :func:`spare_order`."""
    order = spare_order(problem, plan)
    return list(dict.fromkeys(problem.topology.leaf_index[order].tolist()))
