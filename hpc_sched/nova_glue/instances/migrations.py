"""Instances that migrate: where they hold room in addition to the host of their own record."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.compute import task_states, vm_states
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects import fields
from sqlalchemy import orm

from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance, exists, with_flavor
from hpc_sched.nova_glue.io import databases, serialized_objects

# A migration in any other status holds room on both sides; Nova has no list of those.
_ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
# In other states a migration record was left behind by a crash.
_MIGRATING = (*task_states.resizing_states, *task_states.rebuild_states, task_states.MIGRATING)
_EVACUATION = fields.MigrationType.EVACUATION


class MigratingInstance(NamedTuple):
    """An instance with the record of its migration."""

    uuid: str
    host: str | None  # of its own record: the source until the destination has taken over
    node: str | None
    reservation_id: str | None
    image: str | None
    type_id: int | None  # of the flavor in its own record
    flavors: str | None  # serialized
    source: str | None
    source_node: str | None
    destination: str | None
    destination_node: str | None
    kind: str | None
    status: str | None
    new_type_id: int | None
    since: datetime.datetime | None


def is_migrating(vm_state: str | None, task_state: str | None) -> bool:
    """True if an instance migrates, or waits for its resize to be confirmed."""
    return vm_state == vm_states.RESIZED or task_state in _MIGRATING


def read(session: orm.Session, uuids: Collection[str]) -> list[MigratingInstance]:
    """Return the last unfinished migration of some instances of a cell. One query, or none.

    Counts the migrations that the resource tracker of a Nova compute counts, whatever the state
    of the instance at their start. Earlier unfinished ones of an instance were given up.

    :param uuids: instances for which :func:`is_migrating` was true; without them the query would
        read the records of all migrations ever, as no index has their status
    """
    if not uuids:
        return []
    vm, move, extra = main_models.Instance, main_models.Migration, main_models.InstanceExtra
    listed = [vm.uuid.in_(sorted(uuids))] if len(uuids) <= databases.MAX_UUIDS else []
    since = sa.func.coalesce(move.updated_at, move.created_at)
    query = (
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
            *exists(),
            *listed,
            move.deleted == 0,
            move.status.not_in(_ENDED),
            sa.or_(vm.vm_state == vm_states.RESIZED, vm.task_state.in_(_MIGRATING)),
        )
        .order_by(since, move.id)
    )
    found = (MigratingInstance(*row) for row in session.execute(query))
    return list({instance.uuid: instance for instance in found}.values())


def other_sides(
    context: nova_context.RequestContext,
    migrating: Sequence[MigratingInstance],
    problems: list[str],
) -> list[PlacedInstance]:
    """Return migrating instances on the hosts that their own records do not name.

    With host "" if only Placement knows it: the destination is claimed, but the migration has not
    begun. One query, for new flavors that no compute has stored yet; none without any.

    :param problems: receives what could not be read
    """
    flavors_of: dict[str, dict[str, serialized_objects.Fields]] = {}
    for move in migrating:
        try:
            flavors_of[move.uuid] = serialized_objects.flavors_in(move.flavors)
        except serialized_objects.Unreadable as error:
            problems.append(serialized_objects.problem(move.uuid, "flavors", error))
            flavors_of[move.uuid] = {}
    lacking = [move for move in migrating if _lacks_new(move, flavors_of[move.uuid])]
    by_id = _flavors(context, {move.new_type_id for move in lacking if move.new_type_id})
    found = []
    for move in migrating:
        flavors = flavors_of[move.uuid]
        if _lacks_new(move, flavors) and move.new_type_id in by_id:
            flavors = flavors | {"new": by_id[move.new_type_id]}
        try:
            found += _sides(move, flavors)
        except serialized_objects.Unreadable as error:
            problems.append(serialized_objects.problem(move.uuid, "flavors", error))
    return found


def _lacks_new(move: MigratingInstance, flavors: Mapping[str, serialized_objects.Fields]) -> bool:
    """True if the instance's new flavor is in the API database only.

    The destination's compute stores it, long after the scheduler has chosen the host.
    """
    return "new" not in flavors and move.new_type_id != move.type_id


def _sides(
    move: MigratingInstance, flavors: Mapping[str, serialized_objects.Fields]
) -> list[PlacedInstance]:
    """Return a migration's sides except the one of the instance's own record.

    :raises serialized_objects.Unreadable: if a flavor's sizes are not numbers
    """
    old, new = (flavors.get(name) or flavors.get("cur") or {} for name in ("old", "new"))
    own = (move.host, move.node)
    source = _place(move.source, move.source_node, own)
    destination = _place(move.destination, move.destination_node, own)
    sides = []
    if source == destination == own:
        # A resize on the same host: the instance's own record has one of the two flavors.
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
            # In an evacuation the instance holds allocations on both hosts. In other migrations
            # the one on the source belongs to the migration.
            moves_from=move.node if move.kind == _EVACUATION else None,
            # The operator has named the host; its compute has not begun.
            in_flight=move.status == "accepted",
            since=move.since,
        )
        for (host, node), flavor in sides
    ]


def _place(
    host: str | None, node: str | None, own: tuple[str | None, str | None]
) -> tuple[str | None, str | None]:
    """Return host and node of a side; a migration record names the node later than the host."""
    return own if host and host == own[0] and node in (own[1], None) else (host, node)


def _flavors(
    context: nova_context.RequestContext, ids: Collection[int]
) -> dict[int, serialized_objects.Fields]:
    """Return flavors by their ids, with the fields of serialized ones. One query, or none."""
    if not ids:
        return {}
    flavor, extra = api_models.Flavors, api_models.FlavorExtraSpecs
    sizes = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")
    query = (
        sa.select(flavor.id, *(getattr(flavor, name) for name in sizes), extra.key, extra.value)
        .outerjoin(extra, extra.flavor_id == flavor.id)
        .where(flavor.id.in_(sorted(ids)))
    )
    found: dict[int, dict[str, Any]] = {}
    for row in databases.read_api(lambda: databases.api_rows(context, query)):
        flavor_id, *amounts, key, value = row
        made = found.setdefault(
            flavor_id, {**dict(zip(sizes, amounts, strict=True)), "extra_specs": {}}
        )
        if key is not None:
            made["extra_specs"][key] = value
    return dict(found)
