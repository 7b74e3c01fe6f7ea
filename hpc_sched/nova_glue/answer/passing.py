"""The hosts that HPCGroupFilter and HPCRackCapacityFilter keep, or the refusal of a group."""

from dataclasses import replace

import nova.conf

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.spare_hosts import with_spares
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement

CONF = nova.conf.CONF

# VMs of a request between two runs of HPCRackCapacityFilter, and the fewest spares. Spares are
# needed up to the last VM: other requests take hosts meanwhile, and alternates are chosen at the
# end.
VMS_A_RUN = 64

# Why a host is left out.
OUTSIDE = "outside the required switch, the leaves allowed or the island"
OUTSIDE_PARTS = "outside the switches of the plan's parts (hpc:segment, hpc:balance)"
USED_LEAF = "under a leaf that the group uses already (hpc:min_leaves)"


def passing(claims: RequestClaims, answer: Plan | Rejection) -> Array:
    """Return the positions of the HostStates on which a group keeps its constraints.

    All of them without a plan, where the request is not refused.

    :raises exceptions.RefusedError: if a request without a plan has a guarantee, or is new
    """
    group, is_move = claims.group, claims.group.inputs.membership.is_move
    request = group.request(group.event.candidates)
    if isinstance(answer, Plan):
        spread = _kept(group, group.event.candidates, request.permitted_next(), USED_LEAF)
        return _kept(group, spread, request.permitted(answer), OUTSIDE)
    if not request.is_refused(answer, is_move=is_move):
        claims.fence()
        return group.event.candidates
    refusal = request.refusal(answer)
    for operator, tenant in () if answer.conflict else group.inputs.rooms.lacking():
        refusal = replace(
            refusal,
            operator=f"{refusal.operator}; {operator}",
            tenant=f"{refusal.tenant}; {tenant}",
        )
    if is_move:
        lifted = "; [hpc_sched] relax_moves can lift the guarantees of moves"
        refusal = replace(refusal, operator=refusal.operator + lifted)
    raise checks.refused(refusal)


def passing_next(group: GroupPlacement) -> Array:
    """Return the positions of the HostStates on which the next VM keeps bounds at least, or parts.

    Each other bound is kept by any of the hosts that the first VM was given.

    :raises exceptions.RefusedError: if there is none
    """
    positions = group.event.candidates
    request = group.request(positions)
    if request.constraints.bounds.guaranteed_parts is not None:
        answer = group.answer(request)
        if isinstance(answer, Rejection):
            raise checks.refused(request.refusal(answer))
        return _kept(group, positions, request.permitted(answer), OUTSIDE_PARTS, bounds_plan=False)
    kept = _kept(group, positions, request.permitted_next(), USED_LEAF, bounds_plan=False)
    if not len(kept) and isinstance(answer := group.answer(request), Rejection):
        raise checks.refused(request.refusal(answer))
    return kept


def in_leaves_and_spares(group: GroupPlacement, answer: Plan | Rejection) -> Array:
    """Return the positions of the HostStates that HPCRackCapacityFilter keeps.

    All within the group's constraints unless places of a plan are claimed: others may take the
    places of the plan, and what is removed now stays removed.
    """
    positions, held = group.event.candidates, group.held_places()
    if isinstance(answer, Rejection) or group.inputs.request.hpc_specs.is_flat:
        return positions
    request = group.request(positions)
    if not held:
        within: Array = positions[request.permitted(answer)[positions]]
        return within
    retries = CONF.scheduler.max_attempts - 1
    mask = with_spares(request, answer, group.event.placed, least=VMS_A_RUN, retries=retries)
    mask[[place.position for place in held.values()]] = True
    return _kept(group, positions, mask, "outside the plan's leaves and spares", bounds_plan=False)


def _kept(
    group: GroupPlacement, positions: Array, mask: Mask, why: str, *, bounds_plan: bool = True
) -> Array:
    """Return those of some candidates in a mask over HostStates; count the others as removed."""
    kept: Array = positions[mask[positions]]
    group.removed.count(why, len(positions) - len(kept), bounds_plan=bounds_plan)
    return kept
