"""Places that are held for a VM that moves, and for those of its group that follow it.

Each VM of a group moves by a request of its own: a dead leaf is evacuated VM by VM. The first one
goes where the rest can follow, and its request holds their places until they come; the request of
each holds anew what is left. Held is also where a VM is being placed, before Nova's claim shows it:
VMs of a group that move at the same moment so know of each other.

Other schedulers leave these places alone, see :mod:`hpc_sched.nova_glue.claim.holds`; Nova and VMs
without a group do not. Nothing is held in shadow mode, or with ``follower_hold_time`` 0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nova import objects
from nova.conf import CONF
from oslo_log import log as logging

from hpc_sched import clock, conf, exceptions
from hpc_sched.core import leaf_slots
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim import claim_conflict, hold_followup
from hpc_sched.nova_glue.claim.doubt import Doubt, Rounds
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.claim.planned_hosts import hosts_of_places
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import placement, request_deadline
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.read.hold import NO_HOLDS, Hold, Holds

LOG = logging.getLogger(__name__)

# Plans until one can be held: each time others have written holds meanwhile.
MAX_PLANS = 32

# Fraction of its time after which a hold is written again.
_MAX_USED = 0.25


def is_on() -> bool:
    """True if this service holds places."""
    return CONF.hpc_sched.follower_hold_time > 0 and not conf.is_shadow(CONF)


def read(*, needs_turn: bool = False) -> Holds:
    """Return all holds of the cloud; none, with one WARNING a request, if Placement fails.

    One call to Placement; none if this service holds no places, and the turn is not needed.

    :param needs_turn: whether the turn is read though this service holds no places
    """
    if not (is_on() or needs_turn):
        return NO_HOLDS
    try:
        found = store.read()
        return found if is_on() else Holds(found.turn)
    except exceptions.UnansweredError as error:
        for problem in request_deadline.not_yet_logged([f"{placement.PLACEMENT}: {error}"]):
            LOG.warning("Places that are held for others are not known: %s", problem)
        return NO_HOLDS


def hold(claims: RequestClaims, spec: objects.RequestSpec, answer: Plan | Rejection) -> Rounds:
    """Hold the places of an instance that moves and of its followers; return the answer that holds.

    What was placed since Nova has read its hosts had a hold until Placement showed it. So the hosts
    of the plan are read in Placement after the holds; and if others have written holds since,
    these are read again: no two plans use one place.

    Two calls to Placement for each host that is held anew, and one; none without constraints on the
    place if no other VM of the group moves.
    """
    group = claims.group
    for _ in range(MAX_PLANS):
        answer = yield from _settled(group, answer)
        if not isinstance(answer, Plan):
            return answer
        if not _is_needed(group, answer):
            if is_on() and len(group.inputs.membership.uuids) > 1:
                # The request of another member may hold a place for it, even by now.
                hold_followup.follow(claims, spec)
            return answer
        holds = _holds(group, _places(group, answer))
        kept = _kept(group, holds)
        changed = [one for one in holds if one.instance not in kept]
        gone = [uuid for uuid in _held_before(group) if uuid not in kept]
        written = store.write(group.inputs.holds, changed, gone)
        if written.answer is Answer.DONE:
            hold_followup.follow(claims, spec)
            return answer
        if written.answer is not Answer.CONSUMER_CHANGED or request_deadline.remaining() <= 0:
            group_id = group.inputs.request.group_id
            LOG.warning("No places are held for group %s: %s", group_id, written.detail)
            return answer
        answer = (yield Doubt([], members=True, holds=True)) or answer
    return answer


def _settled(group: GroupPlacement, answer: Plan | Rejection) -> Rounds:
    """Return a plan that needs no hold, or whose hosts were read in Placement; or a Rejection."""
    fresh: set[int] = set()  # positions of HostStates that were read
    looks = 0
    for _ in range(MAX_PLANS):
        if isinstance(answer, Rejection):
            placing = claim_conflict.hosts_of_placing(group)
            if not placing or not claim_conflict.may_look(looks):
                return answer
            looks += 1
            # What is held there may be claimed by now, and count twice.
            answer = (yield Doubt(placing, members=True, holds=True)) or answer
            fresh.clear()
            continue
        stale = sorted(_doubtful(group, answer) - fresh) if _is_needed(group, answer) else []
        if not stale:
            return answer
        if group.inputs.membership.unclaimed:
            # What of them is claimed by now, the hosts show next.
            yield Doubt([], members=True)
        answer = (yield Doubt(stale)) or answer
        fresh.update(stale)
    return answer


def _doubtful(group: GroupPlacement, plan: Plan) -> set[int]:
    """Return the HostStates with a place of the plan that is not held already.

    Those for VMs without a request, too: the plan is where it is because of them.
    """
    places = _places(group, plan)
    kept = Counter(places[uuid] for uuid in _kept(group, _holds(group, places)))
    return {i for i in Counter(_rows(group, plan)) - kept if i >= 0}


def _is_needed(group: GroupPlacement, plan: Plan) -> bool:
    """True if others of the group follow, or may break a constraint with the instance."""
    found, hpc_specs = group.inputs.membership, group.inputs.request.hpc_specs
    if not is_on() or not hpc_specs.by_topology or hpc_specs.is_flat:
        return False
    # With a hold of its own the instance takes no place that is held meanwhile, and no request of
    # another member holds one for it once it is placed.
    is_bound = hpc_specs.binds_place or (found.is_urgent and len(found.uuids) > 1)
    return is_bound or (bool(found.moving) and plan.count > 1)


def _places(group: GroupPlacement, plan: Plan) -> dict[str, int]:
    """Return the HostStates of a plan for the instance, and for followers that move now."""
    inputs, rows = group.inputs, _rows(group, plan)
    request, found = group.request(group.event.candidates), inputs.membership
    [slot] = leaf_slots.own_slots(request, plan, group.event.slot, [0])
    own = inputs.request.instance_uuid
    places = [rows[slot], *rows[:slot], *rows[slot + 1 :]]
    uuids = [own, *(uuid for uuid in found.queue if uuid in found.moving and uuid != own)]
    return {uuid: i for uuid, i in zip(uuids, places, strict=False) if i >= 0}


def _rows(group: GroupPlacement, plan: Plan) -> list[int]:
    """Return the HostState of each place of a plan; -1 if its host is no candidate any more."""
    positions = group.event.candidates
    return hosts_of_places(group.inputs, group.request(positions), positions, plan)


def _holds(group: GroupPlacement, places: Mapping[str, int]) -> list[Hold]:
    request, states = group.inputs.request, group.inputs.states
    until = int(clock.current.unix_time()) + CONF.hpc_sched.follower_hold_time
    return [
        Hold(
            uuid,
            states[i].nodename,
            request.demand,
            until,
            is_moving=uuid == request.instance_uuid,
        )
        for uuid, i in places.items()
    ]


def _kept(group: GroupPlacement, holds: Sequence[Hold]) -> set[str]:
    """Return the instances whose holds are there already, and end late enough.

    They are not written again, which takes time. Nor are their hosts read: they had the room when
    they were held, and all schedulers have left it free since.
    """
    until = int(clock.current.unix_time()) + CONF.hpc_sched.follower_hold_time * (1 - _MAX_USED)
    held = group.inputs.holds.held
    return {
        one.instance
        for one in holds
        if (found := held.get(one.instance)) is not None
        and found.until >= until
        and replace(found, until=one.until) == one
    }


def _held_before(group: GroupPlacement) -> list[str]:
    """Return the group's instances with holds by earlier plans, but for those placed just now."""
    held, own = group.inputs.holds.held, group.inputs.membership.uuids
    return [uuid for uuid in sorted(own & held.keys()) if not held[uuid].is_moving]
