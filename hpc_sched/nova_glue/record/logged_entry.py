"""The line of the decision log on a decision, for the option decision_log."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import nova.conf
import numpy as np
from nova import objects
from oslo_utils import timeutils

from hpc_sched import conf
from hpc_sched.core import leaf_slots
from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.logged.decision_entry import DecisionEntry, LeafCandidates, LoggedShunned
from hpc_sched.core.logged.decision_summary import (
    LANDED,
    LoggedClaim,
    LoggedLanding,
    LoggedPlan,
    LoggedRejection,
)
from hpc_sched.core.logged.logged_objective import LoggedObjective
from hpc_sched.core.plan.problem import Problem, leaf_sums
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.sharing.mdobp import DECIMALS
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import decision_log, request_deadline, scheduler_digests
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.request_spec import (
    number_of,
    project_of,
    request_id_of,
    server_group_of,
)
from hpc_sched.nova_glue.record import logged_input

CONF = nova.conf.CONF

# The most uuids of VMs in a record: a line must be short enough for one atomic append.
MAX_INSTANCES = 256
MAX_SHUNNED = 64  # names of shunned hosts for one reason


def early(spec: objects.RequestSpec, why: str, topology: str, decision: str) -> DecisionEntry:
    """Return the entry of a request whose group has not been read, without its times."""
    return DecisionEntry(
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


def of_decision(
    group: GroupPlacement,
    request: GroupRequest,
    answer: Plan | Rejection,
    made: LoggedPlan | LoggedRejection,
    claim: LoggedClaim | None,
    refused: str | None,
) -> DecisionEntry:
    """Return the entry of a decision on a group, without its times.

    :param made: what is logged of the answer
    :param refused: the operator's text if the request is refused
    """
    plan, rejection = (made, None) if isinstance(made, LoggedPlan) else (None, made)
    planned = "no plan" if plan is None else "planned"
    return replace(
        _entry_of_request(group, request),
        uses_shunned=isinstance(answer, Plan) and request.uses_shunned(answer),
        decision=planned if refused is None else "refused",
        degraded=_degraded(),
        plan=plan,
        own_plan=_own_plan(group, request, answer) if conf.is_shadow(CONF) else None,
        attraction=None if plan is None else _attraction(request.problem(), plan) or None,
        claim=claim,
        objective=_objective(request, answer),
        proven=isinstance(answer, Rejection) or answer.is_proven,
        rejection=rejection,
        reason=refused,
    )


def _objective(request: GroupRequest, answer: Plan | Rejection) -> LoggedObjective | None:
    if request.objective is None:
        return None
    # Few groups have one.
    from hpc_sched.core.counterfactual.recorded_objective import logged_objective

    return logged_objective(request, answer)


def _entry_of_request(group: GroupPlacement, request: GroupRequest) -> DecisionEntry:
    """Return an entry without its decision."""
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


def of_landing(
    landed: LoggedLanding,
    *,
    request_id: str | None,
    instance: str,
    instances: tuple[str, ...] | None,
    group: str | None,
    left: int,
    topology: str,
) -> DecisionEntry:
    """Return the entry of where the VMs of a request landed.

    :param topology: digest of the topology that the request came with
    """
    return DecisionEntry(
        time=timeutils.utcnow().isoformat(),
        request_id=request_id,
        instance=instance,
        instances=instances and instances[:MAX_INSTANCES],
        group=group,
        left=left,
        decision=LANDED,
        mode=conf.recorded_mode(CONF),
        landed=landed,
        scheduler=scheduler_digests.record(topology),
    )


def append(path: str, entry: DecisionEntry) -> None:
    """Append a record to the decision log; never raises."""
    decision_log.append(path, entry.as_json())


def _degraded() -> tuple[str, ...] | None:
    """Return the sources that have not answered during this thread's request."""
    return tuple(sorted(request_deadline.current().logged)) or None


def _own_plan(
    group: GroupPlacement, request: GroupRequest, answer: Plan | Rejection
) -> LoggedPlan | None:
    """Return what a plan has for the VMs of this request, at the cost of members plus these.

    None if that is the whole plan, or if the plan has fewer places.
    """
    number = request.left
    if isinstance(answer, Rejection) or not 0 < number < answer.count:
        return None
    topology = group.inputs.topology
    slots = leaf_slots.own_slots(request, answer, group.event.slot, range(number))
    hosts = Counter(answer.places[slot] for slot in slots)
    leaves = Counter(map(topology.leaf_of, hosts.elements()))
    cost = hop_bytes_of_counts(topology=topology, counts=hosts + group.inputs.members)
    return LoggedPlan(dict(leaves), dict(hosts), None if math.isinf(cost) else cost)


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
