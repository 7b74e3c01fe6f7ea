"""VMs of one group that several requests claim at the same moment.

Each request reads the others after its claim. Of two that claim at once at least one so sees the
other, and all of them judge alike which claims stay: in the order of their uuids those that keep
the constraints of the group with the ones before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from hpc_sched import clock, exceptions
from hpc_sched.core.decision_entry import TURNS
from hpc_sched.core.server_group_policy import HARD_POLICIES
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.instances.group_members import GroupMembership

# Looks at the others until they have moved, and seconds between two looks, doubled each time.
MAX_LOOKS, FIRST_PAUSE, LONGEST_PAUSE = 8, 0.05, 0.8

# Likewise if Placement has not answered all look-ups in time.
MAX_LOOKS_UNANSWERED = 2


def settle(state: GroupState, gang: GangClaim) -> str | None:
    """Return why the request must plan again, None if its claims stay.

    Its members are then those whose claims stay. A request whose claims stay waits until
    the others have moved; if they do not, it moves itself.

    Two queries in the API database and one in each cell with members for each look, and look-ups
    of the VMs in flight that this process has not claimed itself.

    :raises exceptions.RefusedError: if the other VMs cannot be read, and may break a constraint
    """
    request = state.request
    if request.group_uuid is None or not (
        request.hpc_specs.constraints.bind_place or request.policy in HARD_POLICIES
    ):
        return None
    conflict: str | None = None
    unread: str | None = None  # why the last look is not complete
    for look in range(MAX_LOOKS):
        if look and not pause(look):
            break
        look_up = state.turn.look_up_anew
        found = group_members.read(request, state.candidates, look_up, gang.places)
        if not found.is_partial:
            _set_members(state, found)
        unread = "; ".join(found.problems) if found.unknown or found.is_partial else None
        if unread is not None:
            if look + 1 < MAX_LOOKS_UNANSWERED and request_deadline.remaining() > 0:
                continue
            if request.hpc_specs.constraints.bind_place and (
                found.unknown or not state.has_known_members
            ):
                raise unproven(unread)
        if found.is_partial:
            # What was known before the claim holds; what others claimed meanwhile is not known.
            return conflict
        now = state.group_request()
        conflict = now.conflict or now.broken_by(state.held())
        if conflict is None:
            return None
        staying = _staying(state, gang, found)
        _set_members(state, found if staying is None else staying)
        if staying is not None:
            return conflict
    if unread is not None and request.hpc_specs.constraints.bind_place:
        # The time was over before another look.
        raise unproven(unread)
    return conflict


def check_unclaimed(state: GroupState, why: str) -> None:
    """Check that a plan keeps the constraints of the group though it is not claimed.

    Reads the members again, as :func:`read_members` does: others may have been placed since.

    :param why: it is not claimed
    :raises exceptions.RefusedError: if other VMs of the group are being placed, or were since the
        members were read
    """
    if not state.request.hpc_specs.constraints.bind_place:
        return
    known = state.group.members
    if has_others(state) or (
        state.request.group_uuid is not None
        and (not read_members(state, anew=True) or has_others(state))
    ):
        raise unproven(why)
    if state.group.members != known:
        raise unproven(f"{why}; others were placed meanwhile")


def unproven(why: str) -> exceptions.RefusedError:
    """Return the refusal of a request that may break a constraint of its group.

    :param why: what is not known, for the operator
    """
    what = "where VMs of the group are that are being placed at the same moment is not known"
    return exceptions.RefusedError(f"{what}: {why}", f"{what}; try again later")


def has_others(state: GroupState) -> bool:
    """True if other VMs of the group are being placed."""
    group = state.group
    return bool(group.in_flight) or group.awaiting - group.orphans > group.left


def read_again(state: GroupState, look: int = 0, *, anew: bool = False) -> bool:
    """Read rooms, then members again; False if that would change nothing.

    While others of the group are placed, the members that were read first may lack VMs whose
    places the rooms, read later, lack as well. The other way round a VM may count twice, and
    the claim decides.

    Two calls to Placement for all hosts, and what :func:`group_members.read` says.

    :param look: how often the request has read them again
    :param anew: whether what other requests have looked up a moment ago will not do
    """
    if state.group.is_move or not has_others(state):
        return False
    if (look and not pause(look)) or not state.rooms.refresh(None):
        return False
    return read_members(state, anew=anew)


def read_members(state: GroupState, *, anew: bool) -> bool:
    """Read the members of the group again; False, and nothing changed, if they cannot be read.

    What :func:`group_members.read` says.

    :param anew: whether what other requests have looked up a moment ago will not do
    """
    look_up = state.turn.look_up_anew if anew else state.turn.look_up
    own = state.gang.places if state.gang is not None else ()
    found = group_members.read(state.request, state.candidates, look_up, own)
    if found.is_partial:
        return False
    _set_members(state, found)
    return True


def pause(look: int) -> bool:
    """Wait between two looks; False if the request has no time left."""
    with request_deadline.charged(TURNS):
        clock.current.sleep(min(FIRST_PAUSE * 2 ** (look - 1), LONGEST_PAUSE))
    return request_deadline.remaining() > 0


def _set_members(state: GroupState, found: GroupMembership) -> None:
    state.set_members(found)
    state.observe(state.request.instance_uuid)


def _staying(state: GroupState, gang: GangClaim, found: GroupMembership) -> GroupMembership | None:
    """Return the members whose claims stay if the request's own do not, else None.

    One GroupRequest for each VM in flight: O(VMs x hosts).
    """
    position_of = {(one.host, one.nodename): i for i, one in enumerate(state.candidates)}
    stays = replace(found, members=found.members - Counter(found.in_flight.values()))
    own = min(gang.places)
    for uuid in sorted([*found.in_flight, own]):
        place = found.in_flight.get(uuid)
        if place is None:
            planned = state.held()
        elif place in position_of:
            planned = np.zeros(len(state.candidates), dtype=np.int64)
            planned[position_of[place]] = 1
        else:
            # On a host that is full by now. It is no candidate, and stays.
            stays = replace(stays, members=stays.members + Counter([place]))
            continue
        _set_members(state, stays)
        if state.group_request().broken_by(planned) is None:
            if place is None:
                return None
            stays = replace(stays, members=stays.members + Counter([place]))
        elif place is None:
            return stays
    return None
