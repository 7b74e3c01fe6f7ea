"""The hosts with room for a group by leaf, in the order in which a leaf is filled."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.problem import Problem


def filled_in_runs(rooms: Array, starts: Array, number: Array, most: Array | int) -> Array:
    """Return the VMs of places that are filled one after the other in each run of them.

    :param starts: the first place of each run; ``number``: its places
    :param most: VMs of the run of each place
    """
    before = rooms.cumsum() - rooms
    before -= before[starts].repeat(number)
    return np.minimum(np.maximum(most - before, 0), rooms)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedHosts:
    """The hosts with room by leaf; in a leaf those with most members, then with most room, first.

    There is one at least. Arrays have the shape (hosts,), or (leaves,) in the order of the leaves.
    """

    capacity: Array  # at most the VMs of the group
    members: Array
    starts: Array  # the first host of each leaf
    number: Array  # hosts of each leaf
    largest: Array  # capacity of the largest host of each leaf

    @classmethod
    def of(cls, problem: Problem, most: int) -> "OrderedHosts":
        """Return the hosts with room, for up to ``most`` VMs. O(hosts log hosts).

        :raises OverflowError: for numbers of VMs of which no score fits into 62 bits
        """
        [is_open] = (problem.capacity > 0).nonzero()
        leaf, capacity = problem.topology.leaf_index[is_open], problem.capacity[is_open]
        members = problem.members[is_open]
        # One number a host: to sort these takes a tenth of the time of sorting by three keys, and
        # still less if they are short.
        roomiest, largest = min(int(capacity.max()), most), int(members.max())
        of_capacity, of_members = roomiest.bit_length(), largest.bit_length()
        bits = int(leaf.max()).bit_length() + of_capacity + of_members
        if bits > 62:
            raise OverflowError("hosts, members and VMs do not fit into 62 bits")
        keys = leaf << of_members
        if largest:
            keys += largest - members
        keys <<= of_capacity
        keys += roomiest - np.minimum(capacity, roomiest)
        if bits < 16:
            keys = np.sort(keys.astype(np.int16), kind="stable").astype(np.int64)
        else:
            keys.sort()
        capacity = roomiest - (keys & ((1 << of_capacity) - 1))
        keys >>= of_capacity
        members = largest - (keys & ((1 << of_members) - 1)) if largest else np.zeros_like(keys)
        keys >>= of_members
        starts = np.concatenate(([0], (keys[1:] != keys[:-1]).nonzero()[0] + 1))
        number = np.concatenate((starts[1:], [len(keys)])) - starts
        return cls(capacity, members, starts, number, np.maximum.reduceat(capacity, starts))
