"""Nova's databases, with Nova's own schema, on each kind of database that Nova supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import nova.conf
import oslo_messaging as messaging
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects, utils
from nova.db import migration
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from oslo_db.sqlalchemy import enginefacade
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.nova_glue import nova_release
from tests.functional import servers

CONF = nova.conf.CONF

CELLS = ("cell1", "cell2")
MAIN = ("cell0", *CELLS)


@dataclass(frozen=True)
class Databases:
    """The databases of a Nova with cells and cell0."""

    engine: str  # sqlite, mariadb or postgresql
    urls: dict[str, str]  # by part: api, cell0, cell1, cell2
    engines: dict[str, sa.Engine]  # likewise, for the tests' own reads and writes
    cell_ids: dict[str, int] = field(default_factory=dict)

    @property
    def cell_uuids(self) -> dict[str, str]:
        """The uuid of each cell."""
        return {cell: _uuid(cell) for cell in self.cell_ids}

    def part_of(self, url: sa.URL) -> str:
        """Return which of the databases a URL leads to."""
        by_name = {sa.make_url(found).database: part for part, found in self.urls.items()}
        return by_name[url.database]

    def analyse(self) -> None:
        """Let the planners know how many rows there are and of what kind."""
        for engine in self.engines.values():
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                if self.engine == "mariadb":
                    tables = sa.inspect(connection).get_table_names()
                    connection.execute(sa.text(f"ANALYZE TABLE {', '.join(tables)}"))
                else:
                    connection.execute(sa.text("ANALYZE"))


@contextmanager
def migrated(
    engine: str, cells: Sequence[str] = CELLS, transport_url: str = "none:///"
) -> Iterator[Databases]:
    """Yield databases that Nova's own migrations have made, empty but for their cells.

    Skips the test where no server answers.

    :param transport_url: of the cells' message broker; none has that of cell0
    """
    with ExitStack() as stack:
        make = stack.enter_context(servers.databases_on(engine))
        urls = {part: make(part) for part in ("api", "cell0", *cells)}
        engines = {}
        for part, url in urls.items():
            # Nothing is kept open: tests kill connections, and databases in use are not dropped.
            engines[part] = sa.create_engine(url, poolclass=sa.NullPool)
            _migrate(part, url)
        databases = Databases(engine, urls, engines)
        with engines["api"].begin() as connection:
            for cell in ("cell0", *cells):
                added = connection.execute(
                    sa.insert(api_models.CellMapping).values(
                        uuid=_uuid(cell),
                        name=cell,
                        transport_url="none:///" if cell == "cell0" else transport_url,
                        database_connection=urls[cell],
                    )
                )
                databases.cell_ids[cell] = added.inserted_primary_key[0]
        yield databases


@contextmanager
def used(databases: Databases) -> Iterator[None]:
    """Let Nova, and what reads its databases, use these; as before afterwards."""
    messaging.TransportURL.parse(CONF)  # registers the option that cells' URLs are read with
    api = _facade(databases.urls["api"])
    # Code that targets no cell sees the first one, as where [database] names it.
    main = _facade(databases.urls["cell1"])
    cells, nova_context.CELL_CACHE = nova_context.CELL_CACHE, {}
    undo = [api_db.context_manager.patch_factory(api), main_db.context_manager.patch_factory(main)]
    try:
        yield
    finally:
        # Nova's fixtures want none of these threads left, and a database in use is not dropped.
        _end_pools()
        for reset in undo:
            reset()
        opened = [api, main, *(found[0] for found in nova_context.CELL_CACHE.values())]
        nova_context.CELL_CACHE = cells
        for facade in opened:
            facade.writer.get_engine().dispose()


def _end_pools() -> None:
    if not nova_release.is_threaded():
        return
    try:
        from nova import thread_pool_factory
    except ImportError:  # Nova 33, where each pool is a global of its own
        utils.destroy_scatter_gather_executor()
        utils.destroy_default_executor()
    else:
        thread_pool_factory.reset_all_executors()


def _migrate(part: str, url: str) -> None:
    which, module = ("api", api_db) if part == "api" else ("main", main_db)
    facade = _facade(url)
    reset = module.context_manager.patch_factory(facade)
    try:
        migration.db_sync(database=which)
    finally:
        reset()
        facade.writer.get_engine().dispose()


def _facade(url: str) -> enginefacade._TransactionContextManager:
    facade = enginefacade.transaction_context()
    facade.configure(connection=url)
    return facade


def _uuid(cell: str) -> str:
    return objects.CellMapping.CELL0_UUID if cell == "cell0" else getattr(uuids, cell)
