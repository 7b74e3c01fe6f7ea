"""Fixtures of the in-process Nova for services on native threads.

Nova 33 runs its scheduler on native threads, but its own fixtures support them from 34 on. Nova 31
and 32 run on eventlet, with their own fixtures.
"""

import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import fixtures
import sqlalchemy
from nova.tests import fixtures as nova_fixtures
from oslo_db.sqlalchemy import enginefacade, engines
from sqlalchemy import pool

from hpc_sched.nova_glue import nova_release

#: True for Nova 33: 34.0.0 added database fixtures for threads
LACKS_THREADS = nova_release.is_threaded() and not hasattr(nova_fixtures, "DatabaseWriteLock")


class DatabaseFiles(fixtures.Fixture):
    """Keep each database in a file, with pooled connections, so that threads can share it.

    A database in memory has one connection for all threads, and a transaction of one thread ends
    those of others. A file is emptied when its engine is disposed of, as Nova's fixtures expect of
    memory. SQLite has one writer at a time and fails a writer that began to read before another
    one wrote: here writing transactions wait for each other. Nova 34 has such files and locks of
    its own.
    """

    def _setUp(self) -> None:
        self._folder = self.useFixture(fixtures.TempDir()).path
        self._numbers = itertools.count()
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._create_engine = engines.create_engine
        self.useFixture(fixtures.MonkeyPatch("oslo_db.sqlalchemy.engines.create_engine", self._new))
        if LACKS_THREADS:
            manager = enginefacade._TransactionContextManager
            scope = self._one_writer(manager._transaction_scope)
            self.useFixture(fixtures.MockPatchObject(manager, "_transaction_scope", scope))

    def _new(self, sql_connection: object, **options: Any) -> Any:
        # A string, or the URL object of SQLAlchemy in Placement.
        url = str(sql_connection)
        if url != "sqlite://" or not LACKS_THREADS:
            return self._new_engine(url, options)
        path = os.path.join(self._folder, f"{next(self._numbers)}.sqlite")
        engine = self._new_engine(f"sqlite:///{path}", options)

        @sqlalchemy.event.listens_for(engine, "connect")
        def readers_do_not_wait_for_the_writer(connection: Any, _record: object) -> None:
            connection.execute("PRAGMA journal_mode = WAL")

        @sqlalchemy.event.listens_for(engine, "engine_disposed")
        def forget(_engine: object) -> None:
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(path + suffix):
                    os.remove(path + suffix)

        return engine

    def _new_engine(self, url: str, options: dict[str, Any]) -> Any:
        if not url.startswith("sqlite:///"):
            return self._create_engine(url, **options)
        # The data ends with the process: no need to wait for the disk.
        engine = self._create_engine(url, **options | {"sqlite_synchronous": False})
        # oslo.db opens the file for each transaction, a quarter of the whole run time. The new pool
        # starts empty; the old one has the connection of oslo.db's test of the engine.
        engine.pool.dispose()
        engine.pool = pool.QueuePool(
            engine.pool._creator,
            pool_size=50,
            max_overflow=-1,
            dialect=engine.dialect,
            _dispatch=engine.pool.dispatch,
        )
        return engine

    def _one_writer(self, scope: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def scope_(manager: Any, context: object) -> Iterator[Any]:
            is_writer = manager._mode is enginefacade._WRITER
            lock = self._locks[str(manager.get_engine().url)] if is_writer else nullcontext()
            with lock, scope(manager, context) as resource:
                yield resource

        return scope_


class CellDatabases(nova_fixtures.CellDatabases):
    """Nova's fixture, with one database for all code that targets no cell.

    Nova's fixture sends untargeted reads to the cell that was targeted last, under a
    readers-writer lock around every use of a cell. A pending writer stops new readers, one of
    which may hold the database's write lock that the current reader waits for: a dead-lock with
    native threads. Here untargeted code always reads the default cell, and a service of another
    cell is started under :meth:`default_cell`.
    """

    _default_ctxt_mgr: Any
    _ctxt_mgrs: dict[str, Any]

    @contextmanager
    def _wrap_target_cell(self, context: Any, cell_mapping: Any) -> Iterator[Any]:
        with self._real_target_cell(context, cell_mapping) as targeted:
            yield targeted

    def _wrap_get_context_manager(self, context: Any) -> Any:
        return getattr(context, "db_connection", None) or self._default_ctxt_mgr

    @contextmanager
    def default_cell(self, cell_mapping: Any) -> Iterator[None]:
        """Send untargeted reads to another cell in this block."""
        before = self._default_ctxt_mgr
        self._default_ctxt_mgr = self._ctxt_mgrs[cell_mapping.database_connection]
        try:
            yield
        finally:
            self._default_ctxt_mgr = before
