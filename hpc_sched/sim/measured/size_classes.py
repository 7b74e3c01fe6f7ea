"""Classes of jobs by size: what the smallest part of the empty cluster is that holds them."""

from functools import cached_property

import numpy as np

from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.jobs.job_record import JobRecord

FEW = 8  # hosts
_MORE = "more"


class SizeClasses:
    """The classes of one cluster: one host, up to 8 hosts, up to a leaf, up to a pod, more."""

    def __init__(self, cluster: Cluster) -> None:
        """Name the classes of a cluster; its room is looked at with the first job."""
        self._cluster = cluster
        self._bounds: dict[tuple[int, int], list[int]] = {}  # by vcpus and MB of a VM
        levels = cluster.topology.levels
        self.names = (
            "one host",
            f"up to {FEW} hosts",
            *(f"up to a {name}" for name in levels),
            _MORE,
        )

    def of(self, record: JobRecord) -> str:
        """Return the class of a job. O(1), O(hosts * levels) for the first job of a size of VMs."""
        size = record.vcpus, record.memory_mb
        bounds = self._bounds.get(size)
        if bounds is None:
            bounds = self._bounds[size] = self._most(*size)
        held = (
            name for name, bound in zip(self.names, bounds, strict=False) if record.vms <= bound
        )
        return next(held, _MORE)

    @cached_property
    def _empty(self) -> ClusterState:
        return ClusterState(self._cluster)

    def _most(self, vcpus: int, memory_mb: int) -> list[int]:
        """Return the VMs of a size that each class holds at most."""
        room = self._empty.room(vcpus, memory_mb).per_host
        largest = int(room.max(initial=0))
        below = (np.bincount(row, room) for row in self._cluster.topology.groups)
        return [largest, FEW * largest, *(int(vms.max(initial=0)) for vms in below)]
