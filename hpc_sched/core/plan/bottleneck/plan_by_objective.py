"""The new VMs per leaf by the objective of a group, whichever it has."""

from dataclasses import replace

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.bottleneck.best_counts import bottleneck_counts
from hpc_sched.core.plan.bottleneck.isolated_counts import isolated_counts, largest_isolated
from hpc_sched.core.plan.bottleneck.pattern_counts import pattern_counts
from hpc_sched.core.plan.exact.least_hop_byte import least_hop_byte
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.time_limit import Limit, TimeLimitPassed
from hpc_sched.core.traffic.patterns import RING
from hpc_sched.core.traffic.stated_pattern import stated_traffic


def counts(
    problem: Problem, count: int, level: int, tops: Array, bounds: Bounds, limit: Limit
) -> tuple[Problem, LeafCounts] | Rejection:
    """Return the plan of a problem with an objective, or why there is none.

    :param level: of the switch that must hold all VMs, members included
    :param tops: those with room for all, at least one
    :param bounds: on the leaves of the group, the members' leaves included
    :returns: with the problem whose hosts take no more VMs than the objective permits
    """
    objective = problem.objective
    if isinstance(objective, Isolation):
        if not count:
            return problem, least_hop_byte(problem, count, level, tops, bounds, limit)
        found = isolated_counts(problem, count, level, tops, bounds, objective, limit)
        if found is not None:
            return problem, found
        largest = largest_isolated(problem, objective, level)
        return replace(rejected(problem, count, bounds), best=largest, is_isolated=True)
    hops = least_hop_byte(problem, count, level, tops, bounds, limit)
    everyone = count + int(problem.members.sum())
    if objective is None or not count or everyone < 2:
        return problem, hops
    pattern, directory = objective.pattern, objective.pattern_directory
    # Around a ring the fewest leaves have the fewest links between them, and each carries the same:
    # the least bottleneck if uplinks are equal. Where they differ it may be another plan.
    if pattern == RING:
        return problem, hops
    traffic = stated_traffic(pattern, everyone, directory).traffic
    try:
        uniform = bottleneck_counts(problem, count, level, tops, bounds, objective, hops, limit)
    except (OverflowError, TimeLimitPassed):
        uniform = problem, replace(hops, is_proven=False)
    if traffic is None:
        return uniform
    plans = [(problem, hops), uniform]
    return pattern_counts(problem, level, bounds, objective, traffic, plans, limit)
