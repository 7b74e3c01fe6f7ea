"""The instances of a request in the API database: its build requests, and which were deleted."""

import json
from collections.abc import Collection, Sequence

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import placed_instance


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
        own = sa.select(row.instance_uuid, row.project_id, row.instance)
        found = databases.api_rows(context, own.where(row.instance_uuid == first))
        if not found:
            return {}
        [(_, project, text)] = found
        if count == 1:
            return {0: first}
        if (own_key := _key(text)) is None:
            return {}
        reservation = own_key[0]
        others = sa.select(row.instance_uuid, row.instance).where(
            row.project_id == project, row.instance.contains(reservation, autoescape=True)
        )
        return {
            key[1]: uuid
            for uuid, text in databases.api_rows(context, others)
            if (key := _key(text)) and key[0] == reservation and 0 <= key[1] < count
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
    return {uuid: (_key(text) or (uuid,))[0] for uuid, text in found}


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


def _key(text: str | None) -> tuple[str, int] | None:
    """Return reservation id and launch index of a serialized instance, or None without them."""
    try:
        fields = json.loads(text or "")["nova_object.data"]
        reservation, number = fields["reservation_id"], fields["launch_index"]
    except (ValueError, LookupError, TypeError):
        return None
    if not isinstance(reservation, str) or not reservation or not isinstance(number, int):
        return None
    return reservation, number
