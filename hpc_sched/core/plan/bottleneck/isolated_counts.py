"""The plan of least Hop-Byte that uses no uplink of other isolated groups.

All or none of the group are below a switch whose uplinks another isolated group uses: a bottleneck
of 0 there, and of any size elsewhere. Jigsaw (Smith, Lowenthal, HPDC 2021) and Links as a Service
(Zahavi and others, ANCS 2016) isolate the links of a switch one by one, by routing; placement alone
isolates all uplinks of a switch together.
"""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import GroupFabric
from hpc_sched.core.plan.bottleneck.least_hops.permitted_hops import least_hops
from hpc_sched.core.plan.bottleneck.resources.kind_tables import NEVER, KindTables, shared_out
from hpc_sched.core.plan.bottleneck.resources.resource import Resource, leaf_bounds, used_too_much
from hpc_sched.core.plan.bottleneck.resources.resource_bound import Added, ResourceBound
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.problem import LeafCounts, Problem, leaf_room
from hpc_sched.core.plan.result import Gang
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.core.plan.time_limit import NO_LIMIT, Effort, Limit, TimeLimitPassed
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.tree import Switch


def isolated_counts(
    problem: Problem,
    count: int,
    level: int,
    tops: Array,
    bounds: Bounds,
    isolation: Isolation,
    limit: Limit,
) -> LeafCounts | None:
    """Return the new VMs per leaf of least Hop-Byte, then in plan order; None without such a plan.

    Not proven once the limit passes.

    :param level: of the switch that must hold all VMs, members included
    :param tops: those with room for all, at least one
    :param bounds: on the leaves of the group, the members' leaves included
    """
    links = Capacities(isolation.is_used.astype(np.int64), np.zeros_like(problem.capacity))
    fabric = GroupFabric.of(problem, count, links, tops, level)
    counts = AchievableCounts(fabric, Fraction(0))
    resources = leaf_bounds(problem, bounds, count)
    if not counts.tops() or not all(one.is_enough(counts, NO_LIMIT) for one in resources):
        return None
    with suppress(OverflowError, TimeLimitPassed):
        return _best(problem, counts, resources, Effort(limit))
    top = min(counts.tops(), key=lambda top: int(problem.tie.ranks[top]))
    worthless = [np.where(counts.permitted(kind), 0, NEVER) for kind in range(len(fabric.kinds))]
    way = KindTables(fabric, worthless).way(fabric.kind_of[top], count)
    found = LeafCounts(top, shared_out(problem, fabric, top, way), is_proven=False)
    return None if used_too_much(problem, resources, found) else found


def _best(
    problem: Problem, counts: AchievableCounts, resources: Sequence[Resource], effort: Effort
) -> LeafCounts | None:
    found, savings, saved = least_hops(problem, counts, effort)
    if too_much := used_too_much(problem, resources, found):
        added = Added(saved, too_much[0].of_plan(problem, found.counts))
        found = ResourceBound(problem, savings, too_much[0], effort).best(added)
        if used_too_much(problem, resources, found):
            return None
    return found


def largest_isolated(problem: Problem, isolation: Isolation, level: int) -> Gang:
    """Return the largest group that has places, with the members, without uplinks of others.

    No VMs if the members themselves use such uplinks. Of equal switches the first in tie order.
    O(hosts * depth + switches).

    :param level: of the switch that must hold all VMs
    """
    topology, ranks = problem.topology, problem.tie.ranks
    switches, is_used = topology.switches, isolation.is_used.tolist()
    members, everyone = sums_below(problem, problem.members).tolist(), int(problem.members.sum())
    room, apart = leaf_room(problem).tolist(), [0] * len(switches)
    found: list[tuple[int, int, Switch]] = []
    for s in np.argsort(topology.switch_levels, kind="stable").tolist():
        switch = switches[s]
        # Members below a switch with used uplinks are apart from all that is outside.
        if switch.level <= level and members[s] == everyone and not apart[s]:
            found.append((room[s], -ranks.item(s), switch))
        if switch.parent >= 0:
            room[switch.parent] += 0 if is_used[s] else room[s]
            apart[switch.parent] += members[s] if is_used[s] else apart[s]
    most, _, largest = max(found, default=(0, 0, switches[0]))
    return Gang(topology.levels[largest.level - 1], most, largest.name)
