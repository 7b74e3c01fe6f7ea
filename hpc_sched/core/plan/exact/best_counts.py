"""The best number of new VMs for each leaf."""

import math

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND, Bounds
from hpc_sched.core.plan.exact.leaf_searches import LeafSearches
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.one_leaf import best_leaf
from hpc_sched.core.plan.exact.order import Greatest
from hpc_sched.core.plan.exact.search import Point
from hpc_sched.core.plan.problem import LeafCounts, Problem
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
    :raises OverflowError: if scores do not fit into 62 bits: more than 30,000 VMs that several of
        as many leaves may take, or a group of 2^28 VMs
    """
    if not count:
        return LeafCounts(int(switches[np.argmin(problem.tie.among(switches))]), {})
    leaves = OpenLeaves.of(problem, count)
    if leaves.vms_of_group >= _MOST_VMS:
        raise OverflowError("hops that VMs save do not fit into 62 bits")
    searches = LeafSearches(leaves, level, switches, bounds, Effort(limit))
    with_members = searches.with_members
    # Of leaves without members.
    most = None if bounds.most_leaves is None else bounds.most_leaves - len(with_members)
    least = bounds.missing_leaves(len(with_members), count)
    one = best_leaf(leaves, level, switches)
    if one is not None and one.is_best and least <= one.is_new <= (1 if most is None else most):
        return LeafCounts(one.top, {one.leaf: count})
    greatest = Greatest(
        saved=leaves.scale * (2 * problem.topology.depth - 1) * math.comb(leaves.vms_of_group, 2)
        + leaves.most_charged,
        leaves=min(count, len(leaves.index)),
        excess=int(leaves.rooms.sum()) if leaves.charges is None else 0,
    )
    has_both = most is not None and least > 0
    free = searches.on_all(greatest.weights(keeps_all=has_both))
    used = Point.best_of(free).leaves
    if least <= used and (most is None or used <= most):
        return free.plan(free.best)
    # Few groups have a bound on leaves that the best plan breaks: it is loaded for these.
    from hpc_sched.core.plan.best_fit import best_fit
    from hpc_sched.core.plan.exact.bound.leaf_bound import LeafBound

    start = best_fit(problem, count, level, bounds)
    new = [leaf for leaf in start.counts if leaf not in with_members]
    sign = -1 if used < least else 1
    if sign < 0:
        free = searches.on_all(greatest.weights(sign=sign, keeps_all=has_both))
    saving = None if has_both or sign < 0 else searches.on_all
    bound = LeafBound(most, least, sign, greatest, searches.among, saving, searches.effort)
    return bound.best(free, new)
