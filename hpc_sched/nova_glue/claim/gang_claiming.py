"""The claim of a plan: all VMs of a request in one transaction, before Nova claims the first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.metrics import catalogue, counts
from hpc_sched.nova_glue.claim import claim_conditions, claim_conflict, claim_followup, overbooking
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.claim.transaction.ledger import ClaimedPlace
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Owner
from hpc_sched.nova_glue.read.instances import request_instances

LOG = logging.getLogger(__name__)

# Plans that are claimed for one request until one of them holds.
MAX_PLANS = 16


def claim(
    state: GroupState, spec: objects.RequestSpec, positions: Array, answer: Plan | Rejection
) -> Plan | Rejection:
    """Claim the plan of a request, and return the answer that holds.

    Without a plan everything is read again while others of the group are placed: see
    :func:`claim_conflict.read_again`.

    If others have taken places of the plan, these are read again and the group is planned and
    claimed again. Nothing is held afterwards if the answer is a Rejection, if claims are not
    safe, or if Placement does not answer: then Nova claims VM by VM.

    Calls to Placement: one in the quiet case; for each plan that cannot be claimed what
    :meth:`GangClaim.fence` needs, two for each of its hosts, or two for all, and while others of
    the group are placed what :func:`claim_conflict.read_members` needs. After the claim what
    :func:`overbooking.to_leave` needs.

    :param positions: of the HostStates that are candidates
    """
    if claim_conditions.obstacle() is not None or not _may_claim(state, spec):
        return answer
    multiplier = claim_conditions.decisive_multiplier([state.candidates[i] for i in positions])
    if multiplier is None:
        return answer
    try:
        with state.turn.taken(spec.instance_uuid) as has_waited:
            if has_waited and claim_conflict.read_again(state):
                answer = state.decide(state.group_request(positions), anew=True)
            for look in range(claim_conflict.MAX_LOOKS):
                if isinstance(answer, Plan):
                    answer = _claim(state, spec, positions, answer, multiplier)
                if isinstance(answer, Plan) or look + 1 == claim_conflict.MAX_LOOKS:
                    break
                if not claim_conflict.read_again(state, look, anew=True):
                    break
                answer = state.decide(state.group_request(positions), anew=True)
                # Members that break a constraint while they are placed may still move.
                if isinstance(answer, Rejection) and not answer.conflict:
                    break
            if isinstance(answer, Plan):
                fence(state)
            else:
                _release(state)
            return answer
    except exceptions.RefusedError:
        _release(state)
        raise
    except BaseException:
        # Nova may go on VM by VM.
        _release(state)
        fence(state)
        raise
    finally:
        if state.gang is not None:
            state.gang.is_complete = True
            held = catalogue.HELD if state.gang.is_held else catalogue.NOT_HELD
            counts.count(catalogue.GANG_CLAIMS, answer=held)


def fence(state: GroupState) -> None:
    """Keep what was sent without an answer from being made while Nova claims VM by VM."""
    if state.gang is not None:
        state.gang.fence()


def _release(state: GroupState) -> None:
    if state.gang is not None:
        state.gang.release()


def _claim(
    state: GroupState,
    spec: objects.RequestSpec,
    positions: Array,
    answer: Plan,
    multiplier: float,
) -> Plan | Rejection:
    instances = _instances(state, spec)
    if not instances:
        return answer
    gang = state.gang
    if gang is None:
        owner = Owner(spec.project_id, spec.user_id)
        gang = state.gang = GangClaim(owner, multiplier, frozenset(instances.values()))
        state.rooms.hold(gang.candidates)
        claim_followup.follow(gang, state, spec)
    return _claimed(state, gang, instances, positions, answer)


def reclaim(state: GroupState, positions: Array) -> None:
    """Claim new places for the VMs that Nova has not placed: a host of theirs is gone.

    The hosts that are left keep the group's constraints. Without such places all stay claimed:
    what Nova adds to is repaired, while a release whose answer is lost might come after Nova's
    claim, and take that away.
    """
    gang = state.gang
    assert gang is not None
    instances = dict(enumerate(gang.places))
    answer = state.decide(state.group_request(positions))
    if isinstance(answer, Plan):
        _claimed(state, gang, instances, positions, answer, is_first=False)
        state.rooms.allow(state.held())
    gang.fence()


def _may_claim(state: GroupState, spec: objects.RequestSpec) -> bool:
    """True if the request creates instances whose places follow the plan."""
    return (
        not state.group.is_move
        and state.request.hpc_specs.by_topology
        and not state.request.hpc_specs.is_flat
        and all(name in spec and getattr(spec, name) for name in ("project_id", "user_id"))
    )


def _instances(state: GroupState, spec: objects.RequestSpec) -> dict[int, str]:
    """Return the instances of the request by their number; none if they cannot be read.

    :raises exceptions.RefusedError: if a constraint cannot be proven without a claim
    """
    try:
        found = request_instances.read(
            nova_context.get_admin_context(), spec.instance_uuid, state.request.count
        )
    except databases.OUTAGES as error:
        problem = databases.api_problem(error)
        if request_deadline.not_yet_logged([problem]):
            LOG.warning("Group %s is not claimed at once: %s", state.request.group_id, problem)
    else:
        if found:
            return found
        problem = "its first VM was deleted"
    claim_conflict.check_unclaimed(state, problem)
    return {}


def _claimed(
    state: GroupState,
    gang: GangClaim,
    instances: Mapping[int, str],
    positions: Array,
    answer: Plan,
    *,
    is_first: bool = True,
) -> Plan | Rejection:
    """Claim plans until one holds; return it, or the answer without one.

    :param is_first: whether Nova has placed no VM yet, so that what others of the group have
        claimed meanwhile can be added to the members
    :raises exceptions.RefusedError: if a constraint is broken, or cannot be proven without a claim
    """
    lacking = 0
    problem = "the plan cannot be claimed in time"
    conflict: str | None = None
    held: Plan | None = None
    company = overbooking.company(gang)
    left: list[int] = []  # hosts that hold more than they have
    for _ in range(MAX_PLANS):
        places = _places(state, instances, positions, answer)
        if not places or request_deadline.remaining() <= 0 or (left and gang.holds(places)):
            break
        left = []
        written = gang.claim(places)
        if written.answer is Answer.DONE:
            held = answer
            state.turn.add_claim(gang, places, state.candidates)
            known = state.group.members
            conflict = claim_conflict.settle(state, gang) if is_first else None
            if conflict is None:
                left = overbooking.to_leave(state, gang, company)
            if conflict is None and not left:
                return answer if state.group.members == known else _as_claimed(state, answer)
        elif written.answer is Answer.NO_ROOM:
            # The hosts of one plan at first; then others are at work everywhere.
            some = None if lacking else sorted({place.position for place in places.values()})
            lacking += 1
            # The same claim that was sent before may be made after all, and take the room.
            gang.fence()
            if not state.rooms.refresh(some):
                break
            if is_first and claim_conflict.has_others(state):
                # What took the places may belong to the group.
                claim_conflict.read_members(state, anew=True)
        else:
            problem = f"{written.answer.value}: {written.detail}"
            LOG.warning("Group %s is not claimed at once: %s", state.request.group_id, problem)
            break
        found = state.decide(state.group_request(positions), anew=True)
        if isinstance(found, Rejection) and left and state.rooms.refresh(None):
            # Others that have moved may have left room.
            found = state.decide(state.group_request(positions), anew=True)
        if isinstance(found, Rejection):
            return found
        answer = found
    if conflict is not None and state.request.hpc_specs.constraints.bind_place:
        raise exceptions.RefusedError(
            f"VMs of the group that were claimed at the same moment break a constraint: {conflict}"
        )
    if held is not None:
        # nova-compute checks a hard policy again.
        return _as_claimed(state, held)
    if is_first:
        claim_conflict.check_unclaimed(state, problem)
    return answer


def _as_claimed(state: GroupState, answer: Plan) -> Plan:
    """Return the plan on the claimed places with all members known by now; keep it as decision.

    Such members may make other places better: the claim stays, and no other plan is logged. Nor
    is the final size checked again: no places are held for VMs without a request. The hosts have
    room for the claim, whatever else is claimed there.

    :param answer: the plan before; returned if the members break a constraint without the claim
    """
    state.drop_final_size()
    state.rooms.allow(state.held())
    now = state.group_request()
    with state.decisions.planning() as limit:
        found = replace(now, room=state.held(), check=None).decide(limit)
    if not isinstance(found, Plan):
        return answer
    state.decisions.keep(now, found)
    return found


def _places(
    state: GroupState, instances: Mapping[int, str], positions: Array, plan: Plan
) -> dict[str, ClaimedPlace]:
    """Return the places of a plan by instance; empty if they are not candidates any more."""
    group = state.group_request(positions)
    room = group.capacity
    hosts = state.topology.hosts
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for i in positions.tolist():
        name = hosts[state.host_index[i]]
        if name in plan.hosts:
            rows[name] += [i] * min(int(room[i]), plan.hosts[name])
    taken: dict[str, list[int]] = {name: found[: plan.hosts[name]] for name, found in rows.items()}
    rows_of_places = [taken[name].pop(0) if taken.get(name) else -1 for name in plan.places]
    first, count = state.claims.slot, len(rows_of_places)
    if max(instances) >= count:
        return {}
    chosen = {
        uuid: rows_of_places[(first + number) % count] for number, uuid in sorted(instances.items())
    }
    on_host: defaultdict[int, list[str]] = defaultdict(list)
    for uuid, i in chosen.items():
        on_host[i].append(uuid)
    places = {}
    for i, uuids in on_host.items():
        candidates = state.rooms.next_claims(i, len(uuids)) if i >= 0 else []
        if len(candidates) < len(uuids):
            return {}
        for uuid, candidate in zip(uuids, candidates, strict=True):
            places[uuid] = ClaimedPlace(i, candidate)
    return {uuid: places[uuid] for uuid in chosen}
