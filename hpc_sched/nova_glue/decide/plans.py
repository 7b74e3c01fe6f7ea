"""Where the plan of a group is made, for the first VM of a request and for later ones.

HPCGroupFilter plans (:func:`checked_plan`), and again for each attempt of a claim and for later
VMs (:func:`plan_of_candidates`); HPCRackCapacityFilter plans what is left (:func:`plan_of_rest`).
Before them HPCHomogeneityFilter may have planned on one processor type
(``processor_type.choose``), and after them the weighers use the plan, which ``Decisions`` keeps
while it holds. All of them call ``GroupRequest.decide``, which may read the rooms of planned hosts
in Placement.
"""

from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement, finds_more_room


def checked_plan(group: GroupPlacement) -> Plan | Rejection:
    """Return the decision on a group whose values, final size and members are checked.

    Before a Rejection all hosts are read in Placement.
    """
    checks.check_values(group)
    request = group.request(group.event.candidates)
    answer = group.answer(request)
    if isinstance(answer, Rejection) and finds_more_room(group, request):
        return plan_of_candidates(group)
    return answer


def plan_of_candidates(group: GroupPlacement, *, anew: bool = False) -> Plan | Rejection:
    """Return the decision on a group among the candidates of Nova's call.

    :param anew: whether the last plan is forgotten: hosts or members were read again
    """
    return group.answer(group.request(group.event.candidates), anew=anew)


def plan_of_rest(group: GroupPlacement) -> Plan | Rejection | None:
    """Return the decision on the VMs that are left; None if there are none, or not as planned.

    Before a group with constraints is refused all hosts are read in Placement.
    """
    request = group.request(group.event.candidates)
    if not request.left:
        return None
    is_bound = group.inputs.request.hpc_specs.binds_place
    if is_bound:
        checks.check_members(group.inputs)
        checks.check_isolation(group.inputs)
    answer = group.answer(request)
    if group.decisions.revised:
        return None
    if isinstance(answer, Rejection) and is_bound:
        if not finds_more_room(group, request):
            raise checks.refused(request.refusal(answer))
        return plan_of_rest(group)
    return answer
