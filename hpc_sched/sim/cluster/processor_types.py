"""The processor types of a cluster, and the order in which groups take them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.processors import HostProcessors
from hpc_sched.sim.cluster.cluster import VCPUS, Array, Cluster

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ProcessorTypes:
    """The hosts of each processor type. Read-only."""

    hosts: dict[str, Mask]
    vcpus: Array  # per host
    order: tuple[str, ...]  # types named by the operator, best first

    @classmethod
    def of(cls, cluster: Cluster, order: Sequence[str] = ()) -> "ProcessorTypes | None":
        """Return the types of a cluster's hosts, or None if there is only one."""
        if len(set(cluster.processors)) < 2:
            return None
        names = np.array([name or "" for name in cluster.processors])
        known = sorted(set(names.tolist()) - {""})
        hosts = {name: names == name for name in known}
        return cls(hosts, cluster.total[:, VCPUS], tuple(order))

    def with_room(self, capacity: Array) -> HostProcessors:
        """Return the types for a group without members. O(hosts * types).

        By the operator's order, then by the vcpus of the largest host with room, as
        HPCHomogeneityFilter orders the types of its candidates.

        :param capacity: VMs of the group that each host takes, shape (hosts,)
        """
        has_room = capacity > 0
        cores = {
            name: int(self.vcpus[hosts & has_room].max(initial=0))
            for name, hosts in self.hosts.items()
        }
        return HostProcessors(self.hosts, cores, members={}, order=self.order)
