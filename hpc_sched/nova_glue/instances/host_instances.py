"""All instances that hold room on hosts, of every project, read from Nova in bulk."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.scheduler import host_manager

from hpc_sched.nova_glue.instances import in_flight_instances, placed_instance
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.io import databases

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class HostInstances:
    """The instances on each host when the request was first seen, without the request's own."""

    at: Mapping[tuple[str, str | None], list[PlacedInstance]]  # by host and nodename
    reservation_id: str | None = None  # of the request's own instances
    is_move: bool = False  # the request's instance exists in a cell already
    down_cells: frozenset[str] = frozenset()  # uuids of the cells that did not answer
    problems: tuple[str, ...] = ()  # what could not be read
    in_flight_unknown: str | None = None  # reason why instances in flight may be missing
    # Uuid to host and nodename, by Placement.
    in_flight: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    def on(self, state: host_manager.HostState) -> list[PlacedInstance]:
        """Return the instances on a host."""
        return on_host(self.at, state)

    def all(self) -> list[PlacedInstance]:
        """Return all instances, by host."""
        return [instance for here in self.at.values() for instance in here]


def read(
    context: nova_context.RequestContext, own: str, states: Sequence[host_manager.HostState]
) -> HostInstances:
    """Return all instances on hosts or in flight, without those of the request.

    Two queries in the API database and one in each cell; one more in a cell with migrations, one
    more in the API database while a resize has not reached its destination, and look-ups in
    Placement as :func:`in_flight_instances.places_of` says. An instance that migrates, or waits for
    its resize to be confirmed, is on both hosts, or twice on one.

    :param own: uuid of the instance that is scheduled
    """
    problems: list[str] = []
    made_with, requested = _build_requests(context, own, problems)
    answers = databases.read_cells(context, None, lambda in_cell, _: _in_cell(in_cell, own))
    problems += answers.problems
    vms = [row for row in answers.rows if isinstance(row, PlacedInstance)]
    migrating = [row for row in answers.rows if not isinstance(row, PlacedInstance)]
    in_cells = {vm.uuid for vm in vms}
    reservation = made_with or next((vm.reservation_id for vm in vms if vm.uuid == own), None)
    waiting = [
        vm
        for vm in requested
        # It may have been created in a cell between the two reads.
        if vm.uuid not in in_cells and not (made_with and vm.reservation_id == made_with)
    ]
    at: dict[tuple[str, str | None], list[PlacedInstance]] = {}
    for vm in [*vms, *placed_instance.other_sides(context, migrating, problems)]:
        if vm.uuid == own:
            continue
        if vm.host:
            at.setdefault((vm.host, vm.nodename), []).append(vm)
        else:
            waiting.append(vm)
    # Newest first: the oldest have mostly failed.
    waiting.sort(key=lambda vm: (vm.since or datetime.datetime.min, vm.uuid), reverse=True)
    moving_from = {vm.uuid: vm.moves_from for vm in waiting if vm.moves_from}
    looked_up = in_flight_instances.places_of(
        context, [vm.uuid for vm in waiting], states, moving_from
    )
    for vm in waiting:
        if place := looked_up.places.get(vm.uuid):
            coming = vm._replace(host=place[0], nodename=place[1], in_flight=True)
            at.setdefault(place, []).append(coming)
    oldest = databases.oldest_build_request()
    young = {vm.uuid for vm in waiting if vm.since and vm.since >= oldest}
    unknown = looked_up.problem if young & looked_up.missed else None
    if looked_up.problem:
        problems.append(looked_up.problem)
    down = frozenset(answers.down_uuids)
    is_move, in_flight = own in in_cells, looked_up.places
    return HostInstances(at, reservation, is_move, down, tuple(problems), unknown, in_flight)


def on_host(
    by_place: Mapping[tuple[str, str | None], list[Item]], state: host_manager.HostState
) -> list[Item]:
    """Return the items of a host: those with its host and nodename, and those without nodename."""
    with_node = by_place.get((state.host, state.nodename), [])
    without_node = by_place.get((state.host, None))
    return with_node + without_node if without_node else with_node


def _build_requests(
    context: nova_context.RequestContext, own: str, problems: list[str]
) -> tuple[str | None, list[PlacedInstance]]:
    """Return the reservation id of an instance in no cell, and all others being created."""
    request, mapping = api_models.BuildRequest, api_models.InstanceMapping
    is_young = request.created_at >= databases.oldest_build_request()
    query = (
        sa.select(request.instance_uuid, request.instance, request.created_at)
        .outerjoin(mapping, mapping.instance_uuid == request.instance_uuid)
        .where(mapping.cell_id.is_(None), sa.or_(request.instance_uuid == own, is_young))
    )
    reservation, waiting = None, []
    for uuid, text, since in databases.read_api(lambda: databases.api_rows(context, query)):
        try:
            vm = databases.object_in(text)
            if uuid == own:
                reservation = vm.get("reservation_id")
                continue
            flavor, image = databases.object_fields(vm.get("flavor")), vm.get("image_ref")
            there = placed_instance.with_flavor(uuid, vm.get("reservation_id"), flavor, image)
        except databases.UnreadableError as error:
            problems.append(databases.unreadable(uuid, "build request", error))
            there = placed_instance.with_flavor(uuid, None, {}, None)
        if uuid != own:
            waiting.append(there._replace(since=since))
    return reservation, waiting


def _in_cell(context: nova_context.RequestContext, own: str) -> list[PlacedInstance | sa.Row[Any]]:
    """Return the instances of a cell (host "" while they await one), and its migrating ones."""
    vm = main_models.Instance
    may_hold_room = sa.or_(vm.host.is_not(None), vm.uuid == own, placed_instance.may_await_host())
    query = sa.select(
        *(vm.uuid, vm.host, vm.node, vm.reservation_id, vm.instance_type_id, vm.image_ref),
        *(vm.vcpus, vm.memory_mb, vm.root_gb, vm.ephemeral_gb, vm.vm_state, vm.task_state),
        sa.func.coalesce(vm.updated_at, vm.created_at),
    ).where(*placed_instance.exists(), may_hold_room)
    with databases.cell_session(context) as session:
        rows = session.execute(query).all()
        moving = [
            row.uuid for row in rows if placed_instance.is_migrating(row.vm_state, row.task_state)
        ]
        migrating = placed_instance.read_migrating(session, moving)
    found: list[PlacedInstance | sa.Row[Any]] = []
    for row in rows:
        uuid, host, node, reservation, type_id, image, vcpus, memory, root, *more = row
        ephemeral, vm_state, task_state, since = more
        if host or uuid == own or placed_instance.awaits_host(vm_state, task_state):
            disk = placed_instance.disk_of(image, root, ephemeral)
            amounts = vcpus or 0, memory or 0, disk
            there = PlacedInstance(uuid, host or "", node, reservation, type_id, *amounts)
            found.append(there if host else there._replace(since=since))
    return [*found, *migrating]
