"""The best number of new VMs for each leaf."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.best_fit import best_fit
from hpc_sched.core.plan.exact.bound.leaf_bound import LeafBound
from hpc_sched.core.plan.exact.effort import Effort
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.one_leaf import with_shares
from hpc_sched.core.plan.exact.order import Bounds
from hpc_sched.core.plan.exact.search import Search, tops_of
from hpc_sched.core.plan.leaf_counts import LeafCounts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit


def exact_leaf_counts(
    problem: Problem,
    count: int,
    level: int,
    switches: Array,
    max_leaves: int | None = None,
    limit: TimeLimit = NO_LIMIT,
) -> LeafCounts:
    """Return the first new VMs per leaf in the order of plans.

    :param level: of the switch that must hold all VMs, members included
    :param switches: those with room for all, at least one
    :param max_leaves: the most leaves of the group, the members' leaves included
    :raises TimeLimitPassed: if the limit passes before any plan is found
    :raises OverflowError: if scores do not fit into 62 bits: more than 30,000 VMs on as many leaves
    """
    topology = problem.topology
    if not count:
        return LeafCounts(int(switches[np.argmin(problem.tie[switches])]), {})
    everyone = int(problem.members.sum()) + count
    bounds = Bounds(
        saved=(2 * topology.depth - 1) * math.comb(everyone, 2),
        leaves=min(count, len(np.unique(topology.leaf_index[problem.capacity > 0]))),
        excess=int(problem.capacity.sum()),
    )
    effort = Effort(limit)

    def searched(room: Problem, below: Array) -> Search:
        tree = GroupTree.of(room, count, effort)
        if max_leaves is None or max_leaves > len(with_members):
            tree = with_shares(tree, below)
        return Search(tree, tops_of(tree, below), bounds.weights())

    def among(leaves: Iterable[int]) -> Search | None:
        is_allowed = np.isin(topology.leaf_index, [*leaves, *with_members])
        room = replace(problem, capacity=np.where(is_allowed, problem.capacity, 0))
        below = switches_with_room(room, count, level, max_leaves)
        return searched(room, below) if len(below) else None

    with_members = np.unique(topology.leaf_index[problem.members > 0])
    free = searched(problem, switches)
    if max_leaves is None or len(with_members) + free.leaves(free.best) <= max_leaves:
        return free.plan(free.best)
    start = best_fit(problem, count, level, max_leaves)
    bound = LeafBound(max_leaves - len(with_members), bounds, among, effort)
    return bound.best(free, [leaf for leaf in start.counts if leaf not in with_members])
