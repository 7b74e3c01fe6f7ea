"""The members of a group and those awaiting a place, read from Nova's databases and Placement."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nova import context as nova_context
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import (
    in_flight_instances,
    member_moves,
    member_records,
    request_instances,
)

LOG = logging.getLogger(__name__)

# Looks up where instances are claimed, as in_flight_instances.places_of does. For the instances in
# the last argument an earlier look-up does not count: they exist already, and may have moved.
LookUp = Callable[
    [
        nova_context.RequestContext,
        Iterable[str],
        Sequence[host_manager.HostState],
        Collection[str],
    ],
    in_flight_instances.LookupResult,
]


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """The members of a group when its request was first seen."""

    # (host, nodename) to instances there; nodename None if only the service host is known. Without
    # those on hosts that are down, on a move also without those on hosts that are disabled.
    members: Counter[tuple[str, str | None]]
    # Uuids that await a place, in the order of the places: see request_instances.in_launch_order.
    queue: tuple[str, ...]
    left: int  # instances of this request still to be placed
    is_move: bool
    problems: tuple[str, ...] = ()  # what could not be read
    is_partial: bool = False  # placed members may be missing
    orphans: int = 0  # at the end of the queue: members whose conductor has given up
    cells: frozenset[int] = frozenset()  # ids of the cells with members
    # Members whose place is an allocation alone, by uuid.
    in_flight: Mapping[str, in_flight_instances.Place] = field(default_factory=dict)
    # Members that may be in flight and were not looked up in time.
    unknown: frozenset[str] = frozenset()
    # Of the queue those with requests of their own, which are shelved, or must move from hosts that
    # are down or disabled; on a move all but one.
    followers: int = 0
    # Of these, as members: those on such hosts.
    leaving: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    # Followers that are to move now: on a move, if it is from such a host or unshelves.
    moving: frozenset[str] = frozenset()
    is_urgent: bool = False  # whether the instance itself moves from such a host, or unshelves
    uuids: frozenset[str] = frozenset()  # all instances of the group that are known
    # Members whose place is held and not claimed yet, as far as is known.
    unclaimed: frozenset[str] = frozenset()
    # The API database has not answered: these are the members that the RequestSpec proves.
    is_unread: bool = False
    youngest: in_flight_instances.Place | None = None  # where the youngest member is, if known

    @property
    def awaiting(self) -> int:
        """Members that await a place, at least those of this request."""
        return max(len(self.queue), self.left)

    @property
    def is_alone(self) -> bool:
        """True if the group has no other VM than one that moves."""
        return not self.members and self.awaiting == 1 and not self.is_partial


def read(
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp,
    claimed: Collection[str] = (),
    destinations: Mapping[str, str] | None = None,
) -> GroupMembership:
    """Return the members of a request's group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created, one more if other
    requests of the group are being placed), one in each cell with members, and look-ups in
    Placement as :func:`in_flight_instances.places_of` says.
    If the API database does not answer, the members of the RequestSpec are read from all cells;
    none are if they are the VMs of the request.
    HostState and RequestSpec substitute for other sources, with one WARNING.

    :param look_up: for the members that may be in flight
    :param claimed: instances of the request that it has claimed itself: they await a place
    :param destinations: nodenames of the hosts on which instances are being placed, as far as
        requests say so before Nova claims them
    """
    context = nova_context.get_admin_context()
    try:
        records = member_records.of_group(context, request)
        if records is None:
            # An implicit group that is being created has the VMs of its request alone.
            left = 1 if request.is_move else request.count
            return GroupMembership(Counter(), (request.instance_uuid,), left, request.is_move)
        moved = member_moves.after_moves(context, records, states, destinations or {})
        group = _members_in(records, moved, context, request, states, look_up, claimed)
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read group %s", request.group_id)
        group = _unread(request, states, error)
    if problems := request_deadline.not_yet_logged(group.problems):
        text = "Group %s: placed with what the scheduler itself knows of some VMs: %s"
        LOG.warning(text, request.group_id, "; ".join(problems))
    return group


def _unread(
    request: request_spec.RequestedGroup, states: Sequence[host_manager.HostState], error: Exception
) -> GroupMembership:
    """Return what RequestSpec and HostStates have of a group."""
    own = request.instance_uuid
    # An instance that has a host moves; Nova's scheduler has it in its HostState.
    is_move = request.is_move or any(own in state.instances for state in states)
    members = members_on(states, request.member_uuids - {own})
    problem = databases.api_problem(error)
    left = 1 if is_move else request.count
    found = GroupMembership(members, (), left, is_move, (problem,), is_partial=True)
    if is_move or members or not (request.is_whole and isinstance(error, databases.OUTAGES)):
        return found
    return replace(found, queue=request.whole or (own,), is_partial=False, is_unread=True)


def is_placed(instance_uuid: str) -> bool:
    """True if an instance exists in a cell, so that its request moves it. One query."""
    context = nova_context.get_admin_context()
    found = databases.read_api(lambda: member_records.api_members(context, None, [instance_uuid]))
    return any(member.cell_id is not None for member in found)


def members_on(
    states: Sequence[host_manager.HostState], uuids: Collection[str]
) -> Counter[tuple[str, str | None]]:
    """Return how many of some instances Nova's scheduler has in its HostStates, by place."""
    members: Counter[tuple[str, str | None]] = Counter()
    unseen = set(uuids)
    for state in states if unseen else ():
        if here := unseen & set(state.instances):
            unseen -= here
            members[(state.host, state.nodename)] += len(here)
    return members


def _members_in(
    records: member_records.GroupRecords,
    moved: member_moves.MovedMembers,
    context: nova_context.RequestContext,
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp,
    claimed: Collection[str],
) -> GroupMembership:
    """Return a group's members by records and Placement, which has those that build in a cell."""
    problems, building = records.problems, moved.building
    members = members_on(states, records.unread - {request.instance_uuid}) + moved.places
    waiting, orphans = _without_cell(records, request.instance_uuid)
    asked = _asked(building, waiting, request, claimed, is_move=records.is_move)
    unplaced = [uuid for uuid in (*asked, *orphans) if uuid not in claimed]
    # What moves is not compared with others again after its claim.
    looked_up = look_up(context, unplaced, states, unplaced if records.is_move else building)
    places = looked_up.places
    problems += filter(None, [looked_up.problem])
    is_partial = records.is_partial or bool(looked_up.problem and set(building) - places.keys())
    members.update(places.values())
    left, last = ([uuid for uuid in some if uuid not in places] for some in (waiting, orphans))
    if len(left) > request.count and not records.is_move:
        left = _in_launch_order(context, left)
    followers = _followers(moved, looked_up)
    # Orphans may await a place for ever: they take none from those that are being scheduled.
    queue = (*left, *followers, *last)
    found = GroupMembership(
        *(members, queue, request.count, records.is_move, tuple(problems), is_partial),
        orphans=len(last),
        cells=records.cells,
        in_flight=places,
        unknown=looked_up.unanswered,
        followers=len(followers),
        leaving=moved.places_left,
        uuids=records.uuids,
        unclaimed=moved.unclaimed,
        youngest=_youngest(moved.placed, [places[uuid] for uuid in asked if uuid in places]),
    )
    return _of_move(found, records, moved) if records.is_move else found


def _in_launch_order(context: nova_context.RequestContext, uuids: list[str]) -> list[str]:
    """Return instances of several requests by launch; as they are if that cannot be read."""
    # Those of a request have been created in their order, but requests come in any.
    try:
        return request_instances.in_launch_order(context, uuids)
    except databases.OUTAGES as error:
        LOG.debug("Places by build requests: %s", databases.api_problem(error))
        return uuids


def _asked(
    building: Sequence[str],
    waiting: list[str],
    request: request_spec.RequestedGroup,
    claimed: Collection[str],
    *,
    is_move: bool,
) -> list[str]:
    """Return the instances that may be in flight, the most important first; orphans left out."""
    if claimed:
        return [*building, *waiting]
    own = request.instance_uuid
    return [*sorted(building), *_may_be_in_flight(waiting, own, request, is_move)]


def _youngest(
    members: Iterable[member_records.CellMember], in_flight: Sequence[in_flight_instances.Place]
) -> in_flight_instances.Place | None:
    """Return the place of the youngest member: the last one in flight, else the last created."""
    by_age = sorted(members, key=lambda member: member.created)
    places = [*((vm.host, vm.nodename) for vm in by_age if vm.host), *in_flight]
    return places[-1] if places else None


def _followers(
    moved: member_moves.MovedMembers, looked_up: in_flight_instances.LookupResult
) -> list[str]:
    """Return the members in cells that await a place: they must move, are shelved, or build."""
    known = looked_up.places.keys() | looked_up.missed
    homeless = {vm.uuid for vm in moved.placed if not vm.host and (vm.is_shelved or vm.building)}
    return sorted({vm.uuid for vm in moved.leaving} | (homeless - known))


def _of_move(
    found: GroupMembership,
    records: member_records.GroupRecords,
    moved: member_moves.MovedMembers,
) -> GroupMembership:
    """Return the members for an instance that moves: all that await follow it."""
    own = records.own
    is_from_disabled = own is not None and own.must_move(is_move=True)
    is_shelved = own is not None and own.is_shelved
    moving = {vm.uuid for vm in moved.leaving if vm.is_host_down or is_from_disabled}
    if is_shelved:
        moving |= {vm.uuid for vm in moved.placed if vm.is_shelved}
    # In one order for all requests of the group, which then make one plan at the same moment.
    queue = tuple(sorted({records.own_uuid, *found.queue[: len(found.queue) - found.orphans]}))
    return replace(
        found,
        queue=queue,
        left=1,
        followers=len(queue) - 1,
        orphans=0,
        in_flight={},
        unknown=frozenset(),
        moving=frozenset(moving.intersection(queue)),
        is_urgent=is_from_disabled or is_shelved,
    )


def _without_cell(records: member_records.GroupRecords, own: str) -> tuple[list[str], list[str]]:
    """Return the instances with build requests that await a place, and those that are orphans."""
    unmapped = [vm for vm in records.vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    if not records.is_move and own not in waiting:
        waiting.append(own)
    return waiting, [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]


def _may_be_in_flight(
    waiting: list[str], own: str, request: request_spec.RequestedGroup, is_move: bool
) -> list[str]:
    """Return those of the instances with build requests that may hold an allocation."""
    if is_move:
        return [uuid for uuid in waiting if uuid != own]
    # The instances of a request that is first seen hold none. Build requests older than its first
    # belong to other requests; of the younger ones, request.count - 1 are its own.
    at = waiting.index(own)
    older, younger = waiting[:at], waiting[at + 1 :]
    return older + (younger if len(younger) >= request.count else [])
