"""The room for a group in parts below each switch that may hold all of it."""

from collections.abc import Iterator

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds, level_of
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.plan.problem import Problem, leaf_members, leaf_room
from hpc_sched.core.plan.segmented.part_rooms import Division, PartRooms
from hpc_sched.topology.model import Topology


def parts_below(problem: Problem, level: int, bounds: Bounds) -> Parts | None:
    """Return the parts that bounds require of plans below one switch of a level, or None.

    None too where one switch of parts holds the whole group: each division is allowed there.
    """
    parts = bounds.guaranteed_parts
    if parts is None or level_of_parts(problem.topology, parts) >= level:
        return None
    return parts


def level_of_parts(topology: Topology, parts: Parts) -> int:
    """Return the number of the level of parts, 1 for leaves."""
    return 1 if parts.level is None else level_of(topology, parts.level)


def part_rooms(
    problem: Problem,
    level: int,
    parts: Parts,
    bounds: Bounds,
    tops: Array,
) -> Iterator[tuple[int, PartRooms]]:
    """Yield some switches of a level, each with the switches of parts below it. O(switches).

    :param bounds: of which that on leaves counts, where parts are below leaves
    """
    topology, number = problem.topology, len(problem.topology.switches)
    below = topology.leaf_path[level_of_parts(problem.topology, parts) - 1]
    leaf = topology.leaf_switches
    in_leaves = leaf_members(problem), leaf_room(problem)
    members, room = (np.bincount(below, each[leaf], number).astype(np.int64) for each in in_leaves)
    most_new = None
    if bounds.most_leaves is not None:
        most_new = bounds.most_leaves - int((in_leaves[0] > 0).sum())
    switches, first = np.unique(below, return_index=True)
    above = topology.leaf_path[level - 1, first]
    is_used = (members + room)[switches] > 0
    for top in tops.tolist():
        inside = switches[is_used & (above == top)]
        yield top, PartRooms(inside, members[inside], room[inside], most_new)


def tops_with_parts(
    problem: Problem,
    count: int,
    level: int,
    parts: Parts,
    bounds: Bounds,
    tops: Array,
) -> Array:
    """Return those of some switches of a level below which VMs fit in parts, with the members."""
    vms = int(problem.members.sum()) + count
    rooms = part_rooms(problem, level, parts, bounds, tops)
    fitting = [top for top, room in rooms if next(room.divisions(parts, vms), None) is not None]
    return np.array(fitting, dtype=np.int64)


def tops_with_division(
    problem: Problem,
    level: int,
    parts: Parts,
    bounds: Bounds,
    tops: Array,
    division: Division,
) -> Array:
    """Return those of some switches of a level below which a division of the group fits."""
    rooms = part_rooms(problem, level, parts, bounds, tops)
    full = division.full
    fitting = [top for top, room in rooms if room.most_full(division, full) == full]
    return np.array(fitting, dtype=np.int64)


def most_in_parts(
    problem: Problem,
    level: int,
    parts: Parts,
    bounds: Bounds,
    rooms: Array,
    most: int | None,
) -> Array:
    """Return the VMs, up to a number, that fit in parts below each switch. Shape (switches,).

    :param rooms: those that fit in any way, 0 for switches that do not matter
    """
    found, members = np.zeros_like(rooms), int(problem.members.sum())
    for top, room in part_rooms(problem, level, parts, bounds, np.flatnonzero(rooms)):
        here = int(rooms[top])
        found[top] = room.most(parts, members, here if most is None else min(here, most))
    return found
