"""Build requests: what nova-api writes of VMs before they are scheduled."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_utils import timeutils

MODELS = (api_models.BuildRequest, api_models.InstanceMapping)


def instance_text(
    uuid: str,
    reservation_id: str,
    number: int,
    flavor: objects.Flavor | None = None,
    name: str | None = None,
) -> str:
    """Return an instance as a build request holds it.

    :param number: of the VM among those of its request
    :param name: its display name
    """
    vm = objects.Instance(
        uuid=uuid, reservation_id=reservation_id, launch_index=number, image_ref="image"
    )
    if name is not None:
        vm.display_name = name
    if flavor is not None:
        vm.flavor = flavor
    return json.dumps(vm.obj_to_primitive())


def add(
    uuids: Sequence[str],
    reservation_id: str,
    flavor: objects.Flavor | None = None,
    names: Sequence[str | None] = (),
) -> list[str]:
    """Write the rows of a request's VMs, except of those that have some; return the others."""
    has_some = set().union(*(_in(model, uuids) for model in MODELS))
    rows: list[dict[str, Any]] = [
        {
            "instance_uuid": uuid,
            "project_id": "project",
            "instance": instance_text(uuid, reservation_id, number, flavor, name),
            "created_at": timeutils.utcnow(),
        }
        for number, (uuid, name) in enumerate(zip(uuids, names or [None] * len(uuids), strict=True))
        if uuid not in has_some
    ]
    if rows:
        build, mapping = map(sa.insert, MODELS)
        with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
            session.execute(build, rows)
            session.execute(
                mapping,
                [{name: row[name] for name in ("instance_uuid", "project_id")} for row in rows],
            )
    return [row["instance_uuid"] for row in rows]


def known(uuids: Sequence[str]) -> set[str]:
    """Return those VMs that have a build request."""
    return _in(api_models.BuildRequest, uuids)


def remove(uuids: Sequence[str]) -> None:
    """Remove the rows, as the conductor does once the VMs are in a cell or refused."""
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        for model in MODELS:
            session.execute(sa.delete(model).where(model.instance_uuid.in_(list(uuids))))


def delete(uuids: Sequence[str]) -> None:
    """Remove build requests, as nova-api does if users delete VMs before they have a host."""
    build = api_models.BuildRequest
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        session.execute(sa.delete(build).where(build.instance_uuid.in_(list(uuids))))


def bury(uuids: Sequence[str]) -> None:
    """Map VMs to cell0, as the conductor does with all of a request that has failed."""
    mapping, cell = api_models.InstanceMapping, api_models.CellMapping
    cell0 = sa.select(cell.id).where(cell.uuid == objects.CellMapping.CELL0_UUID).scalar_subquery()
    update = sa.update(mapping).where(mapping.instance_uuid.in_(list(uuids)))
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        session.execute(update.values(cell_id=cell0))
    delete(uuids)


def _in(model: Any, uuids: Sequence[str]) -> set[str]:
    column = model.instance_uuid
    with api_db.context_manager.reader.using(nova_context.get_admin_context()) as session:
        return set(session.scalars(sa.select(column).where(column.in_(list(uuids)))))
