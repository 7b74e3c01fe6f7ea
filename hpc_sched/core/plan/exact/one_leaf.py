"""Leaves that no plan needs because one leaf has room for all VMs."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves
from hpc_sched.core.plan.exact.leaves.leaf_kinds import Leaves


def with_shares(tree: GroupTree, tops: Array) -> GroupTree:
    """Return a tree without leaves that take no VMs in any plan as good as the best on one leaf.

    Above the leaves no plan saves more than if all VMs were below the same switches. In a leaf a
    VM saves at most a mean of ``most`` hops. So a leaf that has some VMs must save nearly as much
    for each of them, and leaves that save much less for any number of VMs are left out.

    :param tops: the switches that may hold the group
    """
    levels = tree.problem.topology.switches
    [level, *others] = {levels[top].level for top in tops.tolist()}
    if others or level == 1:
        return tree
    is_allowed = np.isin(tree.path[level - 1], tops)
    above, most_above = tree.above_leaves()
    in_leaf = dict(
        zip(tree.open_leaves[is_allowed].tolist(), above[is_allowed].tolist(), strict=True)
    )
    saved: int | None = None
    most = 0.0
    for part in itertools.chain(*tree.leaves.values()):
        gains = _gains(part)
        most = max(most, float((gains[1:] / np.arange(1, len(gains))).max()))
        leaf = part.with_room(tree.count)
        if leaf is not None and leaf.index in in_leaf:
            here = int(leaf.gains[tree.count]) + in_leaf[leaf.index]
            saved = here if saved is None else max(saved, here)
    if saved is None:
        return tree
    # What all VMs together may save less than at most, and a little for rounding.
    spare = most * tree.count - (saved - most_above) + 1
    leaves = {
        switch: kept
        for switch, parts in tree.leaves.items()
        if (kept := [one for part in parts if (one := _with_share(part, most, spare)) is not None])
    }
    return replace(tree, leaves=leaves, switches=_above(tree, leaves))


def _gains(part: Leaves) -> Array:
    return part.first.gains if isinstance(part, EqualLeaves) else part.gains


def _with_share(part: Leaves, most: float, spare: float) -> Leaves | None:
    """Return the leaves that may take a number of VMs, or None."""
    gains = _gains(part)
    vms = np.arange(len(gains))
    shares = np.flatnonzero((most * vms - gains <= spare) & (vms > 0))
    if not len(shares):
        return None
    if isinstance(part, ConvexLeaves):
        is_large = part.rooms >= shares[0]
        return replace(part, leaves=part.leaves[is_large], rooms=part.rooms[is_large])
    return part if isinstance(part, EqualLeaves) else part.up_to(int(shares[-1]))


def _above(tree: GroupTree, leaves: Mapping[int, Sequence[Leaves]]) -> dict[int, list[int]]:
    """Return the switches above some leaves, by the switch above each."""
    levels = tree.problem.topology.switches
    used: set[int] = set()
    for switch in leaves:
        while switch >= 0 and switch not in used:
            used.add(switch)
            switch = levels[switch].parent
    return {
        switch: kept
        for switch, children in tree.switches.items()
        if (kept := [child for child in children if child in used])
    }
