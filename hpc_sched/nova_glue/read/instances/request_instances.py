"""The instances of a request in the API database: its build requests, and which were deleted."""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import placed_instance
from hpc_sched.topology.fabric_order import natural_key
from hpc_sched.topology.grouping import by_key


def read(context: nova_context.RequestContext, first: str, count: int) -> dict[int, str]:
    """Return the instances of a multi-create by their number, in the order of Nova's claims.

    Nova hands only one instance at a time to filters and weighers. Those of one request share
    their reservation id; a number is missing if its instance was deleted meanwhile. Empty if the
    first one has no build request: it moves, or was deleted. Two queries in the API database, one
    for a single instance.

    :param first: uuid of the first instance that Nova places
    :param count: number of instances of the request
    :raises: one of ``databases.OUTAGES``
    """
    row = api_models.BuildRequest

    def query() -> dict[int, str]:
        """Read in a thread that may be abandoned."""
        one = sa.select(row.instance_uuid, row.project_id, row.instance)
        found = databases.api_rows(context, one.where(row.instance_uuid == first))
        if not found:
            return {}
        [(_, project, text)] = found
        if count == 1:
            return {0: first}
        if (own := _launch(text)) is None:
            return {}
        others = sa.select(row.instance_uuid, row.instance).where(
            row.project_id == project, row.instance.contains(own.reservation, autoescape=True)
        )
        return {
            launch.number: uuid
            for uuid, text in databases.api_rows(context, others)
            if (launch := _launch(text)) is not None
            and launch.reservation == own.reservation
            and 0 <= launch.number < count
        }

    return databases.read_api(query)


def are_others_placed(context: nova_context.RequestContext, own: Collection[str]) -> bool:
    """True if instances of other requests are being placed. One query in the API database.

    :param own: the instances of this request
    :raises: one of ``databases.OUTAGES``
    """
    row = api_models.BuildRequest
    query = sa.select(row.instance_uuid).where(row.created_at >= databases.oldest_build_request())
    some = query.limit(len(own) + 1)
    found = databases.read_api(lambda: databases.api_rows(context, some))
    return any(uuid not in own for (uuid,) in found)


def requests_of(context: nova_context.RequestContext, uuids: Sequence[str]) -> dict[str, str]:
    """Return the requests of those of some instances that are being placed, by instance.

    A request is named by its reservation id, or by the instance if that cannot be read. At most one
    query in the API database.

    :param uuids: of more than the database takes in one query, the last ones count
    :raises: one of ``databases.OUTAGES``
    """
    if not uuids:
        return {}
    row = api_models.BuildRequest
    query = sa.select(row.instance_uuid, row.instance).where(
        row.instance_uuid.in_(uuids[-databases.MAX_UUIDS :]),
        row.created_at >= databases.oldest_build_request(),
    )
    found = databases.read_api(lambda: databases.api_rows(context, query))
    return {uuid: (_launch(text) or (uuid,))[0] for uuid, text in found}


def is_deleted(uuid: str) -> bool:
    """True if an instance was deleted, or its deletion has begun. One query in the API database.

    :raises: one of ``databases.OUTAGES``
    """
    context, row = nova_context.get_admin_context(), api_models.InstanceMapping
    query = sa.select(row.queued_for_delete).where(row.instance_uuid == uuid)
    found = databases.read_api(lambda: databases.api_rows(context, query))
    return not found or bool(found[0][0])


def being_created(
    context: nova_context.RequestContext, owns: Sequence[str], problems: list[str]
) -> list[placed_instance.PlacedInstance]:
    """Return the instances that are being created and in no cell, those of the requests too."""
    request, mapping = api_models.BuildRequest, api_models.InstanceMapping
    query = (
        sa.select(request.instance_uuid, request.instance, request.created_at)
        .outerjoin(mapping, mapping.instance_uuid == request.instance_uuid)
        .where(
            mapping.cell_id.is_(None),
            sa.or_(
                request.instance_uuid.in_(owns),
                request.created_at >= databases.oldest_build_request(),
            ),
        )
    )
    found = []
    for uuid, text, since in databases.read_api(lambda: databases.api_rows(context, query)):
        reservation = None
        try:
            vm = databases.object_in(text)
            reservation = vm.get("reservation_id")
            flavor = databases.object_fields(vm.get("flavor"))
            there = placed_instance.with_flavor(uuid, reservation, flavor, vm.get("image_ref"))
        except databases.UnreadableError as error:
            if uuid not in owns:
                problems.append(databases.unreadable(uuid, "build request", error))
            there = placed_instance.with_flavor(uuid, reservation, {}, None)
        found.append(there._replace(since=since))
    return found


def in_launch_order(context: nova_context.RequestContext, uuids: Sequence[str]) -> list[str]:
    """Return instances that are being placed in the order in which a plan's places are theirs.

    Requests by natural order of the display name of their first instance, then by its uuid; the
    instances of one by launch index. Those that cannot be read, and any that one query cannot have,
    are last in the order given. One query in the API database.

    :raises: one of ``databases.OUTAGES``
    """
    row = api_models.BuildRequest
    query = sa.select(row.instance_uuid, row.instance).where(
        row.instance_uuid.in_(uuids[: databases.MAX_UUIDS])
    )
    read = databases.read_api(lambda: databases.api_rows(context, query))
    found = [(uuid, launch) for uuid, text in read if (launch := _launch(text)) is not None]
    requests = by_key((one.reservation, (one.number, uuid, one.name)) for uuid, one in found)

    def first(request: list[tuple[int, str, str]]) -> tuple[object, str]:
        """Return the sort key of a request: natural order of a name, and a uuid."""
        _, uuid, name = min(request)
        return natural_key(name), uuid

    in_order = [uuid for one in sorted(requests.values(), key=first) for _, uuid, _ in sorted(one)]
    return list(dict.fromkeys([*in_order, *uuids]))


class _Launch(NamedTuple):
    """What a serialized instance has of its launch."""

    reservation: str
    number: int  # launch index
    name: str  # display name


def _launch(text: str | None) -> _Launch | None:
    """Return the launch of a serialized instance, or None without reservation id and index."""
    try:
        fields = json.loads(text or "")["nova_object.data"]
        reservation, number = fields["reservation_id"], fields["launch_index"]
        name = fields.get("display_name")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    if not isinstance(reservation, str) or not reservation or not isinstance(number, int):
        return None
    return _Launch(reservation, number, name if isinstance(name, str) else "")
