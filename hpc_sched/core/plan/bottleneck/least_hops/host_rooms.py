"""The room of hosts within a bottleneck, for the VMs that each leaf takes."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import HostKind
from hpc_sched.core.plan.bottleneck.least_hops.bounded_tree import Savings
from hpc_sched.core.plan.bottleneck.least_hops.pairs_on_hosts import heavy_of, light
from hpc_sched.core.plan.problem import Problem


def host_rooms(problem: Problem, links: Array, savings: Savings, taken: Mapping[int, int]) -> Array:
    """Return how many VMs hosts take, so that any choice of hosts in a leaf keeps the bottleneck.

    Hosts of leaves that take no VMs have none. O(hosts).

    :param links: capacity of each host's links. Shape (hosts,)
    :param taken: new VMs by leaf
    :returns: shape (hosts,)
    """
    counts = savings.counts
    fabric = counts.fabric
    caps: dict[HostKind, int] = {}
    rooms = np.zeros_like(problem.capacity)
    for leaf, hosts in leaf_hosts.open_hosts(problem, list(taken)).items():
        room = np.minimum(problem.capacity[hosts], fabric.count)
        keys = zip(
            room.tolist(), problem.members[hosts].tolist(), links[hosts].tolist(), strict=True
        )
        kinds = [HostKind(*key) for key in keys]
        for kind in set(kinds).difference(caps):
            caps[kind] = max(light(counts.of_host(kind), kind, fabric.everyone), 0)
        rooms[hosts] = [caps[kind] for kind in kinds]
        below = fabric.kinds[fabric.kind_of[leaf]]
        heavy = heavy_of(below, taken[leaf], counts, savings.never, pack_hosts=savings.pack_hosts)
        # One without room has no choice.
        if heavy is not None and heavy.kind.room:
            found = hosts[[kind == heavy.kind for kind in kinds]]
            one = found[np.lexsort((problem.topology.name_rank[found], problem.capacity[found]))[0]]
            rooms[one] = 0
            # No room for any other choice: with fewer VMs a host might carry more traffic.
            left = taken[leaf] - heavy.vms
            within = replace(problem, capacity=rooms.copy())
            others = leaf_hosts.places(within, hosts[rooms[hosts] > 0], left) if left else []
            rooms[hosts] = 0
            np.add.at(rooms, others, 1)
            rooms[one] = heavy.vms
    return rooms


def vms_per_host(problem: Problem, counts: Mapping[int, int]) -> Array:
    """Return the VMs of each host if leaves take some, within the problem. Shape (hosts,)."""
    places = leaf_hosts.places_in(counts, problem)
    return np.bincount(places, minlength=len(problem.capacity)).astype(np.int64)
