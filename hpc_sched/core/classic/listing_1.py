"""Listing 1 of Dudina2013: fill the leaf switches where most of the group can stand together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan.leaf_hosts import leaf_hosts, places
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import first_then
from hpc_sched.core.plan.switch_rooms import leaf_sums
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
    return _Leaves.of(problem).weights()


def host_order(problem: Problem, *, slot: int = 0) -> Array:
    """Return the hosts in the order in which one awaiting VM should try them, best first.

    Leaves by Listing 1, equal ones by less excess capacity, then by the group's tie order;
    hosts that take no more VMs come last. Only the VM's own slot departs from that order: the
    leaf that holds the ``slot``-th place of the group leads, and in it the host of that place,
    so that VMs scheduled in parallel do not run for one host.

    Inside a leaf the same rule holds one level down, which fills the fewest hosts; where the
    problem does not pack hosts those with fewer members come first. O(hosts log hosts), and
    O(switches) more for every leaf that the places before the slot fill.

    :param slot: which of the group's places belongs to the VM, from 0
    :returns: indices into ``topology.hosts``, all of them
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
    # The places that follow the own one in its leaf come next, then the spare hosts.
    return first_then(_slots_in_leaf(problem, own, slot, left), ranked)


def group_places(problem: Problem) -> list[int]:
    """Return the host of each awaiting VM, as Listing 1 places one after the other.

    The leaf that Listing 1 chooses stays its choice until it is full: what a VM takes of
    ``first`` it adds to ``second``. So hosts are ordered once a leaf and not once a VM. Fewer
    places than VMs where there is not more room. O(hosts) for every leaf that is filled.

    :returns: indices into ``topology.hosts``
    """
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
    """The numbers of Listing 1 by switch index; switches above leaves have no capacity."""

    free: Array
    members: Array
    maxsize: int
    awaiting: int
    tie: Array

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
        """Count VMs that have taken all the room of a leaf, or all that were awaiting."""
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
        """Return the switch indices, best leaf first, those without capacity last."""
        return np.lexsort(self._keys())

    def best(self) -> int:
        """Return the first of :meth:`order`, without sorting."""
        left = np.arange(len(self.free))
        for key in reversed(self._keys()):
            left = left[key[left] == key[left].min()]
        return int(left[0])


def _leaf_of_slot(leaves: _Leaves, slot: int) -> tuple[int, int, int]:
    """Return the leaf that holds the group's ``slot``-th place, and which place there it is.

    Listing 1 is asked again for what is left after each leaf that is filled; what is left for
    the leaf that is found is returned too.
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
    """Return sort keys of hosts inside their leaf, the most important one last."""
    takes = np.minimum(problem.capacity, wanted)
    excess = problem.capacity - takes
    name = problem.topology.name_rank
    if not problem.pack_hosts:
        return (name, problem.members)
    return (name, excess, -problem.members, -(problem.members + takes))


def _slots_in_leaf(problem: Problem, leaf: int, slot: int, awaiting: int) -> list[int]:
    """Return the hosts of the leaf's places from the ``slot``-th on, then of those before it."""
    here = np.flatnonzero((problem.topology.leaf_index == leaf) & (problem.capacity > 0))
    wanted = min(awaiting, int(problem.capacity[here].sum()))
    if not wanted:
        return []
    chosen = places(problem, leaf_hosts(problem, wanted, here)[leaf], wanted)
    return chosen[slot:] + chosen[:slot]
