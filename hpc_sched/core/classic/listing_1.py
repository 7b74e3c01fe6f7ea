"""Listing 1 of Dudina2013: fill the leaf switches that hold most of the group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan.leaf_hosts import leaf_hosts, places
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import move_to_front
from hpc_sched.core.plan.switch_rooms import leaf_sums
from hpc_sched.topology.model import Topology

Array = NDArray[np.int64]


def listing1(
    *, topology: Topology, capacity: Mapping[str, int], members: Mapping[str, int], awaiting: int
) -> dict[str, int]:
    """Return the weight of every leaf (Dudina2013, Listing 1).

    The weight is first * (maxsize + 1) + second. ``first`` is members in the leaf + min(free
    capacity of the leaf, awaiting); ``second`` is members in the leaf; ``maxsize`` is the
    largest number of hosts, or of members, of any leaf.

    :param capacity: host to the number of VMs that it still takes
    :param members: host to the number of the group's VMs on it
    :param awaiting: VMs of the group without a place
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
    """Return Listing 1's weight per leaf; 0 for switches above. Shape (switches,)."""
    return _Leaves.of(problem).weights()


def host_order(problem: Problem, *, slot: int = 0) -> Array:
    """Return the hosts in the order in which one VM tries them, best first.

    Leaves by Listing 1; equal leaves by less excess capacity, then by tie order. Full hosts come
    last. The VM's own place, the ``slot``-th of the group, and its leaf come first: so VMs
    scheduled in parallel try different hosts.

    Inside a leaf the same rule orders hosts, which fills the fewest; if the problem does not
    pack hosts, hosts with fewer members come first. O(hosts log hosts), and O(switches) more for
    every leaf that the places before the slot fill.

    :param slot: which of the group's places belongs to the VM, from 0
    :returns: indices into ``topology.hosts``, all of them; shape (hosts,)
    """
    leaf = problem.topology.leaf_index
    leaves = _Leaves.of(problem)
    order = leaves.order()
    own, slot, left = _leaf_of_slot(leaves, slot)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    place[own] = -1
    keys = _host_keys(problem, np.minimum(leaves.free, problem.awaiting)[leaf])
    ranked = np.lexsort((*keys, place[leaf], problem.capacity <= 0))
    return move_to_front(_slots_in_leaf(problem, own, slot, left), ranked)


def group_places(problem: Problem) -> list[int]:
    """Return the host of each awaiting VM, as Listing 1 places one after the other.

    Fewer places than VMs if there is not enough room. O(hosts) for every leaf that is filled.

    :returns: indices into ``topology.hosts``
    """
    # Listing 1 keeps to a leaf until it is full: a VM there lowers the free capacity in
    # ``first`` by one and raises ``second``. So hosts are ordered once a leaf, not once a VM.
    left = _Leaves.of(problem)
    places: list[int] = []
    while left.awaiting:
        best = left.best()
        if left.free[best] <= 0:
            break
        chosen = _slots_in_leaf(problem, best, 0, left.awaiting)
        places += chosen
        left.fill(best, len(chosen))
    return places


@dataclass(slots=True)
class _Leaves:
    """The numbers of Listing 1. Arrays have the shape (switches,), 0 for switches above leaves."""

    free: Array  # capacity
    members: Array
    maxsize: int
    awaiting: int
    tie: Array  # rank of each switch among equals

    @classmethod
    def of(cls, problem: Problem) -> "_Leaves":
        members = leaf_sums(problem, problem.members)
        sizes = leaf_sums(problem, np.ones_like(problem.members))
        return cls(
            free=leaf_sums(problem, problem.capacity),
            members=members,
            maxsize=int(max(sizes.max(initial=0), members.max(initial=0))),
            awaiting=problem.awaiting,
            tie=problem.tie,
        )

    def fill(self, leaf: int, count: int) -> None:
        """Count VMs that have filled a leaf, or all awaiting VMs."""
        self.awaiting -= count
        self.free[leaf] = 0

    def weights(self) -> Array:
        first = self.members + np.minimum(self.free, self.awaiting)
        weights: Array = first * (self.maxsize + 1) + self.members
        return weights

    def _keys(self) -> tuple[NDArray[Any], ...]:
        excess = np.maximum(self.free - self.awaiting, 0)
        return (self.tie, excess, -self.weights(), self.free <= 0)

    def order(self) -> Array:
        """Return the switch indices, best leaf first, switches without capacity last."""
        return np.lexsort(self._keys())

    def best(self) -> int:
        """Return the first of :meth:`order`, without sorting."""
        left = np.arange(len(self.free))
        for key in reversed(self._keys()):
            left = left[key[left] == key[left].min()]
        return int(left[0])


def _leaf_of_slot(leaves: _Leaves, slot: int) -> tuple[int, int, int]:
    """Return the leaf of the group's ``slot``-th place, the number of the place in it, and the
    VMs that await a place when Listing 1 comes to that leaf.
    """
    left = replace(leaves, free=leaves.free.copy())
    slot = slot % max(1, min(left.awaiting, int(left.free.sum())))
    best = left.best()
    while 0 < left.free[best] <= slot:
        filled = int(left.free[best])
        slot -= filled
        left.fill(best, filled)
        best = left.best()
    return best, slot, left.awaiting


def _host_keys(problem: Problem, wanted: Array) -> tuple[Array, ...]:
    """Return sort keys of hosts inside their leaf, primary key last. Shape (hosts,) each.

    :param wanted: shape (hosts,): VMs that go to the host's leaf
    """
    takes = np.minimum(problem.capacity, wanted)
    excess = problem.capacity - takes
    name = problem.topology.name_rank
    if not problem.pack_hosts:
        return (name, problem.members)
    return (name, excess, -problem.members, -(problem.members + takes))


def _slots_in_leaf(problem: Problem, leaf: int, slot: int, awaiting: int) -> list[int]:
    """Return the hosts of a leaf's places in turn, from the ``slot``-th on."""
    here = np.flatnonzero((problem.topology.leaf_index == leaf) & (problem.capacity > 0))
    wanted = min(awaiting, int(problem.capacity[here].sum()))
    if not wanted:
        return []
    chosen = places(problem, leaf_hosts(problem, wanted, here)[leaf], wanted)
    return chosen[slot:] + chosen[:slot]
