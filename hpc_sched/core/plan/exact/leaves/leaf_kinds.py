"""The leaves with room for a group, put together where they save alike."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves, Leaf
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves, saved_by_leaves
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves, saved_by
from hpc_sched.core.plan.exact.order import LeafOrder
from hpc_sched.core.plan.leaf_hosts import leaf_gains, leaf_hosts

Leaves = Leaf | ConvexLeaves | EqualLeaves


def saving(members: int, rise: int, count: int) -> Array:
    """Return the hops that 0, 1 .. ``count`` VMs save below a switch with its members.

    :param rise: levels from the switch to the one above it
    """
    return saved_by(np.arange(count + 1), members, rise)


def leaves_by_switch(
    open_: OpenLeaves, among: Array, order: LeafOrder, *, is_spread: bool = False
) -> dict[int, list[Leaves]]:
    """Return leaves by the switch above them, -1 above roots. O(hosts + leaves * VMs in a leaf).

    :param among: those to return, as indices into ``open_``
    :param is_spread: whether plans may use more leaves than is best: full ones are not better then
    """
    found = defaultdict[int, list[Leaves]](list)
    rows: dict[tuple[int, bytes], list[Array]] = {}
    count, index, rooms = open_.count, open_.index, open_.rooms
    # A full leaf is not better than others if it is charged for less: equal ones alone are alike.
    is_spread_or_charged = is_spread or open_.charges is not None
    fewest = 1 if is_spread else None
    for part, gains, is_convex in classes(open_, among, order, by_room=is_spread_or_charged):
        one = part[0]
        if open_.charges is not None:
            gains = open_.charges.worth(int(index[one]), gains)
        first = Leaf(int(index[one]), int(rooms[one]), bool(open_.here[one]), gains, order)
        kind: Leaves = first
        if len(part) > 1 and is_convex and not is_spread_or_charged:
            kind = ConvexLeaves(index[part], rooms[part], first.has_members, gains, order, count)
        elif len(part) > 1:
            copies = len(part), _digest(gains)
            if copies not in rows:
                rows[copies] = saved_by_leaves(gains, len(part), count, fewest=fewest)
            kind = EqualLeaves(index[part], first, rows[copies], count)
        found[int(open_.above[one])].append(kind)
    return found


def classes(
    open_: OpenLeaves, among: Array, order: LeafOrder, *, by_room: bool
) -> Iterator[tuple[Array | list[int], Array, bool]]:
    """Yield leaves below one switch that save alike, what VMs save there, and if that is convex.

    Leaves are indices into ``open_``, in tie order or the largest first.

    :param by_room: whether leaves of several rooms do not save alike
    """
    rooms, here, above = open_.rooms, open_.here, open_.above
    if open_.shares_hosts:
        hosts = open_.hosts
        is_one, on_host = hosts.number == 1, hosts.members[hosts.starts]
        is_convex = (is_one | (hosts.largest == 1)) & ~open_.is_mixed
    else:
        is_one, on_host = np.zeros(len(rooms), dtype=np.bool_), np.zeros_like(rooms)
        is_convex = ~is_one
    place = order.place[open_.index]
    keys = (above, is_one, on_host, here, *([rooms] if by_room else []))
    for part in _alike(among[is_convex[among]], keys, -rooms, place):
        one = int(part[0])
        vms = np.arange(min(int(rooms[one]), open_.count) + 1)
        gains = saved_by(vms, here[one], open_.rise[one]) + vms * on_host[one]
        if is_one[one]:
            gains += vms * (vms - 1) // 2
        yield part, gains, True
    others = among[~is_convex[among]]
    others = others[np.argsort(place[others])]
    equal: dict[tuple[int, int, int, bytes], tuple[list[int], Array]] = {}
    for i, gains in zip(others.tolist(), _tables(open_, others), strict=True):
        key = int(above[i]), int(rooms[i]), int(here[i]), _digest(gains)
        equal.setdefault(key, ([], gains))[0].append(i)
    for same, gains in equal.values():
        yield same, gains, False


def _tables(open_: OpenLeaves, leaves: Array) -> Iterator[Array]:
    """Yield the hops that 0, 1, 2 .. VMs save in each leaf, of several hosts with pairs on them."""
    problem, count = open_.problem, open_.count
    mixed = leaves[open_.is_mixed[leaves]]
    among = np.flatnonzero(np.isin(problem.topology.leaf_index, open_.index[mixed]))
    inside = leaf_hosts(problem, count, among) if len(mixed) else {}
    for i, pairs in zip(leaves.tolist(), open_.pair_tables(leaves), strict=True):
        if open_.is_mixed[i]:
            pairs = leaf_gains(inside[int(open_.index[i])], len(pairs) - 1)
        yield pairs + saving(int(open_.here[i]), int(open_.rise[i]), len(pairs) - 1)


def _digest(gains: Array) -> bytes:
    """Return a key of a table: thousands of tables of thousands of VMs are not kept twice."""
    return hashlib.blake2b(gains.data).digest()


def _alike(leaves: Array, keys: tuple[Array | Mask, ...], *order: Array) -> Iterator[Array]:
    """Yield the leaves with equal keys together, in an order. Indices into the keys."""
    if not len(leaves):
        return
    leaves = leaves[np.lexsort([key[leaves] for key in (*reversed(order), *reversed(keys))])]
    is_new = np.zeros(len(leaves), dtype=np.bool_)
    for key in keys:
        is_new[1:] |= key[leaves][1:] != key[leaves][:-1]
    yield from np.split(leaves, np.flatnonzero(is_new))
