"""The VMs per host inside one leaf."""

import functools
import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.maxplus import maxplus
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.sharing import mdobp


@dataclass(frozen=True, slots=True)
class LeafHosts:
    """The hosts with room of one leaf, in classes of hosts with the same number of members."""

    members: tuple[int, ...]  # per class: members on each of its hosts
    # Per class: indices into topology.hosts, by capacity (largest first), then name.
    # Shape (hosts of the class,) each.
    hosts: tuple[Array, ...]
    # Per class: pairs of VMs on one host that 0, 1, 2 .. new VMs add. Shape (VMs + 1,) each.
    gains: tuple[Array, ...]


def leaf_hosts(problem: Problem, most: int, among: Array) -> dict[int, LeafHosts]:
    """Return the hosts with room by leaf, for up to ``most`` VMs. O(hosts log hosts + places).

    In a class the largest hosts are filled first: C(members + k, 2) is convex, so no other way
    to place the same number of VMs makes more pairs.

    :param among: indices of the hosts to consider
    """
    capacity = np.minimum(problem.capacity, most)
    open_ = among[capacity[among] > 0]
    if not len(open_):
        return {}
    leaf, members = problem.topology.leaf_index[open_], problem.members[open_]
    order = np.lexsort((problem.topology.name_rank[open_], -problem.capacity[open_], members, leaf))
    open_, leaf, members = open_[order], leaf[order], members[order]
    room = capacity[open_]
    starts = np.flatnonzero(np.diff(leaf, prepend=-1) | np.diff(members, prepend=-1))
    # No class takes more than ``most``: hosts after that many places need no pairs.
    before = np.cumsum(room) - room
    before -= np.repeat(before[starts], np.diff([*starts.tolist(), len(open_)]))
    room = np.clip(most - before, 0, room)
    # The o-th VM on a host with m members makes m + o - 1 pairs with those before it.
    ends = np.cumsum(room)
    pairs = np.repeat(members, room) + np.arange(ends[-1])
    pairs -= np.repeat(ends - room, room)
    found: dict[int, list[tuple[int, Array, Array]]] = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(open_)], strict=True):
        first = int(ends[start] - room[start])
        last = min(int(ends[end - 1]), first + most)
        gains = np.zeros(last - first + 1, dtype=np.int64)
        if problem.pack_hosts:
            np.cumsum(pairs[first:last], out=gains[1:])
        found.setdefault(int(leaf[start]), []).append(
            (int(members[start]), open_[start:end], gains)
        )
    return {
        leaf: LeafHosts(*zip(*reversed(classes), strict=True)) for leaf, classes in found.items()
    }


def leaf_gains(hosts: LeafHosts, most: int) -> Array:
    """Return the most pairs on one host that 0, 1 .. ``most`` new VMs add. Shape (most + 1,)."""
    return functools.reduce(lambda one, two: maxplus(one, two, most), hosts.gains)[: most + 1]


def open_hosts(problem: Problem, leaves: Sequence[int]) -> dict[int, Array]:
    """Return the hosts with room of some leaves, as indices into ``topology.hosts``. O(hosts)."""
    leaf = problem.topology.leaf_index
    if len(leaves) < 2:
        return {one: ((leaf == one) & (problem.capacity > 0)).nonzero()[0] for one in leaves}
    is_wanted = np.zeros(len(problem.topology.switches), dtype=np.bool_)
    is_wanted[leaves] = True
    [hosts] = (is_wanted[leaf] & (problem.capacity > 0)).nonzero()
    hosts = hosts[leaf[hosts].argsort(kind="stable")]
    found, first = np.unique(leaf[hosts], return_index=True)
    return dict(zip(found.tolist(), np.split(hosts, first[1:]), strict=True))


def places_in(counts: Mapping[int, int], problem: Problem) -> list[int]:
    """Return the host of each VM of some leaves, leaf after leaf. O(hosts).

    :param counts: VMs by leaf
    """
    inside = open_hosts(problem, list(counts))
    return [host for leaf, count in counts.items() for host in places(problem, inside[leaf], count)]


def places(problem: Problem, hosts: Array, count: int) -> list[int]:
    """Return the host of each of ``count`` VMs in a leaf, as indices into ``topology.hosts``.

    If MDOBP chooses hosts: its choice for one VM after the other. Without ``pack_hosts``: a host
    with the fewest members each time. Else the fewest hosts are filled, so that most pairs share
    one: hosts with most VMs first, then those with less excess capacity, then by name.

    :param hosts: those of the leaf with room
    """
    if len(hosts) == 1:
        return [hosts.item()] * count
    capacity, members, rank = problem.capacity, problem.members, problem.topology.name_rank
    if problem.packing is not None:
        return mdobp.places(problem.packing, members, rank, capacity, hosts, count)
    if not problem.pack_hosts:
        return _spread(problem, hosts, count)
    here = members[hosts]
    if (here == here[0]).all():
        hosts = hosts[np.lexsort((rank[hosts], -capacity[hosts]))]
        if capacity[hosts[0]] == 1:
            chosen: list[int] = hosts[:count].tolist()
            return chosen
        classes = [(here.item(0), hosts, count)]
    else:
        [inside] = leaf_hosts(problem, count, hosts).values()
        shares = _shares(inside, count)
        classes = list(zip(inside.members, inside.hosts, shares, strict=True))
    taken = [
        (-(already + takes), -already, int(capacity[host]) - takes, int(rank[host]), host, takes)
        for already, indices, share in classes
        for host, takes in _fill(problem, indices, share)
    ]
    return [host for *_, host, takes in sorted(taken) for _ in range(takes)]


def _shares(hosts: LeafHosts, count: int) -> list[int]:
    """Return the VMs of each class; of equally good ways, most to the class with more members."""
    if len(hosts.gains) == 1:
        return [count]
    # The best of each class and those after it together.
    joined = functools.partial(maxplus, most=count)
    none = np.zeros(1, dtype=np.int64)
    rest = [*itertools.accumulate(reversed(hosts.gains), joined, initial=none)][::-1]
    shares = []
    for gains, whole, after in zip(hosts.gains, rest, rest[1:], strict=False):
        most = min(count, len(gains) - 1)
        least = max(count - (len(after) - 1), 0)
        takes = np.arange(most, least - 1, -1)
        best = takes[gains[takes] + after[count - takes] == whole[count]][0]
        shares.append(int(best))
        count -= int(best)
    return shares


def _fill(problem: Problem, hosts: Array, count: int) -> Iterator[tuple[int, int]]:
    """Yield (host, VMs) of one class: the largest hosts in full, the rest by best fit."""
    capacity = problem.capacity[hosts]
    for i, host in enumerate(hosts):
        if count <= 0:
            return
        if capacity[i] >= count:
            # Hosts are sorted by capacity, then name: the first of those with least excess.
            fits = capacity[i:][capacity[i:] >= count]
            best = i + int(np.searchsorted(-fits, -fits[-1]))
            yield int(hosts[best]), count
            return
        yield int(host), int(capacity[i])
        count -= int(capacity[i])


def _spread(problem: Problem, hosts: Array, count: int) -> list[int]:
    """Return the host of each VM, always one with the fewest members. O(count log hosts)."""
    rank = problem.topology.name_rank
    heap = [(int(problem.members[i]), int(rank[i]), int(i), 0) for i in hosts]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < count:
        members, name, host, given = heapq.heappop(heap)
        chosen.append(host)
        if given + 1 < problem.capacity[host]:
            heapq.heappush(heap, (members + 1, name, host, given + 1))
    return chosen
