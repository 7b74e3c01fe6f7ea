"""What the databases of Nova and Placement say of some instances, read and in part written."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils

from hpc_sched.nova_glue.claim.holds import hold_provider
from tests.functional import placement_state
from tests.functional.tested_cloud import TestedCloud
from tests.group_histories.seen_cloud import Rows

# Longer than any service may be silent.
_LONG_AGO = datetime.timedelta(days=30)


class Row(NamedTuple):
    """An instance in a cell."""

    vm_state: str
    task_state: str | None
    node: str | None
    is_buried: bool  # in cell0: it has never had a host


def instances(cloud: TestedCloud, uuids: Collection[str]) -> dict[str, Row]:
    """Return the instances of some uuids that are not deleted. One query a cell."""
    model, found = models.Instance, dict[str, Row]()
    wanted = sa.select(model.uuid, model.vm_state, model.task_state, model.node).where(
        model.deleted == 0, model.uuid.in_(uuids)
    )
    for name in cloud.cell_mappings:
        with _cell(cloud, name) as session:
            for uuid, *values in session.execute(wanted):
                # One that is buried may be in both for a moment.
                if name != "cell0" or uuid not in found:
                    found[uuid] = Row(*values, name == "cell0")
    return found


def allocations(cloud: TestedCloud) -> dict[str, Rows]:
    """Return what each consumer has in Placement, by name of the provider. One query."""
    found: dict[str, Rows] = {}
    for consumer, amounts in placement_state.allocations(cloud).items():
        found[consumer] = {
            (hold_provider.UUID if at == hold_provider.NAME else at, name): used
            for at, name, used in amounts
        }
    return found


def last_migration(cloud: TestedCloud, uuid: str) -> str:
    """Return the uuid of the last migration of an instance. One query."""
    model = models.Migration
    wanted = sa.select(model.uuid).where(model.instance_uuid == uuid).order_by(model.id.desc())
    with _cell(cloud) as session:
        return str(session.scalars(wanted.limit(1)).one())


def nodes(cloud: TestedCloud) -> dict[str, tuple[int, int]]:
    """Return the VCPUs that each compute node reports, and how many are in use. One query."""
    model = models.ComputeNode
    wanted = sa.select(model.hypervisor_hostname, model.vcpus, model.vcpus_used)
    with _cell(cloud) as session:
        return {name: tuple(used) for name, *used in session.execute(wanted)}


def set_silent(cloud: TestedCloud, host: str, *, is_silent: bool) -> None:
    """Let a compute service have reported long ago, or just now."""
    seen = timeutils.utcnow() - (_LONG_AGO if is_silent else datetime.timedelta())
    model = models.Service
    change = sa.update(model).where(model.host == host, model.binary == "nova-compute")
    with _cell(cloud, is_writer=True) as session:
        session.execute(change.values(last_seen_up=seen))


def faults(cloud: TestedCloud, uuids: Collection[str]) -> Mapping[str, str]:
    """Return the last fault of each instance that has one. One query a cell."""
    model, found = models.InstanceFault, dict[str, str]()
    wanted = sa.select(model.instance_uuid, model.message, model.details).where(
        model.instance_uuid.in_(uuids)
    )
    for name in cloud.cell_mappings:
        with _cell(cloud, name) as session:
            for uuid, message, details in session.execute(wanted.order_by(model.id)):
                found[uuid] = f"{message} {(details or '')[-300:]}"
    return found


@contextmanager
def _cell(cloud: TestedCloud, name: str = "cell1", *, is_writer: bool = False) -> Iterator[Any]:
    mapping, admin = cloud.cell_mappings[name], nova_context.get_admin_context()
    with nova_context.target_cell(admin, mapping) as in_cell:
        manager = main_db.get_context_manager(in_cell)
        with (manager.writer if is_writer else manager.reader).using(in_cell) as session:
            yield session
