"""The VMs of one cell, read as a whole or corrected by what has changed since the last read.

A correction is one statement, so one moment of the database on each kind of server. It returns:

* rows whose ``updated_at`` is recent, deleted ones too: a soft delete keeps the ``updated_at`` that
  was there, and compute and API write the row just before it;
* new rows: those with a higher id than any that was seen, and, for ids become visible in another
  order, those without ``updated_at`` that were created recently. Nova writes the time of the
  request as that of creation, which may be long ago;
* rows that migrate, are deleted, restored or unshelved at this moment;
* rows whose deletion had begun at the last read: it may take longer than the overlap;
* the number of rows, the sum of their ids, and that of their ids times those of their compute
  nodes, all of which are not deleted. If the kept rows, corrected, have others, the correction
  lacks a row that is gone (archived, purged, hard-deleted), new, or on another host, and all rows
  are read again at once.

*Recent* is OVERLAP before the last read began, by this process's clock or, if that is earlier, by
the latest ``updated_at`` seen, which the clocks of conductors and computes have given. A row
becomes visible at its commit, later than the ``updated_at`` in it, and the clocks of two
controllers differ: OVERLAP is for both. The database's own clock gives none of these times.

So which VMs there are, on which nodes, and which of them migrate is as exact as a read of all rows,
whatever the clocks. Three things may lack a change that has no new ``updated_at`` (a write past
Nova), one that becomes visible later than OVERLAP, or one by a clock that is late by more: the
flavor of a VM that stays, that a resize waits to be confirmed, and to which service a bare-metal
node belongs. For these all rows are read again every WHOLE_EVERY, hence after a gap of that length
too, and after each failed read; what had changed unseen is logged.
"""

import datetime
import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova.compute import task_states
from nova.db.main import models as main_models
from oslo_log import log as logging
from oslo_utils import timeutils
from sqlalchemy import orm

from hpc_sched import clock
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import placed_instance
from hpc_sched.nova_glue.read.instances.kept import kept_cell
from hpc_sched.nova_glue.read.instances.kept.kept_cell import KeptCell, Totals

LOG = logging.getLogger(__name__)

OVERLAP = datetime.timedelta(seconds=60)
WHOLE_EVERY = 600.0  # seconds

# States in which a VM is on two hosts, or about to leave or come; none stays for long.
_PASSING = (
    *(*placed_instance.MIGRATING, *kept_cell.LEAVING),
    *(task_states.RESTORING, task_states.UNSHELVING, task_states.SPAWNING),
)

_VM = main_models.Instance
_COLUMNS = (
    *(_VM.id, _VM.uuid, _VM.deleted, _VM.hidden, _VM.host, _VM.node, _VM.compute_id),
    *(_VM.reservation_id, _VM.instance_type_id, _VM.image_ref, _VM.vcpus, _VM.memory_mb),
    *(_VM.root_gb, _VM.ephemeral_gb, _VM.vm_state, _VM.task_state),
    sa.func.coalesce(_VM.updated_at, _VM.created_at).label("changed_at"),
)


def read(context: nova_context.RequestContext, before: KeptCell | None) -> KeptCell:
    """Return the VMs of a context's cell. One query; two if all rows must be read again.

    One more for the migrations of VMs that move. Applications are known as far as they were before.

    :param before: the last read of this cell
    """
    began, now = timeutils.utcnow(), clock.current.monotonic()
    with databases.cell_session(context) as session:
        found = None
        if before is not None and 0 <= now - before.whole_at < WHOLE_EVERY:
            found = _corrected(session, before, began)
        if found is None:
            found = replace(_whole(session, context.cell_uuid, before, began), whole_at=now)
        migrating = placed_instance.read_migrating(session, found.moving)
    return replace(found, migrating=migrating)


def forget_time(cell: KeptCell) -> KeptCell:
    """Return a cell that did not answer, to be read as a whole once it does."""
    return replace(cell, whole_at=-math.inf)


def _whole(
    session: orm.Session, uuid: str, before: KeptCell | None, began: datetime.datetime
) -> KeptCell:
    times = _Times(before)
    rows = session.execute(databases.in_batches(sa.select(*_COLUMNS).where(_VM.deleted == 0)))
    found = kept_cell.whole(uuid, times.noted(databases.with_progress(rows)))
    kept = before.rows if before is not None else {}
    if missed := sum(kept.get(uuid) != found.rows[uuid] for uuid in times.old):
        LOG.warning(
            "Cell %s: %d of %d VMs had changed without a new updated_at, as by a late clock, a "
            "late commit or a write past Nova; they are known again",
            *(uuid, missed, len(found.rows)),
        )
    return replace(found, since=times.since(began))


def _corrected(session: orm.Session, before: KeptCell, began: datetime.datetime) -> KeptCell | None:
    """Return the cell with what has changed, or None if it lacks something."""
    times = _Times(before)
    # Of more than fit the totals say that some are gone.
    asked = {"since": before.since, "last_id": before.last_id}
    asked["leaving"] = before.leaving[: databases.MAX_UUIDS]
    changed = databases.with_progress(session.execute(databases.in_batches(_changes()), asked))
    first = next(changed)
    rows = (row for row in itertools.chain([first], changed) if row.uuid is not None)
    found = before.with_rows(times.noted(rows))
    if found.totals != Totals(*(int(total or 0) for total in first[-3:])):
        return None
    return replace(found, since=times.since(began))


@functools.cache
def _changes() -> Any:
    """Return the query for changed rows, each with the totals; one row without any."""
    since = sa.bindparam("since", type_=sa.DateTime)
    recent = (
        _VM.updated_at >= since,
        sa.and_(_VM.deleted == 0, _VM.created_at >= since, _VM.updated_at.is_(None)),
        sa.and_(_VM.deleted == 0, _VM.id > sa.bindparam("last_id", type_=sa.BigInteger)),
        sa.and_(_VM.deleted == 0, _VM.task_state.in_(_PASSING)),
        _VM.uuid.in_(sa.bindparam("leaving", expanding=True)),
    )
    changed = sa.union_all(*(sa.select(*_COLUMNS).where(one) for one in recent)).subquery()
    totals = (
        sa.select(sa.func.count(), sa.func.sum(_VM.id), sa.func.sum(_VM.id * _VM.compute_id))
        .where(_VM.deleted == 0)
        .subquery()
    )
    return sa.select(*changed.c, *totals.c).select_from(totals.outerjoin(changed, sa.true()))


class _Times:
    """The times of change of the rows that one read returns."""

    def __init__(self, before: KeptCell | None) -> None:
        self.old: list[str] = []  # uuids of rows that should be as they were kept
        self._since = before.since if before is not None else datetime.datetime.min
        self._latest = self._since + OVERLAP

    def noted(self, rows: Iterable[sa.Row[Any]]) -> Iterator[sa.Row[Any]]:
        """Yield the rows."""
        for row in rows:
            # A row that was never changed and has lost its time of creation counts as changed.
            changed_at = row.changed_at or datetime.datetime.max
            if changed_at < self._since:
                self.old.append(row.uuid)
            elif row.changed_at is not None:
                self._latest = max(self._latest, changed_at)
            yield row

    def since(self, began: datetime.datetime) -> datetime.datetime:
        """Return the time from which on changes are read next, after a read that began then."""
        # In a quiet cloud the latest change may be old.
        earliest = began - datetime.timedelta(seconds=WHOLE_EVERY)
        return min(began, max(self._latest, earliest)) - OVERLAP
