"""The VMs that hosts of a leaf take within a bottleneck, so that most pairs share a host."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import HostKind, Kind
from hpc_sched.core.plan.maxplus import maxplus, splits


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
    for _, heavy, others in _with_heavy(leaf, counts, never):
        best = _greatest(best, np.maximum(maxplus(heavy, others, counts.fabric.count), never))
    return best


def heavy_of(
    leaf: Kind, vms: int, counts: AchievableCounts, never: int, *, pack_hosts: bool
) -> HeavyHost | None:
    """Return the host that has more than half of the group, if some VMs are in a leaf, or None.

    :param pack_hosts: whether most pairs are to be on one host; else there is such a host only if
        the bottleneck wants one, with as few VMs as it permits
    """
    most, found = never, None
    without = pairs_without_heavy(leaf.hosts, counts, never)
    if vms < len(without) and without.item(vms) > never:
        most = without.item(vms)
        if not pack_hosts:
            return None
    for host, heavy, others in _with_heavy(leaf, counts, never):
        low, pairs = splits(heavy, others, vms)
        [possible] = ((heavy[low : low + len(pairs)] > never) & (pairs > most)).nonzero()
        if len(possible) and not pack_hosts:
            return HeavyHost(host, low + possible.item(0))
        if len(possible):
            best = possible.item(int(np.argmax(pairs[possible])))
            most, found = pairs.item(best), HeavyHost(host, low + best)
    return found


def _with_heavy(
    leaf: Kind, counts: AchievableCounts, never: int
) -> Iterator[tuple[HostKind, Array, Array]]:
    """Yield each kind of host that may have more than half of the group, with two tables.

    Of the pairs that 0, 1, 2 .. new VMs add on it, and on the other hosts of the leaf.
    """
    for host, _ in leaf.hosts:
        few = light(counts.of_host(host), host, counts.fabric.everyone)
        many = counts.of_host(host) >> (few + 1) << (few + 1)
        if not many:
            continue
        left = [(other, number - (other == host)) for other, number in leaf.hosts]
        others = pairs_without_heavy([each for each in left if each[1]], counts, never)
        if others.item(0) > never:
            yield host, _heavy_pairs(many, host.members, never), others


def _heavy_pairs(many: int, members: int, never: int) -> Array:
    """Return the pairs on a host with some numbers of new VMs, as bits. Shape (VMs + 1,)."""
    vms = np.arange(many.bit_length())
    # All from the least one on: a link carries less and less beyond a half.
    least = (many & -many).bit_length() - 1
    return np.where(vms >= least, vms * (vms - 1 + 2 * members) // 2, never)


def light(counts: int, host: HostKind, everyone: int) -> int:
    """Return the most new VMs on a host that has no more than half of the group; -1 if none."""
    half = (1 << max(everyone // 2 - host.members + 1, 0)) - 1
    return (counts & half).bit_length() - 1


def pairs_without_heavy(
    hosts: Sequence[tuple[HostKind, int]], counts: AchievableCounts, never: int
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
