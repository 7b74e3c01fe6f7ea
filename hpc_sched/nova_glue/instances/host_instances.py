"""Every VM that holds room on a host, whoever owns it: read from Nova in bulk."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.scheduler import host_manager

from hpc_sched.nova_glue.instances import in_flight_instances, migrations
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance, disk_of, with_flavor
from hpc_sched.nova_glue.io import databases, serialized_objects

There = TypeVar("There")


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who was on which host when the request was first seen."""

    at: Mapping[tuple[str, str | None], list[PlacedInstance]]  # by host and nodename
    reservation_id: str | None = None  # of the request's own VMs
    is_move: bool = False  # whether its VM exists in a cell already
    silent_cells: frozenset[str] = frozenset()  # uuids of the cells that have not answered
    problems: tuple[str, ...] = ()
    in_flight_unknown: str | None = None  # why VMs on their way may be missing
    in_flight: Mapping[str, str] = field(default_factory=dict)  # uuid to nodename, by Placement

    def on(self, state: host_manager.HostState) -> list[PlacedInstance]:
        """Return the VMs on a host, not that of the request."""
        return on_host(self.at, state)

    def everyone(self) -> list[PlacedInstance]:
        """Return all of them, by host."""
        return [occupant for here in self.at.values() for occupant in here]


def read(
    context: nova_context.RequestContext, own: str, states: Sequence[host_manager.HostState]
) -> Occupancy:
    """Return all VMs that are on hosts or on their way to one, but for the request's own.

    Two queries in the API database and one in each cell, one more in a cell where VMs move, one
    more in the API database while a resize has not reached its destination, and look-ups in
    Placement as :func:`allocations.nodes_of` says. A VM that moves, or waits for its resize to
    be confirmed, is on both hosts, or twice on one.

    :param own: uuid of the VM that is scheduled; all VMs of its request are left out
    """
    problems: list[str] = []
    made_with, requested = _build_requests(context, own, problems)
    answers = databases.ask_cells(context, None, lambda in_cell, _: _in_cell(in_cell, own))
    problems += [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]
    vms = [row for row in answers.rows if isinstance(row, PlacedInstance)]
    moves_ = [row for row in answers.rows if isinstance(row, migrations.Move)]
    in_cells = {vm.uuid for vm in vms}
    reservation = made_with or next((vm.reservation_id for vm in vms if vm.uuid == own), None)
    waiting = [
        vm
        for vm in requested
        # A cell may have taken one over since.
        if vm.uuid not in in_cells and not (made_with and vm.reservation_id == made_with)
    ]
    at: dict[tuple[str, str | None], list[PlacedInstance]] = {}
    for vm in [*vms, *migrations.other_sides(context, moves_, problems)]:
        if vm.uuid == own:
            continue
        if vm.host:
            at.setdefault((vm.host, vm.nodename), []).append(vm)
        else:
            waiting.append(vm)
    # Who has set out long ago has mostly been forgotten.
    waiting.sort(key=lambda vm: (vm.since or datetime.datetime.min, vm.uuid), reverse=True)
    looked_up = in_flight_instances.nodes_of(
        context,
        [vm.uuid for vm in waiting],
        {state.uuid: state.nodename for state in states},
        {vm.uuid: vm.moves_from for vm in waiting if vm.moves_from},
    )
    host_of = {state.nodename: state.host for state in states}
    for vm in waiting:
        node = looked_up.nodes.get(vm.uuid)
        if node is not None:
            host = host_of.get(node, node)
            coming = vm._replace(host=host, nodename=node, in_flight=True)
            at.setdefault((host, node), []).append(coming)
    young = {vm.uuid for vm in waiting if vm.since and vm.since >= databases.oldest_build_request()}
    if looked_up.trouble:
        problems.append(looked_up.trouble)
    return Occupancy(
        at=at,
        reservation_id=reservation,
        is_move=own in in_cells,
        silent_cells=frozenset(answers.silent_uuids),
        problems=tuple(problems),
        in_flight_unknown=looked_up.trouble if young & looked_up.missed else None,
        in_flight=looked_up.nodes,
    )


def on_host(
    by_place: Mapping[tuple[str, str | None], list[There]], state: host_manager.HostState
) -> list[There]:
    """Return what is on a host, by host and nodename or, where no node is known, by host."""
    known = by_place.get((state.host, state.nodename), [])
    unnamed = by_place.get((state.host, None))
    return known + unnamed if unnamed else known


def _build_requests(
    context: nova_context.RequestContext, own: str, problems: list[str]
) -> tuple[str | None, list[PlacedInstance]]:
    """Return the reservation id of a VM that is new, and the VMs that no cell knows yet.

    One query. A build request that nobody works on any more is no VM.

    :param problems: takes what could not be read
    """
    request, mapping = api_models.BuildRequest, api_models.InstanceMapping
    query = (
        sa.select(request.instance_uuid, request.instance, request.created_at)
        .outerjoin(mapping, mapping.instance_uuid == request.instance_uuid)
        .where(
            mapping.cell_id.is_(None),
            sa.or_(
                request.instance_uuid == own, request.created_at >= databases.oldest_build_request()
            ),
        )
    )
    reservation, waiting = None, []
    for uuid, text, since in databases.of_api(lambda: databases.api_rows(context, query)):
        try:
            vm = serialized_objects.fields_in(text)
            if uuid == own:
                reservation = vm.get("reservation_id")
                continue
            flavor, image = serialized_objects.fields(vm.get("flavor")), vm.get("image_ref")
            there = with_flavor(uuid, vm.get("reservation_id"), flavor, image)
        except serialized_objects.Unreadable as error:
            problems.append(serialized_objects.problem(uuid, "build request", error))
            there = with_flavor(uuid, None, {}, None)
        if uuid != own:
            waiting.append(there._replace(since=since))
    return reservation, waiting


def _in_cell(
    context: nova_context.RequestContext, own: str
) -> list[PlacedInstance | migrations.Move]:
    """Return the VMs of a cell by host, those on their way with host "", and moves.

    One query, a second one where VMs move.
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
    ).where(*alive, sa.or_(vm.host.is_not(None), vm.uuid == own, databases.may_be_on_its_way()))
    with main_db.get_context_manager(context).reader.using(context) as session:
        rows = session.execute(query).all()
        uuids = [row.uuid for row in rows if migrations.is_moving(row.vm_state, row.task_state)]
        moving = session.execute(migrations.query(alive, uuids)).all() if uuids else ()
    found: list[PlacedInstance | migrations.Move] = []
    for row in rows:
        uuid, host, node, reservation, type_id, vcpus, memory, root, ephemeral, *more = row
        image, vm_state, task_state, since = more
        if host or uuid == own or databases.is_on_its_way(vm_state, task_state):
            disk = disk_of(image, root, ephemeral)
            there = PlacedInstance(
                uuid, host or "", node, reservation, type_id, vcpus or 0, memory or 0, disk
            )
            found.append(there if host else there._replace(since=since))
    return found + migrations.latest(migrations.Move(*row) for row in moving)
