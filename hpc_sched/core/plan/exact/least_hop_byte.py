"""The new VMs per leaf of least Hop-Byte, or in little time once the limit has passed."""

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.exact.best_counts import exact_leaf_counts
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.time_limit import Limit, TimeLimitPassed


def least_hop_byte(
    problem: Problem, count: int, level: int, switches: Array, bounds: Bounds, limit: Limit
) -> LeafCounts:
    """Return the new VMs per leaf of least Hop-Byte, or in little time once the limit passes.

    :param level: of the switch that must hold all VMs, members included
    :param switches: those with room for all, at least one
    """
    if bounds.parts is not None and count:
        # Few groups are in parts.
        from hpc_sched.core.plan.segmented.part_plan import counts_in_parts
        from hpc_sched.core.plan.segmented.rooms_of_tops import parts_below

        parts = parts_below(problem, level, bounds)
        if parts is not None:
            return counts_in_parts(problem, count, level, switches, parts, bounds, limit)
    try:
        limit.check()
        return exact_leaf_counts(problem, count, level, switches, bounds, limit)
    except (OverflowError, TimeLimitPassed):
        # Seldom: it is loaded when it is needed.
        from hpc_sched.core.plan.best_fit import best_fit

        return best_fit(problem, count, level, bounds)
