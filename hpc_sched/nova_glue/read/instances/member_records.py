"""The records of a group's members in Nova's databases."""

import datetime
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova import servicegroup
from nova.compute import vm_states
from nova.conf import CONF
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils import timeutils

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances.placed_instance import (
    MIGRATING,
    awaits_host,
    exists,
    is_gone,
)

# In which an evacuation ends, and clocks agree.
RECENT = datetime.timedelta(seconds=30)


class ApiMember(NamedTuple):
    """A member of the group in the API database."""

    uuid: str
    cell_id: int | None  # None until the instance has been created in a cell
    build_request: int | None  # id of its build request; None once that is done
    orphan: bool = False  # the conductor of its build request has given up


class CellMember(NamedTuple):
    """A member of the group in the database of its cell."""

    uuid: str
    host: str | None
    nodename: str | None
    building: bool  # without a host, and building or unshelving
    is_host_down: bool = False
    is_host_disabled: bool = False
    is_moving: bool = False  # it may have been claimed elsewhere
    is_shelved: bool = False  # without a host
    is_gone: bool = False  # deleted to its user: soft-deleted, or being deleted
    created: tuple[str, int] = ("", 0)  # sort key: time, and number in its cell

    def must_move(self, *, is_move: bool) -> bool:
        """True if Nova places nothing on the host, and the instance there does not hold others.

        On a host that is disabled it runs, and holds those that are created.

        :param is_move: whether another instance of the group moves, not one that is created
        """
        return self.is_host_down or (is_move and self.is_host_disabled)


@dataclass
class GroupRecords:
    """The members of a group in Nova's databases."""

    own_uuid: str  # of the instance of the request
    vms: Sequence[ApiMember]  # empty if the API database does not answer
    others: list[CellMember]  # in cells, without the instance of the request and those deleted
    own: CellMember | None  # that instance, if others are in a cell
    unread: frozenset[str]  # those in cells that do not answer, or in any if no cell is known
    cells: frozenset[int]  # ids of those with members
    is_move: bool
    problems: list[str]
    is_partial: bool  # placed members may be missing

    @property
    def uuids(self) -> frozenset[str]:
        """The uuids of all members that are known."""
        return frozenset(vm.uuid for found in (self.vms, self.others) for vm in found)


def of_group(
    context: nova_context.RequestContext, request: request_spec.RequestedGroup
) -> GroupRecords | None:
    """Return what databases have of a group; None for an implicit group that is being created."""
    own, group, problems = request.instance_uuid, request.group_uuid, list[str]()
    uuids = request.member_uuids | {own}
    known: Sequence[ApiMember] | None = None
    try:
        known = databases.read_api(lambda: api_members(context, group, sorted(uuids)))
    except databases.OUTAGES as error:
        if request.is_whole:
            raise  # no cell has what is missing
        problems.append(databases.api_problem(error))
    vms = known or []
    own_cell = next((vm.cell_id for vm in vms if vm.uuid == own), None)
    cells = frozenset(vm.cell_id for vm in vms if vm.cell_id is not None)
    if known is None:
        answers = in_known_cells(context, sorted(uuids), None if group else own)
        cells = frozenset(cell.id for cell in databases.known_cells)
    elif group is not None:
        by_cell = {cell: [vm.uuid for vm in vms if vm.cell_id == cell] for cell in cells}
        # Its own state says which others move with it; a group of one VM needs no query.
        answers = cell_members(context, by_cell if by_cell != {own_cell: [own]} else {})
    elif own_cell is not None:
        answers = siblings(context, own, own_cell)
    else:
        return None
    found = {placed.uuid for placed in answers.rows}
    silent = {vm.uuid for vm in vms if vm.cell_id in answers.down}
    return GroupRecords(
        own,
        vms,
        [placed for placed in answers.rows if placed.uuid != own and not placed.is_gone],
        next((placed for placed in answers.rows if placed.uuid == own), None),
        frozenset(silent if known is not None else uuids - found),
        cells,
        request.is_move or own_cell is not None or own in found,
        problems + answers.problems,
        known is None or bool(answers.problems),
    )


def api_members(
    context: nova_context.RequestContext, group_uuid: str | None, uuids: Sequence[str]
) -> list[ApiMember]:
    """Return the members of a server group, by build request, then uuid. One query.

    The members come from the database: in a RequestSpec those of concurrent requests are missing.
    Without a group the instances with these uuids are read; for a group that has been deleted
    meanwhile too, with a second query.
    """
    mapping, member = api_models.InstanceMapping, api_models.InstanceGroupMember
    group, build_request = api_models.InstanceGroup, api_models.BuildRequest

    def rows_of(uuid: Any, source: Any, condition: Any) -> Sequence[Any]:
        query = sa.select(uuid, mapping.cell_id, build_request.id, build_request.created_at)
        joined = sa.outerjoin(source, build_request, build_request.instance_uuid == uuid)
        return databases.api_rows(context, query.select_from(joined).where(condition))

    rows: Sequence[Any] = ()
    if group_uuid is not None:
        of_group = sa.join(member, group, group.id == member.group_id).outerjoin(
            mapping, mapping.instance_uuid == member.instance_uuid
        )
        rows = rows_of(member.instance_uuid, of_group, group.uuid == group_uuid)
    if not rows and uuids:
        rows = rows_of(mapping.instance_uuid, mapping, mapping.instance_uuid.in_(sorted(uuids)))
    oldest = databases.oldest_build_request()
    members = {
        uuid: ApiMember(uuid, cell_id, request_id, created is not None and created < oldest)
        for uuid, cell_id, request_id, created in rows
    }
    return sorted(members.values(), key=lambda found: (found.build_request or 0, found.uuid))


def cell_members(
    context: nova_context.RequestContext, uuids_by_cell: dict[int, list[str]]
) -> databases.CellAnswers[CellMember]:
    """Return those of some instances, by the id of their cell, that exist there.

    One query for the cells and one in each cell named. cell0 is not read: its instances never had
    a host.
    """
    uuid = main_models.Instance.uuid
    return databases.read_cells(
        context, uuids_by_cell, lambda cell, uuids: _instances(cell, uuid.in_(uuids))
    )


def siblings(
    context: nova_context.RequestContext, uuid: str, cell_id: int
) -> databases.CellAnswers[CellMember]:
    """Return the instances that were created by the same request as one, itself included.

    Two queries: the cells, and the instance's own cell.
    """
    return databases.read_cells(
        context, {cell_id: [uuid]}, lambda cell, _: _instances(cell, _is_sibling(uuid))
    )


def in_known_cells(
    context: nova_context.RequestContext, uuids: Sequence[str], own: str | None
) -> databases.CellAnswers[CellMember]:
    """Return some instances, whose cells are not known, from all cells that are.

    One query in each cell that the API database has listed before, see
    :func:`databases.read_cells`.

    :param own: the instances that were created by the same request as this one, too
    """
    vm = main_models.Instance
    is_member = vm.uuid.in_(sorted(uuids))
    condition = is_member if own is None else sa.or_(is_member, _is_sibling(own))
    return databases.read_cells(context, None, lambda cell, _: _instances(cell, condition))


def down_hosts(
    context: nova_context.RequestContext, hosts: Collection[str], *, with_disabled: bool
) -> databases.CellAnswers[str]:
    """Return those of some service hosts that are down or were removed, or disabled too.

    A place that only Placement knows has its nodename as host, which may be another name: that is
    down as the service of the node is. One query for the cells and one in each cell; none without
    hosts.
    """
    if not hosts:
        return databases.CellAnswers()
    service, node = main_models.Service, main_models.ComputeNode
    names, columns = sorted(hosts), _service_columns()
    of_host = sa.select(service.host.label("name"), *columns).where(
        service.host.in_(names), _is_compute()
    )
    of_node = (
        sa.select(node.hypervisor_hostname.label("name"), *columns)
        .join(service, service.host == node.host)
        .where(node.hypervisor_hostname.in_(names), node.deleted == 0, _is_compute())
    )
    query = sa.union_all(of_host, of_node)

    def in_cell(cell: nova_context.RequestContext, _: list[str]) -> list[tuple[str, bool]]:
        found = []
        for name, *values in databases.cell_rows(cell, query):
            row = dict(zip(_SERVICE, values, strict=True))
            found.append((name, _is_down(row) or (with_disabled and bool(row["disabled"]))))
        return found

    found = databases.read_cells(context, None, in_cell)
    down = {host for host, is_down in found.rows if is_down}
    if not found.down:
        down |= set(hosts) - {host for host, _ in found.rows}
    return databases.CellAnswers(sorted(down), found.down, found.down_uuids, found.unlisted)


def _is_sibling(uuid: str) -> Any:
    """Return the condition for the instances of an instance's request: its reservation id."""
    vm = main_models.Instance
    return vm.reservation_id == (
        sa.select(vm.reservation_id).where(vm.uuid == uuid).scalar_subquery()
    )


def _instances(cell: nova_context.RequestContext, condition: Any) -> list[CellMember]:
    vm, service = main_models.Instance, main_models.Service
    query = (
        sa.select(
            *(vm.uuid, vm.host, vm.node, vm.vm_state, vm.task_state),
            *(vm.created_at, vm.id, vm.updated_at),
            *_service_columns(),
        )
        .outerjoin(service, sa.and_(service.host == vm.host, _is_compute()))
        .where(condition, *exists())
    )
    found = []
    for uuid, host, node, vm_state, task_state, *columns in databases.cell_rows(cell, query):
        created, number, updated, *columns = columns
        of_service = dict(zip(_SERVICE, columns, strict=True))
        has_host = bool(host)
        is_down = has_host and _is_down(of_service)
        is_moving = task_state in MIGRATING or (is_down and _is_recent(updated))
        found.append(
            CellMember(
                *(uuid, host, node),
                building=not has_host and awaits_host(vm_state, task_state),
                is_host_down=is_down,
                is_host_disabled=has_host and bool(of_service["disabled"]),
                is_moving=has_host and is_moving,
                is_shelved=not has_host and vm_state == vm_states.SHELVED_OFFLOADED,
                is_gone=is_gone(vm_state, task_state),
                created=(str(created), number),
            )
        )
    return found


def _is_recent(updated: datetime.datetime | None) -> bool:
    """True if an instance on a host that is down may just have left it.

    At the end of an evacuation nova-compute saves that there is no task any more, and the new host
    only after that.
    """
    return updated is not None and timeutils.utcnow() - updated < RECENT


# What Nova's servicegroup drivers read of a service.
_SERVICE = ("host", "binary", "topic", "disabled", "forced_down", "last_seen_up", "created_at")


def _service_columns() -> list[Any]:
    return [getattr(main_models.Service, name) for name in _SERVICE]


def _is_compute() -> Any:
    """Return the condition for the services of computes."""
    service = main_models.Service
    return sa.and_(service.binary == "nova-compute", service.deleted == 0)


def _is_down(service: Mapping[str, Any]) -> bool:
    """True if a compute service is down; without a record it was removed."""
    groups = _servicegroup(CONF.service_down_time)
    return service["host"] is None or not groups.service_is_up(service)


@functools.lru_cache(maxsize=1)
def _servicegroup(_down_time: int) -> servicegroup.API:
    """Return Nova's servicegroup API, which keeps the option `service_down_time` as it is now."""
    return servicegroup.API()
