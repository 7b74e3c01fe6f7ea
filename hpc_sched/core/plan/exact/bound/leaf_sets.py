"""Sets of leaves with room for a group, from plans that use too many leaves or too few."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.best_fit import filled, saved_hops, spread
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.problem import LeafCounts
from hpc_sched.core.plan.switch_rooms import place_in_run

_SWITCHES = 8  # on each level below which leaves are tried


def by_savings(tree: GroupTree, sets: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return sets of leaves, those first that save most hops if large branches are filled first."""
    problem = tree.problem
    by_members = tree.open_leaves[tree.members[tree.open_leaves] > 0].tolist()
    saved = {
        leaves: saved_hops(problem, filled(problem, np.array([*leaves, *by_members]), tree.count))
        for leaves in dict.fromkeys(map(tuple, sets))
    }
    return sorted(saved, key=lambda leaves: -saved[leaves])


def like(
    tree: GroupTree, plans: Sequence[Mapping[int, int]], limit: int
) -> Iterator[Sequence[int]]:
    """Yield sets of up to ``limit`` leaves without members; those of members have room besides.

    They are the leaves of all plans, those of the last plan with leaves with few VMs exchanged
    for the roomiest others below one switch, and the roomiest ones below one switch.
    """
    room, last = tree.order.room, _new_leaves(tree, plans[-1])
    both = list(dict.fromkeys(leaf for plan in plans for leaf in _new_leaves(tree, plan)))
    missing = tree.count - int(room[tree.open_leaves[tree.members[tree.open_leaves] > 0]].sum())
    for leaves in (both[:limit], last[:limit]):
        if room[leaves].sum() >= missing:
            yield leaves
    is_new = tree.members[tree.open_leaves] == 0
    leaves, path = tree.open_leaves[is_new], tree.path[1:, is_new]
    order = np.lexsort((tree.problem.tie.among(leaves), -room[leaves]))
    leaves, path = leaves[order], path[:, order]
    is_other = ~np.isin(leaves, last)
    # The room of the last plan's leaves, without 0, 1, 2 .. of those with few VMs.
    kept = np.concatenate(([0], np.cumsum(room[last[:limit]])))[::-1]
    for row in path:
        for switch in _roomiest(row, room[leaves], limit):
            below = leaves[row == switch][:limit]
            if room[below].sum() >= missing:
                yield below.tolist()
        roomiest = _roomiest(row[is_other], room[leaves[is_other]], limit)
        planned = np.unique(row[~is_other])[:_SWITCHES].tolist()
        for switch in dict.fromkeys([*roomiest, *planned]):
            below = leaves[is_other & (row == switch)][:limit]
            sums = kept[: len(below) + 1] + np.concatenate(([0], np.cumsum(room[below])))
            numbers = np.flatnonzero(sums >= missing).tolist()
            if numbers:
                yield [*last[: limit - numbers[0]], *below[: numbers[0]].tolist()]


def with_others(tree: GroupTree, plan: LeafCounts, number: int) -> tuple[int, ...]:
    """Return the leaves of a plan without members, and the nearest others up to a number."""
    problem, top = tree.problem, tree.problem.topology.switches[plan.top]
    takes = np.zeros_like(tree.members)
    takes[list(plan.counts)] = 1
    below = tree.open_leaves[tree.path[top.level - 1] == plan.top]
    return tuple(spread(problem, takes, below, number).tolist())


def _roomiest(switches: Array, rooms: Array, limit: int) -> list[int]:
    """Return the switches whose roomiest leaves take most VMs.

    :param switches: above each leaf; the roomiest leaves come first
    """
    order = np.argsort(switches, kind="stable")
    order = order[place_in_run(switches[order]) < limit]
    sums = np.bincount(switches[order], weights=rooms[order])
    found = np.lexsort((np.arange(len(sums)), -sums))
    return [int(switch) for switch in found[:_SWITCHES] if sums[switch]]


def _new_leaves(tree: GroupTree, counts: Mapping[int, int]) -> list[int]:
    """Return the leaves of a plan that have no members, those with most VMs first."""
    new = np.array([leaf for leaf in counts if not tree.members[leaf]], dtype=np.int64)
    vms = np.array([counts[leaf] for leaf in new.tolist()], dtype=np.int64)
    found: list[int] = new[np.lexsort((tree.problem.tie.among(new), -vms))].tolist()
    return found
