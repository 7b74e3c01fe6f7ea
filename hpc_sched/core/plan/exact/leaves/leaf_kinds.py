"""The leaves with room for a group, put together where they save alike."""

import hashlib
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
    hosts = np.flatnonzero(problem.capacity > 0)
    hosts = hosts[np.argsort(problem.topology.leaf_index[hosts], kind="stable")]
    starts = np.flatnonzero(np.diff(problem.topology.leaf_index[hosts], prepend=-1))
    number = np.diff([*starts.tolist(), len(hosts)])
    rooms, here, tie = order.room[leaves], members[leaves], problem.tie[leaves]
    on_host = np.minimum.reduceat(problem.members[hosts], starts)
    is_one = number == 1
    is_convex = is_one | (np.maximum.reduceat(problem.capacity[hosts], starts) == 1)
    is_convex &= on_host == np.maximum.reduceat(problem.members[hosts], starts)
    if not problem.pack_hosts:
        is_convex[:], is_one, on_host = True, np.zeros_like(is_one), np.zeros_like(on_host)
    levels = problem.topology.switches
    found: dict[int, list[Leaves]] = {}
    keys = (above, is_one, on_host, here, *([rooms] if is_spread else []))
    for part in _alike(np.flatnonzero(is_convex), keys, -rooms, tie):
        one = int(part[0])
        parent, size = int(above[one]), min(int(rooms[one]), count)
        rise = levels[parent].level - 1 if parent >= 0 else 0
        vms, gains = np.arange(size + 1), saving(int(here[one]), rise, size)
        if problem.pack_hosts:
            gains += vms * on_host[one]
        if is_one[one]:
            gains += vms * (vms - 1) // 2
        first = Leaf(int(leaves[one]), int(rooms[one]), bool(here[one]), gains, order)
        kind: Leaves = first
        if len(part) > 1 and is_spread:
            rows_of = saved_by_leaves(gains, len(part), count, is_spread=True)
            kind = EqualLeaves(leaves[part], first, rows_of, count)
        elif len(part) > 1:
            kind = ConvexLeaves(leaves[part], rooms[part], bool(here[one]), gains, order, count)
        found.setdefault(parent, []).append(kind)
    others = np.flatnonzero(~is_convex)
    others = others[np.argsort(tie[others])]
    inside = leaf_hosts(problem, count, hosts[np.repeat(~is_convex, number)])
    equal: dict[tuple[int, int, int, bytes], list[Leaf]] = {}
    for i in others.tolist():
        leaf, parent, room = int(leaves[i]), int(above[i]), int(rooms[i])
        rise = levels[parent].level - 1 if parent >= 0 else 0
        size = min(room, count)
        gains = leaf_gains(inside[leaf], size) + saving(int(here[i]), rise, size)
        # A digest: thousands of tables of thousands of VMs are not kept twice.
        key = parent, room, int(here[i]), hashlib.blake2b(gains.data).digest()
        equal.setdefault(key, []).append(Leaf(leaf, room, bool(here[i]), gains, order))
    rows: dict[tuple[int, bytes], list[Array]] = {}
    for (parent, _, _, key_of_gains), same in equal.items():
        if len(same) > 1:
            copies = len(same), key_of_gains
            if copies not in rows:
                rows[copies] = saved_by_leaves(same[0].gains, len(same), count, is_spread=is_spread)
            indices = np.array([leaf.index for leaf in same])
            kind = EqualLeaves(indices, same[0], rows[copies], count)
        else:
            kind = same[0]
        found.setdefault(parent, []).append(kind)
    return found


def _alike(leaves: Array, keys: tuple[Array | Mask, ...], *order: Array) -> Iterator[Array]:
    """Yield the leaves with equal keys together, in an order. Indices into the keys."""
    if not len(leaves):
        return
    leaves = leaves[np.lexsort([key[leaves] for key in (*reversed(order), *reversed(keys))])]
    is_new = np.zeros(len(leaves), dtype=np.bool_)
    for key in keys:
        is_new[1:] |= key[leaves][1:] != key[leaves][:-1]
    yield from np.split(leaves, np.flatnonzero(is_new))
