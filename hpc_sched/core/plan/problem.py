"""The problem that the algorithms solve, a group of VMs and the room on hosts; VMs per leaf."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.plan.objective import Objective
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True, eq=False)
class KeptSums:
    """Numbers per host and their sums by leaf, kept by a caller that plans again and again."""

    per_host: Array
    by_leaf: Array  # 0 for switches above leaves. Shape (switches,)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """How many VMs each host of a fabric takes, and the group. Arrays are read-only.

    A GroupRequest makes it of hypervisors and policies; an algorithm reads nothing else.
    """

    topology: Topology
    # Shape (hosts,): VMs that each host still takes; 0 if it is not a candidate.
    capacity: Array
    members: Array  # shape (hosts,): VMs of the group that have a place
    awaiting: int  # VMs of the group without a place
    tie: TieOrder  # of equal switches
    constraints: Constraints = NO_CONSTRAINTS
    placing: int | None = None  # of the VMs of a plan those that are placed now; None: all
    # Whether VMs on one host count as nearer than VMs under one leaf. False with a policy of
    # soft anti-affinity, and if MDOBP chooses the hosts inside a leaf.
    pack_hosts: bool = True
    packing: MDOBPInput | None = None  # the input of MDOBP, if it chooses hosts; rows per host
    kept: KeptSums | None = None  # read where its numbers are the very array of the capacity
    objective: Objective | None = None  # None: the least Hop-Byte
    price: FragmentationPrice | None = None  # None: each plan is best for itself

    @classmethod
    def from_counts(
        cls,
        *,
        topology: Topology,
        capacity: Mapping[str, int],
        members: Mapping[str, int],
        awaiting: int,
        group_id: str = "",
    ) -> "Problem":
        """Return the problem of counts per host name; hosts without an entry count 0.

        A host that is missing in the topology is a leaf of its own, see
        :meth:`Topology.including`.

        :raises ValueError: for a negative number
        """
        for what, counts in (("capacity", capacity), ("members", members)):
            wrong = sorted(host for host, count in counts.items() if count < 0)
            if wrong:
                raise ValueError(f"{what} of host {wrong[0]!r} is negative")
        if awaiting < 0:
            raise ValueError(f"awaiting is negative: {awaiting}")
        fabric = topology.including([*capacity, *members])
        return cls(
            topology=fabric,
            capacity=host_counts(fabric, capacity),
            members=host_counts(fabric, members),
            awaiting=awaiting,
            tie=TieOrder(fabric, group_id),
        )

    def bounded(self, most: int) -> "Problem":
        """Return the problem with at most ``most`` VMs of the group, members included, a host."""
        return replace(self, capacity=np.minimum(self.capacity, np.maximum(most - self.members, 0)))


@dataclass(frozen=True, slots=True)
class LeafCounts:
    """New VMs per leaf, all below one switch. Indices in ``topology.switches``."""

    top: int  # the switch of the required level, or root
    counts: Mapping[int, int]  # leaf to VMs
    is_proven: bool = True  # whether no other counts are better


def host_counts(topology: Topology, counts: Mapping[str, int]) -> Array:
    """Return counts by name of host as an array. Shape (hosts,)."""
    array = np.zeros(len(topology.hosts), dtype=np.int64)
    for host, count in counts.items():
        array[topology.index_of(host)] = count
    return array


def leaf_sums(problem: Problem, per_host: Array | Mask) -> Array:
    """Return the sums of numbers per host, by leaf; 0 for switches above. Shape (switches,)."""
    topology = problem.topology
    sums = np.bincount(topology.leaf_index, weights=per_host, minlength=len(topology.switches))
    return sums.astype(np.int64)


def leaf_room(problem: Problem) -> Array:
    """Return the capacity of each leaf; 0 for switches above. Shape (switches,)."""
    kept = problem.kept
    if kept is not None and kept.per_host is problem.capacity:
        return kept.by_leaf
    return leaf_sums(problem, problem.capacity)


def leaf_members(problem: Problem) -> Array:
    """Return the members in each leaf; 0 for switches above. Shape (switches,)."""
    [hosts] = problem.members.nonzero()
    leaf, number = problem.topology.leaf_index[hosts], len(problem.topology.switches)
    return np.bincount(leaf, problem.members[hosts], number).astype(np.int64)
