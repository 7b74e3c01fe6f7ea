"""The hosts that the planner could use for a decision, and why it could not use the others."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.constraints import level_of
from hpc_sched.core.counterfactual.costs import NO_TIME, cost_of, planned_again
from hpc_sched.core.counterfactual.rebuilt_request import RebuiltRequest, RecordError, of_size
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor


@dataclass(frozen=True, slots=True, eq=False)
class OpenHosts:
    """A decision as one problem, with all that was chosen before the best plan was sought.

    That is: number of VMs, processor type, whether shunned hosts are used, the most VMs on a host
    with soft-anti-affinity, and whether the preferred level holds.
    """

    request: GroupRequest
    wish: str  # that its ``constraints.require`` stands for, if it has one: require or prefer
    cost: float  # of the plan
    processor: str | None
    is_other_type: Mask  # shape (hypervisors,)
    is_shunned: Mask  # and avoided; shape (hypervisors,)

    def capacity(self) -> Mask:
        """Return whether each hypervisor takes a VM. Shape (hypervisors,)."""
        request = self.request
        per_host = request.problem().capacity[request.hosts_of_rows] > 0
        return np.logical_and(request.capacity > 0, per_host)


@dataclass(frozen=True, eq=False)
class PlannedAgain:
    """A recorded decision. It is planned again when that is first needed, and once.

    Both properties raise RecordError if the record does not give the decision that it states, or
    if no time is left.
    """

    rebuilt: RebuiltRequest
    entry: DecisionEntry
    limit: TimeLimit

    @cached_property
    def plan(self) -> Plan | None:
        """The plan of the decision; None for a refusal."""
        return planned_again(self.rebuilt, self.entry, self.limit)

    @cached_property
    def as_planned(self) -> RebuiltRequest:
        """The request with costs as the planner counts them."""
        by_leaf = self.rebuilt.by_leaf or not self.rebuilt.request.pack_hosts
        return replace(self.rebuilt, by_leaf=by_leaf)

    @cached_property
    def open_hosts(self) -> OpenHosts:
        """The problem whose best plan is the plan of the decision, which has one."""
        assert self.plan is not None
        return open_hosts(self.as_planned, self.plan, self.limit)


def open_hosts(rebuilt: RebuiltRequest, plan: Plan, limit: TimeLimit) -> OpenHosts:
    """Return the problem whose best plan is the plan of a decision.

    :param plan: of the decision, planned again
    :raises RecordError: if the problem has another plan, or if no time is left
    """
    if limit.has_passed():
        raise RecordError(NO_TIME)
    request = of_size(rebuilt.request, plan.count)
    choice = choose_processor(request, lambda group: group.decide(limit), lambda one: one.count)
    is_other = is_shunned = np.zeros(len(request.room), dtype=np.bool_)
    processor = None
    if isinstance(choice, ProcessorChoice):
        processor, is_other = choice.name, ~choice.hypervisors
    if request.shunned is not None and not request.uses_shunned(plan):
        is_shunned = request.shunned
    wanted, wish = request.constraints, "require"
    if wanted.bounds.preferred is not None and _is_near(request, plan, wanted.bounds.preferred):
        wish, wanted = "prefer", wanted.changed(require=wanted.bounds.preferred)
    one = replace(
        request.among(~is_other & ~is_shunned),
        constraints=wanted.changed(prefer=None),
        shunned=None,
        processors=None,
        homogeneous="false",
    ).spread()
    if one.server_group_policy == "soft-anti-affinity":
        # Its bound is fixed now.
        one = replace(one, server_group_policy=None)
    again = one.decide(limit)
    cost = cost_of(rebuilt, plan.places)
    if limit.has_passed():
        raise RecordError(NO_TIME)
    if not isinstance(again, Plan) or cost_of(rebuilt, again.places) != cost:
        raise RecordError("the plan that the record gives has another cost than the logged one")
    return OpenHosts(one, wish, cost, processor, is_other, is_shunned)


def _is_near(request: GroupRequest, plan: Plan, name: str) -> bool:
    """True if the group is below one switch of a level, and has to be by the preference."""
    topology = request.topology
    level = level_of(topology, name)
    if level >= level_of(topology, request.constraints.bounds.level):
        return False
    hosts = [topology.index_of(host) for host in plan.hosts]
    hosts += np.flatnonzero(request.members).tolist()
    return len(np.unique(topology.groups[level - 1][hosts])) <= 1


def obstacles(rebuilt: RebuiltRequest, found: OpenHosts, below: Mask) -> tuple[int, Counter[str]]:
    """Return the number of some hypervisors that the plan could use, and why not the others.

    :param below: shape (hypervisors,)
    """
    request = rebuilt.request
    has_room = request.room > 0
    masks = [
        *((f"removed by a filter: {name}", mask) for name, mask in rebuilt.removed.items()),
        ("full because of the VMs of others", ~has_room & (rebuilt.free > 0)),
        ("no room for one VM", ~has_room),
        # None of them is of another type if the type was not chosen.
        (f"processor type other than {found.processor}", found.is_other_type),
        *((f"shunned: {name}", found.is_shunned & mask) for name, mask in rebuilt.shunned.items()),
        (f"policy {request.server_group_policy} of the group", ~found.capacity()),
    ]
    left, why = below & ~rebuilt.is_member_host, Counter[str]()
    for reason, mask in masks:
        why[reason] += int((left & mask).sum())
        left = left & ~mask
    return int(left.sum()), +why
