"""The members of a group and those awaiting a place, read from Nova's databases and Placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from nova import context as nova_context
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.nova_glue.instances import in_flight_instances, member_queries
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.request import request_spec

LOG = logging.getLogger(__name__)


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

    @property
    def awaiting(self) -> int:
        """Members that await a place, at least those of this request."""
        return max(len(self.queue), self.left)


def read(
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    in_flight: Mapping[str, str],
) -> GroupMembership:
    """Return the members of a request's group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created), one in each
    cell with members, and look-ups in Placement as :func:`in_flight_instances.nodes_of` says.
    HostState and RequestSpec substitute for a source that does not answer, with one WARNING.

    :param in_flight: instance uuid to nodename, of instances looked up already
    """
    context = nova_context.get_admin_context()
    try:
        group = _read(context, request, states, in_flight)
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read group %s", request.group_id)
        own = request.instance_uuid
        # An instance that has a host moves; Nova's scheduler has it in its HostState.
        is_move = any(own in state.instances for state in states)
        group = GroupMembership(
            members_on(states, request.member_uuids - {own}),
            (),
            1 if is_move else request.count,
            is_move,
            (f"{databases.API_DATABASE}: {databases.reason(error)}",),
            is_partial=True,
        )
    problems = request_deadline.not_yet_logged(group.problems)
    if problems:
        LOG.warning(
            "Group %s: placed with what the scheduler itself knows of some VMs: %s",
            request.group_id,
            "; ".join(problems),
        )
    return group


def is_placed(instance_uuid: str) -> bool:
    """True if an instance exists in a cell, so that its request moves it. One query."""
    context = nova_context.get_admin_context()
    found = databases.read_api(lambda: member_queries.api_members(context, None, [instance_uuid]))
    return any(member.cell_id is not None for member in found)


def members_on(
    states: Sequence[host_manager.HostState], uuids: Collection[str]
) -> Counter[tuple[str, str | None]]:
    """Return how many of some instances Nova's scheduler has in its HostStates, by place."""
    members: Counter[tuple[str, str | None]] = Counter()
    unseen = set(uuids)
    for state in states if unseen else ():
        here = unseen & set(state.instances)
        if here:
            unseen -= here
            members[(state.host, state.nodename)] += len(here)
    return members


def _read(
    context: nova_context.RequestContext,
    request: request_spec.RequestedGroup,
    states: Sequence[host_manager.HostState],
    known: Mapping[str, str],
) -> GroupMembership:
    own = request.instance_uuid
    uuids = request.member_uuids | {own}
    vms = databases.read_api(lambda: member_queries.api_members(context, request.group_uuid, uuids))
    own_cell = next((vm.cell_id for vm in vms if vm.uuid == own), None)
    is_move = own_cell is not None
    if request.group_uuid is None and own_cell is None:
        # A new implicit group has no members but those of this request.
        return GroupMembership(Counter(), (own,), request.count, False)
    if request.group_uuid is None and own_cell is not None:
        answers = member_queries.siblings(context, own, own_cell)
    else:
        by_cell: dict[int, list[str]] = {}
        for vm in vms:
            if vm.cell_id is not None and vm.uuid != own:
                by_cell.setdefault(vm.cell_id, []).append(vm.uuid)
        answers = member_queries.cell_members(context, by_cell)
    problems = answers.problems

    members: Counter[tuple[str, str | None]] = Counter()
    building: list[str] = []
    for placed in answers.rows:
        if placed.uuid == own:
            continue
        if placed.host:
            members[(placed.host, placed.nodename)] += 1
        elif placed.building:
            building.append(placed.uuid)
    is_partial = bool(answers.down)
    cells = frozenset(vm.cell_id for vm in vms if vm.cell_id is not None)
    members += members_on(states, {vm.uuid for vm in vms if vm.cell_id in answers.down} - {own})

    unmapped = [vm for vm in vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    orphans = [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]
    if not is_move and own not in waiting:
        waiting.append(own)
    unplaced = sorted(building) + _may_be_in_flight(waiting, own, request, is_move) + orphans
    looked_up = in_flight_instances.nodes_of(
        context,
        [uuid for uuid in unplaced if uuid not in known],
        {state.uuid: state.nodename for state in states},
    )
    nodes = looked_up.nodes | {uuid: known[uuid] for uuid in unplaced if uuid in known}
    if looked_up.problem:
        problems.append(looked_up.problem)
        # A building instance in its cell has been claimed for a host. One with a build request
        # alone mostly has not.
        is_partial = is_partial or not nodes.keys() >= set(building)
    host_of = {state.nodename: state.host for state in states}
    for node in nodes.values():
        members[(host_of.get(node, node), node)] += 1
    if is_move:
        # The other members that await a place have requests of their own.
        return GroupMembership(members, (own,), 1, True, tuple(problems), is_partial, cells=cells)
    # Orphans may await a place for ever: they affect the choice of leaf, but take no place from
    # the instances that are being scheduled.
    queue = tuple(uuid for uuid in waiting + orphans if uuid not in nodes)
    orphans_left = len([uuid for uuid in orphans if uuid not in nodes])
    return GroupMembership(
        members, queue, request.count, False, tuple(problems), is_partial, orphans_left, cells
    )


def _may_be_in_flight(
    waiting: list[str], own: str, request: request_spec.RequestedGroup, is_move: bool
) -> list[str]:
    """Return those of the instances with build requests that may hold an allocation.

    The instances of a request that is first seen hold none. Build requests older than its first
    belong to other requests; of the younger ones, ``request.count - 1`` are its own.
    """
    if is_move:
        return [uuid for uuid in waiting if uuid != own]
    at = waiting.index(own)
    older, younger = waiting[:at], waiting[at + 1 :]
    return older + (younger if len(younger) >= request.count else [])
