"""How much a plan saves at least: what one saves that fills the largest leaves below a switch."""

import itertools
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves, saved_by
from hpc_sched.core.plan.exact.leaves.ordered_hosts import filled_in_runs
from hpc_sched.core.plan.maxplus import LOWEST


class Filled(NamedTuple):
    """A plan that fills the largest leaves below a switch."""

    saved: int  # hops, less what all pairs cost through the top; with charges what is left of them
    switch: int  # below which it is


def filled_switch(leaves: OpenLeaves, level: int, allowed: Array) -> Filled:
    """Return the best of some plans by what they save.

    One plan for each switch of the lowest level on which one has room for all VMs: below it the
    largest branches are filled first, in them the leaves in which VMs save most in the mean.
    O(hosts + leaves * (levels + log leaves)).

    :param level: of the switch that must hold all VMs; one has room for them
    :param allowed: leaves that may be used, as indices into ``leaves``
    """
    number, count = len(leaves.room), leaves.count
    path, rooms = leaves.path[:, allowed], leaves.rooms[allowed]
    has_room = [np.bincount(row, rooms, number) >= count for row in path[:level]]
    lowest = next(i for i, found in enumerate(has_room, 1) if found.any())
    domain = path[lowest - 1]
    keys = [-leaves.most_means(count)[allowed]]
    for row in path[1:lowest]:
        keys += [row, -leaves.room[row]]
    order = np.lexsort((*keys, domain))
    takes = np.zeros_like(leaves.index)
    takes[allowed[order]] = _filled(rooms[order], domain[order], count)
    saved = np.where(has_room[lowest - 1], _saved(leaves, takes, lowest, level), LOWEST)
    return Filled(int(saved.max()), int(saved.argmax()))


def _filled(rooms: Array, domain: Array, count: int) -> Array:
    """Return the VMs of leaves that are filled one after the other in each domain."""
    starts = np.flatnonzero(np.diff(domain, prepend=-1))
    return filled_in_runs(rooms, starts, np.diff(starts, append=len(rooms)), count)


def _saved(leaves: OpenLeaves, takes: Array, low: int, level: int) -> Array:
    """Return the hops that plans save, less what all pairs cost through their tops, and charges.

    Exact, but for leaves that are mixed: there it is what can be had. Shape (switches,).

    :param takes: VMs of each leaf, one plan below each switch of the level ``low``
    :param level: of the tops
    """
    number = len(leaves.room)
    used = np.flatnonzero(takes)
    path, domain = leaves.path[:, used], leaves.path[low - 1, used]
    saved = np.bincount(domain, leaves.pairs(takes)[used], number).astype(np.int64)
    charged = np.zeros_like(saved)
    for lower, (below, upper) in enumerate(itertools.pairwise(path[:low]), 1):
        switches, first = np.unique(below, return_index=True)
        vms = np.bincount(below, takes[used], number).astype(np.int64)[switches]
        rise = leaves.levels[upper[first]] - leaves.levels[switches]
        np.add.at(saved, domain[first], saved_by(vms, leaves.members[switches], rise))
        if leaves.charges is not None:
            # A leaf stands in for a missing pod.
            charge = leaves.charges.at(switches, vms)
            np.add.at(charged, domain[first], np.where(leaves.levels[switches] == lower, charge, 0))
    domains, first = np.unique(domain, return_index=True)
    saved[domains] += leaves.saved_above(used[first], leaves.count, low, level)
    saved[domains] -= leaves.through_top(level)[used[first]]
    if leaves.charges is None:
        return saved
    charged[domains] += leaves.charged(used[first], leaves.count, low)
    return leaves.scale * saved - charged
