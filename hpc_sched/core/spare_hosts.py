"""The hosts that a claimed plan leaves to Nova: its leaves, and spares for claims that are lost."""

from dataclasses import replace

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.ranking import hosts_with_spares
from hpc_sched.core.plan.result import Plan


def with_spares(
    request: GroupRequest, plan: Plan, placed: Array, *, least: int, retries: int
) -> Mask:
    """Return the hypervisors of a plan's leaves, and of the next best leaves as spares.

    Spares are places for the whole group once more, and hosts for these and all retries: other
    than what the plan avoids, and than those with VMs of the request. Shape (hypervisors,).

    :param placed: VMs of the request on each hypervisor, shape (hypervisors,)
    :param least: the fewest spares once a VM is placed
    :param retries: hosts that are tried for one VM after the first
    """
    wanted = max(plan.count, request.left)
    spares = max(wanted, least) if placed.any() else wanted
    places = wanted + spares + retries
    problem = request.as_planned(plan).problem()
    if request.preferred is not None and problem.capacity.sum() < places:
        # Spares of other processors too.
        problem = replace(request, preferred=None).as_planned(plan).problem()
    is_avoided = (problem.capacity <= 0) & (request.problem().capacity > 0)
    mask = hosts_with_spares(
        problem,
        plan,
        request.open_hosts(),
        is_avoided | (request.per_host(placed) > 0),
        places=places,
        hosts=spares + retries,
    )
    return mask[request.hosts_of_rows]
