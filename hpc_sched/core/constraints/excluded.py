"""Constraints that no plan of a group can keep together with others, whatever room there is."""

from dataclasses import replace
from typing import TypeVar

from hpc_sched.core.constraints.min_leaves import MinLeaves
from hpc_sched.core.constraints.values import PARTS
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Rejection

Request = TypeVar("Request", bound=PlacementInput)


def of_policy(request: PlacementInput) -> str | None:
    """Return how the policy of the server group, or an objective, excludes constraints, or None."""
    policy, least = request.hard_policy, request.constraints.bounds.least_leaves
    if request.constraints.bounds.guaranteed_parts is not None and excludes_parts(request):
        other = "an objective other than hops"
        if request.objective is None:
            other = f"policy {request.server_group_policy} on services of many nodes"
        names = (one.spec.name for one, _ in request.constraints.items() if one in PARTS)
        return f"{' and '.join(names)} and {other} contradict each other"
    if least < 2 or policy is None or policy.policy != "affinity":
        return None
    # The nodes of one service may be below several leaves.
    if not policy.has_single_nodes:
        return None
    return (
        f"{MinLeaves.spec.name}={least} and policy affinity contradict each other: all VMs of "
        "the group are on one host"
    )


def excludes_parts(request: PlacementInput) -> bool:
    """True if plans have no parts: by objectives, and under policies by compute service."""
    policy = request.hard_policy
    return request.objective is not None or (policy is not None and not policy.has_single_nodes)


def with_possible_parts(request: Request) -> Request | Rejection:
    """Return a request with the parts that its plan can have, or why it has none.

    Preferred parts are left out where plans have no parts. A guarantee comes before an objective.
    """
    if not excludes_parts(request):
        return request
    if request.constraints.bounds.guaranteed_parts is None:
        none = {one.name: None for one in PARTS}
        return replace(request, constraints=request.constraints.changed(**none))
    by_hops = replace(request, objective=None)
    if isinstance(request.objective, LeastBottleneck) and not excludes_parts(by_hops):
        return by_hops
    answer = rejected(request.problem(), request.sizes[-1], request.constraints.bounds)
    return replace(answer, conflict=of_policy(request))
