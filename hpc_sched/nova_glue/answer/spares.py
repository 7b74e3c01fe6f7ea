"""The hosts that HPCRackCapacityFilter keeps: the leaves of a claimed plan, and spares."""

from __future__ import annotations

from dataclasses import replace

import nova.conf
import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.pruning import hosts_with_spares
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement

CONF = nova.conf.CONF

# VMs of a request between two runs, and the fewest spares. Spares are needed up to the last VM:
# other requests take hosts meanwhile, and alternates are chosen at the end.
VMS_A_RUN = 64


def kept(claims: RequestClaims, answer: Plan | Rejection) -> Array:
    """Return the positions of the HostStates that HPCRackCapacityFilter keeps.

    All within the group's constraints unless places of a plan are claimed: others may take the
    places of the plan, and what is removed now stays removed.
    """
    group = claims.group
    positions = group.event.candidates
    if isinstance(answer, Rejection) or group.inputs.request.hpc_specs.is_flat:
        return positions
    request = group.request(positions)
    if not group.held_places():
        within: Array = positions[request.permitted(answer)[positions]]
        return within
    mask = _with_spares(group, request, answer)
    why = "outside the plan's leaves and spares"
    group.removed.count(why, int((~mask).sum()), bounds_plan=False)
    spared: Array = positions[mask]
    return spared


def _with_spares(group: GroupPlacement, request: GroupRequest, answer: Plan) -> Mask:
    """Return which candidates are claimed, on leaves of the plan or spares. Shape (candidates,)."""
    inputs, positions = group.inputs, group.event.candidates
    wanted = max(answer.count, request.left)
    spares = max(wanted, VMS_A_RUN) if group.event.number else wanted
    retries = CONF.scheduler.max_attempts - 1
    places = wanted + spares + retries
    problem = request.as_planned(answer).problem()
    if request.preferred is not None and problem.capacity.sum() < places:
        # Spares of other processors too.
        problem = replace(request, preferred=None).as_planned(answer).problem()
    is_avoided = (problem.capacity <= 0) & (request.problem().capacity > 0)
    mask = hosts_with_spares(
        problem,
        answer,
        request.open_hosts(),
        is_avoided | (request.per_host(group.event.placed) > 0),
        places=places,
        hosts=spares + retries,
    )
    claimed = [place.position for place in group.held_places().values()]
    return mask[inputs.host_index[positions]] | np.isin(positions, claimed)
