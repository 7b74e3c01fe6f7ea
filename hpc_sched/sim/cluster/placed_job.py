"""A running job and its hosts."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import Places
from hpc_sched.topology.model import Topology

_ONE = np.ones(1, dtype=np.int64)
_ONE.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedJob:
    """A running job and its hosts."""

    job: Job
    hosts: Array  # indices, ascending
    counts: Array  # VMs on each of them
    places: Places  # host of each VM, in the order of the policy
    # vcpus and MB that the job takes of each host. Shape (its hosts, 2)
    takes: Array = field(init=False)
    # The host if it is the only one, as of most jobs of many traces: on one host numbers take a
    # tenth of the time that arrays of one element take.
    only_host: int | None = field(init=False)

    def __post_init__(self) -> None:
        only_host = self.hosts.item() if len(self.hosts) == 1 else None
        object.__setattr__(self, "only_host", only_host)
        object.__setattr__(self, "takes", np.multiply.outer(self.counts, self.job.size))

    @classmethod
    def of(cls, job: Job, places: Places) -> "PlacedJob":
        """Return a job with the hosts of its VMs."""
        if len(places) == 1:
            return cls(job, np.array(places), _ONE, places)
        counts = Counter(places)
        hosts = sorted(counts)
        vms = [counts[host] for host in hosts]
        return cls(job, np.array(hosts, dtype=np.int64), np.array(vms, dtype=np.int64), places)

    def by_leaf(self, topology: Topology) -> dict[int, int]:
        """Return the number of VMs below each leaf, as indices in ``topology.switches``."""
        found: dict[int, int] = {}
        leaves = topology.leaf_index[self.hosts].tolist()
        for leaf, vms in zip(leaves, self.counts.tolist(), strict=True):
            found[leaf] = found.get(leaf, 0) + vms
        return found

    def text(self, topology: Topology) -> str:
        """Return the hosts with their numbers of VMs, by name: ``n1*4 n2*4``."""
        parts = sorted(self.by_name(topology).items())
        return " ".join(name if count == 1 else f"{name}*{count}" for name, count in parts)

    def by_name(self, topology: Topology) -> dict[str, int]:
        """Return the number of VMs on each host, by name."""
        names = (topology.hosts[host] for host in self.hosts.tolist())
        return dict(zip(names, self.counts.tolist(), strict=True))
