"""The hosts that HPCGroupFilter keeps, or its refusal."""

from __future__ import annotations

from dataclasses import replace

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement


def passing(claims: RequestClaims, answer: Plan | Rejection) -> Array:
    """Return the positions of the HostStates on which a group keeps its constraints.

    All of them without a plan, where the request is not refused.

    :raises exceptions.RefusedError: if a request without a plan has a guarantee, or is new
    """
    group = claims.group
    positions, is_move = group.event.candidates, group.inputs.membership.is_move
    request = group.request(positions)
    if isinstance(answer, Plan):
        kept: Array = positions[request.permitted(answer)[positions]]
        why = "outside the required switch, the leaves allowed or the island"
        group.removed.count(why, len(positions) - len(kept))
        return kept
    if not request.is_refused(answer, is_move=is_move):
        claims.fence()
        return positions
    refusal = request.refusal(answer)
    if is_move:
        lifted = "; [hpc_sched] relax_moves can lift the guarantees of moves"
        refusal = replace(refusal, operator=refusal.operator + lifted)
    raise checks.refused(refusal)


def passing_next(group: GroupPlacement) -> Array:
    """Return the positions of the HostStates on which the next VM keeps bounds at least.

    Each other bound is kept by any of the hosts that the first VM was given.
    """
    positions = group.event.candidates
    kept: Array = positions[group.request(positions).permitted_next()[positions]]
    lost = len(positions) - len(kept)
    group.removed.count("under a leaf that the group uses", lost, bounds_plan=False)
    return kept
