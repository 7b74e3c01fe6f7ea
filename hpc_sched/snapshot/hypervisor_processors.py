"""The processor types of a snapshot's hosts, and of the VMs that a request joins."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.processors import METADATA, of_cpu_info, stated_type, type_names
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.request_builder import State


@dataclass(frozen=True, slots=True)
class Types:
    """The processor types of a request; None where nothing is known."""

    names: list[str | None]  # per hypervisor
    cores: dict[str, int]  # type to the cores of one of its hosts, the most of them
    members: dict[str | None, int]  # VMs of the group per type

    @property
    def fault(self) -> str | None:
        """Return why no VM can be on the members' type, as HPCHomogeneityFilter says it."""
        members = self.members
        if members.get(None):
            return f"the processor type of {members[None]} members of the group is not known"
        if len(members) > 1:
            names = ", ".join(sorted(name for name in members if name is not None))
            return f"members of the group run on {len(members)} processor types: {names}"
        return None

    def mask(self, name: str) -> NDArray[np.bool_]:
        """Return which hypervisors are of a type."""
        return np.array([found == name for found in self.names], dtype=np.bool_)


def types_of(state: State) -> Types:
    """Return the types of a request's hypervisors and members. Linear in hypervisors."""
    names, cores = per_hypervisor(state.cloud)
    at = {
        (node.host, node.nodename): name
        for node, name in zip(state.cloud.snapshot.hypervisors, names, strict=True)
    }
    members: dict[str | None, int] = {}
    for server in state.request.members:
        if server.host:
            name = at.get((server.host, server.nodename or server.host))
            members[name] = members.get(name, 0) + 1
    return Types(names, cores, members)


def per_hypervisor(cloud: Cloud) -> tuple[list[str | None], dict[str, int]]:
    """Return the processor type of each hypervisor, and type to the cores of one of its hosts."""
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
