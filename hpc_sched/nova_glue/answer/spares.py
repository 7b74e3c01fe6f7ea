"""The hosts that HPCRackCapacityFilter keeps: the leaves of a claimed plan, and spares."""

from __future__ import annotations

import nova.conf
import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.spare_hosts import with_spares
from hpc_sched.nova_glue.claim.request_claims import RequestClaims

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
    retries = CONF.scheduler.max_attempts - 1
    placed = group.event.placed
    mask = with_spares(request, answer, placed, least=VMS_A_RUN, retries=retries)[positions]
    claimed = [place.position for place in group.held_places().values()]
    mask |= np.isin(positions, claimed)
    why = "outside the plan's leaves and spares"
    group.removed.count(why, int((~mask).sum()), bounds_plan=False)
    spared: Array = positions[mask]
    return spared
