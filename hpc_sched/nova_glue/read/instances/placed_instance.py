"""Instances that hold room on hosts, also where they migrate from or to."""

import datetime
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.compute import task_states, vm_states
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects import fields
from sqlalchemy import orm

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.io import databases

# A migration in any other status holds room on both sides; Nova has no list of those.
_ENDED = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
# In other states a migration record was left behind by a crash.
MIGRATING = (*task_states.resizing_states, *task_states.rebuild_states, task_states.MIGRATING)
_SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")


class PlacedInstance(NamedTuple):
    """An instance on one host; one that migrates is on two.

    A tuple for its size and speed: a request reads ten thousand of them.
    """

    uuid: str
    host: str  # "" if only Placement knows it
    nodename: str | None
    reservation_id: str | None  # of the request that created it
    type_id: int | None  # of its flavor: a resize changes it
    vcpus: int
    memory_mb: int
    disk_gb: int
    flavor: databases.Fields | None = None  # if not the one stored in its cell
    moves_from: str | None = None  # node whose allocation is not the one to look up
    in_flight: bool = False  # its host does not report it yet
    application: Application | None = None  # None: it was not read
    since: datetime.datetime | None = None  # begin of its build or migration, while in flight


def with_flavor(
    uuid: str, reservation_id: str | None, flavor: databases.Fields, image: str | None
) -> PlacedInstance:
    """Return an instance of a flavor without a host; raises UnreadableError for its sizes."""
    vcpus, memory, *disks = (databases.int_field(flavor, name) for name in _SIZES)
    disk = disk_of(image, *disks)
    return PlacedInstance(uuid, "", None, reservation_id, None, vcpus, memory, disk, flavor)


def disk_of(image: str | None, root_gb: int | None, ephemeral_gb: int | None) -> int:
    """Return an instance's GB of disk on its host; with image "" its root is a volume elsewhere."""
    return (0 if image == "" else root_gb or 0) + (ephemeral_gb or 0)


def exists() -> tuple[Any, Any]:
    """Return the conditions for instances that are not deleted."""
    # A cross-cell resize keeps a hidden twin of the instance in its other cell.
    return main_models.Instance.deleted == 0, main_models.Instance.hidden.is_not(sa.true())


def is_gone(vm_state: str | None, task_state: str | None) -> bool:
    """True if an instance is deleted to its user: soft-deleted, or its deletion has begun."""
    if vm_state == vm_states.SOFT_DELETED:
        return bool(task_state != task_states.RESTORING)
    return task_state in (task_states.DELETING, task_states.SOFT_DELETING)


def awaits_host(vm_state: str | None, task_state: str | None) -> bool:
    """True if an instance without a host is building or unshelving."""
    if vm_state == vm_states.BUILDING:
        return bool(task_state != task_states.DELETING)
    unshelving = (task_states.UNSHELVING, task_states.SPAWNING)
    return vm_state == vm_states.SHELVED_OFFLOADED and task_state in unshelving


def read_migrating(session: orm.Session, uuids: Collection[str]) -> list[sa.Row[Any]]:
    """Return instances of a cell with their last unfinished migrations. One query, or none.

    Counts the migrations that the resource tracker of a Nova compute counts, whatever the state
    of the instance at their start. Earlier unfinished ones of an instance were given up.

    :param uuids: instances that migrate, or wait for their resize to be confirmed; without them the
        query would read the records of all migrations ever, as no index has their status
    """
    if not uuids:
        return []
    vm, move, extra = main_models.Instance, main_models.Migration, main_models.InstanceExtra
    listed = [vm.uuid.in_(sorted(uuids))] if len(uuids) <= databases.MAX_UUIDS else []
    since = sa.func.coalesce(move.updated_at, move.created_at)
    query = (
        sa.select(
            *(vm.uuid, vm.host, vm.node, vm.reservation_id, vm.image_ref, vm.instance_type_id),
            *(extra.flavor, move.source_compute, move.source_node, move.dest_compute),
            *(move.dest_node, move.migration_type, move.status, move.new_instance_type_id),
            since.label("since"),
        )
        .join(vm, vm.uuid == move.instance_uuid)
        .outerjoin(extra, extra.instance_uuid == vm.uuid)
        .where(
            *exists(),
            *listed,
            move.deleted == 0,
            move.status.not_in(_ENDED),
            sa.or_(vm.vm_state == vm_states.RESIZED, vm.task_state.in_(MIGRATING)),
        )
        .order_by(since, move.id)
    )
    return list({row.uuid: row for row in session.execute(query)}.values())


def other_sides(
    context: nova_context.RequestContext, migrating: Sequence[sa.Row[Any]], problems: list[str]
) -> list[PlacedInstance]:
    """Return migrating instances on the hosts that their own records do not name.

    With host "" if only Placement knows it: the destination is claimed, but the migration has not
    begun. One query, for new flavors that no compute has stored yet; none without any. Adds what
    could not be read to the problems.
    """
    flavors_of: defaultdict[str, dict[str, databases.Fields]] = defaultdict(dict)
    for move in migrating:
        try:
            flavors_of[move.uuid] = databases.flavors_in(move.flavor)
        except databases.UnreadableError as error:
            problems.append(databases.unreadable(move.uuid, "flavors", error))
    # The destination's compute stores the new flavor, long after the scheduler has chosen the host.
    lacking = [
        move
        for move in migrating
        if "new" not in flavors_of[move.uuid] and move.new_instance_type_id != move.instance_type_id
    ]
    try:
        by_id = _flavors(context, {move.new_instance_type_id for move in lacking} - {None})
    except databases.OUTAGES as error:
        by_id = {}
        problems.append(databases.api_problem(error))
    for move in lacking:
        if move.new_instance_type_id in by_id:
            flavors_of[move.uuid]["new"] = by_id[move.new_instance_type_id]
    found = []
    for move in migrating:
        try:
            found += _sides(move, flavors_of[move.uuid])
        except databases.UnreadableError as error:
            problems.append(databases.unreadable(move.uuid, "flavors", error))
    return found


def _sides(move: sa.Row[Any], flavors: Mapping[str, databases.Fields]) -> list[PlacedInstance]:
    """Return a migration's sides except the one of the instance's own record."""
    old, new = (flavors.get(name) or flavors.get("cur") or {} for name in ("old", "new"))
    # The source until the destination has taken over.
    own = (move.host, move.node)
    source = _place(move.source_compute, move.source_node, own)
    destination = _place(move.dest_compute, move.dest_node, own)
    if source == destination == own:
        # A resize on the same host: the instance's own record has one of the two flavors.
        sides = [(own, old if move.instance_type_id == move.new_instance_type_id else new)]
    else:
        both = ((source, old), (destination, new))
        sides = [side for side in both if side[0][0] and side[0] != own]
        if not move.dest_compute and move.host:
            sides.append((("", None), new))
    # In an evacuation the instance holds allocations on both hosts. In other migrations the one
    # on the source belongs to the migration.
    is_evacuation = move.migration_type == fields.MigrationType.EVACUATION
    return [
        with_flavor(move.uuid, move.reservation_id, flavor, move.image_ref)._replace(
            host=host or "",
            nodename=node,
            moves_from=move.node if is_evacuation else None,
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
) -> dict[int, databases.Fields]:
    """Return flavors by their ids, with the fields of serialized ones."""
    if not ids:
        return {}
    flavor, extra = api_models.Flavors, api_models.FlavorExtraSpecs
    query = (
        sa.select(flavor.id, *(getattr(flavor, name) for name in _SIZES), extra.key, extra.value)
        .outerjoin(extra, extra.flavor_id == flavor.id)
        .where(flavor.id.in_(sorted(ids)))
    )
    found: dict[int, databases.Fields] = {}
    rows = databases.read_api(lambda: databases.api_rows(context, query))
    for flavor_id, *sizes, key, value in rows:
        amounts = dict(zip(_SIZES, sizes, strict=True))
        made = found.setdefault(flavor_id, {**amounts, "extra_specs": {}})
        if key is not None:
            made["extra_specs"][key] = value
    return found
