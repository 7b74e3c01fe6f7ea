"""The plan of least bottleneck, of those the one of least Hop-Byte, within a bound on its harm."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import GroupFabric
from hpc_sched.core.plan.bottleneck.counts.least_bottleneck import least_bottleneck
from hpc_sched.core.plan.bottleneck.least_hops.host_rooms import host_rooms, vms_per_host
from hpc_sched.core.plan.bottleneck.least_hops.permitted_hops import least_hops
from hpc_sched.core.plan.bottleneck.resources.resource import (
    Harm,
    Resource,
    leaf_bounds,
    used_too_much,
)
from hpc_sched.core.plan.bottleneck.resources.resource_bound import Added, ResourceBound
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.core.plan.time_limit import Effort, Limit


def bottleneck_counts(
    problem: Problem,
    count: int,
    level: int,
    tops: Array,
    bounds: Bounds,
    objective: LeastBottleneck,
    hops: LeafCounts,
    limit: Limit,
) -> tuple[Problem, LeafCounts]:
    """Return the new VMs per leaf of least bottleneck, then of least Hop-Byte, then in plan order.

    Within the bounds, and with no more harm to others than the objective allows. Where the bound on
    harm, or on leaves, is what decides, equal plans are in the order of less harm, or of leaves,
    then in tie order. The plan of least Hop-Byte, not proven, if both bind and no plan by one bound
    keeps the other.

    :param level: of the switch that must hold all VMs, members included
    :param tops: those with room for all, at least one
    :param bounds: on the leaves of the group, the members' leaves included
    :param hops: the plan of least Hop-Byte
    :returns: with the problem whose hosts take no more than the bottleneck permits
    :raises TimeLimitPassed: if the limit passes before a plan is found
    :raises OverflowError: if the group is too large
    """
    # Equal plans are in an order that may depend on the numbers: not on the unit.
    capacities, tradeoff = objective.capacities.reduced(), objective.tradeoff
    fabric = GroupFabric.of(problem, count, capacities, tops, level)
    resources = leaf_bounds(problem, bounds, count)
    if tradeoff is not None:
        resources.append(Harm.of(problem, fabric, capacities, hops.counts, tradeoff))
    counts, effort = _within_least(AchievableCounts(fabric, Fraction(0)), (), limit), Effort(limit)
    found, savings, saved = least_hops(problem, counts, effort)
    if used_too_much(problem, resources, found):
        least = _within_least(counts, resources, limit)
        if least.bottleneck != counts.bottleneck:
            found, savings, saved = least_hops(problem, least, effort)
        if too_much := used_too_much(problem, resources, found):
            added = Added(saved, too_much[0].of_plan(problem, found.counts))
            found = ResourceBound(problem, savings, too_much[0], effort).best(added)
        if used_too_much(problem, resources, found):
            # Only if several resources are bound. No plan has less Hop-Byte than this one.
            is_best = hops.is_proven and _is_within(problem, least, capacities.hosts, hops)
            return problem, replace(hops, is_proven=is_best)
    rooms = host_rooms(problem, capacities.hosts, savings, found.counts)
    return replace(problem, capacity=rooms), found


def _is_within(problem: Problem, counts: AchievableCounts, links: Array, found: LeafCounts) -> bool:
    """True if a plan is within a bottleneck, on the hosts that it uses without one."""
    planned = vms_per_host(problem, found.counts)
    below, [used] = sums_below(problem, planned), planned.nonzero()
    kinds = [(switch, counts.fabric.kinds[kind]) for switch, kind in counts.fabric.kind_of.items()]
    return all(
        counts.own(kind.members, kind.capacity) >> below.item(switch) & 1 for switch, kind in kinds
    ) and all(
        counts.own(problem.members.item(host), links.item(host)) >> planned.item(host) & 1
        for host in used.tolist()
    )


def _within_least(
    last: AchievableCounts, resources: Sequence[Resource], limit: Limit
) -> AchievableCounts:
    """Return the counts within the least bottleneck of plans that use no more than they may.

    At least of each resource by itself.

    :param last: those within a bottleneck that none is less than
    """
    fabric = last.fabric

    def is_possible(bottleneck: Fraction) -> bool:
        nonlocal last
        limit.check()
        counts = AchievableCounts(fabric, bottleneck)
        if not counts.tops() or not all(one.is_enough(counts, limit) for one in resources):
            return False
        last = counts
        return True

    least = least_bottleneck(fabric.everyone, fabric.capacities(), is_possible, last.bottleneck)
    return last if last.bottleneck == least else AchievableCounts(fabric, least)
