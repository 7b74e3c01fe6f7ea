"""VMs of one group that several requests claim at the same moment.

Each request reads the others after its claim. Of two that claim at once at least one so sees the
other, and all of them judge alike which claims stay: in the order of their uuids those that keep
the constraints of the group with the ones before.
"""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np

from hpc_sched import clock, exceptions
from hpc_sched.core.constraints.server_group_policy import HARD_POLICIES
from hpc_sched.core.logged.decision_summary import TURNS
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.read.input_reader import read_again
from hpc_sched.nova_glue.read.instances import group_members

# Looks at the others until they have moved, and seconds between two looks, doubled each time.
MAX_LOOKS, FIRST_PAUSE, LONGEST_PAUSE = 8, 0.05, 0.8

# Likewise if Placement has not answered all look-ups in time.
MAX_LOOKS_UNANSWERED = 2


def resolve(claims: RequestClaims) -> str | None:
    """Return why the request must plan again, None if its claims stay.

    Its members are then those whose claims stay. A request whose claims stay waits until
    the others have moved; if they do not, it moves itself.

    Two queries in the API database and one in each cell with members for each look, and look-ups
    of the VMs in flight that this process has not claimed itself. If the API database does not
    answer a request that is proven to hold its whole group, only what this process has claimed for
    others of the group is known: requests that nova-api accepted after the conductor's read.

    :raises exceptions.RefusedError: if the other VMs cannot be read, and may break a constraint
    """
    group, request = claims.group, claims.group.inputs.request
    is_bound = request.hpc_specs.constraints.bind_place
    if request.group_uuid is None or not (is_bound or _may_conflict(group)):
        return None
    conflict = unread = None  # the latter: why the last look is not complete
    for look in range(MAX_LOOKS):
        if look and not pause(look):
            break
        found = _read(claims)
        if not found.is_partial:
            group.use(group.inputs.with_members(found))
        unread = "; ".join(found.problems) if found.unknown or found.is_partial else None
        if unread is not None:
            if look + 1 < MAX_LOOKS_UNANSWERED and request_deadline.remaining() > 0:
                continue
            if is_bound and (found.unknown or not group.inputs.has_known_members):
                raise unproven(unread)
        if found.is_partial:
            # What was known before the claim holds; what others claimed meanwhile is not known.
            return conflict
        conflict, is_own = _conflict(claims, found)
        if conflict is None or is_own:
            return conflict
    if unread is not None and is_bound:
        # The time was over before another look.
        raise unproven(unread)
    return conflict


def _may_conflict(group: GroupPlacement) -> bool:
    """True if VMs without constraints may break a hard policy, or be on several islands."""
    inputs = group.inputs
    return inputs.request.policy in HARD_POLICIES or len(inputs.topology.roots) > 1


def _read(claims: RequestClaims) -> group_members.GroupMembership:
    """Return the members of a group while the request has claims."""
    inputs, look_up = claims.group.inputs, partial(claims.turn.look_up, anew=True)
    held = claims.group.held_places()
    known = (held, inputs.holds.destinations)
    found = group_members.read(inputs.request, inputs.states, look_up, *known)
    return claims.turn.with_claims(found)


def _conflict(
    claims: RequestClaims, found: group_members.GroupMembership
) -> tuple[str | None, bool]:
    """Return how the claims of a group break its constraints, and whether the request's own move.

    If they do, its members are from then on those that stay.
    """
    group = claims.group
    now = group.request()
    conflict = now.conflict or now.broken_by(group.held())
    if conflict is None:
        return None, False
    staying = _staying(claims, found)
    group.use(group.inputs.with_members(staying or found))
    return conflict, staying is not None


def check_unclaimed(claims: RequestClaims, why: str) -> None:
    """Check that a plan keeps the constraints of the group though it is not claimed.

    Reads the members again, as :func:`read_members` does: others may have been placed since.

    :param why: it is not claimed
    :raises exceptions.RefusedError: if other VMs of the group are being placed, or were since the
        members were read
    """
    group, request = claims.group, claims.group.inputs.request
    if not request.hpc_specs.constraints.bind_place:
        return
    known = group.inputs.membership.members
    if has_others(group) or (
        request.group_uuid is not None and (not read_members(claims) or has_others(group))
    ):
        raise unproven(why)
    if group.inputs.membership.members != known:
        raise unproven(f"{why}; others were placed meanwhile")


def unproven(why: str) -> exceptions.RefusedError:
    """Return the refusal of a request that may break a constraint of its group.

    :param why: what is not known, for the operator
    """
    what = "where VMs of the group are that are being placed at the same moment is not known"
    return exceptions.RefusedError(f"{what}: {why}", f"{what}; try again later")


def has_others(group: GroupPlacement) -> bool:
    """True if other VMs of the group are being placed."""
    found = group.inputs.membership
    return bool(found.in_flight) or found.awaiting - found.orphans - found.followers > found.left


def read_members(claims: RequestClaims) -> bool:
    """Read the members of the group again; False, and nothing changed, if they cannot be read.

    What :func:`group_members.read` says.
    """
    group = claims.group
    look_up = partial(claims.turn.look_up, anew=True)
    found = read_again(group.inputs, [], look_up, group.held_places())
    if found is None:
        return False
    group.use(found.with_members(claims.turn.with_claims(found.membership)))
    return True


def may_change(group: GroupPlacement, look: int, answer: Plan | Rejection | None = None) -> bool:
    """Wait between two looks; False if others are not being placed, or no time is left.

    Those of other groups, too, whose places on candidates are held and may be claimed by now, and
    isolated ones that may take other uplinks.
    """
    isolated = group.inputs.isolated
    is_short = isinstance(answer, Rejection) and answer.is_isolated
    is_moving = is_short and isolated is not None and isolated.in_flight
    return (has_others(group) or bool(hosts_of_placing(group)) or is_moving) and may_look(look)


def hosts_of_placing(group: GroupPlacement) -> list[int]:
    """Return the HostStates on which other instances are being placed, as their holds say."""
    own, inputs = group.inputs.request.instance_uuid, group.inputs
    nodes = {node for uuid, node in inputs.holds.destinations.items() if uuid != own}
    if not nodes:
        return []
    return [i for i, state in enumerate(inputs.states) if state.nodename in nodes]


def may_look(look: int) -> bool:
    """Wait between two looks; False after the last one, or if no time is left."""
    return look < MAX_LOOKS and (not look or pause(look))


def pause(look: int) -> bool:
    """Wait between two looks; False if the request has no time left."""
    with request_deadline.charged(TURNS):
        clock.current.sleep(min(FIRST_PAUSE * 2 ** (look - 1), LONGEST_PAUSE))
    return request_deadline.remaining() > 0


def _staying(
    claims: RequestClaims, found: group_members.GroupMembership
) -> group_members.GroupMembership | None:
    """Return the members whose claims stay if the request's own do not, else None.

    One GroupRequest for each VM in flight: O(VMs x hosts).
    """
    group = claims.group
    states, own = group.inputs.states, min(group.held_places())
    position_of = {(one.host, one.nodename): i for i, one in enumerate(states)}
    stays = replace(found, members=found.members - Counter(found.in_flight.values()))
    for uuid in sorted([*found.in_flight, own]):
        place = found.in_flight.get(uuid)
        # A VM on a host that is no candidate, as it is full by now, stays.
        if place is None or place in position_of:
            group.use(group.inputs.with_members(stays))
            at = None if place is None else position_of[place]
            planned = group.held() if at is None else np.bincount([at], minlength=len(states))
            is_broken = group.request().broken_by(planned) is not None
            if place is None:
                return stays if is_broken else None
            if is_broken:
                continue
        stays = replace(stays, members=stays.members + Counter([place]))
    return None
