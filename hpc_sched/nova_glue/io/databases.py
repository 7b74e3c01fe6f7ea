"""Bulk reads of Nova's databases: a fixed number of queries, whatever the size.

The API database is asked once for the VMs of a group with their cells and build requests and
once for the cells; each cell that holds a VM of the group is asked once.
"""

import datetime
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.compute import task_states, vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_db import exception as db_exception
from oslo_utils import timeutils

from hpc_sched import exceptions, masking
from hpc_sched.nova_glue.io import circuit_breaker

CONF = nova.conf.CONF

Row = TypeVar("Row")
Answer = TypeVar("Answer")

API_DATABASE = "API database"
# What a read raises where a database is the reason, as opposed to a mistake of ours.
OUTAGES = (
    exceptions.UnansweredError,
    db_exception.DBError,
    sa.exc.SQLAlchemyError,
    OSError,
)
_MAX_REASON = 300

# With more VMs than this to ask for among all there are, all are read: lists of uuids have a
# limit in every database.
MAX_LISTED = 1000


@dataclass(frozen=True, slots=True)
class GroupVM:
    """A VM of the group as the API database knows it."""

    uuid: str
    cell_id: int | None  # None until the VM has been created in a cell
    build_request: int | None  # id of its build request, None when that is done
    orphan: bool = False  # nobody works on its build request any more


@dataclass(frozen=True, slots=True)
class PlacedVM:
    """A VM of the group as its cell knows it."""

    uuid: str
    host: str | None
    nodename: str | None
    building: bool  # has no host and is on its way to one


@dataclass(frozen=True, slots=True)
class CellAnswers(Generic[Row]):
    """What the cells said, and the cells that said nothing."""

    rows: list[Row] = field(default_factory=list)
    silent: dict[int, str] = field(default_factory=dict)  # cell id to why
    silent_uuids: set[str] = field(default_factory=set)  # of the same cells

    def note_silent(self, cell: objects.CellMapping, why: str) -> None:
        """Note that a cell has said nothing."""
        self.silent[cell.id] = why
        self.silent_uuids.add(cell.uuid)


def group_vms(
    context: nova_context.RequestContext, group_uuid: str | None, uuids: Collection[str]
) -> list[GroupVM]:
    """Return the VMs of a server group, by the age of their build requests, then uuid.

    One query. The members come from the database, which is fresher than the RequestSpec of a
    request that others race with. Without a group (or one deleted meanwhile) the VMs named
    by ``uuids`` are read: a second query where a group turned out to be gone.
    """
    mapping, member = api_models.InstanceMapping, api_models.InstanceGroupMember
    rows: Sequence[Any] = ()
    if group_uuid is not None:
        of_group = sa.join(
            member,
            api_models.InstanceGroup,
            api_models.InstanceGroup.id == member.group_id,
        ).outerjoin(mapping, mapping.instance_uuid == member.instance_uuid)
        rows = _vm_rows(
            context, member.instance_uuid, of_group, api_models.InstanceGroup.uuid == group_uuid
        )
    if not rows and uuids:
        wanted = mapping.instance_uuid.in_(sorted(uuids))
        rows = _vm_rows(context, mapping.instance_uuid, mapping, wanted)
    oldest = oldest_build_request()
    vms = {
        uuid: GroupVM(uuid, cell_id, build_request, created is not None and created < oldest)
        for uuid, cell_id, build_request, created in rows
    }
    return sorted(vms.values(), key=lambda vm: (vm.build_request or 0, vm.uuid))


def oldest_build_request() -> datetime.datetime:
    """Return the age at which nobody works on a build request any more.

    A conductor that waits longer than this for the scheduler has given up: it has crashed and
    left the row for ever.
    """
    return timeutils.utcnow() - datetime.timedelta(seconds=CONF.long_rpc_timeout)


def placed_vms(
    context: nova_context.RequestContext, uuids_by_cell: dict[int, list[str]]
) -> CellAnswers[PlacedVM]:
    """Return the VMs that exist in the cells, not the deleted ones.

    One query for the cells and one for each cell named; cell0 holds only VMs that never found
    a host and is not asked.

    :param uuids_by_cell: cell id, as in instance_mappings, to uuids
    """

    def read(cell_context: nova_context.RequestContext, uuids: list[str]) -> list[PlacedVM]:
        return _instances(cell_context, main_models.Instance.uuid.in_(uuids))

    return ask_cells(context, uuids_by_cell, read)


def siblings(
    context: nova_context.RequestContext, uuid: str, cell_id: int
) -> CellAnswers[PlacedVM]:
    """Return the VMs that were created by the same request as a VM, itself included.

    They share its reservation id. Two queries: the cells, and the VM's own cell, the only
    one that is asked.
    """

    def read(cell_context: nova_context.RequestContext, uuids: list[str]) -> list[PlacedVM]:
        same = (
            sa.select(main_models.Instance.reservation_id)
            .where(main_models.Instance.uuid == uuids[0])
            .scalar_subquery()
        )
        return _instances(cell_context, main_models.Instance.reservation_id == same)

    return ask_cells(context, {cell_id: [uuid]}, read)


def _vm_rows(
    context: nova_context.RequestContext, uuid: Any, source: Any, wanted: Any
) -> Sequence[Any]:
    """Return (uuid, cell id, build request's id and age) of VMs. One query.

    :param uuid: the column that names the VMs
    :param source: what holds that column and instance_mappings
    """
    build_request = api_models.BuildRequest
    query = sa.select(
        uuid, api_models.InstanceMapping.cell_id, build_request.id, build_request.created_at
    )
    joined = sa.outerjoin(source, build_request, build_request.instance_uuid == uuid)
    return api_rows(context, query.select_from(joined).where(wanted))


def of_api(read: Callable[[], Answer], source: str = API_DATABASE) -> Answer:
    """Return what a function reads in the API database, within the time that a request waits.

    What it reads after that is lost, and its thread is not waited for: it returns what it finds
    and touches nothing else.

    :param source: another name for reads that take long, lest they keep others waiting
    :raises exceptions.UnansweredError: where the database does not answer in time
    """
    return circuit_breaker.ask_one(source, read)


def why(error: Exception) -> str:
    """Return what the log says of a read that failed: a line, without the rows asked for."""
    if isinstance(error, exceptions.UnansweredError):
        return str(error)
    return masking.first_line(error)[:_MAX_REASON]


def api_rows(context: nova_context.RequestContext, query: Any) -> Sequence[Any]:
    """Return the rows of one query to the API database."""
    with api_db.context_manager.reader.using(context) as session:
        rows: Sequence[Any] = session.execute(query).all()
    return rows


def each_api_row(context: nova_context.RequestContext, query: Any) -> Iterator[Any]:
    """Yield the rows of one query to the API database, of which there may be very many."""
    with api_db.context_manager.reader.using(context) as session:
        yield from session.execute(streamed(query))


def streamed(query: Any) -> Any:
    """Return a query whose rows are fetched in parts, not held in memory all at once."""
    return query.execution_options(yield_per=1000)


def _instances(context: nova_context.RequestContext, wanted: Any) -> list[PlacedVM]:
    """Return the VMs of one cell for a condition. One query."""
    vm = main_models.Instance
    query = sa.select(vm.uuid, vm.host, vm.node, vm.vm_state, vm.task_state).where(
        # A cross-cell resize keeps a hidden twin of the VM in its other cell.
        wanted,
        vm.deleted == 0,
        vm.hidden.is_not(sa.true()),
    )
    with main_db.get_context_manager(context).reader.using(context) as session:
        rows = session.execute(query).all()
    return [
        PlacedVM(uuid, host, node, not host and is_on_its_way(vm_state, task_state))
        for uuid, host, node, vm_state, task_state in rows
    ]


def may_be_on_its_way() -> Any:
    """Return the condition that picks the VMs that :func:`is_on_its_way` may be true for."""
    return main_models.Instance.vm_state.in_((vm_states.BUILDING, vm_states.SHELVED_OFFLOADED))


def is_on_its_way(vm_state: str | None, task_state: str | None) -> bool:
    """Tell whether a VM without a host is looking for one; not the shelved, not errors."""
    if vm_state == vm_states.BUILDING:
        return bool(task_state != task_states.DELETING)
    return vm_state == vm_states.SHELVED_OFFLOADED and task_state in (
        task_states.UNSHELVING,
        task_states.SPAWNING,
    )


def ask_cells(
    context: nova_context.RequestContext,
    asked_of: dict[int, list[str]] | None,
    read: Callable[[nova_context.RequestContext, list[str]], list[Row]],
) -> CellAnswers[Row]:
    """Return what a function reads in each of some cells, all cells at the same time.

    One query for the cells, and those of the function in each of them. Cells that do not answer
    in time are left alone for a while, as ``circuit_breaker`` says. Not by Nova's
    own gathering: it leaves what hangs in a small pool that its host manager needs.

    :param asked_of: cell id to what the function is given there; None: nothing, in all cells
    :raises exceptions.UnansweredError: where the API database does not tell the cells in time
    """
    answers: CellAnswers[Row] = CellAnswers()
    if asked_of is not None and not asked_of:
        return answers
    asked = {
        cell.uuid: cell
        for cell in of_api(lambda: objects.CellMappingList.get_all(context))
        if not cell.is_cell0() and (asked_of is None or cell.id in asked_of)
    }

    def in_cell(cell: objects.CellMapping) -> list[Row]:
        with nova_context.target_cell(context, cell) as cell_context:
            return read(cell_context, asked_of[cell.id] if asked_of else [])

    found = circuit_breaker.ask({uuid: partial(in_cell, cell) for uuid, cell in asked.items()})
    for uuid, rows in found.items():
        if isinstance(rows, Exception):
            answers.note_silent(asked[uuid], why(rows))
        else:
            answers.rows.extend(rows)
    return answers
