"""A running job and its hosts."""

from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import Places
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True, eq=False)
class PlacedJob:
    """A running job and its hosts."""

    job: Job
    hosts: Array  # indices, ascending
    counts: Array  # VMs on each of them
    # vcpus and MB that the job takes of each host. Shape (its hosts, 2)
    takes: Array = field(init=False)

    def __post_init__(self) -> None:
        size = np.array(self.job.size, dtype=np.int64)
        object.__setattr__(self, "takes", self.counts[:, np.newaxis] * size)

    @classmethod
    def of(cls, job: Job, places: Places) -> "PlacedJob":
        """Return a job with the hosts of its VMs."""
        if len(places) == 1:  # most jobs of many traces
            return cls(job, np.array(places, dtype=np.int64), np.ones(1, dtype=np.int64))
        hosts, counts = np.unique(np.array(places, dtype=np.int64), return_counts=True)
        return cls(job, hosts, counts.astype(np.int64))

    def text(self, topology: Topology) -> str:
        """Return the hosts with their numbers of VMs, by name: ``n1*4 n2*4``."""
        parts = sorted(self.by_name(topology).items())
        return " ".join(name if count == 1 else f"{name}*{count}" for name, count in parts)

    def by_name(self, topology: Topology) -> dict[str, int]:
        """Return the number of VMs on each host, by name."""
        names = (topology.hosts[host] for host in self.hosts.tolist())
        return dict(zip(names, self.counts.tolist(), strict=True))
