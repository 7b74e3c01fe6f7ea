"""The simulated cloud: a fabric, what its hosts have, and what runs there when it starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.topology.model import Topology

Array = NDArray[np.int64]

# The resources of a host, by column.
VCPUS, MEMORY_MB = 0, 1


@dataclass(frozen=True, slots=True)
class HostType:
    """What a host has for VMs."""

    vcpus: int
    memory_mb: int
    processor: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Hosts on a fabric; rows are in the order of ``topology.hosts``. Never changed."""

    topology: Topology
    total: Array  # shape (hosts, 2): what VMs may take of each host, vcpus and MB
    processors: tuple[str | None, ...]  # the processor type of each host, where one is known
    # What VMs take that are there from the start and never leave; none by default.
    used: Array | None = None
    running: Mapping[int, Sequence[Application]] = field(default_factory=dict)
    down: frozenset[int] = frozenset()  # hosts that take no VM

    @property
    def free_at_start(self) -> Array:
        """What no VM takes when the simulation starts; nothing on hosts that are down."""
        free = self.total.copy() if self.used is None else np.maximum(self.total - self.used, 0)
        free[sorted(self.down)] = 0
        return free


def uniform(
    topology: Topology, default: HostType, others: Mapping[str, HostType] | None = None
) -> Cluster:
    """Return a cluster whose hosts are all alike, but for some by name.

    A host's processor type is that of its HostType, else what the topology states.

    :raises exceptions.SimulationError: for a host that the topology does not have, or one
        that has no vcpu
    """
    named = dict(others or {})
    unknown = sorted(named.keys() - set(topology.hosts))
    if unknown:
        raise exceptions.SimulationError(
            f"host type for {unknown[0]!r}: there is no such host in the fabric"
        )
    types = [named.get(host, default) for host in topology.hosts]
    for type_ in {default, *named.values()}:
        if type_.vcpus < 1 or type_.memory_mb < 0:
            raise exceptions.SimulationError(
                f"host type of {type_.vcpus} vcpus and {type_.memory_mb} MB: expected at least "
                "1 vcpu and no negative memory"
            )
    return Cluster(
        topology=topology,
        total=np.array([[t.vcpus, t.memory_mb] for t in types], dtype=np.int64),
        processors=tuple(
            type_.processor or topology.processor_of(host)
            for host, type_ in zip(topology.hosts, types, strict=True)
        ),
    )
