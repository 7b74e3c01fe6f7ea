"""Queries for the members of one group: a fixed number, whatever the size of group and cloud."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from hpc_sched.nova_glue.instances.placed_instance import awaits_host, exists
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.io.databases import CellAnswers


@dataclass(frozen=True, slots=True)
class ApiMember:
    """A member of the group in the API database."""

    uuid: str
    cell_id: int | None  # None until the instance has been created in a cell
    build_request: int | None  # id of its build request; None once that is done
    orphan: bool = False  # the conductor of its build request has given up


@dataclass(frozen=True, slots=True)
class CellMember:
    """A member of the group in the database of its cell."""

    uuid: str
    host: str | None
    nodename: str | None
    building: bool  # without a host, and building or unshelving


def api_members(
    context: nova_context.RequestContext, group_uuid: str | None, uuids: Collection[str]
) -> list[ApiMember]:
    """Return the members of a server group, by build request, then uuid. One query.

    The members come from the database: in a RequestSpec those of concurrent requests are missing.
    Without a group the instances with these uuids are read; for a group that has been deleted
    meanwhile too, with a second query.
    """
    mapping, member = api_models.InstanceMapping, api_models.InstanceGroupMember
    rows: Sequence[Any] = ()
    if group_uuid is not None:
        of_group = sa.join(
            member,
            api_models.InstanceGroup,
            api_models.InstanceGroup.id == member.group_id,
        ).outerjoin(mapping, mapping.instance_uuid == member.instance_uuid)
        rows = _mapping_rows(
            context, member.instance_uuid, of_group, api_models.InstanceGroup.uuid == group_uuid
        )
    if not rows and uuids:
        listed = mapping.instance_uuid.in_(sorted(uuids))
        rows = _mapping_rows(context, mapping.instance_uuid, mapping, listed)
    oldest = databases.oldest_build_request()
    members = {
        uuid: ApiMember(uuid, cell_id, build_request, created is not None and created < oldest)
        for uuid, cell_id, build_request, created in rows
    }
    return sorted(members.values(), key=lambda found: (found.build_request or 0, found.uuid))


def _mapping_rows(
    context: nova_context.RequestContext, uuid: Any, source: Any, condition: Any
) -> Sequence[Any]:
    """Return (uuid, cell id, build request's id and creation time) of instances. One query.

    :param uuid: the column of instance uuids
    :param source: tables with that column and instance_mappings
    """
    build_request = api_models.BuildRequest
    query = sa.select(
        uuid, api_models.InstanceMapping.cell_id, build_request.id, build_request.created_at
    )
    joined = sa.outerjoin(source, build_request, build_request.instance_uuid == uuid)
    return databases.api_rows(context, query.select_from(joined).where(condition))


def cell_members(
    context: nova_context.RequestContext, uuids_by_cell: dict[int, list[str]]
) -> CellAnswers[CellMember]:
    """Return those of some instances that exist in their cells.

    One query for the cells and one in each cell named. cell0 is not read: its instances never had
    a host.

    :param uuids_by_cell: cell id, as in instance_mappings, to uuids
    """

    def read(cell: nova_context.RequestContext, uuids: list[str]) -> list[CellMember]:
        return _instances(cell, main_models.Instance.uuid.in_(uuids))

    return databases.read_cells(context, uuids_by_cell, read)


def siblings(
    context: nova_context.RequestContext, uuid: str, cell_id: int
) -> CellAnswers[CellMember]:
    """Return the instances that were created by the same request as one, itself included.

    They share its reservation id. Two queries: the cells, and the instance's own cell.
    """

    def read(cell: nova_context.RequestContext, uuids: list[str]) -> list[CellMember]:
        reservation_id = (
            sa.select(main_models.Instance.reservation_id)
            .where(main_models.Instance.uuid == uuids[0])
            .scalar_subquery()
        )
        return _instances(cell, main_models.Instance.reservation_id == reservation_id)

    return databases.read_cells(context, {cell_id: [uuid]}, read)


def _instances(cell: nova_context.RequestContext, condition: Any) -> list[CellMember]:
    """Return the instances of one cell for a condition. One query."""
    vm = main_models.Instance
    query = sa.select(vm.uuid, vm.host, vm.node, vm.vm_state, vm.task_state)
    return [
        CellMember(uuid, host, node, not host and awaits_host(vm_state, task_state))
        for uuid, host, node, vm_state, task_state in databases.cell_rows(
            cell, query.where(condition, *exists())
        )
    ]
