"""What the in-process Nova lacks on native threads where its fixtures expect eventlet.

Nova 33 runs its scheduler on native threads, but only from 34 on do the fixtures that Nova ships
know of that. Nova 31 and 32 run on eventlet, with their own fixtures as they are.
"""

import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fixtures
import sqlalchemy
from nova.tests import fixtures as nova_fixtures
from oslo_db.sqlalchemy import enginefacade, engines
from sqlalchemy import pool

from hpc_sched.nova_glue import nova_release

IN_MEMORY = "sqlite://"
#: 34.0.0 brought databases for threads, and with them all that is here
LACKS_THREADS = nova_release.is_threaded() and not hasattr(nova_fixtures, "DatabaseWriteLock")


class DatabaseFiles(fixtures.Fixture):
    """Has threads share the databases: each in a file, with connections that are kept.

    In memory all threads share one connection, and one's transaction ends another's. A file has a
    connection each; like memory it is empty once its engine is disposed of, which is what Nova's
    fixtures rely on. SQLite takes one writer at a time and fails the one who began to read before
    another wrote: whole transactions that write wait for each other here. Nova 34 has such files
    and locks of its own.
    """

    def _setUp(self) -> None:
        self._folder = self.useFixture(fixtures.TempDir()).path
        self._numbers = itertools.count()
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._create_engine = engines.create_engine
        self.useFixture(fixtures.MonkeyPatch("oslo_db.sqlalchemy.engines.create_engine", self._new))
        if LACKS_THREADS:
            manager = enginefacade._TransactionContextManager
            self.useFixture(
                fixtures.MockPatchObject(
                    manager, "_transaction_scope", self._one_writer(manager._transaction_scope)
                )
            )

    def _new(self, sql_connection: object, **options: Any) -> Any:
        # A text, or for Placement SQLAlchemy's URL.
        url = str(sql_connection)
        if url == IN_MEMORY and LACKS_THREADS:
            return self._new_file(options)
        return self._new_engine(url, options)

    def _new_file(self, options: dict[str, Any]) -> Any:
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
        # What is written is gone with the process anyway: no disk is waited for.
        engine = self._create_engine(url, **options | {"sqlite_synchronous": False})
        # oslo.db opens the file anew for each transaction, a quarter of all that is done here. A
        # pool of our own begins empty: oslo.db has connected already, to test the engine.
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
            if manager._mode is not enginefacade._WRITER:
                with scope(manager, context) as resource:
                    yield resource
                return
            with self._locks[str(manager.get_engine().url)], scope(manager, context) as resource:
                yield resource

        return scope_


class NotificationsOfThreads(fixtures.Fixture):
    """Takes every notification as this cloud's: a thread has no parent that says whose it is."""

    def __init__(self, cloud: str) -> None:
        """Take notifications for one cloud.

        :param cloud: what the cloud's fixtures call their test
        """
        super().__init__()
        self._cloud = cloud

    def _setUp(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.tests.fixtures.notifications.FakeVersionedNotifier._get_sender_test_case_id",
                lambda: self._cloud,
            )
        )
