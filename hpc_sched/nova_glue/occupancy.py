"""Every VM that holds room on a host, whoever owns it: read from Nova in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova.compute import task_states, vm_states
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.scheduler import host_manager

from hpc_sched.nova_glue import allocations, db, stored

There = TypeVar("There")

# A migration in any other state holds room on both sides; Nova has no list of those.
_ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
# A record of a move that a crash has left behind says nothing: the VM does not move any more.
_MOVING = (*task_states.resizing_states, *task_states.rebuild_states, task_states.MIGRATING)


class Occupant(NamedTuple):
    """A VM on one host; a VM that moves is on two.

    A tuple, for there are ten thousand of them in a request.
    """

    uuid: str
    host: str  # "" where only Placement knows it
    nodename: str | None
    reservation_id: str | None  # of the request that made it
    type_id: int | None  # of its flavor: changes when it is resized
    vcpus: int
    memory_mb: int
    disk_gb: int
    flavor: stored.Fields | None = None  # where it is not the one that its cell names
    moves_from: str | None = None  # the node that it leaves, for one that moves
    in_flight: bool = False  # its host does not report it yet


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who was on which host when the request was first seen."""

    at: Mapping[tuple[str, str | None], list[Occupant]]  # by host and nodename
    reservation_id: str | None = None  # of the request's own VMs
    is_move: bool = False  # whether its VM exists in a cell already
    silent_cells: frozenset[str] = frozenset()  # uuids of the cells that have not answered
    problems: tuple[str, ...] = ()
    in_flight_unknown: str | None = None  # why VMs on their way may be missing

    def on(self, state: host_manager.HostState) -> list[Occupant]:
        """Return the VMs on a host, not that of the request."""
        return on_host(self.at, state)

    def everyone(self) -> list[Occupant]:
        """Return all of them, by host."""
        return [occupant for here in self.at.values() for occupant in here]


@dataclass(slots=True)
class _Found:
    """What the databases say, before Placement is asked for the VMs on their way."""

    placed: list[Occupant] = field(default_factory=list)
    on_their_way: list[Occupant] = field(default_factory=list)
    own: list[Occupant] = field(default_factory=list)


def read(
    context: nova_context.RequestContext, own: str, states: Sequence[host_manager.HostState]
) -> Occupancy:
    """Return all VMs that are on hosts or on their way to one, but for the request's own.

    Two queries in the API database and two in each cell, and look-ups in Placement as
    :func:`allocations.nodes_of` says. A VM that moves, or waits for its resize to be confirmed,
    is on both hosts.

    :param own: uuid of the VM that is scheduled; all VMs of its request are left out
    """
    made_with, requested = _build_requests(context, own)
    answers = db.ask_cells(context, None, lambda in_cell, _: _in_cell(in_cell, own))
    found = _sorted_out(answers.rows, own)
    reservation = made_with or next((o.reservation_id for o in found.own), None)
    waiting = found.on_their_way + [
        there for there in requested if not made_with or there.reservation_id != made_with
    ]
    nodes, trouble = allocations.nodes_of(
        context,
        [there.uuid for there in waiting],
        {state.uuid: state.nodename for state in states},
        {there.uuid: there.moves_from for there in waiting if there.moves_from},
    )
    host_of = {state.nodename: state.host for state in states}
    at: dict[tuple[str, str | None], list[Occupant]] = {}
    for occupant in found.placed:
        at.setdefault((occupant.host, occupant.nodename), []).append(occupant)
    for occupant in waiting:
        node = nodes.get(occupant.uuid)
        if node is not None:
            place = (host_of.get(node, node), node)
            here = at.setdefault(place, [])
            if all(occupant.uuid != other.uuid for other in here):
                here.append(occupant._replace(host=place[0], nodename=node, in_flight=True))
    problems = [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]
    return Occupancy(
        at=at,
        reservation_id=reservation,
        is_move=bool(found.own),
        silent_cells=frozenset(answers.silent_uuids),
        problems=tuple(problems + ([trouble] if trouble else [])),
        in_flight_unknown=trouble,
    )


def on_host(
    by_place: Mapping[tuple[str, str | None], list[There]], state: host_manager.HostState
) -> list[There]:
    """Return what is on a host, by host and nodename or, where no node is known, by host."""
    known = by_place.get((state.host, state.nodename), [])
    unnamed = by_place.get((state.host, None))
    return known + unnamed if unnamed else known


def _sorted_out(rows: Sequence[Occupant], own: str) -> _Found:
    found = _Found()
    for occupant in rows:
        if occupant.uuid == own:
            found.own.append(occupant)
        elif occupant.host:
            found.placed.append(occupant)
        else:
            found.on_their_way.append(occupant)
    return found


def _build_requests(
    context: nova_context.RequestContext, own: str
) -> tuple[str | None, list[Occupant]]:
    """Return the reservation id of a VM that is new, and the VMs that no cell knows yet.

    One query. A build request that nobody works on any more is no VM. The newest come first:
    theirs is the place that no host has reported.
    """
    request, mapping = api_models.BuildRequest, api_models.InstanceMapping
    query = (
        sa.select(request.instance_uuid, request.instance)
        .outerjoin(mapping, mapping.instance_uuid == request.instance_uuid)
        .where(
            mapping.cell_id.is_(None),
            sa.or_(request.instance_uuid == own, request.created_at >= db.oldest_build_request()),
        )
        .order_by(request.id.desc())
    )
    reservation, waiting = None, []
    for uuid, text in db.api_rows(context, query):
        vm, flavor = _requested(uuid, text)
        if uuid == own:
            reservation = vm.get("reservation_id")
        else:
            waiting.append(_with_flavor(uuid, "", None, vm.get("reservation_id"), flavor))
    return reservation, waiting


def _requested(uuid: str, text: str | None) -> tuple[stored.Fields, stored.Fields]:
    """Return the fields of a VM in its build request, and those of its flavor."""
    try:
        vm = stored.fields_in(text)
        return vm, stored.fields(vm.get("flavor"))
    except stored.Unreadable as error:
        stored.warn(uuid, "build request", error)
        return {}, {}


def _with_flavor(
    uuid: str,
    host: str,
    nodename: str | None,
    reservation_id: str | None,
    flavor: stored.Fields,
    moves_from: str | None = None,
) -> Occupant:
    """Return a VM that takes what this flavor says."""
    vcpus, memory, root, ephemeral = (
        int(flavor.get(name) or 0) for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")
    )
    return Occupant(
        uuid,
        host,
        nodename,
        reservation_id,
        None,
        vcpus,
        memory,
        root + ephemeral,
        flavor,
        moves_from,
    )


def _in_cell(context: nova_context.RequestContext, own: str) -> list[Occupant]:
    """Return the VMs of a cell by host, those on their way with host "". Two queries.

    Those on their way come with the newest first; a VM that has been so for long mostly has
    been forgotten.
    """
    vm = main_models.Instance
    alive = (vm.deleted == 0, vm.hidden.is_not(sa.true()))
    query = sa.select(
        vm.uuid,
        vm.host,
        vm.node,
        vm.reservation_id,
        vm.instance_type_id,
        vm.vcpus,
        vm.memory_mb,
        vm.root_gb,
        vm.ephemeral_gb,
        vm.image_ref,
        vm.vm_state,
        vm.task_state,
        sa.func.coalesce(vm.updated_at, vm.created_at),
    ).where(*alive, sa.or_(vm.host.is_not(None), vm.uuid == own, db.may_be_on_its_way()))
    with main_db.get_context_manager(context).reader.using(context) as session:
        rows = session.execute(query).all()
        moving = session.execute(_migrations(alive)).all()
    found, late = [], []
    for row in rows:
        uuid, host, node, reservation, type_id, vcpus, memory, root, ephemeral, *more = row
        image, vm_state, task_state, since = more
        # Nova keeps "" for a VM that boots from a volume, whose root disk is elsewhere.
        disk = (0 if image == "" else root or 0) + (ephemeral or 0)
        there = Occupant(
            uuid, host or "", node, reservation, type_id, vcpus or 0, memory or 0, disk
        )
        if host or uuid == own:
            found.append(there)
        elif db.is_on_its_way(vm_state, task_state):
            late.append((str(since), there))
    found += [there for _, there in sorted(late, reverse=True)]
    return found + [side for row in _latest(moving) for side in _other_sides(row)]


def _migrations(alive: Sequence[Any]) -> Any:
    """Return the query for the moves that have not ended, with the VMs that are moved.

    Nova's own bookkeeping of a compute counts the same ones.
    """
    vm, move, extra = main_models.Instance, main_models.Migration, main_models.InstanceExtra
    return (
        sa.select(
            vm.uuid,
            vm.host,
            vm.node,
            vm.reservation_id,
            extra.flavor,
            move.source_compute,
            move.source_node,
            move.dest_compute,
            move.dest_node,
        )
        .join(vm, vm.uuid == move.instance_uuid)
        .outerjoin(extra, extra.instance_uuid == vm.uuid)
        .where(
            *alive,
            move.deleted == 0,
            move.status.not_in(_ENDED),
            sa.or_(vm.vm_state == vm_states.RESIZED, vm.task_state.in_(_MOVING)),
        )
        .order_by(sa.func.coalesce(move.updated_at, move.created_at), move.id)
    )


def _latest(moves: Iterable[Any]) -> list[Any]:
    """Return the last move of each VM: earlier ones that have not ended were given up."""
    return list({move.uuid: move for move in moves}.values())


def _other_sides(row: Any) -> list[Occupant]:
    """Return a VM that moves where it is beside the host that its own record names.

    With host "" where only Placement knows: a destination that has been claimed and has not
    begun. An evacuation holds that claim beside the one on the host that died.
    """
    uuid, host, node, reservation, text, *sides = row
    try:
        flavors = stored.flavors_in(text)
    except stored.Unreadable as error:
        stored.warn(uuid, "flavor", error)
        flavors = {}
    found = []
    for (there, node_there), which in zip((sides[:2], sides[2:]), ("old", "new"), strict=True):
        if there == host and node_there in (node, None):
            continue
        if not there and (which == "old" or not host):
            continue
        flavor = flavors.get(which) or flavors.get("cur") or {}
        found.append(_with_flavor(uuid, there or "", node_there, reservation, flavor, node))
    return found
