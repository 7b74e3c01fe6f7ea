"""What was decided on one request, as values that nothing changes any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.request import request_spec
from hpc_sched.nova_glue.request.group_state import GroupState


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The decision on one request."""

    requested: request_spec.Request
    queue: tuple[str, ...]  # uuids of the group's VMs without a place
    request: GroupRequest  # on all candidates of the first call
    is_flat: bool
    answer: Plan | Rejection
    refused: str | None  # the operator's text; None if the request is not refused
    least: float | None  # Hop-Byte without constraints, on all candidates; None without a plan
    removed: Mapping[str, int]  # candidates that our filters removed, by the reason
    kept_out: NDArray[np.bool_]  # shape (HostStates,): full because of the VMs of others
    room: NDArray[np.int64]  # shape (HostStates,): VMs that each takes, lost claims left out
    seconds: float  # spent on the request


def of(state: GroupState, answer: Plan | Rejection, refused: str | None) -> Decision:
    """Return the decision on a group as it is now."""
    request = state.group_request()
    return Decision(
        requested=state.request,
        queue=state.group.queue,
        request=request,
        is_flat=state.is_flat,
        answer=answer,
        refused=refused,
        least=_least(state, request, answer) if isinstance(answer, Plan) else None,
        removed=dict(state.removed),
        kept_out=state.kept_out,
        room=state.room,
        seconds=state.planning.seconds,
    )


def _least(state: GroupState, request: GroupRequest, plan: Plan) -> float:
    """Return the least cost with all candidates of the first call and without constraints."""
    if state.is_flat or not (state.is_bounded or state.request.hpc_specs.stated):
        return plan.hop_bytes
    free = request.unconstrained(plan.count)
    return free.hop_bytes if isinstance(free, Plan) else plan.hop_bytes
