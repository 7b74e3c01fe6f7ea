"""Every VM that holds room on a host, whoever owns it: read from Nova in bulk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.scheduler import host_manager

from hpc_sched.nova_glue import allocations, db

There = TypeVar("There")

# A migration in any other state holds room on both sides; Nova has no list of those.
_ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
FIELDS = "nova_object.data"  # where a serialised object keeps its fields


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
    flavor: Mapping[str, Any] | None = None  # where it is not the one that its cell names


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who was on which host when the request was first seen."""

    at: Mapping[tuple[str, str | None], list[Occupant]]  # by host and nodename
    reservation_id: str | None = None  # of the request's own VMs
    is_move: bool = False  # whether its VM exists in a cell already
    silent_cells: frozenset[str] = frozenset()  # uuids of the cells that have not answered
    problems: tuple[str, ...] = ()

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
                here.append(occupant._replace(host=place[0], nodename=node))
    problems = [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]
    return Occupancy(
        at=at,
        reservation_id=reservation,
        is_move=bool(found.own),
        silent_cells=frozenset(answers.silent_uuids),
        problems=tuple(problems + ([trouble] if trouble else [])),
    )


def on_host(
    by_place: Mapping[tuple[str, str | None], list[There]], state: host_manager.HostState
) -> list[There]:
    """Return what is on a host, by host and nodename or, where no node is known, by host."""
    known = by_place.get((state.host, state.nodename), [])
    unnamed = by_place.get((state.host, None))
    return known + unnamed if unnamed else known


def flavor_fields(primitive: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the fields of a serialised flavor, none where there is no flavor."""
    fields: Mapping[str, Any] = primitive[FIELDS] if primitive else {}
    return fields


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

    One query. A build request that nobody works on any more is no VM.
    """
    request, mapping = api_models.BuildRequest, api_models.InstanceMapping
    query = (
        sa.select(request.instance_uuid, request.instance)
        .outerjoin(mapping, mapping.instance_uuid == request.instance_uuid)
        .where(
            mapping.cell_id.is_(None),
            sa.or_(request.instance_uuid == own, request.created_at >= db.oldest_build_request()),
        )
        .order_by(request.id)
    )
    reservation, waiting = None, []
    for uuid, instance in db.api_rows(context, query):
        fields = json.loads(instance)[FIELDS] if instance else {}
        if uuid == own:
            reservation = fields.get("reservation_id")
        else:
            flavor = flavor_fields(fields.get("flavor"))
            waiting.append(
                Occupant(uuid, "", None, fields.get("reservation_id"), None, 0, 0, 0, flavor)
            )
    return reservation, waiting


def _in_cell(context: nova_context.RequestContext, own: str) -> list[Occupant]:
    """Return the VMs of a cell by host, those on their way with host "". Two queries."""
    vm = main_models.Instance
    alive = (vm.deleted == 0, vm.hidden.is_not(sa.true()))
    columns = (
        vm.uuid,
        vm.host,
        vm.node,
        vm.reservation_id,
        vm.instance_type_id,
        vm.vcpus,
        vm.memory_mb,
        vm.root_gb,
        vm.ephemeral_gb,
    )
    placed = sa.select(*columns).where(
        *alive,
        sa.or_(vm.host.is_not(None), vm.uuid == own, db.may_be_on_its_way()),
    )
    placed = placed.add_columns(vm.vm_state, vm.task_state)
    with main_db.get_context_manager(context).reader.using(context) as session:
        rows = session.execute(placed).all()
        moving = session.execute(_migrations(columns, alive)).all()
    found = []
    for uuid, host, node, reservation, type_id, vcpus, memory, root, ephemeral, *doing in rows:
        if host or uuid == own or db.is_on_its_way(*doing):
            disk = (root or 0) + (ephemeral or 0)
            found.append(
                Occupant(
                    uuid, host or "", node, reservation, type_id, vcpus or 0, memory or 0, disk
                )
            )
    for row in moving:
        found += _other_sides(row)
    return found


def _migrations(columns: Sequence[Any], alive: Sequence[Any]) -> Any:
    """Return the query for the moves that have not ended, with the VMs that are moved."""
    vm, move, extra = main_models.Instance, main_models.Migration, main_models.InstanceExtra
    return (
        sa.select(
            *columns[:5],
            extra.flavor,
            move.source_compute,
            move.source_node,
            move.dest_compute,
            move.dest_node,
            move.migration_type,
        )
        .join(vm, vm.uuid == move.instance_uuid)
        .outerjoin(extra, extra.instance_uuid == vm.uuid)
        .where(*alive, move.deleted == 0, move.status.not_in(_ENDED))
    )


def _other_sides(row: Any) -> list[Occupant]:
    """Return a VM that moves where it is beside the host that its own record names."""
    uuid, host, node, reservation, _type, flavors, *sides, kind = row
    stored = json.loads(flavors) if flavors else {}
    found = []
    for (there, node_there), which in zip((sides[:2], sides[2:]), ("old", "new"), strict=True):
        if there and (there, node_there) == (host, node):
            continue
        if not there and (which == "old" or kind == "evacuation" or not host):
            continue
        data = flavor_fields(stored.get(which) or stored.get("cur"))
        disk = data.get("root_gb", 0) + data.get("ephemeral_gb", 0)
        found.append(
            Occupant(
                uuid,
                there or "",
                node_there,
                reservation,
                None,
                data.get("vcpus", 0),
                data.get("memory_mb", 0),
                disk,
                data,
            )
        )
    return found
