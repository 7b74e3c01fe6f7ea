"""The simulated cluster: fabric, resources of its hosts, and what runs there at the start."""

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
    """Resources of a host for VMs."""

    vcpus: int
    memory_mb: int
    processor: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Hosts on a fabric, in the order of ``topology.hosts``. Read-only."""

    topology: Topology
    total: Array  # vcpus and MB that VMs may take of each host. Shape (hosts, 2)
    processors: tuple[str | None, ...]  # per host, None if unknown
    # Taken from the start to the end by VMs that are no jobs. Shape (hosts, 2); None: nothing.
    used: Array | None = None
    running: Mapping[int, Sequence[Application]] = field(default_factory=dict)
    down: frozenset[int] = frozenset()  # hosts that take no VM

    @property
    def free_at_start(self) -> Array:
        """vcpus and MB free at the start, 0 on hosts that are down. Shape (hosts, 2)."""
        free = self.total.copy() if self.used is None else np.maximum(self.total - self.used, 0)
        free[sorted(self.down)] = 0
        return free


def uniform(
    topology: Topology, default: HostType, others: Mapping[str, HostType] | None = None
) -> Cluster:
    """Return a cluster of equal hosts, with exceptions by name.

    A host's processor type is that of its HostType, else what the topology states.

    :raises exceptions.SimulationError: for an unknown host, or a host without vcpus
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
