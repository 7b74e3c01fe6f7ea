"""The members of a group and those awaiting a place, read from Nova's databases and Placement."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nova import context as nova_context
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import in_flight_instances, member_records

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

    # (host, nodename) to instances there; nodename None if only the service host is known. On a
    # move without those on hosts that are down or disabled.
    members: Counter[tuple[str, str | None]]
    # Uuids that await a place, in the order of the places. On a move: the instance, and the
    # members on hosts that are down or disabled, which must follow it.
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
    # On a move, as members: those on hosts that are down or disabled.
    leaving: Counter[tuple[str, str | None]] = field(default_factory=Counter)

    @property
    def awaiting(self) -> int:
        """Members that await a place, at least those of this request."""
        return max(len(self.queue), self.left)


def read(
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp,
    claimed: Collection[str] = (),
) -> GroupMembership:
    """Return the members of a request's group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created), one in each
    cell with members, and look-ups in Placement as :func:`in_flight_instances.places_of` says.
    If the API database does not answer, the members of the RequestSpec are read from all cells.
    HostState and RequestSpec substitute for other sources, with one WARNING.

    :param look_up: for the members that may be in flight
    :param claimed: instances of the request that it has claimed itself: they await a place
    """
    context = nova_context.get_admin_context()
    try:
        records = member_records.of_group(context, request)
        if records is None:
            # An implicit group that is being created has the VMs of its request alone.
            left = 1 if request.is_move else request.count
            return GroupMembership(Counter(), (request.instance_uuid,), left, request.is_move)
        group = _members_in(records, context, request, states, look_up, claimed)
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read group %s", request.group_id)
        own = request.instance_uuid
        # An instance that has a host moves; Nova's scheduler has it in its HostState.
        is_move = request.is_move or any(own in state.instances for state in states)
        members = members_on(states, request.member_uuids - {own})
        problem = databases.api_problem(error)
        left = 1 if is_move else request.count
        group = GroupMembership(members, (), left, is_move, (problem,), is_partial=True)
    problems = request_deadline.not_yet_logged(group.problems)
    if problems:
        text = "Group %s: placed with what the scheduler itself knows of some VMs: %s"
        LOG.warning(text, request.group_id, "; ".join(problems))
    return group


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
    context: nova_context.RequestContext,
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp,
    claimed: Collection[str],
) -> GroupMembership:
    """Return the members of a group by their records and what Placement has of them."""
    own = request.instance_uuid
    is_move, problems, is_partial = records.is_move, records.problems, records.is_partial
    members = members_on(states, records.unread - {own})
    building = [vm.uuid for vm in records.others if not vm.host and vm.building]
    others, followers = _after_moves(context, records, states)
    members += Counter((placed.host, placed.nodename) for placed in others if placed.host)
    waiting, orphans = _without_cell(records, own)
    may_be = waiting if claimed else _may_be_in_flight(waiting, own, request, is_move)
    asked = [*(building if claimed else sorted(building)), *may_be]
    unplaced = [uuid for uuid in (*asked, *orphans) if uuid not in claimed]
    # What moves is not compared with others again after its claim.
    looked_up = look_up(context, unplaced, states, unplaced if is_move else building)
    places = looked_up.places
    if looked_up.problem:
        problems.append(looked_up.problem)
        # A building instance in its cell has been claimed for a host. One with a build request
        # alone mostly has not.
        is_partial = is_partial or not places.keys() >= set(building)
    members.update(places.values())
    known = GroupMembership(
        members, (), 1, is_move, tuple(problems), is_partial, cells=records.cells
    )
    if is_move:
        return _moving(known, own, followers)
    # Orphans may await a place for ever: they affect the choice of leaf, but take no place from
    # the instances that are being scheduled.
    left, last = ([uuid for uuid in some if uuid not in places] for some in (waiting, orphans))
    found = replace(known, queue=(*left, *last), left=request.count, orphans=len(last))
    return replace(found, in_flight=places, unknown=looked_up.unanswered)


def _moving(
    known: GroupMembership, own: str, followers: Sequence[member_records.CellMember]
) -> GroupMembership:
    """Return the members next to one that moves; its followers have requests of their own."""
    return replace(
        known,
        queue=tuple(sorted((own, *(member.uuid for member in followers)))),
        leaving=Counter((member.host or "", member.nodename) for member in followers),
    )


def _without_cell(records: member_records.GroupRecords, own: str) -> tuple[list[str], list[str]]:
    """Return the instances with build requests that await a place, and those that are orphans."""
    unmapped = [vm for vm in records.vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    if not records.is_move and own not in waiting:
        waiting.append(own)
    return waiting, [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]


def _after_moves(
    context: nova_context.RequestContext,
    records: member_records.GroupRecords,
    states: Sequence[host_manager.HostState],
) -> tuple[list[member_records.CellMember], list[member_records.CellMember]]:
    """Return the members that hold an instance that moves, and those that follow it.

    All hold one that is created. Members on hosts that are down or disabled must move too. Those
    that have a place elsewhere already, which is claimed, hold the instance there. Look-ups in
    Placement for members that are being moved, as :func:`in_flight_instances.places_of` says; one
    query for the cells and one in each if their places are on hosts that are no candidates.
    """
    members, problems = records.others, records.problems
    if not records.is_move:
        return members, []
    leaving = {member.uuid: member.nodename or "" for member in members if member.is_leaving}
    looked_up = in_flight_instances.places_of(context, sorted(leaving), states, leaving)
    found = looked_up.all_places
    unsure = {host for places in found.values() for host, _ in places}
    # HostStates are of hosts that are up.
    unsure -= {state.host for state in states}
    down: databases.CellAnswers[str] = databases.CellAnswers()
    try:
        down = member_records.down_hosts(context, unsure)
    except databases.OUTAGES as error:
        problems.append(databases.api_problem(error))
    problems += down.problems
    if looked_up.problem:
        problems.append(looked_up.problem)
    holding, followers = [], []
    for member in members:
        goal = [place for place in found.get(member.uuid, ()) if place[0] not in down.rows]
        if goal:
            holding.append(member._replace(host=goal[0][0], nodename=goal[0][1]))
        elif not member.is_host_down:
            holding.append(member)
        elif member.uuid not in looked_up.missed:
            followers.append(member)
    return holding, followers


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
