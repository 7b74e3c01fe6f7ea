"""Where the next VM of a group starts that is apart, so that the group comes together again.

Only where ``[hpc_sched] gather_groups`` is on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.constraints import level_of
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import added_hops
from hpc_sched.core.plan.switch_rooms import switches_with_room

# Switches below which a plan is tried. The first one has room, but bounds on leaves, or services
# with many nodes, may not permit a plan there.
MOST_TRIED = 4


@dataclass(frozen=True, slots=True)
class Gathering:
    """How a group is brought together again where it is apart."""

    # VMs for which one switch must have a place. A VM that is created may replace another one:
    # without a final size it does not count.
    size: int
    youngest: int | None  # leaf of the youngest member, in topology.switches; None: not known

    @classmethod
    def of(cls, problem: Problem, youngest: str | None, *, is_move: bool = False) -> Self:
        """Return how the group of a problem is brought together again.

        :param youngest: host of the topology of the youngest member; None: not known
        :param is_move: whether the VMs without a place are some of the group already
        """
        topology, size = problem.topology, int(problem.members.sum())
        leaf = None if youngest is None else int(topology.leaf_index[topology.index_of(youngest)])
        size += problem.awaiting if is_move else 0
        return cls(problem.constraints.group_size or size, leaf)

    def after(self, leaf: int) -> Self:
        """Return the same once a VM of the request is placed under a leaf."""
        return replace(self, youngest=leaf)

    def starts(self, problem: Problem, count: int, left: int) -> Iterator[Mask]:
        """Yield the hosts below each switch where the next VMs may start, best first.

        None where the group can be under one switch of its preferred level, without one of the
        leaves, with its members where they are, and where no switch of that level can hold it. The
        switch that can hold most VMs of the group comes first, of equal ones that of the youngest
        member (rolling replacement removes the oldest), then the nearest to the members, then the
        tie order. Shape (hosts,) each. O(hosts * depth).

        :param count: VMs of the group without a place
        :param left: of them, those of the request
        """
        topology, bounds, members = problem.topology, problem.constraints.bounds, problem.members
        required = level_of(topology, bounds.level)
        level = 1 if bounds.preferred is None else level_of(topology, bounds.preferred)
        leaves = np.unique(topology.leaf_index[members > 0])
        # Under one leaf no group keeps a bound at least.
        is_bound = level >= required or (level == 1 and bounds.least_leaves > 1)
        if is_bound or not len(leaves) or len(switches_with_room(problem, count, level, bounds)):
            return
        domain, above = topology.groups[level - 1], topology.groups[required - 1]
        is_open = (problem.capacity > 0) & np.isin(above, above[members > 0])
        if bounds.most_leaves is not None and len(leaves) >= bounds.most_leaves:
            is_open &= np.isin(topology.leaf_index, leaves)
        number = len(topology.switches)
        room = np.bincount(domain, np.where(is_open, problem.capacity, 0), number)
        holds = np.bincount(domain, members, number) + room
        hops = np.full(number, np.iinfo(np.int64).max)
        np.minimum.at(hops, domain[is_open], added_hops(problem, members)[is_open])
        is_youngest = np.zeros(number, dtype=np.bool_)
        is_youngest[domain[topology.leaf_index == self.youngest]] = True
        most = np.minimum(holds, int(members.sum()) + count)
        order = np.lexsort((problem.tie.ranks, hops, ~is_youngest, -most))
        fits = (room >= left) & (holds >= self.size)
        for switch in order[fits[order]][:MOST_TRIED].tolist():
            yield domain == switch
