"""The order in which single VMs fill broken switches, so that whole leaves and pods stay free.

The measure is the fragmentation price of one VM, ``a * room of its leaf / S1 + b * room of its pod
/ S2``, with the rates as delivered: room is what the hosts below the switch still take of its
flavor, and S what the largest switch of the level takes when it is empty. There is no term for a
root.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.fragmentation.price import LEAF, POD, empty_hosts
from hpc_sched.core.fragmentation.rates import DEFAULT
from hpc_sched.topology.model import Topology

# As whole numbers.
LEAF_RATE, POD_RATE = (int(10 * rate) for rate in (DEFAULT.leaf, DEFAULT.pod))
# More VMs of one flavor than a host takes: products of rooms fit into 63 bits on 100,000 hosts.
MOST = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class FillOrder:
    """The order of hypervisors for VMs of one flavor. A row is a hypervisor."""

    leaf: Array  # number of the leaf above each row, shape (rows,)
    # The leaf's own switch, then its pod, by leaf, and the factor in the price.
    levels: tuple[tuple[Array, int], ...]

    @classmethod
    def of(cls, topology: Topology, hosts: Array, slots: Array) -> Self:
        """Return the order on a topology. O(hosts).

        Hosts without a row count like the largest row: which of them are full does not matter.

        :param hosts: index in ``topology.hosts`` of each row, shape (rows,)
        :param slots: VMs that each row takes when it is empty, shape (rows,)
        """
        empty = empty_hosts(topology, hosts, np.clip(slots, 0, MOST))
        leaf = np.searchsorted(topology.leaf_switches, topology.leaf_index)
        paths = topology.leaf_path[: min(POD, max(topology.depth - 1, LEAF))]
        by_leaf = np.bincount(leaf, weights=empty).astype(np.int64)
        largest = [max(int(_below(path, by_leaf).max()), 1) for path in paths]
        # The price in tenths, times S1 and S2: whole numbers, of which equal ones are equal.
        factors = [LEAF_RATE]
        if len(largest) > 1:
            factors = [LEAF_RATE * largest[1], POD_RATE * largest[0]]
        return cls(leaf[hosts], tuple(zip(paths, factors, strict=True)))

    def keys(self, room: Array, in_use: Mask) -> Array:
        """Return the sort key of each row for the next VM, smallest first. Shape (rows,).

        The price, then hosts with VMs before those without, then the fuller first. Equal where
        these are equal. O(rows + leaves log leaves).

        :param room: VMs that each still takes, shape (rows,)
        :param in_use: whether each has VMs, shape (rows,)
        """
        left = np.clip(room, 0, MOST)
        leaves = len(self.levels[0][0])
        # Such sums are below 2 ** 53: exact as floats.
        by_leaf = np.bincount(self.leaf, weights=left, minlength=leaves).astype(np.int64)
        prices = [factor * _below(path, by_leaf) for path, factor in self.levels]
        price = np.unique(np.sum(prices, axis=0), return_inverse=True)[1]
        keys: Array = (2 * price[self.leaf] + ~in_use) * (MOST + 1) + left
        return keys


def _below(path: Array, by_leaf: Array) -> Array:
    """Return for each leaf the sum over the leaves below the same switch. Shape (leaves,)."""
    return np.bincount(path, weights=by_leaf)[path].astype(np.int64)
