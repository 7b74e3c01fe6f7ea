"""The database servers that Nova's databases may be on, and databases of our own on them.

SQLite needs no server. Where MariaDB or PostgreSQL does not answer its tests are skipped.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

PREFIX = "hpc_sched_test_"
CONNECT_TIMEOUT = 3  # s


@dataclass(frozen=True)
class Server:
    """A database server, as its own SQL wants to be spoken to."""

    variable: str  # of the environment, with another URL
    default: str  # URL without a database
    maintenance: str  # the database to be in while others are made
    list_databases: str
    # Held as long as the process that made databases lives, by the number in their names.
    lock: str
    drop: str

    @property
    def url(self) -> sa.URL:
        """Where the server is."""
        return sa.make_url(os.environ.get(self.variable, self.default))

    def connect(self) -> Connection:
        """Return a connection whose statements take effect one by one.

        :raises sqlalchemy.exc.OperationalError: where no server answers in time
        """
        url = self.url.set(database=self.maintenance)
        engine = sa.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
            connect_args={"connect_timeout": CONNECT_TIMEOUT},
        )
        return engine.connect()


SERVERS = {
    "mariadb": Server(
        variable="HPC_SCHED_TEST_MYSQL",
        default="mysql+pymysql://root@127.0.0.1:3306",
        maintenance="",
        list_databases="SELECT schema_name FROM information_schema.schemata",
        lock="SELECT GET_LOCK(CONCAT('hpc_sched_test_', :number), 0)",
        drop="DROP DATABASE IF EXISTS {}",
    ),
    "postgresql": Server(
        variable="HPC_SCHED_TEST_POSTGRESQL",
        default="postgresql+psycopg2://postgres@127.0.0.1:5432",
        maintenance="postgres",
        list_databases="SELECT datname FROM pg_database",
        lock="SELECT pg_try_advisory_lock(:number)",
        drop="DROP DATABASE IF EXISTS {} WITH (FORCE)",
    ),
}
ENGINES = ("sqlite", *SERVERS)

MakeDatabase = Callable[[str], str]


@contextmanager
def databases_on(engine: str) -> Iterator[MakeDatabase]:
    """Yield what makes an empty database for a part of Nova and returns its URL.

    They are dropped at the end, and so are those that processes have left behind that were
    killed. Skips the test where no server answers.

    :param engine: one of :data:`ENGINES`
    """
    with _in_files() if engine == "sqlite" else _on_server(SERVERS[engine]) as make:
        yield make


@contextmanager
def _in_files() -> Iterator[MakeDatabase]:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        yield lambda part: f"sqlite:///{folder / part}.sqlite"
    finally:
        shutil.rmtree(folder)


@contextmanager
def _on_server(server: Server) -> Iterator[MakeDatabase]:
    try:
        connection = server.connect()
    except sa.exc.DBAPIError as error:
        first = str(error.orig).splitlines()[0]
        pytest.skip(f"no server at {server.url!r} ({server.variable}): {first}")
    with connection:
        drop_stale(server, connection)
        number = secrets.randbits(31)
        assert connection.scalar(sa.text(server.lock), {"number": number})
        made: list[str] = []

        def make(part: str) -> str:
            name = f"{PREFIX}{number}_{part}"
            made.append(name)
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
            url = server.url.set(database=name)
            return url.render_as_string(hide_password=False)

        try:
            yield make
        finally:
            for name in made:
                connection.execute(sa.text(server.drop.format(name)))


def drop_stale(server: Server, connection: Connection) -> None:
    """Drop the databases of processes that have ended without doing so."""
    for name in connection.scalars(sa.text(server.list_databases)).all():
        number = name.removeprefix(PREFIX).split("_")[0]
        if name.startswith(PREFIX) and number.isdigit():
            # On a connection of its own: the lock that it takes is given back with it.
            with server.connect() as probe:
                if probe.scalar(sa.text(server.lock), {"number": int(number)}):
                    connection.execute(sa.text(server.drop.format(name)))
