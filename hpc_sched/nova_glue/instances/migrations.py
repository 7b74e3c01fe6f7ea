"""VMs that move: where they are beside the host that their own record names."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.compute import task_states, vm_states
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects import fields

from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance, with_flavor
from hpc_sched.nova_glue.io import databases, serialized_objects

# A migration in any other state holds room on both sides; Nova has no list of those.
_ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
# A record of a move that a crash has left behind says nothing: the VM does not move any more.
_MOVING = (*task_states.resizing_states, *task_states.rebuild_states, task_states.MIGRATING)
_EVACUATION = fields.MigrationType.EVACUATION


class Move(NamedTuple):
    """A VM with the record of its move."""

    uuid: str
    host: str | None  # of the VM's own record: the source until the destination has taken over
    node: str | None
    reservation_id: str | None
    image: str | None
    type_id: int | None  # of the flavor that its own record counts with
    flavors: str | None  # serialised
    source: str | None
    source_node: str | None
    destination: str | None
    destination_node: str | None
    kind: str | None
    status: str | None
    new_type_id: int | None
    since: datetime.datetime | None


def is_moving(vm_state: str | None, task_state: str | None) -> bool:
    """Tell whether a VM moves, or waits for its resize to be confirmed."""
    return vm_state == vm_states.RESIZED or task_state in _MOVING


def query(alive: Sequence[Any], uuids: Collection[str]) -> Any:
    """Return the query for moves of a cell that have not ended, the last of a VM last.

    As Nova's own bookkeeping of a compute counts them, whatever the state that the VM was in
    when it set out.

    :param alive: conditions on the VMs
    :param uuids: the VMs for which :func:`is_moving` was true; without them the records of all
        moves that there ever were would be read, for no index tells which have ended
    """
    vm, move, extra = main_models.Instance, main_models.Migration, main_models.InstanceExtra
    listed = [vm.uuid.in_(sorted(uuids))] if len(uuids) <= databases.MAX_LISTED else []
    since = sa.func.coalesce(move.updated_at, move.created_at)
    return (
        sa.select(
            vm.uuid,
            vm.host,
            vm.node,
            vm.reservation_id,
            vm.image_ref,
            vm.instance_type_id,
            extra.flavor,
            move.source_compute,
            move.source_node,
            move.dest_compute,
            move.dest_node,
            move.migration_type,
            move.status,
            move.new_instance_type_id,
            since,
        )
        .join(vm, vm.uuid == move.instance_uuid)
        .outerjoin(extra, extra.instance_uuid == vm.uuid)
        .where(
            *alive,
            *listed,
            move.deleted == 0,
            move.status.not_in(_ENDED),
            sa.or_(vm.vm_state == vm_states.RESIZED, vm.task_state.in_(_MOVING)),
        )
        .order_by(since, move.id)
    )


def latest(moves: Iterable[Move]) -> list[Move]:
    """Return the last move of each VM: earlier ones that have not ended were given up."""
    return list({move.uuid: move for move in moves}.values())


def other_sides(
    context: nova_context.RequestContext, moves: Sequence[Move], problems: list[str]
) -> list[PlacedInstance]:
    """Return the VMs that move where they are beside the host that their own record names.

    With host "" where only Placement knows: a destination that has been claimed and has not
    begun. One query, for new flavors that no compute has taken up yet, none without any.

    :param problems: takes what could not be read
    """
    read: dict[str, dict[str, serialized_objects.Fields]] = {}
    for move in moves:
        try:
            read[move.uuid] = serialized_objects.flavors_in(move.flavors)
        except serialized_objects.Unreadable as error:
            problems.append(serialized_objects.problem(move.uuid, "flavors", error))
            read[move.uuid] = {}
    wanted = {m.new_type_id for m in moves if _lacks_new(m, read[m.uuid]) and m.new_type_id}
    by_id = _flavors(context, wanted)
    found = []
    for move in moves:
        flavors = read[move.uuid]
        if _lacks_new(move, flavors) and move.new_type_id in by_id:
            flavors = flavors | {"new": by_id[move.new_type_id]}
        try:
            found += _sides(move, flavors)
        except serialized_objects.Unreadable as error:
            problems.append(serialized_objects.problem(move.uuid, "flavors", error))
    return found


def _lacks_new(move: Move, flavors: Mapping[str, serialized_objects.Fields]) -> bool:
    """Tell whether a VM is to have a flavor that only the API database has as yet.

    The destination's compute notes it, long after the scheduler has given the place.
    """
    return "new" not in flavors and move.new_type_id != move.type_id


def _sides(move: Move, flavors: Mapping[str, serialized_objects.Fields]) -> list[PlacedInstance]:
    """Return a move's sides but for the one of the VM's own record.

    :raises stored.Unreadable: where a flavor's sizes are no numbers
    """
    old, new = (flavors.get(name) or flavors.get("cur") or {} for name in ("old", "new"))
    own = (move.host, move.node)
    source = _place(move.source, move.source_node, own)
    destination = _place(move.destination, move.destination_node, own)
    sides = []
    if source == destination == own:
        # Resized where it is: its own record has one of the two flavors.
        sides.append((own, old if move.type_id == move.new_type_id else new))
    else:
        sides += [
            (place, flavor)
            for place, flavor in ((source, old), (destination, new))
            if place[0] and place != own
        ]
        if not move.destination and move.host:
            sides.append((("", None), new))
    return [
        with_flavor(move.uuid, move.reservation_id, flavor, move.image)._replace(
            host=host or "",
            nodename=node,
            # An evacuation holds its claim beside the one on the host that died; other moves
            # hold theirs alone, that on the source is the migration's.
            moves_from=move.node if move.kind == _EVACUATION else None,
            # Named, as an operator may, and not yet taken up.
            in_flight=move.status == "accepted",
            since=move.since,
        )
        for (host, node), flavor in sides
    ]


def _place(
    host: str | None, node: str | None, own: tuple[str | None, str | None]
) -> tuple[str | None, str | None]:
    """Return a side of a move; records name the node later than the host."""
    return own if host and host == own[0] and node in (own[1], None) else (host, node)


def _flavors(
    context: nova_context.RequestContext, ids: Collection[int]
) -> dict[int, serialized_objects.Fields]:
    """Return flavors by their ids, as they are serialised. One query, none without ids."""
    if not ids:
        return {}
    flavor, extra = api_models.Flavors, api_models.FlavorExtraSpecs
    names = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")
    found: dict[int, dict[str, Any]] = {}
    query = (
        sa.select(flavor.id, *(getattr(flavor, name) for name in names), extra.key, extra.value)
        .outerjoin(extra, extra.flavor_id == flavor.id)
        .where(flavor.id.in_(sorted(ids)))
    )
    for flavor_id, *sizes, key, value in databases.of_api(
        lambda: databases.api_rows(context, query)
    ):
        fields_ = found.setdefault(
            flavor_id, {**dict(zip(names, sizes, strict=True)), "extra_specs": {}}
        )
        if key is not None:
            fields_["extra_specs"][key] = value
    return dict(found)
