"""Pairs of hosts whose distance differs between two fabrics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class HopChange:
    """Number of pairs of hosts with one distance before and another now."""

    pairs: int
    old: float  # hops; infinite between islands
    new: float


def between(old: Topology, new: Topology, hosts: Sequence[str]) -> tuple[HopChange, ...]:
    """Return the pairs of hosts with another distance, by old and new distance.

    Counts, for each two levels, the pairs that meet below both of them. O(hosts * depth**2),
    times the logarithm that sorting costs.

    :param hosts: those of both fabrics
    """
    if len(hosts) < 2:
        return ()
    before = old.groups[:, [old.index_of(host) for host in hosts]]
    after = new.groups[:, [new.index_of(host) for host in hosts]]
    # On one more level all pairs meet, for those that are infinitely far apart.
    top = np.zeros((1, len(hosts)), dtype=np.int64)
    before, after = np.vstack([before, top]), np.vstack([after, top])
    shared = np.zeros((len(before) + 1, len(after) + 1), dtype=np.int64)
    for a, row in enumerate(before, start=1):
        for b, other in enumerate(after, start=1):
            sizes = np.unique(row * len(new.switches) + other, return_counts=True)[1]
            shared[a, b] = (sizes * (sizes - 1) // 2).sum()
    exact = np.diff(np.diff(shared, axis=0), axis=1)
    distances = [[*range(1, 2 * topology.depth, 2), math.inf] for topology in (old, new)]
    return tuple(
        HopChange(int(exact[a, b]), was, now)
        for a, was in enumerate(distances[0])
        for b, now in enumerate(distances[1])
        if exact[a, b] and was != now
    )
