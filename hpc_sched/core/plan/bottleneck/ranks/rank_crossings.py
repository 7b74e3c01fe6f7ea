"""What crosses each switch and host, counted on the places of the ranks.

Crossing is what enters or leaves in one direction, the larger of the two. A crossing over the
capacity of the links that it takes is a load: the highest of all is the bottleneck, the sum over
switches the harm to others. Both are fractions of whole numbers: equal on each machine.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True, eq=False)
class Crossings:
    """Bytes that cross the uplinks of each switch, and the link of each host."""

    switches: Array  # shape (switches,)
    hosts: Array  # shape (hosts,)

    def bottleneck(self, capacities: Capacities) -> Fraction:
        """Return the highest load of switches and hosts, bytes over Mb/s."""
        return max(
            highest_load(self.switches, capacities.switches),
            highest_load(self.hosts, capacities.hosts),
        )

    def harm(self, capacities: Capacities) -> Fraction:
        """Return the sum of the loads of all switches, bytes over Mb/s."""
        return sum_of_loads(self.switches, capacities.switches)


def rank_hosts(
    members: Array, planned: Array, fabric_order: Array, member_hosts: Array | None = None
) -> Array:
    """Return the host of each rank: members first, then new VMs in the order of the fabric.

    :param members: VMs of the group that have a place, by host. Shape (hosts,)
    :param planned: new VMs by host. Shape (hosts,)
    :param fabric_order: the hosts, depth first by names. Shape (hosts,)
    :param member_hosts: of the members, in the order of the group; by default that of the fabric
    """
    if member_hosts is None:
        member_hosts = np.repeat(fabric_order, members[fabric_order])
    return np.concatenate([member_hosts, np.repeat(fabric_order, planned[fabric_order])])


def crossings(topology: Topology, traffic: Traffic, hosts: Array) -> Crossings:
    """Return what crosses each switch and host. O(pairs * levels).

    :param hosts: index in ``topology.hosts`` of the host of each rank. Shape (ranks,)
    """
    # A branch shorter than its siblings has a switch in several rows, each time with the same cut.
    switches = np.zeros(len(topology.switches), dtype=np.int64)
    for row in topology.groups:
        np.maximum(switches, _crossing(traffic, row[hosts], len(switches)), out=switches)
    return Crossings(switches, _crossing(traffic, hosts, len(topology.hosts)))


def _crossing(traffic: Traffic, place: Array, places: int) -> Array:
    """Return what leaves or enters each place, the larger of the two. Shape (places,)."""
    sender, receiver = place[traffic.sender], place[traffic.receiver]
    apart = sender != receiver
    sent = traffic.bytes[apart]
    # bincount() adds floats: they are exact, as all bytes together are far below 2 ** 53.
    out, into = (np.bincount(each[apart], sent, places) for each in (sender, receiver))
    return np.maximum(out, into).astype(np.int64)


def highest_load(crossing: Array, mbps: Array) -> Fraction:
    """Return the highest load, 0 without any. O(n log n) for n crossings with their capacities."""
    by_capacity, index = np.unique(mbps, return_inverse=True)
    most = np.zeros_like(by_capacity)
    np.maximum.at(most, index, crossing)
    return max(_loads(most, by_capacity), default=Fraction(0))


def sum_of_loads(crossing: Array, mbps: Array) -> Fraction:
    """Return the sum of loads. O(n log n) for n crossings with their capacities."""
    by_capacity, index = np.unique(mbps, return_inverse=True)
    sums = np.zeros_like(by_capacity)
    np.add.at(sums, index, crossing)
    return sum(_loads(sums, by_capacity), Fraction(0))


def _loads(crossing: Array, mbps: Array) -> list[Fraction]:
    pairs = zip(crossing.tolist(), mbps.tolist(), strict=True)
    return [Fraction(each, capacity) for each, capacity in pairs if capacity]
