"""The leaves with room for a group, put together where they save alike."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves, Leaf
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves, saved_by_leaves
from hpc_sched.core.plan.exact.order import LeafOrder
from hpc_sched.core.plan.leaf_hosts import leaf_gains, leaf_hosts
from hpc_sched.core.plan.problem import Problem

Leaves = Leaf | ConvexLeaves | EqualLeaves


def saved_by(vms: Array | int, members: Array | int, rise: Array | int) -> Array:
    """Return the hops that VMs save below switches with some members; ``rise``: see saving."""
    saved: Array = np.asarray(rise * vms * (vms + 2 * members - 1))
    return saved


def saving(members: int, rise: int, count: int) -> Array:
    """Return the hops that 0, 1 .. ``count`` VMs save below a switch with its members.

    :param rise: levels from the switch to the one above it
    """
    return saved_by(np.arange(count + 1), members, rise)


def leaves_by_switch(
    problem: Problem,
    count: int,
    order: LeafOrder,
    members: Array,
    leaves: Array,
    above: Array,
    *,
    is_spread: bool = False,
) -> dict[int, list[Leaves]]:
    """Return leaves by the switch above them, -1 above roots. O(hosts log hosts + leaves * VMs).

    :param members: per switch
    :param leaves: those with room, as indices in ``topology.switches``, sorted
    :param above: the switch above each of them
    :param is_spread: whether plans may use more leaves than is best: full ones are not better then
    """
    rooms, here = order.room[leaves], members[leaves]
    found = defaultdict[int, list[Leaves]](list)
    rows: dict[tuple[int, bytes], list[Array]] = {}
    # Read once a class: lists are faster.
    fields = leaves.tolist(), rooms.tolist(), (here > 0).tolist(), above.tolist()
    classes = _classes(problem, count, leaves, above, rooms, here, is_spread=is_spread)
    for part, gains, is_convex in classes:
        leaf, room, has_members, parent = (field[part[0]] for field in fields)
        first = Leaf(leaf, room, has_members, gains, order)
        kind: Leaves = first
        if len(part) > 1 and is_convex and not is_spread:
            kind = ConvexLeaves(leaves[part], rooms[part], has_members, gains, order, count)
        elif len(part) > 1:
            copies = len(part), _digest(gains)
            if copies not in rows:
                rows[copies] = saved_by_leaves(gains, len(part), count, is_spread=is_spread)
            kind = EqualLeaves(leaves[part], first, rows[copies], count)
        found[parent].append(kind)
    return found


def _classes(
    problem: Problem,
    count: int,
    leaves: Array,
    above: Array,
    rooms: Array,
    here: Array,
    *,
    is_spread: bool,
) -> Iterator[tuple[Array | list[int], Array, bool]]:
    """Yield leaves below one switch that save alike, what VMs save there, and if that is convex.

    Leaves are indices into ``leaves``.

    :param rooms: of each leaf
    :param here: members in each leaf
    """
    hosts = np.flatnonzero(problem.capacity > 0)
    hosts = hosts[np.argsort(problem.topology.leaf_index[hosts], kind="stable")]
    starts = np.flatnonzero(np.diff(problem.topology.leaf_index[hosts], prepend=-1))
    number = np.diff([*starts.tolist(), len(hosts)])
    tie, on_host = problem.tie[leaves], np.minimum.reduceat(problem.members[hosts], starts)
    is_one = number == 1
    is_convex = is_one | (np.maximum.reduceat(problem.capacity[hosts], starts) == 1)
    is_convex &= on_host == np.maximum.reduceat(problem.members[hosts], starts)
    if not problem.pack_hosts:
        is_convex[:], is_one, on_host = True, np.zeros_like(is_one), np.zeros_like(on_host)
    levels, sizes = problem.topology.switches, np.minimum(rooms, count).tolist()
    parents, room_of, there = above.tolist(), rooms.tolist(), here.tolist()
    rises = [levels[switch].level - 1 if switch >= 0 else 0 for switch in parents]

    def saved(i: int) -> Array:
        """Return the hops that VMs save above a leaf."""
        return saving(there[i], rises[i], sizes[i])

    keys = (above, is_one, on_host, here, *([rooms] if is_spread else []))
    for part in _alike(np.flatnonzero(is_convex), keys, -rooms, tie):
        one = int(part[0])
        gains = saved(one)
        vms = np.arange(len(gains))
        if problem.pack_hosts:
            gains += vms * on_host[one]
        if is_one[one]:
            gains += vms * (vms - 1) // 2
        yield part, gains, True
    others = np.flatnonzero(~is_convex)
    inside = leaf_hosts(problem, count, hosts[np.repeat(~is_convex, number)])
    equal: dict[tuple[int, int, int, bytes], tuple[list[int], Array]] = {}
    for i in others[np.argsort(tie[others])].tolist():
        gains = leaf_gains(inside[int(leaves[i])], sizes[i]) + saved(i)
        key = parents[i], room_of[i], there[i], _digest(gains)
        equal.setdefault(key, ([], gains))[0].append(i)
    for same, gains in equal.values():
        yield same, gains, False


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
