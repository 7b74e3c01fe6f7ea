"""The simulated cluster: fabric, resources and processors of hosts, what runs there at first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor_ranking import UNRANKED, ProcessorRanking
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim import named_values
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology

HOST_FORM = "vcpus=N[,memory=MB][,processor=NAME][:HOSTS]"
_MOST = 1 << 40  # more than any machine has; anything beyond is a typing error

_FEW = 64  # hosts of a type among which there is mostly one with room

VCPUS, MEMORY_MB = 0, 1  # resources of a host, by column


@dataclass(frozen=True, slots=True)
class HostType:
    """Resources of a host for VMs."""

    vcpus: int
    memory_mb: int
    processor: str | None = None


DEFAULT_HOST = HostType(vcpus=16, memory_mb=65536)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Hosts on a fabric, in the order of ``topology.hosts``. Read-only."""

    topology: Topology
    total: Array  # vcpus and MB that VMs may take of each host. Shape (hosts, 2)
    processors: tuple[str | None, ...]  # per host, None if unknown
    cores: Array | None = None  # per host; None: equal to vcpus
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of each type, if known
    # Taken from the start to the end by VMs that are no jobs. Shape (hosts, 2); None: nothing.
    used: Array | None = None
    # vcpus and MB that one VM gets of each host at most. Shape (hosts, 2); None: all of them.
    most_of_vm: Array | None = None
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

    :raises exceptions.ConfigError: for an unknown host
    """
    named = dict(others or {})
    if unknown := sorted(named.keys() - set(topology.hosts)):
        raise exceptions.ConfigError(
            f"host type for {unknown[0]!r}: there is no such host in the fabric"
        )
    types = [named.get(host, default) for host in topology.hosts]
    return Cluster(
        topology=topology,
        total=np.array([[t.vcpus, t.memory_mb] for t in types], dtype=np.int64),
        processors=tuple(
            type_.processor or topology.processor_of(host)
            for host, type_ in zip(topology.hosts, types, strict=True)
        ),
    )


def host_types(texts: Sequence[str], what: str) -> tuple[HostType, dict[str, HostType]]:
    """Return the default host type, and the types of named hosts.

    ``vcpus=64,memory=262144,processor=gold-6338`` is for all hosts, ``vcpus=32:n[001-016]`` for
    those hosts. Of two texts that name one host the later holds.

    :raises exceptions.ConfigError: stating what was expected
    """
    default = DEFAULT_HOST
    named: dict[str, HostType] = {}
    expansion = hostlist.Expansion()
    for text in texts:
        stated, colon, hosts = text.partition(":")
        type_ = _host_type(stated, what)
        if not colon:
            default = type_
            continue
        try:
            named.update(dict.fromkeys(expansion.expand(hosts), type_))
        except ValueError as failure:
            raise exceptions.ConfigError(f"{what}: {failure}") from failure
    return default, named


def _host_type(text: str, what: str) -> HostType:
    stated = named_values.texts(
        text, what, ("vcpus", "memory", "processor"), HOST_FORM, str.partition
    )
    if "" in stated.values():
        raise named_values.error(what, HOST_FORM, text)
    if "vcpus" not in stated:
        raise exceptions.ConfigError(f"{what}: expected {HOST_FORM}, found no vcpus in {text!r}")

    def number(name: str, least: int, default: int) -> int:
        value = stated.get(name, str(default))
        if not (value.isascii() and value.isdecimal() and least <= int(value[:18]) <= _MOST):
            raise named_values.error(f"{what}: {name}", f"a whole number >= {least}", value)
        return int(value)

    return HostType(
        vcpus=number("vcpus", 1, 1),
        memory_mb=number("memory", 0, DEFAULT_HOST.memory_mb),
        processor=stated.get("processor"),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ProcessorTypes:
    """The hosts of each processor type. Read-only."""

    hosts: dict[str, Mask]
    cores: Array  # per host
    largest: dict[str, Array]  # hosts of each type, those with most cores first
    ranking: ProcessorRanking
    features: Mapping[str, frozenset[str]]  # of each type, if known

    @classmethod
    def of(cls, cluster: Cluster, ranking: ProcessorRanking = UNRANKED) -> "ProcessorTypes | None":
        """Return the types of a cluster's hosts, or None if there is only one."""
        if len(set(cluster.processors)) < 2:
            return None
        names = np.array([name or "" for name in cluster.processors])
        hosts = {name: names == name for name in sorted(set(names.tolist()) - {""})}
        cores = cluster.total[:, VCPUS] if cluster.cores is None else cluster.cores
        order = np.argsort(-cores, kind="stable")
        largest = {name: order[there[order]] for name, there in hosts.items()}
        return cls(hosts, cores, largest, ranking, cluster.features)

    def with_room(self, capacity: Array) -> HostProcessors:
        """Return the types for a group without members. O(hosts), or O(types) if most have room.

        By the operator's order, then by speed, then by the cores of the largest host with room,
        as HPCHomogeneityFilter orders the types of its candidates.

        :param capacity: VMs of the group that each host takes, shape (hosts,)
        """
        cores = {
            name: self._most_cores(largest, capacity) for name, largest in self.largest.items()
        }
        return HostProcessors(self.hosts, cores, {}, self.ranking, self.features)

    def _most_cores(self, largest: Array, capacity: Array) -> int:
        """Return the cores of the first host with room, 0 without one."""
        for hosts in (largest[:_FEW], largest[_FEW:]):
            with_room = hosts[capacity[hosts] > 0]
            if len(with_room):
                return int(self.cores[with_room[0]])
        return 0
