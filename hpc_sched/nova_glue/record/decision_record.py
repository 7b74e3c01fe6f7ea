"""The record of a decision: one line of the scheduler's log; logged_entry has the other one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import nova.conf
from nova import objects
from oslo_log import log as logging

from hpc_sched import conf
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.decision_summary import (
    LoggedClaim,
    LoggedPlan,
    LoggedRejection,
    times_text,
    total_seconds,
)
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.read.request_spec import project_of
from hpc_sched.topology import plurals

if TYPE_CHECKING:
    from hpc_sched.core.logged.decision_entry import DecisionEntry

CONF = nova.conf.CONF
Times = dict[str, float]  # seconds by part
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """What was logged of the first decision on a request."""

    made: LoggedPlan | LoggedRejection | None  # None if nothing was planned
    path: str | None  # of the decision log
    is_refused: bool


def log(
    claims: RequestClaims, answer: Plan | Rejection, refused: str | None
) -> LoggedDecision | None:
    """Log the decision on a request; return what was logged, None if it cannot be.

    One line on INFO and, with ``decision_log``, one JSON object on a line of that file. What is
    known now is logged when the plugin returns to Nova, with the time until then. Never raises: a
    decision holds whether or not it can be logged.

    :param refused: the operator's text if the request is refused
    """
    group = claims.group
    instance, path = group.inputs.request.instance_uuid, CONF.hpc_sched.decision_log
    try:
        request, made = group.request(), _logged(group, answer)
        claim = _claim(claims)
        sentence = _sentence(group, request, made, claim, refused, is_proven=_is_proven(answer))
        entry = None
        if path:
            entry = _entries().of_decision(group, request, answer, made, claim, refused)
    except Exception:
        LOG.exception("The decision on instance %s cannot be logged", instance)
        return None

    _write_before_return(instance, sentence, path, entry, partial(_count, group, answer, refused))
    return LoggedDecision(made, path, is_refused=refused is not None)


def log_early(
    spec: objects.RequestSpec, why: str, topology: str, decision: str = "refused"
) -> None:
    """Log the refusal of a request whose group has not been read, or that it has no plan.

    :param topology: digest of the topology that the request came with
    """
    sentence = f"{_prefix()}instance {spec.instance_uuid}: {decision}: {why}"
    path: str | None = CONF.hpc_sched.decision_log
    request_metrics.current.decided_early(decision.replace(" ", "_"), project_of(spec))
    entry = _entries().early(spec, why, topology, decision) if path else None
    _write_before_return(spec.instance_uuid, sentence, path, entry)


def _write_before_return(
    instance: str | None,
    sentence: str,
    path: str | None,
    entry: DecisionEntry | None,
    count: Callable[[Times], None] | None = None,
) -> None:
    """Write a decision to log and decision log when the plugin returns to Nova.

    :param count: counts it in the metrics, by the seconds of the request by part
    """

    def write() -> None:
        try:
            seconds = request_deadline.current().clock.seconds()
            times = {part: round(spent, 6) for part, spent in seconds.items()}  # microseconds
            LOG.info("%s; %s", sentence, times_text(times))
            if path and entry is not None:
                _entries().append(path, replace(entry, seconds=total_seconds(times), times=times))
            if count is not None:
                count(times)
        except Exception:
            LOG.exception("The decision on instance %s cannot be logged", instance)

    request_deadline.before_return(write)


def _entries() -> ModuleType:
    """Return what makes and writes the lines of the decision log."""
    # Loaded by optional_modules.
    from hpc_sched.nova_glue.record import logged_entry

    return logged_entry


def _prefix() -> str:
    return "shadow: " if conf.is_shadow(CONF) else ""


def _is_proven(answer: Plan | Rejection) -> bool:
    return isinstance(answer, Rejection) or answer.is_proven


def _count(
    group: GroupPlacement, answer: Plan | Rejection, refused: str | None, times: Times
) -> None:
    """Count a decision in the metrics."""
    made = "no_plan" if isinstance(answer, Rejection) else "planned"
    request_metrics.current.decided(
        made if refused is None else "refused",
        group.inputs.request.project_id,
        times,
        group.inputs.shunned,
        is_proven=_is_proven(answer),
    )


def _logged(group: GroupPlacement, answer: Plan | Rejection) -> LoggedPlan | LoggedRejection:
    if isinstance(answer, Rejection):
        return LoggedRejection(answer.operator, answer.count, answer.best, answer.gangs)
    # With all candidates of the first call and without constraints.
    free: Plan | Rejection = answer
    inputs, specs = group.inputs, group.inputs.request.hpc_specs
    is_bounded = group.removed.bounds_plan or bool(inputs.shunned)
    if not specs.is_flat and (is_bounded or specs.group_keys):
        with group.decisions.planning() as limit:
            free = group.request().unconstrained(answer.count, limit)
    elif inputs.first.price is not None:
        # By the rooms that are known: nothing is read for a record.
        with group.decisions.planning() as limit:
            free = replace(group.request(), check=None).unconstrained(answer.count, limit)
    best = free if isinstance(free, Plan) else answer
    least = best.hop_bytes if best.is_proven else None
    if least is not None and inputs.request.policy == "soft-anti-affinity":
        # Without constraints the group may have more hosts, which costs more.
        least = min(least, answer.hop_bytes)
    return LoggedPlan(dict(answer.leaves), dict(answer.hosts), answer.hop_bytes, least)


def _sentence(
    group: GroupPlacement,
    request: GroupRequest,
    made: LoggedPlan | LoggedRejection,
    claim: LoggedClaim | None,
    refused: str | None,
    *,
    is_proven: bool,
) -> str:
    if refused is not None:
        what = f"refused: {refused}"
    elif isinstance(made, LoggedRejection):
        what = f"no plan: {made.reason}"
    else:
        leaves = ", ".join(f"{leaf} ({count})" for leaf, count in made.leaves.items())
        least = "unknown" if made.least is None else f"{made.least:.0f}"
        what = (
            f"planned {sum(made.hosts.values())} in {leaves or 'no leaf'}; "
            f"Hop-Byte {made.hop_bytes:.0f}{'' if is_proven else ', not proven best'}, "
            f"least possible {least}"
        )
    inputs = group.inputs
    if claim is not None and refused is None:
        held = f"{claim.vms} claimed at once" if claim.vms else "not claimed at once"
        number = plurals.text(claim.transactions, "transaction")
        what += f"; {held}" + (f", {number}" if claim.transactions > 1 else "")
    if inputs.shunned:
        hosts = (f"{mask.sum()} for {why}" for why, mask in sorted(inputs.shunned.items()))
        what += f"; hosts shunned: {', '.join(hosts)}"
    return (
        f"{_prefix()}{inputs.request.name}: {request.awaiting} awaiting, "
        f"{int(request.members.sum())} members; {what}"
    )


def _claim(claims: RequestClaims) -> LoggedClaim | None:
    gang = claims.gang
    return None if gang is None else LoggedClaim(len(gang.places), gang.transactions)
