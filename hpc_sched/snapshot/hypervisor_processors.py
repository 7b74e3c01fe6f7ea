"""The processor types of a snapshot's hypervisors, and of the members of a group."""

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.processors import (
    METADATA,
    HostProcessors,
    of_cpu_info,
    stated_type,
    type_names,
)
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Server


def of(cloud: Cloud, members: Iterable[Server], room: NDArray[np.int64]) -> HostProcessors:
    """Return the types of hypervisors and members. Linear in hypervisors.

    :param members: VMs of the group
    :param room: VMs that each hypervisor takes, shape (hypervisors,); types without room are
        omitted
    """
    names, cores = per_hypervisor(cloud)
    nodes = cloud.snapshot.hypervisors
    by_place = {(node.host, node.nodename): name for node, name in zip(nodes, names, strict=True)}
    types = np.array([name or "" for name in names], dtype=object)
    with_room = sorted(set(types[room > 0].tolist()) - {""})
    return HostProcessors(
        hypervisors={name: types == name for name in with_room},
        cores=cores,
        members=Counter(
            by_place.get((server.host, server.nodename or server.host))
            for server in members
            if server.host
        ),
        order=nova_options.option(cloud.snapshot, "processor_order"),
    )


def per_hypervisor(cloud: Cloud) -> tuple[list[str | None], dict[str, int]]:
    """Return the type of each hypervisor, and type to the cores of its largest hypervisor."""
    metadata: dict[str, list[str]] = {}
    for aggregate in cloud.snapshot.aggregates:
        if METADATA in aggregate.metadata:
            for host in aggregate.hosts:
                metadata.setdefault(host, []).append(aggregate.metadata[METADATA])
    nodes = cloud.snapshot.hypervisors
    reported = [None if node.cpu_info is None else of_cpu_info(node.cpu_info) for node in nodes]
    names: list[str | None] = []
    cores: dict[str, int] = {}
    for node, processor, measured in zip(nodes, reported, type_names(reported), strict=True):
        place = cloud.name_at[node.host, node.nodename]
        stated = stated_type(metadata.get(node.host, ()))
        name = stated or cloud.topology.processor_of(place) or measured
        names.append(name)
        if name is not None:
            own = processor.sockets * processor.cores if processor else 0
            number = own or math.floor(node.capacity.get("VCPU", 0) + node.capacity.get("PCPU", 0))
            cores[name] = max(cores.get(name, 0), number)
    return names, cores
