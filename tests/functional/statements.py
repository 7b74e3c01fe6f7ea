"""The statements that are sent to databases, and how the databases would carry them out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine


@dataclass(frozen=True)
class Statement:
    """A query with its parameters, as the driver has it."""

    url: sa.URL
    text: str
    parameters: Any


@contextmanager
def each(told: Callable[[Statement], None]) -> Iterator[None]:
    """Have a function told each statement of any thread before it is sent."""

    def tell(connection, _cursor, text, parameters, _context, _many) -> None:
        told(Statement(connection.engine.url, text, parameters))

    sa.event.listen(Engine, "before_cursor_execute", tell)
    try:
        yield
    finally:
        sa.event.remove(Engine, "before_cursor_execute", tell)


_collecting: ContextVar[list[Statement] | None] = ContextVar("collecting", default=None)


@contextmanager
def collected() -> Iterator[list[Statement]]:
    """Collect the queries of this thread, and of those that read for it and inherit its context.

    Not those of the other services in this process.
    """
    found: list[Statement] = []

    def note(sent: Statement) -> None:
        is_query = sent.text.lstrip().upper().startswith("SELECT") and "FROM" in sent.text.upper()
        if is_query and _collecting.get() is found:
            found.append(sent)

    before = _collecting.set(found)
    try:
        with each(note):
            yield found
    finally:
        _collecting.reset(before)


@dataclass(frozen=True)
class Step:
    """How one table is read in a plan."""

    table: str
    is_whole: bool  # from end to end, be it along an index
    text: str


def steps(connection: sa.Connection, statement: Statement, by_index: bool = False) -> list[Step]:
    """Return how the database would read each table of a query.

    :param by_index: how PostgreSQL would, did it not find tables of this size as quick to read
        from end to end
    """
    if by_index and connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    explain = {"mysql": "EXPLAIN ", "postgresql": "EXPLAIN (FORMAT JSON) "}
    prefix = explain.get(connection.dialect.name, "EXPLAIN QUERY PLAN ")
    rows = connection.exec_driver_sql(prefix + statement.text, statement.parameters).mappings()
    if connection.dialect.name == "mysql":
        return [_step_of_mariadb(row) for row in rows.all()]
    if connection.dialect.name == "postgresql":
        [row] = rows.all()
        return list(_steps_of_postgresql(row["QUERY PLAN"][0]["Plan"]))
    return [_step_of_sqlite(row["detail"]) for row in rows.all()]


def _step_of_mariadb(row: Mapping[str, Any]) -> Step:
    # ALL reads the table, index the whole of an index.
    return Step(str(row["table"]), row["type"] in ("ALL", "index"), json.dumps(dict(row)))


def _steps_of_postgresql(plan: Mapping[str, Any]) -> Iterator[Step]:
    if "Relation Name" in plan:
        inside = ("Index Cond", "Recheck Cond")
        is_whole = not any(name in plan for name in inside)
        shown = {name: value for name, value in plan.items() if name != "Plans"}
        yield Step(plan["Relation Name"], is_whole, json.dumps(shown))
    for below in plan.get("Plans", ()):
        yield from _steps_of_postgresql(below)


def _step_of_sqlite(detail: str) -> Step:
    words = detail.split()
    table = words[1] if words[0] in ("SCAN", "SEARCH") else ""
    return Step(table, words[0] == "SCAN", detail)


def whole_tables(found: Sequence[Step]) -> set[str]:
    """Return the tables that are read from end to end."""
    return {step.table for step in found if step.is_whole}
