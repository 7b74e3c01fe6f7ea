"""What HPCHomogeneityFilter and HPCGroupFilter leave of the hosts to any weigher."""

from dataclasses import replace

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.sim.policies.base import Place, PlacementRequest, Places, refused


def on_one_type(place: Place) -> Place:
    """Return a rule that places by another one on one processor type (Gupta2012).

    If no single type holds the group, on all hosts, or nowhere if one type is required.
    """

    def placed(request: PlacementRequest) -> Places | Rejection:
        def on(group: GroupRequest) -> Places | Rejection:
            if int(group.room.sum()) < group.left:
                return refused(group.problem())
            return place(replace(request, group=group))

        choice = request.group.choose_processor(on, len)
        if isinstance(choice, Refusal):
            return refused(request.problem)
        return place(request) if choice is None else choice.answer

    return placed


def within_constraints(group: GroupRequest) -> GroupRequest | Rejection:
    """Return the group on the hosts that its constraints leave of one island."""
    constraints = group.constraints
    is_bound = constraints.require is not None or constraints.max_leaves is not None
    if not is_bound and len(group.topology.roots) == 1:
        return group
    plan = group.decide()
    return group.among(group.permitted(plan)) if isinstance(plan, Plan) else plan


def constrained(place: Place) -> Place:
    """Return a rule that places by another one within the group's constraints, or nowhere."""

    def placed(request: PlacementRequest) -> Places | Rejection:
        group = within_constraints(replace(request.group, packing=None, pack_hosts=True))
        if isinstance(group, Rejection):
            return group
        return place(replace(request, group=group))

    return placed
