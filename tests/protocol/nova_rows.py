"""The rows of Nova's databases that the plugin reads, in memory, behind ``io/databases``.

Its queries run as they are, on SQLite. One cell, with id 1; cell0 has id 0.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import sqlalchemy as sa
from nova import objects
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils import timeutils

from hpc_sched import exceptions
from hpc_sched.core.logged.decision_summary import READS
from hpc_sched.nova_glue.io import circuit_breaker, databases, request_deadline

CELL0, CELL = 0, 1
_MODELS = (
    api_models.BuildRequest,
    api_models.InstanceMapping,
    api_models.CellMapping,
    api_models.InstanceGroup,
    api_models.InstanceGroupMember,
    api_models.RequestSpec,
    main_models.ComputeNode,
    main_models.Instance,
    main_models.Migration,
    main_models.Service,
)
# When everything was created, and seen last: nothing in a history is older than a minute.
NOW = "2026-01-01 00:00:00.000000"
LONG_AGO = "2025-12-31 00:00:00.000000"


class NovaRows:
    """Build requests, mappings, groups and instances."""

    def __init__(self) -> None:
        """Make the tables."""
        self._engine = sa.create_engine(
            "sqlite://", poolclass=sa.pool.StaticPool, connect_args={"check_same_thread": False}
        )
        self._connection = self._engine.connect()
        for model in _MODELS:
            columns = [
                sa.Column(one.name, one.type, primary_key=one.name == "id")
                for one in model.__table__.columns
            ]
            sa.Table(model.__tablename__, sa.MetaData(), *columns).create(self._connection)
        # Rows are written without SQLAlchemy, which takes longer than a request.
        driver = self._connection.connection.driver_connection
        assert driver is not None
        self._driver = driver.cursor()

    def clear(self) -> None:
        """Remove all rows."""
        self.is_lost = False
        for model in _MODELS:
            self._run(f"DELETE FROM {model.__tablename__}")
        self._add("cell_mappings", id=CELL0, uuid=objects.CellMapping.CELL0_UUID)

    def add_group(self, uuid: str) -> None:
        """Add a server group."""
        self._add("instance_groups", uuid=uuid, name=uuid, user_id="user", project_id="project")

    def remove_group(self, uuid: str) -> None:
        """Remove a server group and its list of members, as its deletion does."""
        for (number,) in self._found("SELECT id FROM instance_groups WHERE uuid = ?", uuid):
            self._run("DELETE FROM instance_group_member WHERE group_id = ?", number)
        self._run("DELETE FROM instance_groups WHERE uuid = ?", uuid)

    def add_request(self, uuids: Sequence[str], group: str | None) -> None:
        """Add what nova-api writes for the VMs of a request."""
        groups = self._found("SELECT id FROM instance_groups WHERE uuid = ?", group)
        for number, uuid in enumerate(uuids):
            fields = {"uuid": uuid, "reservation_id": f"r-{uuids[0]}", "launch_index": number}
            own = {"instance_uuid": uuid, "project_id": "project"}
            text = json.dumps({"nova_object.data": fields})
            self._add("build_requests", **own, instance=text, created_at=NOW)
            unmapped = {"cell_id": None, "queued_for_delete": False, "created_at": NOW}
            self._add("instance_mappings", **own, **unmapped)
            for (group_id,) in groups:
                self._add("instance_group_member", instance_uuid=uuid, group_id=group_id)

    def remove_build_request(self, uuid: str) -> None:
        """Remove a build request."""
        self._run("DELETE FROM build_requests WHERE instance_uuid = ?", uuid)

    def has_build_request(self, uuid: str) -> bool:
        """True if a VM has a build request."""
        return bool(self._found("SELECT id FROM build_requests WHERE instance_uuid = ?", uuid))

    def map_to(self, uuid: str, cell: int) -> None:
        """Map a VM to a cell."""
        self._run("UPDATE instance_mappings SET cell_id = ? WHERE instance_uuid = ?", cell, uuid)

    def is_in_cell0(self, uuid: str) -> bool:
        """True if a VM is mapped to cell0."""
        found = self._found("SELECT cell_id FROM instance_mappings WHERE instance_uuid = ?", uuid)
        return found == [(CELL0,)]

    def remove_mapping(self, uuid: str) -> None:
        """Remove the mapping of a VM that is deleted when it has been placed."""
        self._run("DELETE FROM instance_mappings WHERE instance_uuid = ?", uuid)

    def add_instance(self, uuid: str, reservation: str, host: str) -> None:
        """Add a VM that runs to the cell."""
        state = {"vm_state": "active", "task_state": None, "host": host, "node": host}
        self._add("instances", uuid=uuid, reservation_id=reservation, deleted=0, **state)

    def set_instance(self, uuid: str, **values: Any) -> None:
        """Set columns of a VM in the cell; add it if it is not there."""
        if not self._found("SELECT id FROM instances WHERE uuid = ?", uuid):
            self._add("instances", uuid=uuid, deleted=0)
        names = ", ".join(f"{name} = ?" for name in values)
        self._run(f"UPDATE instances SET {names} WHERE uuid = ?", *values.values(), uuid)

    def end_instance(self, uuid: str) -> None:
        """Delete a VM as Nova does: rows stay, the list of the group's members too."""
        self.remove_build_request(uuid)
        self._run("UPDATE instances SET deleted = id WHERE uuid = ?", uuid)
        ended = "UPDATE instance_mappings SET queued_for_delete = 1 WHERE instance_uuid = ?"
        self._run(ended, uuid)

    def place(self, uuid: str, host: str | None) -> None:
        """Set the host of a VM in the cell; None while it is unshelved."""
        state = ("active", None) if host is not None else ("shelved_offloaded", "unshelving")
        update = "UPDATE instances SET vm_state = ?, task_state = ?, host = ?, node = ?"
        self._run(f"{update} WHERE uuid = ?", *state, host, host, uuid)

    def delete(self, uuid: str) -> None:
        """Remove a VM, as its deletion leaves the databases."""
        self.remove_build_request(uuid)
        self._run("DELETE FROM instances WHERE uuid = ?", uuid)
        self._run("DELETE FROM instance_group_member WHERE instance_uuid = ?", uuid)
        ended = "UPDATE instance_mappings SET queued_for_delete = 1 WHERE instance_uuid = ?"
        self._run(ended, uuid)

    def set_service(
        self, host: str, *, is_down: bool = False, is_disabled: bool = False, is_dead: bool = False
    ) -> None:
        """Set whether a compute service is up.

        :param is_down: forced down by an operator
        :param is_dead: not seen for long
        """
        self.remove_service(host)
        kind = {"binary": "nova-compute", "topic": "compute", "deleted": 0}
        states = {"disabled": is_disabled, "forced_down": is_down}
        seen = {"last_seen_up": LONG_AGO if is_dead else NOW, "created_at": LONG_AGO}
        self._add("services", host=host, **kind, **states, **seen)

    def remove_service(self, host: str) -> None:
        """Remove the record of a compute service."""
        self._run("DELETE FROM services WHERE host = ?", host)

    def add_node(self, host: str, node: str, vcpus: int) -> None:
        """Add a node of a compute service.

        :param vcpus: 0 on bare metal
        """
        ratios = {f"{name}_allocation_ratio": 1.0 for name in ("cpu", "ram", "disk")}
        sizes = {"vcpus": vcpus, "memory_mb": 1 << 16, "local_gb": 1000}
        names = {"host": host, "hypervisor_hostname": node}
        self._add("compute_nodes", deleted=0, **names, **sizes, **ratios)

    def rows(self, query: Any) -> list[Any]:
        """Return the rows of a query."""
        if self.is_lost:
            raise OSError("no route to host")
        return list(self._connection.execute(query).all())

    def _add(self, table: str, **values: Any) -> None:
        places = ", ".join("?" * len(values))
        self._run(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())

    def _found(self, statement: str, *values: Any) -> list[Any]:
        return list(self._driver.execute(statement, values))

    def _run(self, statement: str, *values: Any) -> None:
        self._driver.execute(statement, values)


@contextmanager
def installed(rows: NovaRows) -> Iterator[None]:
    """Let the plugin read these rows, in the thread that asks for them."""

    def read_cells(
        context: Any, arguments: dict[int, list[str]] | None, read: Callable[[Any, list[str]], Any]
    ) -> Any:
        if arguments is not None and CELL not in arguments:
            return databases.CellAnswers()
        found = read(context, arguments[CELL] if arguments else [])
        return databases.CellAnswers(rows=list(found))

    def ask_one(_source: str, read: Callable[[], Any], *_: Any) -> Any:
        if request_deadline.remaining() <= 0:
            raise exceptions.UnansweredError("no answer in time")
        with request_deadline.charged(READS):
            return read()

    def utcnow(*_: Any) -> datetime.datetime:
        return datetime.datetime.fromisoformat(NOW)

    with (
        mock.patch.object(timeutils, "utcnow", utcnow),
        mock.patch.object(databases, "api_rows", lambda _context, query: rows.rows(query)),
        mock.patch.object(databases, "cell_rows", lambda _context, query: rows.rows(query)),
        mock.patch.object(databases, "read_cells", read_cells),
        mock.patch.object(circuit_breaker, "ask_one", ask_one),
    ):
        yield
