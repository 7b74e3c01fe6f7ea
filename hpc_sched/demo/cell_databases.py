"""The cells' databases of the in-process Nova, without a lock that native threads dead-lock on."""

import contextlib
from collections.abc import Iterator
from typing import Any

from nova.tests import fixtures as nova_fixtures


class CellDatabases(nova_fixtures.CellDatabases):
    """Nova's fixture, with one database for all code that targets no cell.

    Nova's fixture sends untargeted reads to whatever cell was targeted last and guards that
    with a readers-writer lock around every use of a cell. A pending writer stops new readers,
    one of which may hold the database's write lock that the current reader waits for: with
    real threads and many services that is a dead-lock. Here untargeted code always sees the
    default cell, and a service of another cell is started under :meth:`default_cell`.
    """

    _default_ctxt_mgr: Any
    _ctxt_mgrs: dict[str, Any]

    @contextlib.contextmanager
    def _wrap_target_cell(self, context: Any, cell_mapping: Any) -> Iterator[Any]:
        with self._real_target_cell(context, cell_mapping) as targeted:
            yield targeted

    def _wrap_get_context_manager(self, context: Any) -> Any:
        return getattr(context, "db_connection", None) or self._default_ctxt_mgr

    @contextlib.contextmanager
    def default_cell(self, cell_mapping: Any) -> Iterator[None]:
        """Make another cell the one that untargeted code sees."""
        before = self._default_ctxt_mgr
        self._default_ctxt_mgr = self._ctxt_mgrs[cell_mapping.database_connection]
        try:
            yield
        finally:
            self._default_ctxt_mgr = before
