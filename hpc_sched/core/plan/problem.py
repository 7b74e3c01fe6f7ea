"""One group to place: the value that every algorithm of this package works on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A group, what it has and what it wants, on one fabric.

    Arrays are in the order of ``topology.hosts`` (shape (hosts,)) or ``topology.switches``
    (shape (switches,)) and are not changed by anyone.
    """

    topology: Topology
    capacity: NDArray[np.int64]  # per host: how many more VMs it takes; 0 where not a candidate
    members: NDArray[np.int64]  # per host: VMs of the group that have their place there
    awaiting: int  # VMs of the group that still want a place
    tie: NDArray[np.int64]  # per switch: place in the group's own order of equals
    constraints: Constraints = NO_CONSTRAINTS
    # Whether VMs on one host are nearer to each other than VMs under one leaf. Not for groups
    # that would rather have their VMs on different hosts.
    pack_hosts: bool = True
    # How hosts are chosen inside a leaf where MDOBP does that; ``pack_hosts`` is False then.
    packing: MDOBPInput | None = None

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

        A host that the topology does not name is a leaf of its own, as
        :meth:`Topology.including` has it.

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
            capacity=_counts(fabric, capacity),
            members=_counts(fabric, members),
            awaiting=awaiting,
            tie=tie_order(fabric, group_id),
        )


def _counts(topology: Topology, counts: Mapping[str, int]) -> NDArray[np.int64]:
    array = np.zeros(len(topology.hosts), dtype=np.int64)
    for host, count in counts.items():
        array[topology.index_of(host)] = count
    return array


def tie_order(topology: Topology, group_id: str) -> NDArray[np.int64]:
    """Return each switch's place in the order in which a group takes equal switches.

    Sorted by (blake2b of group id and switch name, name): the same for the same group
    whatever PYTHONHASHSEED is, and different for two groups, so that groups scheduled at the
    same time start in different leaves. Shape (switches,).
    """
    salt = group_id.encode() + b"\0"

    def key(s: int) -> tuple[bytes, str]:
        name = topology.switches[s].name
        return hashlib.blake2b(salt + name.encode(), digest_size=8).digest(), name

    order = np.empty(len(topology.switches), dtype=np.int64)
    order[sorted(range(len(topology.switches)), key=key)] = np.arange(len(topology.switches))
    return order
