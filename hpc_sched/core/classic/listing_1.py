"""Listing 1 of Dudina2013: fill the leaf switches that hold most of the group."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.leaf_hosts import open_hosts, places
from hpc_sched.core.plan.problem import Problem, leaf_sums
from hpc_sched.core.plan.ranking import move_to_front
from hpc_sched.topology.model import Topology


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
    return _Leaves(problem).weights()


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
    leaves = _Leaves(problem)
    place = np.argsort(np.lexsort(leaves.keys()))
    name = problem.topology.name_rank
    keys: tuple[Array, ...] = (name, problem.members)
    if problem.pack_hosts:
        takes = np.minimum(problem.capacity, np.minimum(leaves.free, problem.awaiting)[leaf])
        keys = (name, problem.capacity - takes, -problem.members, -(problem.members + takes))
    slot %= max(1, min(problem.awaiting, int(leaves.free.sum())))
    own: list[int] = []
    for best, count in leaves.filled():
        if slot < count:
            place[best] = -1
            own = _places_in_leaf(problem, best, count)
            own = own[slot:] + own[:slot]
            break
        slot -= count
    return move_to_front(own, np.lexsort((*keys, place[leaf], problem.capacity <= 0)))


def group_places(problem: Problem) -> list[int]:
    """Return the host of each awaiting VM, as Listing 1 places one after the other.

    Fewer places than VMs if there is not enough room. O(hosts) for every leaf that is filled.

    :returns: indices into ``topology.hosts``
    """
    filled = _Leaves(problem).filled()
    return [host for leaf, count in filled for host in _places_in_leaf(problem, leaf, count)]


class _Leaves:
    """The numbers of Listing 1. Arrays have the shape (switches,), 0 for switches above leaves."""

    def __init__(self, problem: Problem) -> None:
        self.free = leaf_sums(problem, problem.capacity)
        self.members = leaf_sums(problem, problem.members)
        sizes = leaf_sums(problem, np.ones_like(problem.members))
        self.maxsize = int(max(sizes.max(initial=0), self.members.max(initial=0)))
        self.awaiting = problem.awaiting
        self.tie = problem.tie.ranks  # rank of each switch among equals

    def weights(self) -> Array:
        first = self.members + np.minimum(self.free, self.awaiting)
        weights: Array = first * (self.maxsize + 1) + self.members
        return weights

    def keys(self) -> tuple[NDArray[Any], ...]:
        """Return the sort keys of leaves, primary key last: switches without capacity are last."""
        excess = np.maximum(self.free - self.awaiting, 0)
        return (self.tie, excess, -self.weights(), self.free <= 0)

    def filled(self) -> Iterator[tuple[int, int]]:
        """Yield each leaf in which Listing 1 places VMs, and their number; uses up the capacity.

        Listing 1 keeps to a leaf until it is full: a VM there lowers the free capacity in
        ``first`` by one and raises ``second``. So hosts are ordered once a leaf, not once a VM.
        """
        while self.awaiting > 0:
            left = np.arange(len(self.free))
            for key in reversed(self.keys()):
                left = left[key[left] == key[left].min()]
            best = int(left[0])
            count = min(int(self.free[best]), self.awaiting)
            if count <= 0:
                return
            yield best, count
            self.awaiting -= count
            self.free[best] = 0


def _places_in_leaf(problem: Problem, leaf: int, count: int) -> list[int]:
    return places(problem, open_hosts(problem, [leaf])[leaf], count)
