"""The new VMs per leaf of least Hop-Byte, of a group in parts.

One search for each number of parts below each switch that a balanced group may have, most parts
first, until no smaller number can save as much; a group that is not balanced has one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.plan.exact.bound.leaf_bound import LeafBound
from hpc_sched.core.plan.exact.leaf_searches import LeafSearches
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.one_leaf import best_leaf
from hpc_sched.core.plan.exact.order import Greatest, ScoreWeights
from hpc_sched.core.plan.exact.pruning.branches import Branches, BranchSearch
from hpc_sched.core.plan.exact.search import Point, Search
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.segmented.first_fit import divided, first_fit
from hpc_sched.core.plan.segmented.part_rooms import Division, PartRooms
from hpc_sched.core.plan.segmented.part_tree import PermittedNumbers, fitting
from hpc_sched.core.plan.segmented.rooms_of_tops import level_of_parts, part_rooms
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import Effort, Limit, TimeLimitPassed

# Sums after which no further number of parts of a balanced group is tried: some seconds.
_MOST_SUMS = 20_000_000
_MOST_VMS = 1 << 24  # of a group: what they save, and cost if not permitted, fits into 62 bits


def counts_in_parts(
    problem: Problem,
    count: int,
    level: int,
    tops: Array,
    parts: Parts,
    bounds: Bounds,
    limit: Limit,
) -> LeafCounts:
    """Return the new VMs per leaf of least Hop-Byte in parts, or in little time past the limit.

    Equal cost: as any plan; of plans with equally many leaves the one with more parts below each
    switch.

    :param level: of the switch that must hold all VMs, members included; above that of parts
    :param tops: those below which the parts fit, at least one
    :param bounds: of which that on leaves at most counts besides
    """
    best: LeafCounts | None = None
    try:
        limit.check()
        open_ = OpenLeaves.of(problem, count)
        if open_.vms_of_group >= _MOST_VMS:
            raise OverflowError("hops that VMs save do not fit into 62 bits")
        if not open_.has_members:
            one = best_leaf(open_, level, tops)
            if one is not None and one.is_best:
                return LeafCounts(one.top, {one.leaf: count})
        search = _PartSearch(open_, level, tops, parts, bounds, Effort(limit))
        for found in search.better_plans():
            best = found
    except (OverflowError, TimeLimitPassed):
        if best is None:
            return first_fit(problem, count, level, parts, bounds, tops)
        return replace(best, is_proven=False)
    assert best is not None  # the parts fit
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _PartSearch:
    """The searches for the plan of one group in parts."""

    open: OpenLeaves
    level: int  # of the tops
    tops: Array
    parts: Parts
    bounds: Bounds
    effort: Effort

    @property
    def last(self) -> int:
        """What the last part costs, in parts of a hop: more than any plan saves."""
        open_ = self.open
        pairs = math.comb(open_.vms_of_group, 2)
        hops = (2 * open_.problem.topology.depth - 1) * pairs
        return open_.scale * hops + open_.most_charged + 1

    @property
    def greatest(self) -> Greatest:
        """The greatest values of any plan, also of one with numbers that are not permitted."""
        leaves, rooms = len(self.open.index), int(self.open.rooms.sum())
        return Greatest(
            saved=2 * self.last * (leaves + 2),
            leaves=min(self.open.count, leaves),
            excess=rooms if self.open.charges is None else 0,
        )

    def better_plans(self) -> Iterator[LeafCounts]:
        """Yield plans, none worse than the one before; the last one is the best.

        Proven are those that are known to be the best of all numbers of parts until then.

        :raises TimeLimitPassed: if the limit passes before the next is found
        :raises OverflowError: if scores do not fit into 62 bits
        """
        open_, best, is_proven = self.open, None, True
        problem, bounds = open_.problem, self.bounds
        rooms = dict(part_rooms(problem, self.level, self.parts, bounds, self.tops))
        divisions = self._divisions(rooms)
        for number, (division, tops) in enumerate(divisions, 1):
            if best is not None and self.effort.made > _MOST_SUMS:
                yield replace(best[1], is_proven=False)
                return
            is_free = not any(_has_last(room, division) for room in rooms.values())
            level = level_of_parts(problem.topology, self.parts)
            permitted = PermittedNumbers(division, level, self.last, is_free)
            searches = LeafSearches(
                open_, self.level, np.array(tops), bounds, self.effort, permitted
            )
            saved = None if best is None else best[0][0]
            branches = self._branches(searches, permitted, saved)
            if branches is not None and not branches.parents:
                # Below the same switches fewer parts save no more.
                if all({*others} <= {*tops} for _, others in divisions[number:]):
                    return
                continue
            free = searches.within(branches).on_all(self.greatest.weights())
            if not free.has_plan or (saved is not None and Point.best_of(free).saved < saved):
                continue
            found = self._best(searches, permitted, free)
            is_proven = is_proven and found[1].is_proven
            if best is None or found[0] > best[0]:
                best = found
            yield replace(best[1], is_proven=is_proven)

    def _divisions(self, rooms: dict[int, PartRooms]) -> list[tuple[Division, list[int]]]:
        """Return the divisions of the group that fit below some switch, with those switches."""
        found: dict[int, tuple[Division, list[int]]] = {}
        for top, room in rooms.items():
            for division in room.divisions(self.parts, self.open.vms_of_group):
                found.setdefault(division.each or 0, (division, []))[1].append(top)
        return [found[each] for each in sorted(found, reverse=True)]

    def _branches(
        self, searches: LeafSearches, permitted: PermittedNumbers, known: int | None
    ) -> Branches | None:
        """Return what plans use that save as much as a known one; None: anything.

        By bounds for plans of any parts, on leaves that take no more VMs than they may have.

        :param known: what it saves, with the cost of the last part; None: that of the best plan
            below one switch, where that has room
        """
        open_, division = self.open, permitted.division
        if permitted.level == 1:
            open_ = open_.with_at_most(division.most_new(open_.here, open_.rooms))
        search = BranchSearch.of(open_, self.level, searches.tops, self.effort.limit)
        if search is None:
            return None
        if known is None:
            switch = self._promising(search, permitted)
            if switch is None:
                return None
            path = self.open.path[open_.levels.item(switch) - 1]
            near = searches.among(self.open.index[path == switch], self.greatest.weights())
            if near is None:
                return None
            known = Point.best_of(near).saved
        last = permitted.last if division.rest and permitted.is_free else 0
        branches = search.used(known + last)
        # Where members are, no new VMs may be the last part, or none at all: part of each plan.
        is_lacking = branches.parents and not self._has_members(branches, permitted.level)
        return None if is_lacking else branches

    def _has_members(self, branches: Branches, level: int) -> bool:
        """True if branches have the switches of parts, of a level, that have members and room."""
        open_ = self.open
        if level == 1:
            return set(open_.above[open_.here > 0].tolist()) <= branches.parents
        below = np.unique(open_.path[level - 1])
        used = {child for children in branches.children.values() for child in children}
        return set(below[open_.members[below] > 0].tolist()) <= used | branches.parents

    def _promising(self, search: BranchSearch, permitted: PermittedNumbers) -> int | None:
        """Return the switch of the lowest level with room for the parts where most may be saved."""
        open_ = self.open
        for level in range(2, self.level):
            found = switches_with_room(open_.problem, open_.count, level, self.bounds)
            if level > permitted.level:
                found = fitting(open_.problem, level, self.bounds, found, permitted)
            if len(found):
                saved = {
                    switch: search.tables.above(switch)[-1]
                    for switch in found.tolist()
                    if open_.levels[switch] == level
                    and len(search.tables.above(switch)) > open_.count
                }
                return max(saved, key=lambda switch: (saved[switch], -switch), default=None)
        return None

    def _best(
        self, searches: LeafSearches, permitted: PermittedNumbers, free: Search
    ) -> tuple[tuple[int, int], LeafCounts]:
        """Return the best plan of one division, with what it saves and minus its new leaves.

        :param free: the search for it without the bound on leaves
        """
        open_, bounds = self.open, self.bounds
        point = Point.best_of(free)
        members = len(searches.with_members)
        most = None if bounds.most_leaves is None else bounds.most_leaves - members
        if most is None or point.leaves <= most:
            return (point.saved, -point.leaves), point.counts()

        def saving(weights: ScoreWeights, known: int) -> Search:
            # The free search may lack what only plans within the bound use.
            branches = self._branches(searches, permitted, known)
            return searches.within(branches).on_all(weights)

        parts, top, division = self.parts, searches.tops.item(0), permitted.division
        start = divided(open_.problem, open_.count, self.level, parts, bounds, top, division)
        new = np.flatnonzero((start > 0) & (open_.members == 0)).tolist()
        bound = LeafBound(most, 0, 1, self.greatest, searches.among, saving, self.effort)
        known, is_proven = bound.best_known(free, new)
        value = known.point.saved, -known.point.leaves
        return value, replace(known.counts, is_proven=is_proven)


def _has_last(rooms: PartRooms, division: Division) -> bool:
    """True if a switch without room has the last part of the group already."""
    is_last = (rooms.room == 0) & (rooms.members % division.size == division.rest)
    return division.rest > 0 and bool((is_last & (rooms.members > 0)).any())
