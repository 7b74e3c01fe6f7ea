"""VMs that exist in Nova's databases alone, thousands at a time: no compute runs them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.claims import request


def add_vms(
    cloud: NovaCloud,
    hosts: Sequence[str | None],
    *,
    uuids: Sequence[str] | None = None,
    extra_specs: Mapping[str, str] | None = None,
    hints: Mapping[str, list[str]] | None = None,
    group: str | None = None,
    siblings: int = 1,
    reservation_id: str = "r-rows",
    vcpus: int = 1,
    memory_mb: int = 512,
    cell: str = "cell1",
) -> list[str]:
    """Write one VM for each host named, as Nova leaves them behind once they run.

    :param hosts: None for a VM that has been scheduled and has not reached its host
    :param siblings: of how many VMs their request was made
    :returns: their uuids, in the order of the hosts
    """
    context = nova_context.get_admin_context()
    mapping = cloud.cell_mappings[cell]
    asked = request(
        count=siblings, group=group, vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs
    )
    asked.scheduler_hints = dict(hints or {})
    spec = json.dumps(asked.obj_to_primitive())
    flavor = json.dumps({"cur": asked.flavor.obj_to_primitive(), "old": None, "new": None})
    made = list(uuids or (uuidutils.generate_uuid() for _ in hosts))
    with (
        nova_context.target_cell(context, mapping) as in_cell,
        main_db.get_context_manager(in_cell).writer.using(in_cell) as session,
    ):
        session.execute(
            sa.insert(main_models.Instance),
            [
                {
                    "uuid": uuid,
                    "host": host,
                    "node": host,
                    "reservation_id": reservation_id,
                    "instance_type_id": 1,
                    "vcpus": vcpus,
                    "memory_mb": memory_mb,
                    "root_gb": 1,
                    "ephemeral_gb": 0,
                    "vm_state": vm_states.ACTIVE if host else vm_states.BUILDING,
                    "project_id": "project",
                    "user_id": "user",
                    "hidden": False,
                    "deleted": 0,
                }
                for uuid, host in zip(made, hosts, strict=True)
            ],
        )
        session.execute(
            sa.insert(main_models.InstanceExtra),
            [{"instance_uuid": uuid, "flavor": flavor, "deleted": 0} for uuid in made],
        )
    with api_db.context_manager.writer.using(context) as session:
        session.execute(
            sa.insert(api_models.InstanceMapping),
            [
                {
                    "instance_uuid": uuid,
                    "cell_id": mapping.id,
                    "project_id": "project",
                    "queued_for_delete": False,
                }
                for uuid in made
            ],
        )
        session.execute(
            sa.insert(api_models.RequestSpec),
            [{"instance_uuid": uuid, "spec": spec} for uuid in made],
        )
    return made


def set_down(cloud: NovaCloud, host: str, down: bool) -> None:
    """Let a compute fail, or come back."""
    service = main_models.Service
    _in_cell(cloud, sa.update(service).where(service.host == host), {"forced_down": down})


def purge(cloud: NovaCloud, ended: Sequence[str]) -> None:
    """Remove the rows of deleted VMs and ended moves, as ``nova-manage db purge`` does.

    :param ended: states of migrations that have ended
    """
    vm, migration = main_models.Instance, main_models.Migration
    _in_cell(cloud, sa.delete(migration).where(migration.status.in_(ended)), None)
    with (
        nova_context.target_cell(
            nova_context.get_admin_context(), cloud.cell_mappings["cell1"]
        ) as in_cell,
        main_db.get_context_manager(in_cell).writer.using(in_cell) as session,
    ):
        gone = list(session.scalars(sa.select(vm.uuid).where(vm.deleted != 0)))
        extra = main_models.InstanceExtra
        for model, column in (
            (extra, extra.instance_uuid),
            (migration, migration.instance_uuid),
            (vm, vm.uuid),
        ):
            session.execute(sa.delete(model).where(column.in_(gone)))
    for model in (api_models.InstanceMapping, api_models.RequestSpec):
        _in_api(sa.delete(model).where(model.instance_uuid.in_(gone)))


def change_vm(cloud: NovaCloud, uuid: str, **values: Any) -> None:
    """Change the columns of a VM in its cell."""
    _in_cell(
        cloud, sa.update(main_models.Instance).where(main_models.Instance.uuid == uuid), values
    )


def add_migration(cloud: NovaCloud, uuid: str, **values: Any) -> None:
    """Write a migration of a VM."""
    _in_cell(
        cloud,
        sa.insert(main_models.Migration),
        {"instance_uuid": uuid, "hidden": False, "deleted": 0, **values},
    )


def change_migrations(cloud: NovaCloud, uuid: str, **values: Any) -> None:
    """Change the migrations of a VM."""
    migration = main_models.Migration
    _in_cell(cloud, sa.update(migration).where(migration.instance_uuid == uuid), values)


def set_flavors(cloud: NovaCloud, uuid: str, **flavors: objects.Flavor | None) -> None:
    """Set the flavors of a VM that is resized: cur, old, new."""
    stored = {
        name: flavor.obj_to_primitive() if flavor else None for name, flavor in flavors.items()
    }
    extra = main_models.InstanceExtra
    _in_cell(
        cloud,
        sa.update(extra).where(extra.instance_uuid == uuid),
        {"flavor": json.dumps(stored)},
    )


def land(cloud: NovaCloud, uuid: str, host: str) -> None:
    """Let a VM reach its host, as the compute there notes it."""
    change_vm(cloud, uuid, host=host, node=host, vm_state=vm_states.ACTIVE)


def delete(cloud: NovaCloud, uuids: Sequence[str]) -> None:
    """Delete VMs, as Nova does: their rows stay until they are archived."""
    vm = main_models.Instance
    gone = {"deleted": vm.id, "vm_state": vm_states.DELETED}
    _in_cell(cloud, sa.update(vm).where(vm.uuid.in_(list(uuids))), gone)
    queue_for_delete(uuids, True)


def queue_for_delete(uuids: Sequence[str], queued: bool) -> None:
    """Note that VMs are deleted, softly or for ever, or take that back."""
    mapping = api_models.InstanceMapping
    _in_api(
        sa.update(mapping)
        .where(mapping.instance_uuid.in_(list(uuids)))
        .values(queued_for_delete=queued)
    )


def write_over(
    cloud: NovaCloud, uuid: str, *, request_spec: str | None = None, flavor: str | None = None
) -> None:
    """Put another text where Nova keeps a VM's request or its flavor."""
    if request_spec is not None:
        spec = api_models.RequestSpec
        _in_api(sa.update(spec).where(spec.instance_uuid == uuid).values(spec=request_spec))
    if flavor is not None:
        extra = main_models.InstanceExtra
        _in_cell(cloud, sa.update(extra).where(extra.instance_uuid == uuid), {"flavor": flavor})


def set_usage(cloud: NovaCloud, host: str, *, vcpus: int, memory_mb: int, vms: int) -> None:
    """Set what a compute reports to be in use."""
    node = main_models.ComputeNode
    _in_cell(
        cloud,
        sa.update(node).where(node.host == host),
        {
            "vcpus_used": vcpus,
            "memory_mb_used": memory_mb,
            "free_ram_mb": node.memory_mb - memory_mb,
            "running_vms": vms,
            "stats": json.dumps({"num_instances": vms}),
        },
    )


def clear(cloud: NovaCloud, cell: str = "cell1") -> None:
    """Remove all VMs of a cell, and all server groups."""
    main = (main_models.Migration, main_models.InstanceExtra, main_models.Instance)
    for model in main:
        _in_cell(cloud, sa.delete(model), None, cell)
    for api_model in (
        api_models.InstanceMapping,
        api_models.RequestSpec,
        api_models.BuildRequest,
        api_models.InstanceGroupMember,
        api_models.InstanceGroupPolicy,
        api_models.InstanceGroup,
    ):
        _in_api(sa.delete(api_model))


def _in_api(statement: Any) -> None:
    context = nova_context.get_admin_context()
    with api_db.context_manager.writer.using(context) as session:
        session.execute(statement)


def _in_cell(
    cloud: NovaCloud, statement: Any, values: Mapping[str, Any] | None, cell: str = "cell1"
) -> None:
    context = nova_context.get_admin_context()
    with (
        nova_context.target_cell(context, cloud.cell_mappings[cell]) as in_cell,
        main_db.get_context_manager(in_cell).writer.using(in_cell) as session,
    ):
        session.execute(statement.values(**values) if values is not None else statement)
