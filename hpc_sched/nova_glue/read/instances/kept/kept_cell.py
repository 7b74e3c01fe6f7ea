"""The VMs of one cell as they were read last, and what is changed in them by rows read later."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from nova.compute import task_states, vm_states

from hpc_sched.nova_glue.read.instances import placed_instance
from hpc_sched.nova_glue.read.instances.kept import host_vms
from hpc_sched.nova_glue.read.instances.kept.host_vms import HostVMs, Place
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance


class Totals(NamedTuple):
    """Sums over the rows that are not deleted, which the database computes too.

    Ids are not used twice, and where Nova changes the node of a row it writes the id of the compute
    node: a row that is gone, new or on another node changes one of them. Nodes of bare metal that
    change their service keep theirs.
    """

    rows: int = 0
    ids: int = 0
    places: int = 0  # ids of rows times those of their compute nodes

    def plus(self, row: KeptVM, times: int = 1) -> Totals:
        """Return the sums with a row more, or with ``times`` -1 without it."""
        return Totals(
            self.rows + times,
            self.ids + times * row.number,
            self.places + times * row.number * row.node,
        )


class KeptVM(NamedTuple):
    """A row of the table of instances that is not deleted."""

    number: int  # its id
    node: int  # id of its compute node, 0 for none
    vm: PlacedInstance | None  # None if it is the hidden twin of an instance in another cell
    is_moving: bool  # it migrates, or waits for its resize to be confirmed
    is_leaving: bool  # its deletion has begun, and may end without a new time of change
    awaits_host: bool

    @property
    def is_steady(self) -> bool:
        """True for the many VMs of which nothing else matters."""
        return not (self.is_moving or self.is_leaving or self.awaits_host)


NO_ROWS = Totals()
# Deletion goes on for as long as Placement and others take, and ends with no change but itself. A
# VM that is soft-deleted for days is changed once more before.
LEAVING = (task_states.DELETING, task_states.SOFT_DELETING)


@dataclass(frozen=True, slots=True)
class KeptCell:
    """The VMs of a cell, as one moment of its database had them. Never changed, only replaced."""

    uuid: str
    rows: Mapping[str, KeptVM] = field(default_factory=dict)  # by uuid of the instance
    totals: Totals = NO_ROWS
    unsteady: frozenset[str] = frozenset()  # uuids of rows that are not steady
    migrating: Sequence[sa.Row[Any]] = ()  # see placed_instance.read_migrating
    at: Mapping[Place, HostVMs] = field(default_factory=dict)  # with their applications
    # Uuids of instances on hosts that are not in ``at`` as they are, each with what is there.
    unplaced: Mapping[str, PlacedInstance | None] = field(default_factory=dict)
    since: datetime.datetime = datetime.datetime.min  # rows changed before were seen
    last_id: int = 0  # of the rows that were seen
    whole_at: float = -math.inf  # monotonic time at which all rows were read

    def find(self, uuid: str) -> PlacedInstance | None:
        """Return an instance, or None if it is not in the cell."""
        row = self.rows.get(uuid)
        return None if row is None else row.vm

    @property
    def awaiting(self) -> list[PlacedInstance]:
        """The instances that look for a host."""
        return [vm for row in self._unsteady_rows() if row.awaits_host and (vm := row.vm)]

    @property
    def moving(self) -> list[str]:
        """Uuids of the instances that migrate, or wait for their resize to be confirmed."""
        return [vm.uuid for row in self._unsteady_rows() if row.is_moving and (vm := row.vm)]

    @property
    def leaving(self) -> list[str]:
        """Uuids of the rows whose deletion has begun."""
        return [uuid for uuid in sorted(self.unsteady) if self.rows[uuid].is_leaving]

    @property
    def on_hosts(self) -> list[PlacedInstance]:
        """All instances on hosts."""
        return [vm for row in self.rows.values() if (vm := row.vm) is not None and vm.host]

    def with_rows(self, found: Iterable[sa.Row[Any]]) -> Self:
        """Return the cell with rows as they are now, deleted ones too. O(rows kept) to copy."""
        rows, totals, unsteady = dict(self.rows), self.totals, set(self.unsteady)
        unplaced, last_id = dict(self.unplaced), self.last_id
        for row in found:
            last_id = max(last_id, row.id)
            before, now = rows.pop(row.uuid, None), _kept(row)
            if before is not None:
                totals = totals.plus(before, -1)
            if now is not None:
                rows[row.uuid] = now
                totals = totals.plus(now)
            (unsteady.discard if now is None or now.is_steady else unsteady.add)(row.uuid)
            was = before.vm if before is not None and before.vm and before.vm.host else None
            if (now.vm if now is not None else None) != (before.vm if before is not None else None):
                unplaced.setdefault(row.uuid, was)
        return replace(
            self,
            rows=rows,
            totals=totals,
            unsteady=frozenset(unsteady),
            unplaced=unplaced,
            last_id=last_id,
        )

    def placed(
        self, read: Sequence[PlacedInstance], is_settled: Callable[[PlacedInstance], bool]
    ) -> Self:
        """Return the cell with changed instances on their hosts.

        :param read: those of :meth:`to_read` with their applications, as far as these are known
        :param is_settled: whether an instance need not be read again
        """
        if not self.unplaced:
            return self
        gone = [was for was in self.unplaced.values() if was is not None]
        return replace(
            self,
            at=host_vms.corrected(self.at, gone, read),
            unplaced={vm.uuid: vm for vm in read if not is_settled(vm)},
        )

    def unread(self) -> Self:
        """Return the cell without the applications of its instances."""
        return replace(self, at={}, unplaced={vm.uuid: None for vm in self.on_hosts})

    def to_read(self) -> list[PlacedInstance]:
        """Return the instances on hosts whose applications must be read."""
        found = (self.find(uuid) for uuid in self.unplaced)
        return [vm for vm in found if vm is not None and vm.host]

    def _unsteady_rows(self) -> list[KeptVM]:
        return [self.rows[uuid] for uuid in sorted(self.unsteady)]


def whole(uuid: str, found: Iterable[sa.Row[Any]]) -> KeptCell:
    """Return a cell with all its rows. O(rows)."""
    rows = {row.uuid: kept for row in found if (kept := _kept(row)) is not None}
    numbers = [(row.number, row.node) for row in rows.values()]
    return KeptCell(
        uuid,
        rows,
        Totals(len(rows), sum(n for n, _ in numbers), sum(n * node for n, node in numbers)),
        frozenset(uuid for uuid, row in rows.items() if not row.is_steady),
        unplaced={uuid: None for uuid, row in rows.items() if row.vm is not None and row.vm.host},
        last_id=max((n for n, _ in numbers), default=0),
    )


def _kept(row: sa.Row[Any]) -> KeptVM | None:
    """Return a row of the table of instances, or None if it is deleted."""
    if row.deleted != 0:
        return None
    state, task = row.vm_state, row.task_state
    # A cross-cell resize keeps a hidden twin of the instance in its other cell.
    is_seen = not row.hidden
    vm = None
    if is_seen:
        disk = placed_instance.disk_of(row.image_ref, row.root_gb, row.ephemeral_gb)
        vm = PlacedInstance(
            *(row.uuid, row.host or "", row.node, row.reservation_id, row.instance_type_id),
            *(row.vcpus or 0, row.memory_mb or 0, disk),
            since=None if row.host else row.changed_at,
        )
    return KeptVM(
        row.id,
        row.compute_id or 0,
        vm,
        is_seen and (state == vm_states.RESIZED or task in placed_instance.MIGRATING),
        state == vm_states.DELETED or task in LEAVING,
        is_seen and not row.host and placed_instance.awaits_host(state, task),
    )
