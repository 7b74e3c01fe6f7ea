"""Access to Nova's databases: reads with a timeout, and the serialized objects that rows hold."""

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.conf import CONF
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from oslo_db import exception as db_exception
from oslo_utils import timeutils
from sqlalchemy import orm

from hpc_sched import exceptions, masking
from hpc_sched.nova_glue.io import circuit_breaker, request_deadline

Row = TypeVar("Row")
Answer = TypeVar("Answer")
Fields = Mapping[str, Any]  # of a serialized object

API_DATABASE = "API database"
# What a read raises because of the database, as opposed to a bug in this plugin.
OUTAGES = exceptions.UnansweredError, db_exception.DBError, sa.exc.SQLAlchemyError, OSError
_MAX_REASON = 300
# Longest list of uuids in a query, which every database limits. Longer lists: read all rows.
MAX_UUIDS = 1000


class UnreadableError(ValueError):
    """A column does not hold what Nova writes there; raised by all functions that parse one."""


@dataclass(frozen=True, slots=True)
class CellAnswers(Generic[Row]):
    """The rows of the cells that answered, and the cells that did not."""

    rows: list[Row] = field(default_factory=list)
    down: dict[int, str] = field(default_factory=dict)  # cell id to reason
    down_uuids: set[str] = field(default_factory=set)  # of the same cells
    # Reason why the cells are those of an earlier listing, or None.
    unlisted: str | None = None

    @property
    def problems(self) -> list[str]:
        """One text for the API database, and one per cell that did not answer, by cell id."""
        cells = [f"cell {cell}: {reason}" for cell, reason in sorted(self.down.items())]
        return [self.unlisted, *cells] if self.unlisted else cells


# The cells that the API database has listed last; replaced as a whole.
known_cells: tuple[objects.CellMapping, ...] = ()


def oldest_build_request() -> datetime.datetime:
    """Return the earliest creation time of a build request that a conductor may still work on.

    No conductor waits longer than ``long_rpc_timeout`` for the scheduler: older rows were left
    behind by a crash.
    """
    return timeutils.utcnow() - datetime.timedelta(seconds=CONF.long_rpc_timeout)


def read_api(read: Callable[[], Answer], source: str = API_DATABASE) -> Answer:
    """Return what a function reads from the API database, within the request's deadline.

    A function that misses the deadline goes on in its thread: it must not change shared state.
    A request that has got no answer once does not ask again: it waits for that one time.

    :param source: another name for long reads, which then do not delay the others
    :raises exceptions.UnansweredError: if the database does not answer in time
    """
    silent = request_deadline.current().silent
    if source in silent:
        raise exceptions.UnansweredError(circuit_breaker.LEFT_ALONE)
    try:
        return circuit_breaker.ask_one(source, read)
    except exceptions.UnansweredError:
        silent.add(source)
        raise


def read_cells(
    context: nova_context.RequestContext,
    arguments: dict[int, list[str]] | None,
    read: Callable[[nova_context.RequestContext, list[str]], list[Row]],
) -> CellAnswers[Row]:
    """Return the rows that a function reads in each of some cells, cell0 excepted, concurrently.

    One query for the cells, and those of the function in each of them; no query without cells.
    If the API database does not answer, the cells are those that it has listed before.
    Nova's scatter_gather_cells() is not used: a read that hangs keeps a thread of the small pool
    that the host manager needs.

    :param arguments: cell id to the function's argument there; None for [] in all cells
    :raises exceptions.UnansweredError: if the API database does not list the cells in time, and
        never has
    """
    if arguments is not None and not arguments:
        return CellAnswers()
    listed, unlisted = _list_cells(context)
    answers: CellAnswers[Row] = CellAnswers(unlisted=unlisted)
    cells = {
        cell.uuid: cell
        for cell in listed
        if not cell.is_cell0() and (arguments is None or cell.id in arguments)
    }

    def in_cell(cell: objects.CellMapping) -> list[Row]:
        with nova_context.target_cell(context, cell) as cell_context:
            return read(cell_context, arguments[cell.id] if arguments else [])

    reads = {uuid: partial(in_cell, cell) for uuid, cell in cells.items()}
    for uuid, rows in circuit_breaker.ask(reads).items():
        if isinstance(rows, Exception):
            answers.down[cells[uuid].id] = reason(rows)
            answers.down_uuids.add(uuid)
        else:
            answers.rows.extend(rows)
    return answers


def _list_cells(
    context: nova_context.RequestContext,
) -> tuple[tuple[objects.CellMapping, ...], str | None]:
    """Return all cells, and the reason why they are those of an earlier listing, or None."""
    global known_cells
    try:
        known_cells = tuple(read_api(lambda: objects.CellMappingList.get_all(context)))
    except OUTAGES as error:
        # Nova's own list, which the scheduler loads once, if this plugin has read none so far.
        before = known_cells or tuple(nova_context.CELLS)
        if not before:
            raise
        return before, api_problem(error)
    return known_cells, None


def api_problem(error: Exception) -> str:
    """Return a failed read of the API database as a problem that names its source."""
    return f"{API_DATABASE}: {reason(error)}"


def reason(error: Exception) -> str:
    """Return one line about a failed read for the log, without the parameters of its query."""
    if isinstance(error, exceptions.UnansweredError):
        return str(error)
    return masking.first_line(error)[:_MAX_REASON]


def api_rows(context: nova_context.RequestContext, query: Any) -> list[Any]:
    """Return the rows of one query to the API database."""
    with api_db.context_manager.reader.using(context) as session:
        return list(session.execute(query).all())


def iter_api_rows(context: nova_context.RequestContext, query: Any) -> Iterator[Any]:
    """Yield the rows of one query to the API database, fetched in batches."""
    with api_db.context_manager.reader.using(context) as session:
        yield from session.execute(in_batches(query))


def cell_rows(cell_context: nova_context.RequestContext, query: Any) -> list[Any]:
    """Return the rows of one query to the database of a context's cell."""
    with cell_session(cell_context) as session:
        return list(session.execute(query).all())


def cell_session(cell_context: nova_context.RequestContext) -> AbstractContextManager[orm.Session]:
    """Begin a transaction that reads the database of a context's cell."""
    manager = main_db.get_context_manager(cell_context)
    session: AbstractContextManager[orm.Session] = manager.reader.using(cell_context)
    return session


def in_batches(query: Any) -> Any:
    """Return a query whose rows are fetched in batches, not all at once."""
    return query.execution_options(yield_per=1000)


def with_progress(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows; a long read is not taken for one that hangs while they come."""
    for number, row in enumerate(rows):
        if number % 100 == 0:
            circuit_breaker.note_progress()
        yield row


def object_fields(primitive: Any) -> Fields:
    """Return the fields of a serialized object."""
    found = primitive.get("nova_object.data") if isinstance(primitive, dict) else None
    if not isinstance(found, dict):
        raise UnreadableError("no serialised object of Nova")
    return found


def object_in(text: str | None) -> Fields:
    """Return the fields of the serialized object in a column."""
    return object_fields(_parsed(text))


def flavors_in(text: str | None) -> dict[str, Fields]:
    """Return the flavors in an instance's column, by "cur", "old" and "new" if set."""
    found = _parsed(text)
    if not isinstance(found, dict):
        raise UnreadableError("no flavors")
    return {name: object_fields(flavor) for name, flavor in found.items() if flavor is not None}


def dict_field(value: Any) -> Fields:
    """Return a field's dictionary; an empty one for None."""
    if value is not None and not isinstance(value, dict):
        raise UnreadableError("no dictionary where one is expected")
    return value or {}


def int_field(found: Fields, name: str) -> int:
    """Return a field's integer; 0 if it is null or absent."""
    value = found.get(name) or 0
    if not isinstance(value, int):
        raise UnreadableError(f"{name} is no whole number")
    return value


def unreadable(uuid: str, what: str, error: UnreadableError) -> str:
    """Return the log text for a row that cannot be read."""
    return f"the {what} of instance {uuid} in Nova's database cannot be read: {error}"


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"no JSON: {error}") from error
