"""The members of a group and those awaiting a place, read from Nova's databases and Placement."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.nova_glue import request_spec
from hpc_sched.nova_glue.instances import in_flight_instances
from hpc_sched.nova_glue.instances.in_flight_instances import LookupResult, Place
from hpc_sched.nova_glue.instances.placed_instance import awaits_host, exists
from hpc_sched.nova_glue.io import circuit_breaker, databases

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
    LookupResult,
]


class ApiMember(NamedTuple):
    """A member of the group in the API database."""

    uuid: str
    cell_id: int | None  # None until the instance has been created in a cell
    build_request: int | None  # id of its build request; None once that is done
    orphan: bool = False  # the conductor of its build request has given up


class CellMember(NamedTuple):
    """A member of the group in the database of its cell."""

    uuid: str
    host: str | None
    nodename: str | None
    building: bool  # without a host, and building or unshelving


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """The members of a group when its request was first seen."""

    # (host, nodename) to instances there; nodename None if only the service host is known
    members: Counter[tuple[str, str | None]]
    queue: tuple[str, ...]  # uuids that await a place, in the order of the places
    left: int  # instances of this request still to be placed
    is_move: bool
    problems: tuple[str, ...] = ()  # what could not be read
    is_partial: bool = False  # placed members may be missing
    orphans: int = 0  # at the end of the queue: members whose conductor has given up
    cells: frozenset[int] = frozenset()  # ids of the cells with members
    # Members whose place is an allocation alone, by uuid.
    in_flight: Mapping[str, Place] = field(default_factory=dict)
    # Members that may be in flight and were not looked up in time.
    unknown: frozenset[str] = frozenset()

    @property
    def awaiting(self) -> int:
        """Members that await a place, at least those of this request."""
        return max(len(self.queue), self.left)


def read(
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp | None = None,
    claimed: Collection[str] = (),
) -> GroupMembership:
    """Return the members of a request's group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created), one in each
    cell with members, and look-ups in Placement as :func:`in_flight_instances.places_of` says.
    HostState and RequestSpec substitute for a source that does not answer, with one WARNING.

    :param look_up: for the members that may be in flight; by default in Placement
    :param claimed: instances of the request that it has claimed itself: they await a place
    """
    context = nova_context.get_admin_context()
    try:
        group = _read(context, request, states, look_up or _look_up, claimed)
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read group %s", request.group_id)
        own = request.instance_uuid
        # An instance that has a host moves; Nova's scheduler has it in its HostState.
        is_move = any(own in state.instances for state in states)
        members = members_on(states, request.member_uuids - {own})
        problem = f"{databases.API_DATABASE}: {databases.reason(error)}"
        left = 1 if is_move else request.count
        group = GroupMembership(members, (), left, is_move, (problem,), is_partial=True)
    problems = circuit_breaker.not_yet_logged(group.problems)
    if problems:
        text = "Group %s: placed with what the scheduler itself knows of some VMs: %s"
        LOG.warning(text, request.group_id, "; ".join(problems))
    return group


def is_placed(instance_uuid: str) -> bool:
    """True if an instance exists in a cell, so that its request moves it. One query."""
    context = nova_context.get_admin_context()
    found = databases.read_api(lambda: api_members(context, None, [instance_uuid]))
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


def _read(
    context: nova_context.RequestContext,
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    look_up: LookUp,
    claimed: Collection[str],
) -> GroupMembership:
    own = request.instance_uuid
    uuids = request.member_uuids | {own}
    vms = databases.read_api(lambda: api_members(context, request.group_uuid, uuids))
    own_cell = next((vm.cell_id for vm in vms if vm.uuid == own), None)
    is_move = own_cell is not None
    if request.group_uuid is not None:
        by_cell: defaultdict[int, list[str]] = defaultdict(list)
        for vm in vms:
            if vm.cell_id is not None and vm.uuid != own:
                by_cell[vm.cell_id].append(vm.uuid)
        answers = cell_members(context, by_cell)
    elif own_cell is not None:
        answers = siblings(context, own, own_cell)
    else:
        # A new implicit group has no members but those of this request.
        return GroupMembership(Counter(), (own,), request.count, False)
    problems = answers.problems

    others = [placed for placed in answers.rows if placed.uuid != own]
    members = Counter((placed.host, placed.nodename) for placed in others if placed.host)
    building = [placed.uuid for placed in others if not placed.host and placed.building]
    is_partial = bool(answers.down)
    cells = frozenset(vm.cell_id for vm in vms if vm.cell_id is not None)
    members += members_on(states, {vm.uuid for vm in vms if vm.cell_id in answers.down} - {own})

    unmapped = [vm for vm in vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    orphans = [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]
    if not is_move and own not in waiting:
        waiting.append(own)
    unplaced = sorted(building) + _may_be_in_flight(waiting, own, request, is_move) + orphans
    if claimed:
        unplaced = [uuid for uuid in (*building, *waiting, *orphans) if uuid not in claimed]
    # What moves is not compared with others again after its claim.
    looked_up = look_up(context, unplaced, states, unplaced if is_move else building)
    places = looked_up.places
    if looked_up.problem:
        problems.append(looked_up.problem)
        # A building instance in its cell has been claimed for a host. One with a build request
        # alone mostly has not.
        is_partial = is_partial or not places.keys() >= set(building)
    members.update(places.values())
    if is_move:
        # The other members that await a place have requests of their own.
        return GroupMembership(members, (own,), 1, True, tuple(problems), is_partial, cells=cells)
    # Orphans may await a place for ever: they affect the choice of leaf, but take no place from
    # the instances that are being scheduled.
    left, last = ([uuid for uuid in some if uuid not in places] for some in (waiting, orphans))
    queue = (*left, *last)
    return GroupMembership(
        members,
        queue,
        request.count,
        False,
        tuple(problems),
        is_partial,
        len(last),
        cells,
        places,
        looked_up.unanswered,
    )


def _look_up(
    context: nova_context.RequestContext,
    consumers: Iterable[str],
    states: Sequence[host_manager.HostState],
    _changing: Collection[str],
) -> LookupResult:
    return in_flight_instances.places_of(context, consumers, states)


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


def api_members(
    context: nova_context.RequestContext, group_uuid: str | None, uuids: Collection[str]
) -> list[ApiMember]:
    """Return the members of a server group, by build request, then uuid. One query.

    The members come from the database: in a RequestSpec those of concurrent requests are missing.
    Without a group the instances with these uuids are read; for a group that has been deleted
    meanwhile too, with a second query.
    """
    mapping, member = api_models.InstanceMapping, api_models.InstanceGroupMember
    group, build_request = api_models.InstanceGroup, api_models.BuildRequest

    def rows_of(uuid: Any, source: Any, condition: Any) -> Sequence[Any]:
        query = sa.select(uuid, mapping.cell_id, build_request.id, build_request.created_at)
        joined = sa.outerjoin(source, build_request, build_request.instance_uuid == uuid)
        return databases.api_rows(context, query.select_from(joined).where(condition))

    rows: Sequence[Any] = ()
    if group_uuid is not None:
        of_group = sa.join(member, group, group.id == member.group_id).outerjoin(
            mapping, mapping.instance_uuid == member.instance_uuid
        )
        rows = rows_of(member.instance_uuid, of_group, group.uuid == group_uuid)
    if not rows and uuids:
        listed = mapping.instance_uuid.in_(sorted(uuids))
        rows = rows_of(mapping.instance_uuid, mapping, listed)
    oldest = databases.oldest_build_request()
    members = {
        uuid: ApiMember(uuid, cell_id, request_id, created is not None and created < oldest)
        for uuid, cell_id, request_id, created in rows
    }
    return sorted(members.values(), key=lambda found: (found.build_request or 0, found.uuid))


def cell_members(
    context: nova_context.RequestContext, uuids_by_cell: dict[int, list[str]]
) -> databases.CellAnswers[CellMember]:
    """Return those of some instances, by the id of their cell, that exist there.

    One query for the cells and one in each cell named. cell0 is not read: its instances never had
    a host.
    """
    uuid = main_models.Instance.uuid
    return databases.read_cells(
        context, uuids_by_cell, lambda cell, uuids: _instances(cell, uuid.in_(uuids))
    )


def siblings(
    context: nova_context.RequestContext, uuid: str, cell_id: int
) -> databases.CellAnswers[CellMember]:
    """Return the instances that were created by the same request as one, itself included.

    They share its reservation id. Two queries: the cells, and the instance's own cell.
    """
    vm = main_models.Instance
    reservation = sa.select(vm.reservation_id).where(vm.uuid == uuid).scalar_subquery()
    is_sibling = vm.reservation_id == reservation
    return databases.read_cells(
        context, {cell_id: [uuid]}, lambda cell, _: _instances(cell, is_sibling)
    )


def _instances(cell: nova_context.RequestContext, condition: Any) -> list[CellMember]:
    vm = main_models.Instance
    query = sa.select(vm.uuid, vm.host, vm.node, vm.vm_state, vm.task_state)
    rows = databases.cell_rows(cell, query.where(condition, *exists()))
    return [
        CellMember(uuid, host, node, not host and awaits_host(vm_state, task_state))
        for uuid, host, node, vm_state, task_state in rows
    ]
