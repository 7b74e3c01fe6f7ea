"""Writes the population of :mod:`tests.functional.population` into Nova's databases, in bulk."""

from __future__ import annotations

import functools
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from nova import objects
from nova.compute import task_states, vm_states
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from tests.functional import build_requests
from tests.functional.claims import request
from tests.functional.engines import CELLS, MAIN, Databases
from tests.functional.population import (
    CPU_INFO,
    DELETED,
    FLAVOR_ID,
    FLAVORS,
    OLD,
    VCPUS,
    VM,
    Population,
    group_uuid,
    hosts_of,
    is_disabled,
    leaves,
    vcpus_of,
)

FORGOTTEN = 3  # VMs that are gone for each that is not
OLD_ID, COPY = 1000, 100000  # what is added to the ids of groups and rows
IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"


def write(databases: Databases, population: Population) -> None:
    """Write a population in bulk, and let the database count its rows."""
    _write_api(databases, population)
    for cell in MAIN:
        _write_cell(databases, population, cell)
    _write_forgotten(databases)
    databases.analyse()


def _write_forgotten(databases: Databases) -> None:
    """Write the rows of VMs that are gone, copies of the others made by the database itself."""
    with databases.engines["api"].begin() as connection:
        for copy in range(FORGOTTEN):
            _copy(connection, copy, api_models.InstanceMapping, queued_for_delete=sa.true())
            _copy(connection, copy, api_models.RequestSpec, spec=sa.literal("{}"))
            group = api_models.InstanceGroupMember.group_id + OLD_ID
            _copy(connection, copy, api_models.InstanceGroupMember, group_id=group)
    gone = {"deleted": main_models.Instance.id, "vm_state": sa.literal(vm_states.DELETED)}
    for cell in MAIN:
        with databases.engines[cell].begin() as connection:
            for copy in range(FORGOTTEN):
                _copy(connection, copy, main_models.Instance, **gone)
                _copy(connection, copy, main_models.InstanceExtra, flavor=sa.literal("{}"))
                # The record of a move is deleted when it is archived, no sooner.
                _copy(connection, copy, main_models.Migration, status=sa.literal("confirmed"))


def _copy(connection: sa.Connection, copy: int, model: Any, **changed: Any) -> None:
    """Write rows once more, for VMs of other uuids."""
    name = "uuid" if model is main_models.Instance else "instance_uuid"
    changed |= {
        "id": model.id + (copy + 1) * COPY,
        name: sa.func.substr(getattr(model, name), 1, 30) + f"{copy:06}",
    }
    values = {column.name: changed.get(column.name, column) for column in model.__table__.columns}
    originals = sa.select(*values.values()).where(model.id < COPY)
    connection.execute(sa.insert(model).from_select(list(values), originals))


def _insert(connection: sa.Connection, model: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, which all have the same columns, a thousand at a time."""
    rest = iter(rows)
    while some := list(itertools.islice(rest, 1000)):
        connection.execute(sa.insert(model), some)


def _write_api(databases: Databases, population: Population) -> None:
    groups = {name: number for number, name in enumerate(sorted(population.by_group), 1)}
    old = {f"{OLD}{name}": OLD_ID + number for name, number in groups.items()}
    with databases.engines["api"].begin() as connection:
        _insert(
            connection,
            api_models.InstanceMapping,
            (
                {
                    "instance_uuid": vm.uuid,
                    "cell_id": databases.cell_ids[vm.cell] if vm.cell else None,
                    "project_id": "project",
                    "queued_for_delete": vm.deleted,
                }
                for vm in population.vms
            ),
        )
        _insert(
            connection,
            api_models.RequestSpec,
            (
                {"instance_uuid": vm.uuid, "spec": _request_text(vm.flavor, vm.group)}
                for vm in population.vms
            ),
        )
        _insert(connection, api_models.BuildRequest, _build_requests(population))
        _insert(
            connection,
            api_models.InstanceGroup,
            (
                {"id": number, "uuid": group_uuid(name), "name": name, "project_id": "project"}
                for name, number in (groups | old).items()
            ),
        )
        _insert(
            connection,
            api_models.InstanceGroupPolicy,
            (
                {"group_id": number, "policy": "soft-anti-affinity"}
                for number in (groups | old).values()
            ),
        )
        _insert(
            connection,
            api_models.InstanceGroupMember,
            (
                {"group_id": groups[vm.group], "instance_uuid": vm.uuid}
                for vm in population.vms
                if vm.group
            ),
        )
        _write_flavors(connection)
        _write_aggregates(connection)


def _build_requests(population: Population) -> Iterator[dict[str, Any]]:
    """Yield build requests, the VMs of each reservation numbered from 0."""
    numbers: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
    for vm in population.vms:
        if vm.build_request:
            number, flavor = next(numbers[vm.reservation]), _flavor(vm.flavor)
            yield {
                "instance_uuid": vm.uuid,
                "project_id": "project",
                "created_at": vm.build_request,
                "instance": build_requests.instance_text(vm.uuid, vm.reservation, number, flavor),
            }


def _write_flavors(connection: sa.Connection) -> None:
    _insert(
        connection,
        api_models.Flavors,
        (
            {
                "id": FLAVOR_ID[name],
                "name": name,
                "flavorid": name,
                "vcpus": VCPUS[name],
                "memory_mb": 512,
                "root_gb": 1,
                "ephemeral_gb": 0,
                "swap": 0,
                "disabled": False,
                "is_public": True,
            }
            for name in FLAVORS
        ),
    )
    _insert(
        connection,
        api_models.FlavorExtraSpecs,
        (
            {"flavor_id": FLAVOR_ID[name], "key": key, "value": value}
            for name, extra_specs in FLAVORS.items()
            for key, value in extra_specs.items()
        ),
    )


def _write_aggregates(connection: sa.Connection) -> None:
    """Write an aggregate for each leaf, for each cell's processors, and others."""
    said = {leaf: (hosts, {"hpc:leaf": leaf}) for leaf, hosts in leaves().items()}
    for cell in CELLS:
        said[f"cpu-{cell}"] = (hosts_of(cell)[:100], {"hpc:processor": f"type-{cell}"})
    for number in range(50):
        said[f"zone{number}"] = (hosts_of("cell1")[number : number + 5], {"hpcx": "1", "ssd": "y"})
    for number, (name, (hosts, metadata)) in enumerate(said.items(), 1):
        where = {"aggregate_id": number}
        connection.execute(
            sa.insert(api_models.Aggregate).values(id=number, name=name, uuid=group_uuid(name))
        )
        _insert(connection, api_models.AggregateHost, ({"host": h, **where} for h in hosts))
        _insert(
            connection,
            api_models.AggregateMetadata,
            ({"key": key, "value": value, **where} for key, value in metadata.items()),
        )


def _write_cell(databases: Databases, population: Population, cell: str) -> None:
    here = [(vm, False) for vm in population.vms if vm.cell == cell]
    here += [(vm, True) for vm in population.vms if vm.hidden_in == cell]
    with databases.engines[cell].begin() as connection:
        _insert(
            connection,
            main_models.Instance,
            (_instance(number, vm, hidden) for number, (vm, hidden) in enumerate(here, 1)),
        )
        _insert(
            connection,
            main_models.InstanceExtra,
            (
                {
                    "instance_uuid": vm.uuid,
                    "deleted": number if vm.deleted else 0,
                    "flavor": _flavors_text(vm.flavor, vm.other_flavor, _new_flavor_is_noted(vm)),
                }
                for number, (vm, _) in enumerate(here, 1)
            ),
        )
        _insert(connection, main_models.Migration, _migrations(population, cell))
        if cell in CELLS:
            _write_computes(connection, cell)


def _instance(number: int, vm: VM, hidden: bool) -> dict[str, Any]:
    return {
        "id": number,
        "uuid": vm.uuid,
        "host": vm.host,
        "node": vm.host,
        "reservation_id": vm.reservation,
        "instance_type_id": FLAVOR_ID[vm.flavor],
        "image_ref": IMAGE,
        "vcpus": VCPUS[vm.flavor],
        "memory_mb": 512,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "vm_state": vm.vm_state,
        "task_state": vm.task_state,
        "project_id": "project",
        "user_id": "user",
        "hidden": hidden,
        "deleted": number if vm.deleted else 0,
    }


def _new_flavor_is_noted(vm: VM) -> bool:
    """True if the destination's compute has taken up a resize."""
    return vm.task_state == task_states.RESIZE_MIGRATING


def _migrations(population: Population, cell: str) -> Iterator[dict[str, Any]]:
    """Yield the records of moves: many that have ended, and some that never will."""
    here = [vm for vm in population.vms if vm.cell == cell and vm.is_there and not vm.hidden_in]
    staying = [vm for vm in here if not (vm.moves_to or vm.moves_from)]
    for number, vm in enumerate(staying[:DELETED]):
        status = "migrating" if number % 100 == 0 else "confirmed"
        yield _migration(vm, "x9999", vm.host, "plain", status)
    for vm in here:
        if vm.moves_to:
            status = "migrating" if _new_flavor_is_noted(vm) else "pre-migrating"
            yield _migration(vm, vm.host, vm.moves_to, vm.other_flavor, status)
        elif vm.moves_from:
            yield _migration(vm, vm.moves_from, vm.host, vm.flavor, "finished")


def _migration(
    vm: VM, source: str | None, destination: str | None, flavor: str | None, status: str
) -> dict[str, Any]:
    return {
        "instance_uuid": vm.uuid,
        "source_compute": source,
        "source_node": source,
        "dest_compute": destination,
        "dest_node": destination,
        "new_instance_type_id": FLAVOR_ID[flavor or vm.flavor],
        "migration_type": "resize",
        "status": status,
    }


def _write_computes(connection: sa.Connection, cell: str) -> None:
    hosts = hosts_of(cell)
    _insert(
        connection,
        main_models.Service,
        (
            {
                "uuid": group_uuid(f"service {host}"),
                "host": host,
                "binary": "nova-compute",
                "topic": "compute",
                "disabled": is_disabled(host),
            }
            for host in hosts
        ),
    )
    _insert(
        connection,
        main_models.ComputeNode,
        (
            {
                "uuid": group_uuid(f"node {host}"),
                "host": host,
                "hypervisor_hostname": host,
                "hypervisor_type": "QEMU",
                "hypervisor_version": 1,
                "cpu_info": json.dumps(CPU_INFO[host[0]]),
                "vcpus": vcpus_of(host),
                "memory_mb": 65536,
                "local_gb": 1000,
                "vcpus_used": 0,
                "memory_mb_used": 0,
                "local_gb_used": 0,
                "cpu_allocation_ratio": 1.0,
                "ram_allocation_ratio": 1.0,
                "disk_allocation_ratio": 1.0,
            }
            for host in hosts
        ),
    )


def _flavor(name: str) -> objects.Flavor:
    return request(vcpus=VCPUS[name], memory_mb=512, extra_specs=FLAVORS[name]).flavor


@functools.cache
def _request_text(flavor: str, group: str | None) -> str:
    uuid = group_uuid(group) if group is not None else None
    asked = request(vcpus=VCPUS[flavor], memory_mb=512, extra_specs=FLAVORS[flavor], group=uuid)
    return json.dumps(asked.obj_to_primitive())


@functools.cache
def _flavors_text(flavor: str, other: str | None, is_noted: bool) -> str:
    """Return the flavors of a VM as its cell keeps them."""
    current = _flavor(flavor).obj_to_primitive()
    change: dict[str, Any] = {"old": None, "new": None}
    if other is not None:
        second = _flavor(other).obj_to_primitive()
        # The flavor on the other host is the new one until the VM has been resized.
        if flavor == "alone":
            change = {"old": second, "new": current}
        elif is_noted:
            change = {"old": current, "new": second}
    return json.dumps({"cur": current, **change})
