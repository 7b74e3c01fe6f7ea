"""Why the plan of a decision does not use a switch, or a host."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.constraints.require import Require
from hpc_sched.core.counterfactual.costs import (
    HPC,
    NO_TIME,
    cost_of,
    leaves_of,
    logged_plan,
    relative,
)
from hpc_sched.core.counterfactual.open_hosts import OpenHosts, PlannedAgain, obstacles
from hpc_sched.core.counterfactual.rebuilt_request import RebuiltRequest
from hpc_sched.core.counterfactual.recorded_objective import loads_of
from hpc_sched.core.extra_spec_names import ISOLATED
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.objectives.plan_loads import PlanLoads
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import plurals


@dataclass(frozen=True, slots=True)
class Use:
    """The best plan that uses a switch."""

    hop_bytes: float
    more: float  # than the decision's plan costs
    leaves: int
    is_proven: bool = True  # False if there may be a better one
    # Of links, relative to the decision's plan; None where links did not count for it.
    bottleneck: float | None = None
    harm: float | None = None


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why the plan does not use a switch."""

    name: str
    reason: str  # a sentence
    vms: int = 0  # that the plan has there
    one: Use | None = None  # with at least one VM there
    without: str | None = None  # the constraint that keeps the group from it, which ``one`` lacks
    others: Mapping[str, int] = field(default_factory=dict)  # reason to hosts that it cannot use
    all_: Use | None = None  # with all VMs there


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A plan with at least one VM on given hosts."""

    cost: float
    places: Sequence[str]
    leaves: int
    is_proven: bool
    loads: PlanLoads | None  # None where links do not count

    @classmethod
    def of(cls, rebuilt: RebuiltRequest, places: Sequence[str], *, is_proven: bool) -> Self:
        """Return the plan with these places."""
        leaves = leaves_of(rebuilt.request, places)
        loads = loads_of(rebuilt.request, Counter(places))
        return cls(cost_of(rebuilt, places), places, leaves, is_proven, loads)

    @property
    def key(self) -> tuple[Fraction, float, int]:
        """The sort key of plans, best first."""
        bottleneck = Fraction(0) if self.loads is None else self.loads.bottleneck
        return bottleneck, self.cost, self.leaves

    def use(self, before: Self) -> Use:
        """Return what is shown of the plan.

        :param before: the decision's plan
        """
        links = relative(self.loads, before.loads)
        return Use(self.cost, self.cost - before.cost, self.leaves, self.is_proven, *links)


def why_not(again: PlannedAgain, switch: str) -> WhyNot:
    """Return why the plan of a decision does not use a switch of its record.

    :raises RecordError: if the record does not give the decision that it states, or if no time is
        left to find out
    """
    rebuilt, limit, logged = again.as_planned, again.limit, logged_plan(again.entry)
    topology = rebuilt.request.topology
    index = topology.switch_index(switch)
    level = topology.switches[index].level
    # A switch above all others of its branch counts as one of the levels above, too.
    below = rebuilt.request.switches(level) == index
    planned = {} if logged is None else logged.leaves
    there = sum(
        count
        for leaf, count in planned.items()
        if index in topology.upwards(topology.switch_index(leaf))
    )
    if there:
        count = sum(planned.values())
        return WhyNot(switch, f"it is used: {there} of {count} planned VMs are there", there)
    if again.plan is None:
        return WhyNot(switch, _without_plan(rebuilt.request, below, level))
    found = again.open_hosts
    number, others = obstacles(rebuilt, found, below)
    if not number:
        return WhyNot(switch, _closed(rebuilt, below, others))
    request = _without_bound(found.request)
    made = _Placed.of(rebuilt, again.plan.places, is_proven=True)
    one = _with_one(rebuilt, request, below, limit)
    without = None
    if one is None:
        room = _room_below(request, below, level)
        reason, without, one = _constraint(
            rebuilt, replace(found, request=request), below, room, limit
        )
    elif one.key[:2] > made.key[:2]:
        reason = _worse(one, made)
    elif _harms(found.request, one, limit):
        reason = "a plan with it does more harm to others than bottleneck_tradeoff allows"
    else:
        reason = f"a plan with it costs the same, but {_tie(found, planned, one)}"
    every = request.among(below).decide(limit)
    return WhyNot(
        switch,
        reason,
        one=None if one is None else one.use(made),
        without=without,
        others=dict(others),
        all_=_Placed.of(rebuilt, every.places, is_proven=every.is_proven).use(made)
        if isinstance(every, Plan)
        else None,
    )


def _without_bound(request: GroupRequest) -> GroupRequest:
    """Return a request without a bound on harm, which is by a plan that others do not have."""
    if not isinstance(request.objective, LeastBottleneck):
        return request
    return replace(request, objective=replace(request.objective, tradeoff=None))


def _worse(one: _Placed, made: _Placed) -> str:
    """Return by what the best plan that uses a switch is worse than the decision's."""
    if one.loads is None or made.loads is None:
        return f"a plan with at least one VM there costs {one.cost - made.cost:.0f} more"
    if one.loads.bottleneck > made.loads.bottleneck:
        times, _ = relative(one.loads, made.loads)
        by = "a higher bottleneck" if times is None else f"{times:.2f} times the bottleneck"
        return f"a plan with at least one VM there has at least {by}"
    more = f"at least {one.cost - made.cost:.0f} more at the same bottleneck"
    return f"a plan with at least one VM there costs {more}"


def _harms(request: GroupRequest, one: _Placed, limit: TimeLimit) -> bool:
    """True if a plan does more harm to others than a request allows."""
    objective = request.objective
    if not isinstance(objective, LeastBottleneck) or objective.tradeoff is None:
        return False
    hops = replace(request, objective=None).decide(limit)
    least = loads_of(request, hops.hosts) if isinstance(hops, Plan) else None
    if least is None or one.loads is None:
        return False
    return one.loads.harm > (1 + objective.tradeoff) * least.harm


def _closed(rebuilt: RebuiltRequest, below: Mask, others: Mapping[str, int]) -> str:
    if others:
        return f"none of its hosts can be used: {counted(others)}"
    members = int(rebuilt.request.members[rebuilt.request.hosts_of_rows[below]].sum())
    there = f"; {plurals.text(members, 'member')} of the group there" if members else ""
    return f"none of its hosts was a candidate: filters before those of hpc_sched{there}"


def counted(counts: Mapping[str, int]) -> str:
    """Return numbers of hosts by reason as a part of a sentence."""
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))


def _room_below(request: GroupRequest, below: Mask, level: int) -> int:
    """Return how many VMs of a group the hosts below a switch of a level take."""
    return int(request.among(below).capacity_at(level).sum())


def _without_plan(request: GroupRequest, below: Mask, level: int) -> str:
    room, wanted = _room_below(request, below, level), request.sizes[-1]
    of_these = f"of {wanted} VMs" if room < wanted else f"VMs, {wanted} are wanted"
    return f"there is no plan: it has room for {room} {of_these}"


def _with_one(
    rebuilt: RebuiltRequest, request: GroupRequest, below: Mask, limit: TimeLimit
) -> _Placed | None:
    """Return the best plan with at least one VM on some hypervisors, or None without any.

    One VM has its place, and the others are planned as if it were a member: the cost of members
    and planned VMs is then that of the plan. It is tried on one host of each kind.
    """
    best: _Placed | None = None
    is_proven = True
    # As a member, one on a leaf of the group would lower the number of leaves that are required.
    for row in _representatives(request, below & request.permitted_next()):
        if limit.has_passed():
            is_proven = False
            break
        placed: Array = np.zeros(len(request.room), dtype=np.int64)
        placed[row] = 1
        group, policy = request, request.hard_policy
        if policy is not None and policy.policy == "affinity":
            # Members may be on several services, a plan uses one of them.
            group = request.among(policy.service == policy.service[row])
        answer = group.after(placed).decide(limit)
        if not isinstance(answer, Plan):
            continue
        is_proven &= answer.is_proven
        host = request.topology.hosts[int(request.hosts_of_rows[row])]
        one = _Placed.of(rebuilt, (host, *answer.places), is_proven=True)
        best = min(best or one, one, key=lambda placed: placed.key)
    return None if best is None else replace(best, is_proven=is_proven)


def _representatives(request: GroupRequest, below: Mask) -> Iterator[int]:
    """Yield hypervisors, one of which has a VM in some best plan that uses any of them.

    Of the hosts of a leaf with equal members the one with most room: it is filled first. Leaves
    below one switch whose hosts are alike are interchangeable.
    """
    topology, rows = request.topology, request.hosts_of_rows
    capacity = np.minimum(request.capacity, request.problem().capacity[rows])
    leaf = topology.leaf_index[rows]
    policy = request.hard_policy
    has_services = policy is not None and not policy.has_single_nodes
    service = policy.service if policy is not None and has_services else np.zeros_like(capacity)
    hosts = defaultdict[int, list[tuple[int, int, int, int]]](list)
    inside = np.isin(leaf, leaf[below])
    for i in np.flatnonzero(inside & ((capacity > 0) | (request.members[rows] > 0))).tolist():
        members = int(request.members[rows[i]])
        hosts[int(leaf[i])].append((members, int(service[i]), -int(capacity[i]), i))
    seen = set()
    for one, found in hosts.items():
        found.sort()
        kind = topology.switches[one].parent, tuple(host[:3] for host in found)
        if kind in seen:
            continue
        seen.add(kind)
        first = {host[:2]: host for host in reversed(found)}
        for _, _, room, i in first.values():
            if room and below[i]:
                yield i


def _constraint(
    rebuilt: RebuiltRequest, found: OpenHosts, below: Mask, room: int, limit: TimeLimit
) -> tuple[str, str | None, _Placed | None]:
    """Return why a group cannot use a switch, by which constraint, and the best plan without it.

    :param room: of the group's VMs below the switch
    """
    request, wanted = found.request, found.request.constraints
    attempts = [
        (
            one.why_not.format(value=value),
            f"{HPC}{found.wish}={value}" if one is Require else f"{one.spec.name}={value}",
            replace(request, constraints=wanted.changed(**{one.name: None})),
        )
        for one, value in wanted.items()
        if one.why_not
    ]
    if isinstance(request.objective, Isolation):
        reason = "other isolated groups use its uplinks, or those that the group then needs"
        free = replace(request, objective=None)
        attempts.append((reason, f"{HPC}objective={ISOLATED}", free))
    if request.hard_policy is not None or request.most_per_host is not None:
        name = f"policy {rebuilt.request.server_group_policy}"
        free = replace(request, hard_policy=None, server_group_policy=None, most_per_host=None)
        attempts.append(("the policy leaves no plan with it", name, free))
    if len(attempts) > 1:
        bare = replace(
            attempts[-1][-1],
            constraints=NO_CONSTRAINTS,
            hard_policy=None,
            most_per_host=None,
            objective=None,
        )
        names = ", ".join(name for _, name, _ in attempts)
        attempts.append(("the constraints together leave no plan with it", names, bare))
    holds = f"; it has room for {room} of {request.left} VMs" if room < request.left else ""
    for reason, name, relaxed in attempts:
        placed = _with_one(rebuilt, relaxed, below, limit)
        if placed is not None:
            return f"{reason} ({name}){holds}", name, placed
    if limit.has_passed():
        return NO_TIME, None, None
    return "its island does not hold the group, and no group is spread over islands", None, None


def _tie(found: OpenHosts, planned: Mapping[str, int], one: _Placed) -> str:
    """Return by what a plan of equal cost comes later than the plan of a decision."""
    request = found.request
    topology = request.topology
    # Any host of a leaf stands for it.
    first = {leaf: hosts[0] for leaf, hosts in enumerate(topology.leaf_hosts()) if hosts}
    plan = [first[topology.switch_index(leaf)] for leaf, count in planned.items() if count]
    leaves = leaves_of(request, plan)
    if one.leaves > leaves:
        return f"uses more leaves: {one.leaves}, not {leaves}"
    rooms = sums_below(request.problem(), request.problem().capacity)
    hosts = [[topology.index_of(host) for host in set(places)] for places in (one.places, plan)]
    for level, name in enumerate(topology.levels, 1):
        # The capacity below the switches of a level that have planned VMs.
        switches = (np.unique(topology.groups[level - 1][each]) for each in hosts)
        left, before = (int(rooms[each].sum()) for each in switches)
        if left > before:
            return (
                f"leaves more room unused under the switches of level {name}: "
                f"{left - request.left}, not {before - request.left}"
            )
        if left < before:
            break
    return "comes later in the group's tie order"
