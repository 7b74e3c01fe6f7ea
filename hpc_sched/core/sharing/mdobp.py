"""MDOBP: multi-dimensional online bin packing inside a leaf (Gupta2013)."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Array, Reals

# Attraction, cosines and fullness are compared after rounding to this number of decimals.
DECIMALS = 6

# Which hosts a soft policy of the group prefers: those with more, or with fewer, of its VMs.
_MEMBERS_FIRST = {"soft-affinity": 1, "soft-anti-affinity": -1}


@dataclass(frozen=True, slots=True, eq=False)
class MDOBPInput:
    """The demand of one VM and the resources of hosts, in the same order of resources."""

    demand: Reals  # shape (resources,)
    free: Reals  # shape (hosts, resources)
    usable: Reals  # shape (hosts, resources): free resources of the host without any VM
    # 1: hosts with more VMs of the group first; -1: those with fewer first; 0: no difference
    members_first: int = 0
    # Shape (hosts,): what a VM and the VMs of others there gain by sharing the host, see
    # core.sharing.cache_interference; None: nothing anywhere.
    attraction: Reals | None = None

    @classmethod
    def of(
        cls,
        demand: Mapping[str, int],
        free: Sequence[Mapping[str, float]],
        usable: Sequence[Mapping[str, float]],
        *,
        policy: str | None,
        with_disk: bool,
        attraction: Sequence[float] | None = None,
    ) -> "MDOBPInput":
        """Return the input for VMs of a demand: processors, memory and, by option, disk.

        :param demand: resource class to the amount of one VM
        :param free: per host, resource class to free amount
        :param usable: per host, resource class to free amount without any VM
        :param policy: of the server group; a soft one comes before the angle
        :param with_disk: whether disk counts
        :param attraction: per host, as the field; it comes before the angle
        """
        cpu = "VCPU" if demand.get("VCPU") else "PCPU"
        names = [cpu, "MEMORY_MB", *(["DISK_GB"] if with_disk else [])]
        wanted = {**demand, cpu: demand.get("VCPU", 0) + demand.get("PCPU", 0)}

        def rows(hosts: Sequence[Mapping[str, float]]) -> Reals:
            values = [[host.get(name, 0.0) for name in names] for host in hosts]
            return np.array(values, dtype=np.float64).reshape(-1, len(names))

        return cls(
            demand=np.array([float(wanted.get(name, 0)) for name in names]),
            free=rows(free),
            usable=rows(usable),
            members_first=_MEMBERS_FIRST.get(policy or "", 0),
            attraction=None if attraction is None else np.array(attraction, dtype=np.float64),
        )

    def after(self, placed: Array) -> "MDOBPInput":
        """Return the input once hosts have taken VMs. ``placed``: shape (hosts,)."""
        return replace(self, free=self.free - np.outer(placed, self.demand))


def order(packing: MDOBPInput, members: Array, name_rank: Array) -> Array:
    """Return the hosts in the order in which MDOBP takes them (Gupta2013), best first.

    By the angle between the demand of a VM and the free resources of a host, smallest first;
    each resource is a share of the host's usable amount. Equal angles: the fuller host, then the
    name. Before the angle come a soft policy of the group, then the attraction of the VMs of
    others, greatest first. O(hosts log hosts).

    :param members: VMs of the group per host; shape (hosts,)
    :param name_rank: rank of each host by name; shape (hosts,)
    :returns: indices of all hosts; shape (hosts,)
    """
    every = np.arange(len(packing.free))
    return np.lexsort(_keys(packing, members, name_rank, every, np.zeros_like(every))[::-1])


def places(
    packing: MDOBPInput, members: Array, name_rank: Array, capacity: Array, hosts: Array, count: int
) -> list[int]:
    """Return the host of each of ``count`` VMs that MDOBP places one after the other.

    Each VM goes to the first host with room of :func:`order`, given the VMs before it.
    O(hosts + count * log hosts).

    :param capacity: VMs that each host still takes; shape (hosts,)
    :param hosts: indices of the hosts to choose from; together they must have room for all VMs
    """

    def entries(at: Array, given: Array) -> Iterator[tuple[Any, ...]]:
        keys = (*_keys(packing, members, name_rank, at, given), at)
        return zip(*(key.tolist() for key in keys), strict=True)

    heap = list(entries(hosts, np.zeros_like(hosts)))
    heapq.heapify(heap)
    taken = dict.fromkeys(hosts.tolist(), 0)
    chosen: list[int] = []
    while len(chosen) < count:
        *_, host = heapq.heappop(heap)
        chosen.append(host)
        taken[host] += 1
        if taken[host] < capacity[host]:
            [entry] = entries(np.array([host]), np.array([taken[host]]))
            heapq.heappush(heap, entry)
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class UnplannedVMs:
    """A single VM, or VMs of class ``none``, before the first is placed. Arrays are read-only.

    There is no topology, no constraint and no processor type. Rows are hypervisors.
    """

    packing: MDOBPInput
    members: Array  # shape (hypervisors,): VMs of the server group there, for a soft policy
    name_rank: Array  # shape (hypervisors,)
    room: Array  # shape (hypervisors,): VMs of the request that each takes

    def keys(self, placed: Array, lost: Array) -> Array:
        """Return the sort key of each hypervisor for the next VM, smallest first.

        Its place in MDOBP's order; those that are full come after all others, those that lost a
        claim of the request after these. Shape (hypervisors,). O(hypervisors log hypervisors).

        :param placed: VMs of the request on each, shape (hypervisors,)
        :param lost: rows of those that lost a claim, shape (lost,)
        """
        ranked = order(self.packing.after(placed), self.members + placed, self.name_rank)
        keys = np.empty(len(ranked), dtype=np.int64)
        keys[ranked] = np.arange(len(ranked))
        keys[placed >= self.room] += len(ranked)
        keys[lost] += 2 * len(ranked)
        return keys


def _keys(
    packing: MDOBPInput, members: Array, name_rank: Array, hosts: Array, given: Array
) -> tuple[Array, Reals, Reals, Reals, Array]:
    """Return sort keys of hosts after ``given`` VMs on each, primary key first."""
    usable = packing.usable[hosts]
    free = np.maximum(packing.free[hosts] - np.outer(given, packing.demand), 0.0)
    has = usable > 0
    shares = np.divide(free, usable, out=np.zeros_like(free), where=has)
    wants = np.divide(packing.demand, usable, out=np.zeros_like(free), where=has)
    lengths = np.sqrt((shares * shares).sum(axis=1) * (wants * wants).sum(axis=1))
    dot = (shares * wants).sum(axis=1)
    cosine = np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0)
    in_group = -packing.members_first * (members[hosts] + given)
    attraction = np.zeros(len(hosts)) if packing.attraction is None else packing.attraction[hosts]
    # A fuller host has a smaller sum of free shares.
    left = np.round(shares.sum(axis=1), DECIMALS)
    attraction = np.round(attraction, DECIMALS)
    return in_group, -attraction, -np.round(cosine, DECIMALS), left, name_rank[hosts]
