"""The record of a decision: one line of the scheduler's log, one of the decision log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import nova.conf
import numpy as np
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.decision_entry import (
    DecisionEntry,
    LeafCandidates,
    LoggedClaim,
    LoggedPlan,
    LoggedRejection,
    LoggedShunned,
    times_text,
    total_seconds,
)
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import leaf_sums
from hpc_sched.core.sharing.mdobp import DECIMALS
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import request_deadline, scheduler_digests
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.request_spec import (
    number_of,
    project_of,
    request_id_of,
    server_group_of,
)
from hpc_sched.topology import plurals

CONF = nova.conf.CONF
Times = dict[str, float]  # seconds by part
LOG = logging.getLogger(__name__)

# The most uuids of VMs in a record: a line must be short enough for one atomic append.
MAX_INSTANCES = 256
MAX_SHUNNED = 64  # names of shunned hosts for one reason


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
        sentence = _sentence(claims, request, made, refused, is_proven=_is_proven(answer))
        entry = _entry(claims, request, answer, made, refused) if path else None
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
    entry = (
        DecisionEntry(
            time=timeutils.utcnow().isoformat(),
            request_id=request_id_of(spec),
            instance=spec.instance_uuid,
            group=server_group_of(spec),
            left=number_of(spec) if conf.is_shadow(CONF) else None,
            decision=decision,
            mode=conf.recorded_mode(CONF),
            project=project_of(spec),
            degraded=_degraded(),
            reason=why,
            scheduler=scheduler_digests.record(topology),
        )
        if path
        else None
    )
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
                append(path, replace(entry, seconds=total_seconds(times), times=times))
            if count is not None:
                count(times)
        except Exception:
            LOG.exception("The decision on instance %s cannot be logged", instance)

    request_deadline.before_return(write)


def append(path: str, entry: DecisionEntry) -> None:
    """Append a record to the decision log; never raises."""
    # Loaded by optional_modules.
    from hpc_sched.nova_glue.io import decision_log

    decision_log.append(path, entry.as_json())


def _degraded() -> tuple[str, ...] | None:
    """Return the sources that have not answered during this thread's request."""
    return tuple(sorted(request_deadline.current().logged)) or None


def _prefix() -> str:
    return "shadow: " if conf.is_shadow(CONF) else ""


def _is_proven(answer: Plan | Rejection) -> bool:
    return isinstance(answer, Rejection) or answer.is_proven


def _own_plan(
    group: GroupPlacement, request: GroupRequest, answer: Plan | Rejection
) -> LoggedPlan | None:
    """Return what a plan has for the VMs of this request, at the cost of members plus these.

    None if that is the whole plan, or if the plan has fewer places.
    """
    number = request.left
    if isinstance(answer, Rejection) or not 0 < number < answer.count:
        return None
    topology, first = group.inputs.topology, group.event.slot
    hosts = Counter(answer.places[(first + i) % answer.count] for i in range(number))
    leaves = Counter(map(topology.leaf_of, hosts.elements()))
    cost = hop_bytes_of_counts(topology=topology, counts=hosts + group.inputs.members)
    return LoggedPlan(dict(leaves), dict(hosts), None if math.isinf(cost) else cost)


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
    best = free if isinstance(free, Plan) else answer
    least = best.hop_bytes if best.is_proven else None
    if least is not None and inputs.request.policy == "soft-anti-affinity":
        # Without constraints the group may have more hosts, which costs more.
        least = min(least, answer.hop_bytes)
    return LoggedPlan(dict(answer.leaves), dict(answer.hosts), answer.hop_bytes, least)


def _sentence(
    claims: RequestClaims,
    request: GroupRequest,
    made: LoggedPlan | LoggedRejection,
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
    inputs, claim = claims.group.inputs, _claim(claims)
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


def _entry(
    claims: RequestClaims,
    request: GroupRequest,
    answer: Plan | Rejection,
    made: LoggedPlan | LoggedRejection,
    refused: str | None,
) -> DecisionEntry:
    plan, rejection = (made, None) if isinstance(made, LoggedPlan) else (None, made)
    planned = "no plan" if plan is None else "planned"
    return replace(
        _entry_of_request(claims.group, request),
        uses_shunned=isinstance(answer, Plan) and request.uses_shunned(answer),
        decision=planned if refused is None else "refused",
        degraded=_degraded(),
        plan=plan,
        own_plan=_own_plan(claims.group, request, answer) if conf.is_shadow(CONF) else None,
        attraction=None if plan is None else _attraction(request.problem(), plan) or None,
        claim=_claim(claims),
        proven=_is_proven(answer),
        rejection=rejection,
        reason=refused,
    )


def _entry_of_request(group: GroupPlacement, request: GroupRequest) -> DecisionEntry:
    """Return an entry without its decision."""
    # Loaded by optional_modules.
    from hpc_sched.nova_glue.record import logged_input

    inputs, requested, problem = group.inputs, group.inputs.request, request.problem()
    specs = requested.hpc_specs
    return DecisionEntry(
        time=timeutils.utcnow().isoformat(),
        request_id=requested.request_id,
        instance=requested.instance_uuid,
        # Empty for an implicit group: its VMs have no rows in the database yet.
        instances=inputs.membership.queue[:MAX_INSTANCES],
        group=requested.group_uuid,
        policy=requested.policy,
        app_class=specs.app_class,
        wishes=specs.constraints.as_logged() | {"homogeneous": specs.homogeneous},
        left=request.left,
        awaiting=request.awaiting,
        members=_by_leaf(problem, problem.members),
        candidates=_candidates(problem, request),
        removed=_removed(group, request),
        shunned=_shunned(inputs) or None,
        decision="",
        mode=conf.recorded_mode(CONF),
        project=requested.project_id,
        scheduler=scheduler_digests.record(inputs.fabric.digest),
        input=logged_input.of(inputs, request),
    )


def _removed(group: GroupPlacement, request: GroupRequest) -> dict[str, int]:
    """Return the reason and number of hosts that were removed, or have no room."""
    inputs, placed = group.inputs, group.event.placed
    has_room = inputs.room(placed) > 0
    # Those full because of VMs of others have reasons of their own.
    full = Counter(
        {
            "no room for one VM": int((~has_room & ~inputs.full_of_others(placed)).sum()),
            "policy of the group": int((has_room & (request.capacity < 1)).sum()),
        }
    )
    return {**group.removed.by_reason, **(request.full_hosts or {}), **+full}


def _claim(claims: RequestClaims) -> LoggedClaim | None:
    gang = claims.gang
    return None if gang is None else LoggedClaim(len(gang.places), gang.transactions)


def _attraction(problem: Problem, plan: LoggedPlan) -> dict[str, float]:
    packing = problem.packing
    if packing is None or packing.attraction is None:
        return {}
    index = problem.topology.index_of
    found = {host: round(float(packing.attraction[index(host)]), DECIMALS) for host in plan.hosts}
    return {host: gain for host, gain in found.items() if gain > 0}


def _shunned(inputs: Inputs) -> dict[str, LoggedShunned]:
    hosts = inputs.topology.hosts
    found = {
        why: sorted(hosts[i] for i in inputs.host_index[mask].tolist())
        for why, mask in inputs.shunned.items()
    }
    return {
        why: LoggedShunned(len(names), tuple(names[:MAX_SHUNNED])) for why, names in found.items()
    }


def _candidates(problem: Problem, request: GroupRequest) -> dict[str, LeafCandidates]:
    """Return the candidates and their room by leaf."""
    hosts = _by_leaf(problem, request.per_host(np.ones_like(request.room)))
    room, index = leaf_sums(problem, problem.capacity), problem.topology.switch_index
    return {leaf: LeafCandidates(number, int(room[index(leaf)])) for leaf, number in hosts.items()}


def _by_leaf(problem: Problem, counts: Array) -> dict[str, int]:
    sums = leaf_sums(problem, counts)
    return {
        problem.topology.switches[leaf].name: int(sums[leaf])
        for leaf in np.flatnonzero(sums).tolist()
    }
