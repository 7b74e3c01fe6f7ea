"""Who of a group has a place and who awaits one, read from Nova's databases and Placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nova import context as nova_context
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched.nova_glue.instances import in_flight_instances
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.request import request_spec

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it was when the request was first seen."""

    # (host, nodename or None) to VMs there; the nodename is None where only the service host
    # is known
    members: Counter[tuple[str, str | None]]
    queue: tuple[str, ...]  # uuids known to await a place, in the order of the places
    left: int  # VMs of this request still to be placed
    is_move: bool
    problems: tuple[str, ...] = ()  # why the answer is not whole
    is_partial: bool = False  # members that run somewhere may be missing
    orphans: int = 0  # at the end of the queue: VMs whose build requests nobody works on
    cells: frozenset[int] = frozenset()  # ids of the cells that hold members

    @property
    def awaiting(self) -> int:
        """VMs of the group that want a place: at least those of this request."""
        return max(len(self.queue), self.left)


def read(
    request: request_spec.Request,
    states: Sequence[host_manager.HostState],
    in_flight: Mapping[str, str],
) -> Group:
    """Return members and awaiting of a group, from Nova's databases and Placement.

    Queries: two in the API database (one for an implicit group being created), one in each
    cell that holds a VM of the group, and look-ups in Placement as
    :func:`allocations.nodes_of` says. Where a part does not answer, what HostState and the
    RequestSpec know takes its place, with one WARNING.

    :param in_flight: instance uuid to nodename, of VMs that have been looked up already
    """
    context = nova_context.get_admin_context()
    try:
        group = _read(context, request, states, in_flight)
    except Exception as error:
        if not isinstance(error, databases.OUTAGES):
            LOG.exception("Cannot read group %s", request.group_id)
        own = request.instance_uuid
        members = _members_by_states(request.member_uuids - {own}, states)
        # A VM that has a host already moves; Nova shows it where it is.
        is_move = any(own in state.instances for state in states)
        count = 1 if is_move else request.count
        group = Group(
            members,
            (),
            count,
            is_move,
            (f"{databases.API_DATABASE}: {databases.why(error)}",),
            is_partial=True,
        )
    untold = request_deadline.untold(group.problems)
    if untold:
        LOG.warning(
            "Group %s: placed with what the scheduler itself knows of some VMs: %s",
            request.group_id,
            "; ".join(untold),
        )
    return group


def is_placed(instance_uuid: str) -> bool:
    """Tell whether a VM exists in a cell already, so that its request moves it. One query."""
    context = nova_context.get_admin_context()
    vms = databases.of_api(lambda: databases.group_vms(context, None, [instance_uuid]))
    return any(vm.cell_id is not None for vm in vms)


def _read(
    context: nova_context.RequestContext,
    request: request_spec.Request,
    states: Sequence[host_manager.HostState],
    known: Mapping[str, str],
) -> Group:
    own = request.instance_uuid
    named = request.member_uuids | {own}
    vms = databases.of_api(lambda: databases.group_vms(context, request.group_uuid, named))
    by_uuid = {vm.uuid: vm for vm in vms}
    own_cell = by_uuid[own].cell_id if own in by_uuid else None
    is_move = own_cell is not None
    if request.group_uuid is None and not is_move:
        # A new implicit group: nobody but this request knows of it.
        return Group(Counter(), (own,), request.count, False)
    if request.group_uuid is None and own_cell is not None:
        answers = databases.siblings(context, own, own_cell)
    else:
        by_cell: dict[int, list[str]] = {}
        for vm in vms:
            if vm.cell_id is not None and vm.uuid != own:
                by_cell.setdefault(vm.cell_id, []).append(vm.uuid)
        answers = databases.placed_vms(context, by_cell)
    problems = [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]

    members: Counter[tuple[str, str | None]] = Counter()
    in_flight: list[str] = []
    for placed in answers.rows:
        if placed.uuid == own:
            continue
        if placed.host:
            members[(placed.host, placed.nodename)] += 1
        elif placed.building:
            in_flight.append(placed.uuid)
    is_partial = bool(answers.silent)
    cells = frozenset(vm.cell_id for vm in vms if vm.cell_id is not None)
    silent = {vm.uuid for vm in vms if vm.cell_id in answers.silent} - {own}
    members.update(_members_by_states(silent, states))

    unmapped = [vm for vm in vms if vm.build_request is not None and vm.cell_id is None]
    waiting = [vm.uuid for vm in unmapped if not vm.orphan]
    orphans = [vm.uuid for vm in unmapped if vm.orphan and vm.uuid != own]
    if not is_move and own not in waiting:
        waiting.append(own)
    unplaced = sorted(in_flight) + _may_be_in_flight(waiting, own, request, is_move) + orphans
    looked_up = in_flight_instances.nodes_of(
        context,
        [uuid for uuid in unplaced if uuid not in known],
        {state.uuid: state.nodename for state in states},
    )
    nodes = looked_up.nodes | {uuid: known[uuid] for uuid in unplaced if uuid in known}
    if looked_up.trouble:
        problems.append(looked_up.trouble)
        # A VM that its cell knows without a host has been claimed somewhere. One that only has
        # a build request mostly has not.
        is_partial = is_partial or not nodes.keys() >= set(in_flight)
    host_of = {state.nodename: state.host for state in states}
    for node in nodes.values():
        members[(host_of.get(node, node), node)] += 1
    if is_move:
        # Others that await a place have requests of their own.
        return Group(members, (own,), 1, True, tuple(problems), is_partial, cells=cells)
    # Orphans may want a place for ever: they steer the choice of leaf, but take no place from
    # the VMs that are being scheduled.
    queue = tuple(uuid for uuid in waiting + orphans if uuid not in nodes)
    left_over = len([uuid for uuid in orphans if uuid not in nodes])
    return Group(
        members, queue, request.count, False, tuple(problems), is_partial, left_over, cells
    )


def _may_be_in_flight(
    waiting: list[str], own: str, request: request_spec.Request, is_move: bool
) -> list[str]:
    """Return those of the VMs with build requests that may hold an allocation.

    The request's own VMs do not when it is first seen. Build requests older than the first of
    them are others'; of the younger ones as many are its own as it has VMs to place.
    """
    if is_move:
        return [uuid for uuid in waiting if uuid != own]
    at = waiting.index(own)
    older, younger = waiting[:at], waiting[at + 1 :]
    return older + (younger if len(younger) >= request.count else [])


def _members_by_states(
    uuids: frozenset[str] | set[str], states: Sequence[host_manager.HostState]
) -> Counter[tuple[str, str | None]]:
    """Return the VMs among ``uuids`` that the scheduler's own cache sees on candidates."""
    members: Counter[tuple[str, str | None]] = Counter()
    seen: set[str] = set()
    if not uuids:
        return members
    for state in states:
        here = (uuids & set(state.instances)) - seen
        if here:
            seen |= here
            members[(state.host, state.nodename)] += len(here)
    return members
