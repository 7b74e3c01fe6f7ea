"""A VM that holds room on a host."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from hpc_sched.nova_glue.io import serialized_objects


class PlacedInstance(NamedTuple):
    """A VM on one host; a VM that moves is on two.

    A tuple, for there are ten thousand of them in a request.
    """

    uuid: str
    host: str  # "" where only Placement knows it
    nodename: str | None
    reservation_id: str | None  # of the request that made it
    type_id: int | None  # of its flavor: changes when it is resized
    vcpus: int
    memory_mb: int
    disk_gb: int
    flavor: serialized_objects.Fields | None = None  # where it is not the one that its cell names
    moves_from: str | None = None  # the node beside which Placement knows the one we seek
    in_flight: bool = False  # its host does not report it yet
    since: datetime.datetime | None = None  # when it set out, for one on its way


def with_flavor(
    uuid: str, reservation_id: str | None, flavor: serialized_objects.Fields, image: str | None
) -> PlacedInstance:
    """Return a VM that takes what this flavor says, its place left open.

    :param image: where it boots from, see :func:`disk_of`
    :raises stored.Unreadable: where the flavor's sizes are no numbers
    """
    vcpus, memory, root, ephemeral = (
        serialized_objects.number(flavor, name)
        for name in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")
    )
    disk = disk_of(image, root, ephemeral)
    return PlacedInstance(uuid, "", None, reservation_id, None, vcpus, memory, disk, flavor)


def disk_of(image: str | None, root_gb: int | None, ephemeral_gb: int | None) -> int:
    """Return the disk that a VM takes on its host, in GB.

    A VM without an image boots from a volume, which is elsewhere.
    """
    return (0 if image == "" else root_gb or 0) + (ephemeral_gb or 0)
