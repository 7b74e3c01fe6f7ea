"""What was decided on one request, for the log and the decision log."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

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
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import leaf_sums
from hpc_sched.nova_glue.io.decision_log import append
from hpc_sched.nova_glue.request.request_spec import request_id_of

if TYPE_CHECKING:
    from hpc_sched.nova_glue.request.group_state import GroupState

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# How many uuids of VMs a record names: a line stays short enough to be appended at once.
MAX_INSTANCES = 256


@dataclass
class Record:
    """What is known of the decision on one request so far."""

    told: bool = False
    removed: Counter[str] = field(default_factory=Counter)  # why our filters removed how many
    seconds: float = 0.0  # spent on the request

    bounded: bool = False  # whether hosts that the plan could have used were removed

    def count_removed(self, why: str, number: int, *, bounds_plan: bool = True) -> None:
        """Note that a filter of ours removed hosts.

        :param bounds_plan: whether the plan was made without them
        """
        if number:
            self.removed[why] += number
            self.bounded |= bounds_plan


def tell(state: GroupState, answer: Plan | Rejection) -> None:
    """Log what was planned for a request, the first time that it is called for it.

    One line on INFO and, with ``decision_log``, one JSON object on a line of that file. Never
    raises: a decision stands whether or not it can be told.
    """
    _once(state, answer, None)


def tell_refusal(state: GroupState, among: NDArray[np.int64], why: str) -> None:
    """Log that a request is refused, as :func:`tell` does.

    :param among: positions of the HostStates that are candidates
    :param why: the operator's text
    """
    try:
        answer = state.planning.plan(among)
    except Exception:
        LOG.exception("The plan of a request that is refused (%s) cannot be told", why)
        return
    _once(state, answer, why)


def tell_early_refusal(spec: objects.RequestSpec, why: str) -> None:
    """Log the refusal of a request of which no group has been read."""
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


def _once(state: GroupState, answer: Plan | Rejection, refused: str | None) -> None:
    if state.record.told:
        return
    state.record.told = True
    try:
        least = _least(state, answer) if isinstance(answer, Plan) else None
        LOG.info("%s", _sentence(state, answer, least, refused))
        if CONF.hpc_sched.decision_log:
            entry = _entry(state, answer, least, refused)
            append(CONF.hpc_sched.decision_log, entry.as_json())
    except Exception:
        LOG.exception("The decision on instance %s cannot be told", state.request.instance_uuid)


def _sentence(
    state: GroupState, answer: Plan | Rejection, least: float | None, refused: str | None
) -> str:
    request = state.request
    name = f"group {request.group_uuid}" if request.group_uuid else "implicit group"
    if refused is not None:
        what = f"refused: {refused}"
    elif isinstance(answer, Rejection):
        what = f"no plan: {answer.operator}"
    else:
        leaves = ", ".join(f"{leaf} ({count})" for leaf, count in answer.leaves.items())
        what = (
            f"planned {answer.count} in {leaves or 'no leaf'}; Hop-Byte {answer.hop_bytes:.0f}, "
            f"least possible {least:.0f}"
        )
    return (
        f"{name}, instance {request.instance_uuid}: {state.awaiting} awaiting, "
        f"{int(state.members.sum())} members; {what}; {1000 * state.record.seconds:.1f} ms"
    )


def _least(state: GroupState, plan: Plan) -> float:
    """Return the least cost with all candidates of first sight and without any wish."""
    if state.is_flat or not (state.record.bounded or state.request.hpc_specs.stated):
        return plan.hop_bytes
    free = solve(state.problem(), plan.count)
    return free.hop_bytes if isinstance(free, Plan) else plan.hop_bytes


def _entry(
    state: GroupState, answer: Plan | Rejection, least: float | None, refused: str | None
) -> DecisionEntry:
    request, problem = state.request, state.problem()
    plan = rejection = None
    if isinstance(answer, Plan):
        plan = LoggedPlan(dict(answer.leaves), dict(answer.hosts), answer.hop_bytes, least)
    else:
        rejection = LoggedRejection(answer.operator, answer.count, answer.best, answer.gangs)
    decision = "no plan" if plan is None else "planned"
    return DecisionEntry(
        time=timeutils.utcnow().isoformat(),
        request_id=request.request_id,
        instance=request.instance_uuid,
        # Of a server group all that await a place; an implicit group's are not known yet.
        instances=tuple(state.group.queue[:MAX_INSTANCES]),
        group=request.group_uuid,
        policy=request.policy,
        app_class=request.app_class,
        wishes=asdict(request.hpc_specs.constraints)
        | {"homogeneous": request.hpc_specs.homogeneous},
        left=state.left,
        awaiting=state.awaiting,
        members=_by_leaf(problem, problem.members),
        candidates=_candidates(state, problem),
        removed=dict(state.record.removed) | state.left_out | _full(state),
        decision=decision if refused is None else "refused",
        seconds=round(state.record.seconds, 6),
        plan=plan,
        rejection=rejection,
        reason=refused,
    )


def _candidates(state: GroupState, problem: Problem) -> dict[str, LeafCandidates]:
    """Return, per leaf, the hosts that passed the filters before ours and their room."""
    number = np.bincount(state.host_index, minlength=len(problem.topology.hosts))
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


def _full(state: GroupState) -> dict[str, int]:
    """Return the candidates that take no VM, by the reason; not those that others keep from it."""
    without_policy = state.room > 0
    none = int((~without_policy & ~state.kept_out).sum())
    policy = int((without_policy & (state.capacity < 1)).sum())
    return {
        why: number
        for why, number in (("no room for one VM", none), ("policy of the group", policy))
        if number
    }
