"""The VMs that hosts of a leaf take within a bottleneck, so that most pairs share a host."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import HostKind, Kind
from hpc_sched.core.plan.maxplus import maxplus


@dataclass(frozen=True, slots=True)
class HeavyHost:
    """A host that has more than half of the group."""

    kind: HostKind
    vms: int  # new VMs on it


def pairs_on_hosts(leaf: Kind, counts: AchievableCounts, never: int) -> Array:
    """Return the most pairs on one host that 0, 1, 2 .. new VMs in a leaf add.

    No more than one host can have more than half of the group. So a leaf's best is that without
    such a host, or that with one of them and the others.

    :param never: in place of pairs for numbers that hosts do not take within the bottleneck
    :returns: shape (VMs + 1,)
    """
    best = pairs_without_heavy(leaf.hosts, counts, never)
    for heavy in heavy_hosts(leaf, counts):
        best = _greatest(best, pairs_with_heavy(leaf, heavy, counts, never))
    return best


def pairs_with_heavy(leaf: Kind, heavy: HeavyHost, counts: AchievableCounts, never: int) -> Array:
    """Return the pairs as :func:`pairs_on_hosts` does, if one host has more than half."""
    left = ((host, number - (host == heavy.kind)) for host, number in leaf.hosts)
    others = pairs_without_heavy(
        tuple((host, number) for host, number in left if number), counts, never
    )
    alone = np.full(heavy.vms + 1, never)
    alone[-1] = _pairs(heavy.kind.members, heavy.vms)
    return np.maximum(maxplus(alone, others, counts.fabric.count), never)


def heavy_hosts(kind: Kind, counts: AchievableCounts) -> Iterator[HeavyHost]:
    """Yield each kind of host of a leaf that may take more than half of the group, most first."""
    for host, _ in kind.hosts:
        few = light(counts.of_host(host), host, counts.fabric.everyone)
        for vms in range(host.room, few, -1):
            if counts.of_host(host) >> vms & 1:
                yield HeavyHost(host, vms)


def light(counts: int, host: HostKind, everyone: int) -> int:
    """Return the most new VMs on a host that has no more than half of the group; -1 if none."""
    half = (1 << max(everyone // 2 - host.members + 1, 0)) - 1
    return (counts & half).bit_length() - 1


def pairs_without_heavy(
    hosts: tuple[tuple[HostKind, int], ...], counts: AchievableCounts, never: int
) -> Array:
    """Return the most pairs if no host has more than half of the group. Shape (VMs + 1,).

    Of hosts with the same members the largest are filled first, for pairs on a host are convex.
    """
    most = counts.fabric.count
    by_members: dict[int, list[tuple[int, int]]] = {}
    for host, number in hosts:
        takes = light(counts.of_host(host), host, counts.fabric.everyone)
        if takes < 0:
            return np.full(1, never)
        by_members.setdefault(host.members, []).append((takes, number))
    table = np.zeros(1, dtype=np.int64)
    for members, rooms in by_members.items():
        sizes = itertools.chain.from_iterable(
            itertools.repeat(takes, number) for takes, number in sorted(rooms, reverse=True)
        )
        table = maxplus(table, _filled(members, sizes, most), most)
    return table


def _filled(members: int, sizes: Iterator[int], most: int) -> Array:
    added: list[int] = []
    for takes in sizes:
        if len(added) >= most or not takes:
            break
        added += range(members, members + min(takes, most - len(added)))
    return np.concatenate(([0], np.cumsum(np.array(added, dtype=np.int64))))


def _greatest(one: Array, other: Array) -> Array:
    """Return the greatest of two tables at each number, the longer one's where one ends."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    found = longer.copy()
    found[: len(shorter)] = np.maximum(found[: len(shorter)], shorter)
    return found


def _pairs(members: int, vms: int) -> int:
    return vms * (vms - 1 + 2 * members) // 2
