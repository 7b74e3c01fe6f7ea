"""The record of a decision: one line of the scheduler's log, one of the decision log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import nova.conf
import numpy as np
from nova import objects
from numpy.typing import NDArray
from oslo_log import log as logging
from oslo_utils import timeutils

from hpc_sched.core.decision_entry import (
    DecisionEntry,
    LeafCandidates,
    LoggedPlan,
    LoggedRejection,
)
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import leaf_sums
from hpc_sched.nova_glue.io.decision_log import append
from hpc_sched.nova_glue.request.group_state import GroupState
from hpc_sched.nova_glue.request.request_spec import RequestedGroup, request_id_of

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# The most uuids of VMs in a record: a line must be short enough for one atomic append.
MAX_INSTANCES = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Decision:
    """The decision on one request."""

    requested: RequestedGroup
    queue: tuple[str, ...]  # uuids of the group's VMs without a place
    request: GroupRequest  # on all candidates of the first call
    answer: Plan | Rejection
    refused: str | None  # the operator's text; None if the request is not refused
    least: float | None  # Hop-Byte without constraints, on all candidates; None without a plan
    removed: Mapping[str, int]  # reason to the candidates that filters of hpc_sched removed
    kept_out: NDArray[np.bool_]  # shape (HostStates,): full because of the VMs of others
    room: NDArray[np.int64]  # shape (HostStates,): VMs that each takes, lost claims ignored
    seconds: float  # spent on the request


def log(state: GroupState, answer: Plan | Rejection, refused: str | None = None) -> None:
    """Log the decision on a request once; later calls for the request do nothing.

    One line on INFO and, with ``decision_log``, one JSON object on a line of that file. Never
    raises: a decision holds whether or not it can be logged.

    :param refused: the operator's text if the request is refused
    """
    if state.is_logged:
        return
    state.is_logged = True
    try:
        made = _decision(state, answer, refused)
        LOG.info("%s", _sentence(made))
        if CONF.hpc_sched.decision_log:
            append(CONF.hpc_sched.decision_log, _entry(made).as_json())
    except Exception:
        LOG.exception("The decision on instance %s cannot be logged", state.request.instance_uuid)


def log_refusal(state: GroupState, among: NDArray[np.int64], why: str) -> None:
    """Log that a request is refused, as :func:`log` does.

    :param among: positions of the HostStates that are candidates
    :param why: the operator's text
    """
    try:
        answer = state.plan(state.group_request(among))
    except Exception:
        LOG.exception("The plan of a request that is refused (%s) cannot be logged", why)
        return
    log(state, answer, why)


def log_early_refusal(spec: objects.RequestSpec, why: str) -> None:
    """Log the refusal of a request whose group has not been read."""
    LOG.info("instance %s: refused: %s", spec.instance_uuid, why)
    if CONF.hpc_sched.decision_log:
        group = spec.instance_group if "instance_group" in spec else None
        entry = DecisionEntry(
            time=timeutils.utcnow().isoformat(),
            request_id=request_id_of(spec),
            instance=spec.instance_uuid,
            group=group.uuid if group is not None and "uuid" in group else None,
            decision="refused",
            reason=why,
        )
        append(CONF.hpc_sched.decision_log, entry.as_json())


def _decision(state: GroupState, answer: Plan | Rejection, refused: str | None) -> _Decision:
    request = state.group_request()
    return _Decision(
        requested=state.request,
        queue=state.group.queue,
        request=request,
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


def _sentence(made: _Decision) -> str:
    requested, answer = made.requested, made.answer
    name = f"group {requested.group_uuid}" if requested.group_uuid else "implicit group"
    if made.refused is not None:
        what = f"refused: {made.refused}"
    elif isinstance(answer, Rejection):
        what = f"no plan: {answer.operator}"
    else:
        leaves = ", ".join(f"{leaf} ({count})" for leaf, count in answer.leaves.items())
        what = (
            f"planned {answer.count} in {leaves or 'no leaf'}; Hop-Byte {answer.hop_bytes:.0f}, "
            f"least possible {made.least:.0f}"
        )
    return (
        f"{name}, instance {requested.instance_uuid}: {made.request.awaiting} awaiting, "
        f"{int(made.request.members.sum())} members; {what}; {1000 * made.seconds:.1f} ms"
    )


def _entry(made: _Decision) -> DecisionEntry:
    requested, answer, problem = made.requested, made.answer, made.request.problem()
    specs = requested.hpc_specs
    plan = rejection = None
    if isinstance(answer, Plan):
        plan = LoggedPlan(dict(answer.leaves), dict(answer.hosts), answer.hop_bytes, made.least)
    else:
        rejection = LoggedRejection(answer.operator, answer.count, answer.best, answer.gangs)
    decision = "no plan" if plan is None else "planned"
    return DecisionEntry(
        time=timeutils.utcnow().isoformat(),
        request_id=requested.request_id,
        instance=requested.instance_uuid,
        # Empty for an implicit group: its VMs have no rows in the database yet.
        instances=made.queue[:MAX_INSTANCES],
        group=requested.group_uuid,
        policy=requested.policy,
        app_class=specs.app_class,
        wishes=asdict(specs.constraints) | {"homogeneous": specs.homogeneous},
        left=made.request.left,
        awaiting=made.request.awaiting,
        members=_by_leaf(problem, problem.members),
        candidates=_candidates(made, problem),
        removed={**made.removed, **(made.request.left_out or {}), **_full(made)},
        decision=decision if made.refused is None else "refused",
        seconds=round(made.seconds, 6),
        plan=plan,
        rejection=rejection,
        reason=made.refused,
    )


def _candidates(made: _Decision, problem: Problem) -> dict[str, LeafCandidates]:
    """Return, per leaf, the candidates of the first call and their room."""
    number = made.request.per_host(np.ones_like(made.room))
    hosts, room = leaf_sums(problem, number), leaf_sums(problem, problem.capacity)
    return {
        problem.topology.switches[leaf].name: LeafCandidates(int(hosts[leaf]), int(room[leaf]))
        for leaf in np.flatnonzero(hosts).tolist()
    }


def _by_leaf(problem: Problem, counts: NDArray[np.int64]) -> dict[str, int]:
    sums = leaf_sums(problem, counts)
    return {
        problem.topology.switches[leaf].name: int(sums[leaf])
        for leaf in np.flatnonzero(sums).tolist()
    }


def _full(made: _Decision) -> dict[str, int]:
    """Return the full candidates by reason, without those full because of VMs of others."""
    has_room = made.room > 0
    none = int((~has_room & ~made.kept_out).sum())
    policy = int((has_room & (made.request.capacity < 1)).sum())
    return {
        why: number
        for why, number in (("no room for one VM", none), ("policy of the group", policy))
        if number
    }
