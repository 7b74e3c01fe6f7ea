"""The best number of new VMs for each leaf."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds
from hpc_sched.core.plan.best_fit import best_fit
from hpc_sched.core.plan.exact.bound.leaf_bound import LeafBound
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.one_leaf import best_leaf
from hpc_sched.core.plan.exact.order import Greatest, ScoreWeights
from hpc_sched.core.plan.exact.pruning.branches import used_branches
from hpc_sched.core.plan.exact.search import Point, Search, tops_of
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import NO_LIMIT, Effort, Limit

_MOST_VMS = 1 << 28  # of a group: the hops of all pairs fit into 62 bits on 30 levels


def exact_leaf_counts(
    problem: Problem,
    count: int,
    level: int,
    switches: Array,
    bounds: Bounds = UNBOUND,
    limit: Limit = NO_LIMIT,
) -> LeafCounts:
    """Return the first new VMs per leaf in the order of plans.

    :param level: of the switch that must hold all VMs, members included
    :param switches: those with room for all, at least one
    :param bounds: on the leaves of the group, the members' leaves included
    :raises TimeLimitPassed: if the limit passes before any plan is found
    :raises OverflowError: if scores do not fit into 62 bits: more than 30,000 VMs on as many leaves
    """
    topology = problem.topology
    if not count:
        return LeafCounts(int(switches[np.argmin(problem.tie.among(switches))]), {})
    leaves = OpenLeaves.of(problem, count)
    if leaves.vms_of_group >= _MOST_VMS:
        raise OverflowError("hops that VMs save do not fit into 62 bits")
    with_members = topology.leaf_switches[leaves.members[topology.leaf_switches] > 0]
    # Of leaves without members.
    most = None if bounds.most_leaves is None else bounds.most_leaves - len(with_members)
    least = bounds.missing_leaves(len(with_members), count)
    one = best_leaf(leaves, level, switches)
    if one is not None and one.is_best and least <= one.is_new <= (1 if most is None else most):
        return LeafCounts(one.top, {one.leaf: count})
    greatest = Greatest(
        saved=(2 * topology.depth - 1) * math.comb(leaves.vms_of_group, 2),
        leaves=min(count, len(leaves.index)),
        excess=int(leaves.rooms.sum()),
    )
    has_both = most is not None and least > 0
    weights = greatest.weights(keeps_all=has_both)
    effort = Effort(limit)

    def searched(
        leaves: OpenLeaves, tops: Array, weights: ScoreWeights, known: int | None = None
    ) -> Search:
        """Return the search for plans, those left out that save less than a known one."""
        if weights.keeps_all or weights.sign < 0:
            tree = GroupTree.of(leaves, effort, is_spread=True)
        else:
            tree = GroupTree.of(leaves, effort, used_branches(leaves, level, tops, limit, known))
        return Search(tree, tops_of(tree, tops), weights)

    def among(indices: Iterable[int], weights: ScoreWeights) -> Search | None:
        is_allowed = np.isin(topology.leaf_index, [*indices, *with_members])
        room = replace(problem, capacity=np.where(is_allowed, problem.capacity, 0))
        tops = switches_with_room(room, count, level, bounds)
        return searched(OpenLeaves.of(room, count), tops, weights) if len(tops) else None

    free = searched(leaves, switches, weights)
    used = Point.best_of(free).leaves
    if least <= used and (most is None or used <= most):
        return free.plan(free.best)
    start = best_fit(problem, count, level, bounds)
    new = [leaf for leaf in start.counts if leaf not in with_members]
    sign = -1 if used < least else 1
    if sign < 0:
        free = searched(leaves, switches, greatest.weights(sign=sign, keeps_all=has_both))

    def saving(hops: int, weights: ScoreWeights) -> Search:
        return searched(leaves, switches, weights, hops)

    is_spread = has_both or sign < 0
    bound = LeafBound(*(most, least, sign, greatest, among), None if is_spread else saving, effort)
    return bound.best(free, new)
