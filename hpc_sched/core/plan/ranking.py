"""The order in which one VM of a planned group tries the hosts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.switch_rooms import leaf_sums
from hpc_sched.core.sharing import mdobp

Array = NDArray[np.int64]


def plan_order(problem: Problem, plan: Plan, *, slot: int = 0) -> Array:
    """Return the hosts in the order in which one VM should try them, best first.

    The host of the VM's own slot, then those of the slots that follow, then the second
    choices: by what one more VM there would cost beside the whole group as planned, so that
    the rest of a planned leaf comes first, then the next best leaf, then the next. Hosts
    outside the switch that holds the plan follow, full hosts come last. O(hosts log hosts).

    :param slot: which of the plan's places belongs to the VM, from 0
    :returns: indices into ``topology.hosts``, all of them; shape (hosts,)
    """
    places = [problem.topology.index_of(host) for host in plan.places]
    turn = slot % max(len(places), 1)
    return first_then(places[turn:] + places[:turn], spare_order(problem, plan))


def first_then(first: Sequence[int], rest: Array) -> Array:
    """Return the first hosts, each once, then the rest without them."""
    chosen = np.array(list(dict.fromkeys(first)), dtype=np.int64)
    return np.concatenate([chosen, rest[~np.isin(rest, chosen)]])


def planned_counts(problem: Problem, plan: Plan) -> Array:
    """Return the planned VMs per host of the topology. Shape (hosts,)."""
    counts = np.zeros(len(problem.topology.hosts), dtype=np.int64)
    for host, count in plan.hosts.items():
        counts[problem.topology.index_of(host)] = count
    return counts


def spare_order(problem: Problem, plan: Plan | None) -> Array:
    """Return all hosts by what one VM more would cost there, the cheapest first.

    Beside the members and what is planned; hosts outside the plan's switch follow.

    Equal ones: the leaf with less capacity left, then the tie order, then as hosts are filled
    inside a leaf. O(hosts log hosts).
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
    leaf = topology.leaf_index
    rooms = leaf_sums(problem, np.maximum(left, 0))
    inside: tuple[Array, ...]
    if problem.packing is not None:
        place = np.empty_like(everyone)
        ordered = mdobp.order(problem.packing.after(planned), everyone, topology.name_rank)
        place[ordered] = np.arange(len(ordered))
        inside = (place,)
    elif problem.pack_hosts:
        inside = (-everyone, left, topology.name_rank)
    else:
        inside = (everyone, topology.name_rank)
    keys = (
        left <= 0,
        outside,
        added_hops(problem, everyone),
        rooms[leaf],
        problem.tie[leaf],
        *inside,
    )
    return np.lexsort(tuple(reversed(keys)))


def added_hops(problem: Problem, everyone: Array) -> Array:
    """Return per host the hops between one VM more there and all VMs of the group.

    hops(a, b) is 2 * depth + 1 less 2 for every level on which a and b are under one switch,
    and 1 less on one host. Islands count as if one more root joined them. O(hosts * depth).
    Shape (hosts,).

    :param everyone: VMs of the group per host
    """
    topology = problem.topology
    hops = np.full(len(everyone), (2 * topology.depth + 1) * int(everyone.sum()), dtype=np.int64)
    for group in topology.groups:
        together = np.bincount(group, weights=everyone, minlength=len(topology.switches))
        hops -= 2 * together.astype(np.int64)[group]
    return hops - everyone if problem.pack_hosts else hops
