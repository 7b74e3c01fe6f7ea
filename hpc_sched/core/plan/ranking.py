"""The hosts that the VMs of a planned group may need: their order, and those that are left."""

from collections.abc import Sequence

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem, host_counts, leaf_sums
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.switch_rooms import rooms_below
from hpc_sched.core.sharing import mdobp


def plan_order(problem: Problem, plan: Plan, *, slot: int = 0) -> Array:
    """Return the hosts in the order in which one VM tries them, best first.

    The host of the VM's own slot, then its leaf: the hosts of other slots there in turn, and those
    with room besides. So the VMs stay in the order of the fabric by leaf if one lands elsewhere.
    Then the hosts of the other slots in turn, and :func:`spare_order`. O(hosts log hosts).

    :param slot: which of the plan's places belongs to the VM, from 0
    :returns: indices into ``topology.hosts``, all of them; shape (hosts,)
    """
    spares = spare_order(problem, plan)
    if not plan.places:
        return spares
    leaf = problem.topology.leaf_index
    turn = slot % plan.count
    places = list(map(problem.topology.index_of, plan.places[turn:] + plan.places[:turn]))
    near = spares[leaf[spares] == leaf[places[0]]]
    with_room = near[(problem.capacity > planned_counts(problem, plan))[near]]
    own_leaf = [host for host in places if leaf[host] == leaf[places[0]]]
    return move_to_front([*own_leaf, *with_room.tolist(), *places], spares)


def move_to_front(hosts: Sequence[int], order: Array) -> Array:
    """Return an order with some hosts, each once, moved to its front. Shape (hosts,)."""
    chosen = np.array(list(dict.fromkeys(hosts)), dtype=np.int64)
    return np.concatenate([chosen, order[~np.isin(order, chosen)]])


def planned_counts(problem: Problem, plan: Plan) -> Array:
    """Return the planned VMs per host. Shape (hosts,)."""
    return host_counts(problem.topology, plan.hosts)


def spare_order(problem: Problem, plan: Plan | None) -> Array:
    """Return all hosts by the cost of one more VM there, cheapest first. Shape (hosts,).

    The cost counts members and planned VMs. Hosts outside the plan's switch come after all
    others, full hosts last. Equal cost: the leaf with less capacity left, then the tie order,
    then the order in which hosts of a leaf are filled. O(hosts log hosts).
    """
    topology = problem.topology
    planned = np.zeros_like(problem.members)
    outside = np.zeros(len(planned), dtype=np.bool_)
    if plan is not None:
        planned = planned_counts(problem, plan)
        switch = topology.switch_index(plan.switch)
        outside = topology.groups[topology.switches[switch].level - 1] != switch
    everyone = problem.members + planned
    left = problem.capacity - planned
    rooms = leaf_sums(problem, np.maximum(left, 0))
    inside: tuple[Array, ...]
    if problem.packing is not None:
        ordered = mdobp.order(problem.packing.after(planned), everyone, topology.name_rank)
        inside = (np.argsort(ordered),)
    elif problem.pack_hosts:
        inside = (-everyone, left, topology.name_rank)
    else:
        inside = (everyone, topology.name_rank)
    keys = (
        left <= 0,
        outside,
        added_hops(problem, everyone),
        rooms[topology.leaf_index],
        problem.tie.ranks[topology.leaf_index],
        *inside,
    )
    return np.lexsort(tuple(reversed(keys)))


def added_hops(problem: Problem, everyone: Array) -> Array:
    """Return per host the hops between one more VM there and all VMs of the group.

    hops(a, b) is 2 * depth + 1, less 2 for every level on which a and b are under one switch,
    less 1 on one host. Islands count as joined by one more root. O(hosts * depth).
    Shape (hosts,).

    :param everyone: VMs of the group per host; shape (hosts,)
    """
    topology = problem.topology
    hops = np.full(len(everyone), (2 * topology.depth + 1) * int(everyone.sum()), dtype=np.int64)
    for group in topology.groups:
        together = np.bincount(group, weights=everyone, minlength=len(topology.switches))
        hops -= 2 * together.astype(np.int64)[group]
    return hops - everyone if problem.pack_hosts else hops


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
        inside = set(topology.leaf_index[mask & (problem.capacity > 0)].tolist()) - set(leaves)
        spare = [leaf for leaf in order if leaf in inside]
        leaves += spare[: max(bounds.most_leaves - len(leaves), 0)]
        mask &= np.isin(topology.leaf_index, leaves)
    return mask


def leaves_of_group(problem: Problem, plan: Plan) -> Mask:
    """Return the hosts below the leaves of a plan and of the members. Shape (hosts,)."""
    leaf_index = problem.topology.leaf_index
    everyone = problem.members + planned_counts(problem, plan)
    return np.isin(leaf_index, leaf_index[everyone > 0])


def hosts_of_one(problem: Problem, count: int) -> Mask:
    """Return the hosts on which one VM keeps ``require``, ``max_leaves`` and the members' island.

    And from which all of some VMs do: there is room for the others within the bounds. Shape
    (hosts,). O(hosts + leaves log leaves).

    :param count: number of these VMs, itself included; 1: rooms do not matter
    """
    topology, bounds = problem.topology, problem.constraints.bounds
    level = level_of(topology, bounds.level)
    group, has_members = topology.groups[level - 1], problem.members > 0
    mask: Mask = np.ones(len(topology.hosts), dtype=np.bool_)
    if has_members.any():
        mask = np.equal(group, group[int(np.argmax(has_members))])
    elif count > 1:
        mask = np.greater_equal(rooms_below(problem, level, bounds)[group], count)
    if bounds.most_leaves is None:
        return mask
    used = np.unique(topology.leaf_index[has_members])
    left = bounds.most_leaves - len(used)
    for switch in np.unique(group[mask]).tolist():
        new = np.setdiff1d(topology.leaf_index[group == switch], used)
        if left > 0 and count == 1:
            continue
        with_it = _rooms_with(problem, used, new, left) if left > 0 else np.zeros_like(new)
        mask &= ~np.isin(topology.leaf_index, new[with_it < count])
    return mask


def _rooms_with(problem: Problem, used: Array, new: Array, left: int) -> Array:
    """Return the VMs that fit in the leaves used, each of some new ones, and the best others.

    Shape (new,).

    :param left: number of new leaves that may be used
    """
    room = leaf_sums(problem, problem.capacity)
    largest = np.sort(room[new])[::-1]
    best, others = int(largest[:left].sum()), int(largest[: left - 1].sum())
    rooms: Array = room[used].sum() + np.minimum(best, others + room[new])
    return rooms


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
    order = np.array([*dict.fromkeys([*planned, *_leaf_order(problem, plan)])], dtype=np.int64)
    has_enough = np.arange(len(order)) >= len(planned)
    for each, wanted in ((room[order], places), (number[order], hosts)):
        # What the leaves before one have together.
        has_enough &= np.cumsum(each) - each >= wanted
    return np.logical_and(allowed, np.isin(topology.leaf_index, order[~has_enough]))


def _leaf_order(problem: Problem, plan: Plan) -> list[int]:
    """Return the leaves by the place of their best host in :func:`spare_order`."""
    order = spare_order(problem, plan)
    return list(dict.fromkeys(problem.topology.leaf_index[order].tolist()))
