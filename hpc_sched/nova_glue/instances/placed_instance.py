"""An instance that holds room on a host, and which rows of a cell's database are one."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova.compute import task_states, vm_states
from nova.db.main import models as main_models

from hpc_sched.nova_glue.io import serialized_objects


class PlacedInstance(NamedTuple):
    """An instance on one host; one that migrates is on two.

    A tuple for its size and speed: a request reads ten thousand of them.
    """

    uuid: str
    host: str  # "" if only Placement knows it
    nodename: str | None
    reservation_id: str | None  # of the request that created it
    type_id: int | None  # of its flavor: a resize changes it
    vcpus: int
    memory_mb: int
    disk_gb: int
    flavor: serialized_objects.Fields | None = None  # if not the one stored in its cell
    moves_from: str | None = None  # node whose allocation is not the one to look up
    in_flight: bool = False  # its host does not report it yet
    since: datetime.datetime | None = None  # begin of its build or migration, while in flight


def with_flavor(
    uuid: str, reservation_id: str | None, flavor: serialized_objects.Fields, image: str | None
) -> PlacedInstance:
    """Return an instance of a flavor without a host.

    :param image: see :func:`disk_of`
    :raises serialized_objects.Unreadable: if the flavor's sizes are not numbers
    """
    vcpus, memory, root, ephemeral = (
        serialized_objects.number(flavor, name)
        for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")
    )
    disk = disk_of(image, root, ephemeral)
    return PlacedInstance(uuid, "", None, reservation_id, None, vcpus, memory, disk, flavor)


def disk_of(image: str | None, root_gb: int | None, ephemeral_gb: int | None) -> int:
    """Return the GB of disk that an instance takes on its host.

    :param image: "" for an instance that boots from a volume, which is not on the host
    """
    return (0 if image == "" else root_gb or 0) + (ephemeral_gb or 0)


def exists() -> tuple[Any, Any]:
    """Return the conditions for instances that are not deleted.

    A cross-cell resize keeps a hidden twin of the instance in its other cell.
    """
    instance = main_models.Instance
    return instance.deleted == 0, instance.hidden.is_not(sa.true())


def may_await_host() -> Any:
    """Return the condition for instances that :func:`awaits_host` may be true for."""
    return main_models.Instance.vm_state.in_((vm_states.BUILDING, vm_states.SHELVED_OFFLOADED))


def awaits_host(vm_state: str | None, task_state: str | None) -> bool:
    """True if an instance without a host is building or unshelving."""
    if vm_state == vm_states.BUILDING:
        return bool(task_state != task_states.DELETING)
    return vm_state == vm_states.SHELVED_OFFLOADED and task_state in (
        task_states.UNSHELVING,
        task_states.SPAWNING,
    )
