"""A plan in parts in little time, without the proof that none costs less."""

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.plan.best_fit import filled
from hpc_sched.core.plan.problem import LeafCounts, Problem, leaf_room
from hpc_sched.core.plan.segmented.part_rooms import Division, PartRooms
from hpc_sched.core.plan.segmented.rooms_of_tops import level_of_parts, part_rooms
from hpc_sched.core.plan.switch_rooms import switches_with_room


def first_fit(
    problem: Problem, count: int, level: int, parts: Parts, bounds: Bounds, tops: Array
) -> LeafCounts:
    """Return new VMs per leaf in parts below one of some switches of a level.

    Below the smallest switch of the lowest level below which all parts fit. There the roomiest
    switches of parts are filled one after the other, those with members first. O(hosts * levels).

    :param tops: below which the parts fit, with all members, at least one
    """
    topology = problem.topology
    above = topology.leaf_path[level - 1]
    for lower in range(1, level + 1):
        domain = topology.leaf_path[lower - 1]
        found = switches_with_room(problem, count, lower, bounds)
        found = found[np.isin(found, domain[np.isin(above, tops)])]
        if len(found):
            break
    room = leaf_room(problem)[topology.leaf_switches]
    below = np.bincount(domain, room, len(topology.switches))
    smallest = int(found[np.lexsort((problem.tie.among(found), below[found]))[0]])
    inside = topology.leaf_switches[(domain == smallest) & (room > 0)]
    if lower <= level_of_parts(problem.topology, parts):
        takes = filled(problem, inside, count)
    else:
        takes = divided(problem, count, lower, parts, bounds, smallest)
    used = np.flatnonzero(takes)
    counts = dict(zip(used.tolist(), takes[used].tolist(), strict=True))
    return LeafCounts(int(above[domain == smallest][0]), counts, is_proven=False)


def divided(
    problem: Problem,
    count: int,
    level: int,
    parts: Parts,
    bounds: Bounds,
    top: int,
    division: Division | None = None,
) -> Array:
    """Return the VMs of each leaf, in parts below one switch of a level. Shape (switches,).

    :param division: one that fits there; by default that with most parts below a switch
    """
    topology = problem.topology
    [(_, rooms)] = part_rooms(problem, level, parts, bounds, np.array([top]))
    if division is None:
        division = next(rooms.divisions(parts, int(problem.members.sum()) + count))
    takes = np.zeros(len(topology.switches), dtype=np.int64)
    switch_of_leaf = topology.leaf_path[level_of_parts(problem.topology, parts) - 1]
    for switch, vms in zip(rooms.switches.tolist(), filled_parts(rooms, division), strict=True):
        if vms:
            takes += filled(problem, topology.leaf_switches[switch_of_leaf == switch], vms)
    return takes


def filled_parts(rooms: PartRooms, division: Division) -> list[int]:
    """Return the new VMs below each switch of parts, of a division that fits there."""
    last = rooms.last_part(division)
    low, high = division.full_parts(rooms.members, rooms.room, last=False)
    is_used = rooms.members > 0
    more = np.zeros_like(low)
    if last is not None:
        low_last, high_last = division.full_parts(rooms.members, rooms.room, last=True)
        low[last], high[last], more[last] = low_last[last], high_last[last], division.rest
        is_used[last] = True
    least = 1 if division.each is None else division.each
    full = np.where(is_used, low, 0)
    left = division.full - int(full.sum())
    others = np.flatnonzero(~is_used & (high >= least))
    others = others[np.argsort(-high[others], kind="stable")]
    number = min(len(others), left // least)
    if rooms.most_new is not None:
        is_new = (rooms.members == 0) & is_used
        number = min(number, rooms.most_new - int(is_new.sum()))
    others = others[:number]
    if division.each is not None:
        full[others] = least
        left -= least * number
    for i in [*np.flatnonzero(is_used).tolist(), *others.tolist()]:
        raised = min(left, int(high[i] - full[i]))
        full[i] += raised
        left -= raised
    total = full * division.size + more
    new: list[int] = np.where(total > 0, total - rooms.members, 0).tolist()
    return new
