"""Listing 1 of Dudina2013: fill the leaf switches where most of the group can stand together."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.capacity import leaf_sums
from hpc_sched.core.problem import Problem
from hpc_sched.topology.model import Topology

Array = NDArray[np.int64]


def listing1(
    *, topology: Topology, capacity: Mapping[str, int], members: Mapping[str, int], awaiting: int
) -> dict[str, int]:
    """Return the weight of every leaf (Dudina2013, Listing 1).

    first * (maxsize + 1) + second, where first is members in the leaf + min(free capacity of
    the leaf, awaiting), second is members in the leaf, and maxsize, one number for all leaves,
    is the hosts of the largest leaf or the most members of a leaf, whichever is more.

    :param capacity: host to how many more VMs it takes
    :param members: host to how many VMs of the group stand there
    :param awaiting: how many VMs of the group still want a place
    :raises ValueError: for a negative number
    """
    problem = Problem.from_counts(
        topology=topology, capacity=capacity, members=members, awaiting=awaiting
    )
    weights = leaf_weights(problem)
    return {
        switch.name: int(weights[s])
        for s, switch in enumerate(problem.topology.switches)
        if switch.level == 1
    }


def leaf_weights(problem: Problem) -> Array:
    """Return Listing 1's weight of each leaf by switch index, 0 at switches above.

    Shape (switches,).
    """
    second = leaf_sums(problem, problem.members)
    free = leaf_sums(problem, problem.capacity)
    sizes = leaf_sums(problem, np.ones_like(problem.members))
    maxsize = int(max(sizes.max(initial=0), second.max(initial=0)))
    first = second + np.minimum(free, problem.awaiting)
    weights: Array = first * (maxsize + 1) + second
    return weights


def host_order(problem: Problem, *, slot: int = 0, spread: bool = False) -> Array:
    """Return the hosts in the order in which one awaiting VM should try them, best first.

    Leaves by Listing 1, equal ones by less excess capacity, then by the group's tie order;
    hosts that take no more VMs come last. Only the VM's own slot departs from that order: the
    leaf that holds the ``slot``-th place of the group leads, and in it the host of that place,
    so that VMs scheduled in parallel do not run for one host.

    Inside a leaf the same rule holds one level down, which fills the fewest hosts; with
    ``spread`` hosts with fewer members come first. O(hosts log hosts).

    :param slot: which of the group's places belongs to the VM, from 0
    :param spread: whether the group would rather have its VMs on different hosts
    :returns: indices into ``topology.hosts``, all of them
    """
    leaf = problem.topology.leaf_index
    order = _leaf_order(problem)
    rest, own, slot = _leaf_of_slot(problem, order, slot)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    place[own] = -1
    wanted = np.minimum(leaf_sums(problem, problem.capacity), problem.awaiting)[leaf]
    keys = _host_keys(problem, wanted, spread)
    ranked = np.lexsort((*keys, place[leaf], problem.capacity <= 0))
    mine = _slots_in_leaf(rest, own, slot, spread)
    if not len(mine):
        return ranked
    # The places that follow the own one in its leaf come next, then the spare hosts.
    return np.concatenate([mine, ranked[~np.isin(ranked, mine)]])


def _leaf_order(problem: Problem) -> Array:
    """Return the switch indices, best leaf first; switches above leaves end up last."""
    free = leaf_sums(problem, problem.capacity)
    excess = np.maximum(free - problem.awaiting, 0)
    return np.lexsort((problem.tie, excess, -leaf_weights(problem), free <= 0))


def _leaf_of_slot(problem: Problem, order: Array, slot: int) -> tuple[Problem, int, int]:
    """Return the leaf that holds the group's ``slot``-th place, and which place there it is.

    Listing 1 is asked again for what is left after each leaf that is filled; the problem
    returned first is what is left when the turn comes to that leaf.
    """
    free = leaf_sums(problem, problem.capacity)
    slot = slot % max(1, min(problem.awaiting, int(free.sum())))
    best = int(order[0])
    while 0 < free[best] <= slot:
        slot -= int(free[best])
        taken = problem.topology.leaf_index == best
        problem = Problem(
            topology=problem.topology,
            capacity=np.where(taken, 0, problem.capacity),
            members=problem.members,
            awaiting=problem.awaiting - int(free[best]),
            tie=problem.tie,
        )
        best = int(_leaf_order(problem)[0])
    return problem, best, slot


def _host_keys(problem: Problem, wanted: Array, spread: bool) -> tuple[Array, ...]:
    """Return sort keys of hosts inside their leaf, the most important one last."""
    takes = np.minimum(problem.capacity, wanted)
    excess = problem.capacity - takes
    name = problem.topology.name_rank
    if spread:
        return (name, problem.members)
    return (name, excess, -problem.members, -(problem.members + takes))


def _slots_in_leaf(problem: Problem, leaf: int, slot: int, spread: bool) -> Array:
    """Return the hosts of the leaf's places from the ``slot``-th on, each host once."""
    here = np.flatnonzero((problem.topology.leaf_index == leaf) & (problem.capacity > 0))
    capacity = problem.capacity[here].copy()
    members = problem.members[here].copy()
    name = problem.topology.name_rank[here]
    left = min(problem.awaiting, int(capacity.sum()))
    places: list[int] = []
    while left > 0:
        takes = np.minimum(capacity, left)
        if spread:
            best = int(np.lexsort((name, members, capacity <= 0))[0])
            count = 1
        else:
            best = int(
                np.lexsort((name, capacity - takes, -members, -(members + takes), takes <= 0))[0]
            )
            count = int(takes[best])
        places.extend([int(here[best])] * count)
        capacity[best] -= count
        members[best] += count
        left -= count
    turned = places[slot:] + places[:slot]
    return np.array(list(dict.fromkeys(turned)), dtype=np.int64)
