"""HPCHomogeneityFilter and HPCGroupFilter, in front of any policy."""

from dataclasses import replace

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.sim.policies.base import Place, PlacementRequest, Places, refused


def on_one_type(place: Place) -> Place:
    """Return a rule that applies another one to the hosts of one processor type (Gupta2012).

    If no single type holds the group: to all hosts, or a Rejection if one type is required.
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
    """Return the group on the hosts, all on one island, that keep its constraints."""
    if not group.constraints.bind_place and len(group.topology.roots) == 1:
        return group
    plan = group.decide()
    return group.among(group.permitted(plan)) if isinstance(plan, Plan) else plan


def constrained(place: Place) -> Place:
    """Return a rule that applies another one to the hosts that keep the group's constraints."""

    def placed(request: PlacementRequest) -> Places | Rejection:
        group = within_constraints(replace(request.group, packing=None, pack_hosts=True))
        if isinstance(group, Rejection):
            return group
        return place(replace(request, group=group))

    return placed
