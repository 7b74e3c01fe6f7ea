"""The plan of least Hop-Byte with no other counts than those that links permit."""

import math

import numpy as np

from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.least_hops.bounded_tree import Savings, bounded_tree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import Greatest
from hpc_sched.core.plan.exact.search import Point, Search, tops_of
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.time_limit import Effort


def least_hops(
    problem: Problem, counts: AchievableCounts, effort: Effort
) -> tuple[LeafCounts, Savings, int]:
    """Return the plan of least Hop-Byte within a bottleneck, and what it saves."""
    fabric, open_ = counts.fabric, OpenLeaves.of(problem, counts.fabric.count)
    most = (2 * problem.topology.depth - 1) * math.comb(fabric.everyone, 2)
    savings = Savings(counts, open_.shares_hosts, -(most + 1))
    greatest = Greatest(
        saved=(most + 1) * (len(fabric.kind_of) + 1),
        leaves=min(fabric.count, len(open_.index)),
        excess=int(open_.rooms.sum()),
    )
    weights = greatest.weights()
    tree = bounded_tree(open_, savings, effort)
    search = Search(tree, tops_of(tree, np.array(counts.tops())), weights)
    best = Point.best_of(search)
    return best.counts(), savings, best.saved
