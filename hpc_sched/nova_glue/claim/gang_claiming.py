"""The claim of a plan: all VMs of a request in one transaction, before Nova claims the first.

A claim is a generator, because what it needs between two attempts belongs to earlier phases: it
yields a :class:`Doubt`, and the session reads that again, plans, and sends the new answer. One call
whose plan P is claimed at the third attempt, by a group with others that are being placed:

* ``claim(claims, spec, P)`` sends P's places; Placement has no room on a host of them. It yields
  ``Doubt([3, 5], members=True)``: the HostStates 3 and 5 are read again, then the members, and the
  session sends plan Q.
* The places of Q are claimed, and :func:`claim_conflict.resolve` finds VMs of the group that break
  a constraint with them. It has read the members itself, so ``Doubt([])`` reads nothing: the
  session only plans again, with what is known by now. It sends plan R. Hosts that hold too much
  after a claim end in the same way: :func:`overbooking.to_leave` has read them.
* R is claimed instead of Q, and stays. The generator returns R, the answer that holds.

``Doubt()`` has ``hosts=None`` instead, which reads all hosts: room was lacking for a second plan,
or there is no plan, which others that move may change. If the session sends None, what was in doubt
could not be read: what is claimed by then stays, or else Nova claims VM by VM.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import nova.conf
from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from hpc_sched import conf, exceptions
from hpc_sched.core import leaf_slots
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.claim import (
    claim_conditions,
    claim_conflict,
    claim_followup,
    overbooking,
)
from hpc_sched.nova_glue.claim.doubt import Doubt, Rounds
from hpc_sched.nova_glue.claim.planned_hosts import hosts_of_places
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer, Owner
from hpc_sched.nova_glue.read.instances import request_instances
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Plans that are claimed for one request until one of them holds.
MAX_PLANS = 16


def claim(claims: RequestClaims, spec: objects.RequestSpec, answer: Plan | Rejection) -> Rounds:
    """Claim the plan of a request, and return the answer that holds, as :func:`_claim_all` does.

    :raises exceptions.RefusedError: if the group is isolated and may share uplinks
    """
    answer = yield from _claim_all(claims, spec, answer)
    if isinstance(answer, Plan) and _is_isolated(claims) and not conf.is_shadow(CONF):
        from hpc_sched.nova_glue.claim.isolation import isolation_turn

        isolation_turn.check(claims, answer)
    return answer


def _is_isolated(claims: RequestClaims) -> bool:
    return isinstance(claims.group.inputs.first.objective, Isolation)


def _claim_all(
    claims: RequestClaims, spec: objects.RequestSpec, answer: Plan | Rejection
) -> Rounds:
    """Claim the plan of a request, and return the answer that holds.

    Without a plan everything is read again while others of the group are placed. If others have
    taken places of the plan, these are read again and the group is planned and claimed again.
    Nothing is held afterwards if the answer is a Rejection, if claims are not safe, or if Placement
    does not answer: then Nova claims VM by VM.

    Calls to Placement: one in the quiet case; for each plan that cannot be claimed what
    :meth:`GangClaim.fence` needs. After the claim what :func:`claim_conflict.resolve` and
    :func:`overbooking.to_leave` need.
    """
    group = claims.group
    if claim_conditions.obstacle() is not None or not _may_claim(claims, spec):
        return answer
    states = [group.inputs.states[i] for i in group.event.candidates]
    multiplier = claim_conditions.decisive_multiplier(states)
    if multiplier is None:
        return answer
    with _ended(claims), claims.turn.taken(spec.instance_uuid) as has_waited:
        if has_waited and claim_conflict.has_others(group):
            answer = (yield Doubt(members=True, anew=False)) or answer
        for look in range(claim_conflict.MAX_LOOKS):
            if isinstance(answer, Plan):
                answer = yield from _claim(claims, spec, answer, multiplier)
            is_last = isinstance(answer, Plan) or look + 1 == claim_conflict.MAX_LOOKS
            if is_last or not claim_conflict.may_change(group, look, answer):
                break
            found = yield Doubt(members=True, holds=True)
            answer = found or answer
            # Members that break a constraint while they are placed may still move.
            if found is None or (isinstance(answer, Rejection) and not answer.conflict):
                break
        if isinstance(answer, Plan):
            claims.fence()
        else:
            claims.release()
        return answer


@contextmanager
def _ended(claims: RequestClaims) -> Iterator[None]:
    """Release what is held if a claim ends with an exception, and count how it ended."""
    try:
        yield
    except BaseException as error:
        claims.release()
        if not isinstance(error, exceptions.RefusedError):
            # Nova may go on VM by VM.
            claims.fence()
        raise
    finally:
        if claims.gang is not None:
            claims.is_complete = True
            request_metrics.current.claimed(is_held=bool(claims.gang.places))


def reclaim(claims: RequestClaims, answer: Plan | Rejection) -> Rounds:
    """Claim new places for the VMs that Nova has not placed: a host of theirs is gone.

    The hosts that are left keep the group's constraints. Without such places all stay claimed:
    what Nova adds to is repaired, while a release whose answer is lost might come after Nova's
    claim, and take that away.
    """
    group = claims.group
    if isinstance(answer, Plan):
        instances = dict(enumerate(group.held_places()))
        answer = yield from _claimed(claims, instances, answer, is_first=False)
        group.inputs.rooms.allow(group.held())
    claims.fence()
    return answer


def _claim(
    claims: RequestClaims, spec: objects.RequestSpec, answer: Plan, multiplier: float
) -> Rounds:
    instances = _instances(claims, spec)
    if not instances:
        return answer
    if claims.gang is None:
        owner = Owner(spec.project_id, spec.user_id)
        gang = claims.begin(owner, multiplier, frozenset(instances.values()))
        claim_followup.follow(claims, gang, spec)
    return (yield from _claimed(claims, instances, answer))


def _may_claim(claims: RequestClaims, spec: objects.RequestSpec) -> bool:
    """True if the request creates instances whose places follow the plan."""
    inputs = claims.group.inputs
    return (
        not inputs.membership.is_move
        and inputs.request.hpc_specs.by_topology
        and not inputs.request.hpc_specs.is_flat
        and all(name in spec and getattr(spec, name) for name in ("project_id", "user_id"))
    )


def _instances(claims: RequestClaims, spec: objects.RequestSpec) -> dict[int, str]:
    """Return the instances of the request by their number; none if they are not known.

    If the API database does not answer, or has been slow already, they are those of the
    RequestSpec, where it proves which they are.

    :raises exceptions.RefusedError: if a constraint cannot be proven without a claim
    """
    request = claims.group.inputs.request
    proven = dict(enumerate(request.whole))
    if proven and request_deadline.has_waited_long():
        return proven
    try:
        found = request_instances.read(
            nova_context.get_admin_context(), spec.instance_uuid, request.count
        )
    except databases.OUTAGES as error:
        if proven:
            return proven
        problem = databases.api_problem(error)
        if request_deadline.not_yet_logged([problem]):
            LOG.warning("Group %s is not claimed at once: %s", request.group_id, problem)
    else:
        if found:
            return found
        problem = "its first VM was deleted"
    claim_conflict.check_unclaimed(claims, problem)
    return {}


def _claimed(
    claims: RequestClaims, instances: Mapping[int, str], answer: Plan, *, is_first: bool = True
) -> Rounds:
    """Claim plans until one holds; return it, or the answer without one.

    :param is_first: whether Nova has placed no VM yet, so that what others of the group have
        claimed meanwhile can be added to the members
    :raises exceptions.RefusedError: if a constraint is broken, or cannot be proven without a claim
    """
    attempts = _Attempts(claims, is_first, overbooking.company(claims.instances))
    for _ in range(MAX_PLANS):
        outcome = attempts.claim(_places(claims, instances, answer), answer)
        if isinstance(outcome, Plan):
            return outcome
        if outcome is None:
            break
        found = yield outcome
        if isinstance(found, Rejection) and attempts.left:
            # Others that have moved may have left room.
            found = (yield Doubt()) or found
        if isinstance(found, Rejection):
            return found
        if found is None:
            break
        answer = found
    return attempts.end(answer)


@dataclass
class _Attempts:
    """The plans that are claimed for one request, one after the other."""

    claims: RequestClaims
    is_first: bool
    company: overbooking.Company
    held: Plan | None = None  # the last plan whose claim was made
    conflict: str | None = None  # how it breaks a constraint with the claims of others
    left: list[int] = field(default_factory=list)  # hosts of it that hold more than they have
    lacking: int = 0  # plans without room
    problem: str = "the plan cannot be claimed in time"

    def claim(self, places: Mapping[str, ClaimedPlace], answer: Plan) -> Plan | Doubt | None:
        """Return the plan that is claimed and stays, what is in doubt, or None if nothing helps.

        Nothing helps without time, without places, or if those that hold too much come again.
        """
        group, gang = self.claims.group, self.claims.gang
        if (
            not places
            or gang is None
            or request_deadline.remaining() <= 0
            or (self.left and gang.ledger.holds(places))
        ):
            return None
        self.left = []
        written = gang.claim(places)
        if written.answer is Answer.DONE:
            self.claims.turn.add_claim(gang, places, group.inputs.states)
            return self._check(answer)
        if written.answer is Answer.NO_ROOM:
            # The hosts of one plan at first; then others are at work everywhere.
            some = None if self.lacking else sorted({place.position for place in places.values()})
            self.lacking += 1
            # The same claim that was sent before may be made after all, and take the room.
            gang.fence()
            # What took the places may belong to the group.
            is_ours = self.is_first and claim_conflict.has_others(group)
            return Doubt(some, members=is_ours, needs_members=False)
        self.problem = f"{written.answer.value}: {written.detail}"
        group_id = group.inputs.request.group_id
        LOG.warning("Group %s is not claimed at once: %s", group_id, self.problem)
        return None

    def _check(self, answer: Plan) -> Plan | Doubt:
        """Return the plan if its claim stays next to those of others."""
        claims, group = self.claims, self.claims.group
        self.held = answer
        known = group.inputs.membership.members
        self.conflict = claim_conflict.resolve(claims) if self.is_first else None
        if self.conflict is None:
            self.left = overbooking.to_leave(claims, self.company)
        if self.conflict is not None or self.left:
            # Both have read what they needed.
            return Doubt([])
        if self.is_first and _is_isolated(claims):
            from hpc_sched.nova_glue.claim.isolation import isolation_turn

            if (doubt := isolation_turn.commit(claims)) is not None:
                return doubt
        is_known = group.inputs.membership.members == known
        return answer if is_known else _as_claimed(claims, answer)

    def end(self, answer: Plan) -> Plan:
        """Return the plan that is made of what was claimed last, or the one without a claim."""
        constraints = self.claims.group.inputs.request.hpc_specs.constraints
        if self.conflict is not None and constraints.bind_place:
            raise exceptions.RefusedError(
                "VMs of the group that were claimed at the same moment break a constraint: "
                f"{self.conflict}"
            )
        if self.held is not None:
            # nova-compute checks a hard policy again.
            return _as_claimed(self.claims, self.held)
        if self.is_first:
            claim_conflict.check_unclaimed(self.claims, self.problem)
        return answer


def _as_claimed(claims: RequestClaims, answer: Plan) -> Plan:
    """Return the plan on the claimed places with all members known by now; keep it as decision.

    Such members may make other places better: the claim stays, and no other plan is logged. Nor
    is the final size checked again: no places are held for VMs without a request. The hosts have
    room for the claim, whatever else is claimed there.

    :param answer: the plan before; returned if the members break a constraint without the claim
    """
    group = claims.group
    group.inputs = group.inputs.without_final_size()
    group.inputs.rooms.allow(group.held())
    now = group.request()
    with group.decisions.planning() as limit:
        found = replace(now, room=group.held(), check=None).decide(limit)
    if not isinstance(found, Plan):
        return answer
    group.decisions.keep(now, found)
    return found


def _places(
    claims: RequestClaims, instances: Mapping[int, str], plan: Plan
) -> dict[str, ClaimedPlace]:
    """Return the places of a plan by instance; empty if they are not candidates any more."""
    group = claims.group
    request = group.request(group.event.candidates)
    rows = hosts_of_places(group.inputs, request, group.event.candidates, plan)
    if max(instances) >= len(rows):
        return {}
    slots = leaf_slots.own_slots(request, plan, group.event.slot, sorted(instances))
    chosen = {
        instances[number]: rows[slot] for number, slot in zip(sorted(instances), slots, strict=True)
    }
    number, candidates = Counter(chosen.values()), group.inputs.rooms.candidates
    next_ = {i: candidates.next_claims(i, number[i]) if i >= 0 else [] for i in number}
    if any(len(next_[i]) < number[i] for i in number):
        return {}
    in_order = {i: iter(found) for i, found in next_.items()}
    return {uuid: ClaimedPlace(i, next(in_order[i])) for uuid, i in chosen.items()}
