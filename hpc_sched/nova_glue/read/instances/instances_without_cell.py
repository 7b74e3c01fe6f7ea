"""Instances that are in no cell where instances run, and whether their requests are proved dead.

nova-api writes build request and instance mapping in one transaction. nova-conductor maps an
instance to a cell, or to cell0 if it has no host, before it deletes the build request; all
instances of a request that it gives up go to cell0. So a request is dead once its instance is
mapped to cell0.

A user who deletes a server earlier removes the build request, and conductor then builds none. But
a scheduler may still claim for other instances of the request, which would fail if this one changed
meanwhile: without a cell it is dead once no scheduler can have its request any more. While there is
a build request and no cell nothing is proved.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.conf import CONF
from nova.db.api import models as api_models
from oslo_utils import timeutils

from hpc_sched.nova_glue.io import databases

# A source of its own: that it is slow delays no request.
SOURCE = f"{databases.API_DATABASE}, instances without cell"
# Newest instance mappings among which they are looked for. The primary key bounds the read.
WINDOW = 10_000


@dataclass(frozen=True, slots=True)
class InstanceWithoutCell:
    """An instance that is being created, or is never built."""

    number: int  # ascending with the time of creation; 0 if no row names it
    uuid: str
    created_at: datetime.datetime | None
    is_in_cell0: bool
    has_build_request: bool
    is_over: bool  # whether no scheduler can have its request any more

    @property
    def is_dead(self) -> bool:
        """True if it is proved that Nova never builds the instance, nor claims for its request."""
        return self.is_in_cell0 or (self.is_over and not self.has_build_request)

    @property
    def state(self) -> str:
        """What the databases say of it, in words."""
        if self.is_in_cell0:
            return "in cell0"
        if self.has_build_request:
            return "being created"
        return "deleted before it had a cell" if self.number else "unknown to Nova"


def read(context: nova_context.RequestContext, after: int = 0) -> list[InstanceWithoutCell]:
    """Return the instances without a cell, newest first. One query in the API database.

    :param after: number of an instance; it and older ones are left out
    :raises: one of ``databases.OUTAGES``
    """
    mapping, request, cell = (
        api_models.InstanceMapping,
        api_models.BuildRequest,
        api_models.CellMapping,
    )
    newest = sa.select(sa.func.max(mapping.id)).scalar_subquery()
    cell0 = sa.select(cell.id).where(cell.uuid == objects.CellMapping.CELL0_UUID).scalar_subquery()
    query = (
        sa.select(
            mapping.id, mapping.instance_uuid, mapping.created_at, mapping.cell_id, request.id
        )
        .outerjoin(request, request.instance_uuid == mapping.instance_uuid)
        .where(
            mapping.id > after,
            mapping.id > newest - WINDOW,
            sa.or_(mapping.cell_id.is_(None), mapping.cell_id == cell0),
        )
        .order_by(mapping.id.desc())
    )
    found = databases.read_api(lambda: databases.api_rows(context, query), SOURCE)
    return [
        _instance(number, uuid, created_at, cell_id is not None, request_id is not None)
        for number, uuid, created_at, cell_id, request_id in found
    ]


def of(context: nova_context.RequestContext, uuids: Sequence[str]) -> list[InstanceWithoutCell]:
    """Return those of some consumers of allocations that are no instances in a cell, in order.

    Nova removes the mapping of an instance that was deleted while it was scheduled; a migration is
    no instance. Two queries in the API database.

    :param uuids: at most ``databases.MAX_UUIDS``
    :raises: one of ``databases.OUTAGES``
    """
    mapping, request, cell = (
        api_models.InstanceMapping,
        api_models.BuildRequest,
        api_models.CellMapping,
    )
    query = (
        sa.select(mapping.instance_uuid, mapping.id, mapping.created_at, cell.uuid)
        .outerjoin(cell, cell.id == mapping.cell_id)
        .where(mapping.instance_uuid.in_(uuids))
    )
    requested = sa.select(request.instance_uuid).where(request.instance_uuid.in_(uuids))

    def rows() -> tuple[dict[str, Any], set[str]]:
        # Build requests first: a mapping is there as long as these, and may then name a cell.
        building = {uuid for (uuid,) in databases.api_rows(context, requested)}
        return {uuid: own for uuid, *own in databases.api_rows(context, query)}, building

    mapped, building = databases.read_api(rows, SOURCE)
    cell0 = objects.CellMapping.CELL0_UUID
    return [
        _instance(number, uuid, created_at, at is not None, uuid in building)
        for uuid in uuids
        for number, created_at, at in [mapped.get(uuid, (0, None, None))]
        if at in (None, cell0)
    ]


def _instance(
    number: int,
    uuid: str,
    created_at: datetime.datetime | None,
    is_in_cell0: bool,
    has_build_request: bool,
) -> InstanceWithoutCell:
    # A scheduler gets a request within that time, and serves it no longer than that.
    oldest = timeutils.utcnow() - datetime.timedelta(seconds=2 * CONF.long_rpc_timeout)
    is_over = created_at is None or created_at < oldest
    return InstanceWithoutCell(number, uuid, created_at, is_in_cell0, has_build_request, is_over)
