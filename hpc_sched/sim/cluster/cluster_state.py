"""State of the simulated cluster: which jobs run on which hosts, and what is free."""

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.fragmentation.rates import NO_PRICE, FragmentationRates
from hpc_sched.sim.cluster.changed_hosts import ChangedHosts
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.host_applications import HostApplications
from hpc_sched.sim.cluster.kept_rooms import KeptRooms, Room
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.cluster.placed_rows import PlacedRows
from hpc_sched.sim.cluster.size_prices import SizePrices
from hpc_sched.sim.cluster.used_uplinks import UsedUplinks
from hpc_sched.sim.jobs.job import Job


class ClusterState:
    """The mutable part of the cluster. Every change is checked, and made in full or not at all.

    A change costs O(hosts of the job). What is computed for all hosts is kept, and corrected on
    those that have changed when it is read again; so arrays are valid until the next change.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        counts_uplinks: bool = False,
        rates: FragmentationRates = NO_PRICE,
    ) -> None:
        """Start without a job.

        :param counts_uplinks: whether to count which uplinks jobs use
        :param rates: of the fragmentation price
        """
        self.cluster = cluster
        self.prices = SizePrices(cluster, rates)
        self.uplinks = UsedUplinks(cluster.topology) if counts_uplinks else None
        self._free_at_start = cluster.free_at_start
        self.free = self._free_at_start.copy()
        self.free_in_total: list[int] = self.free.sum(axis=0).tolist()  # vcpus and MB
        self.up = np.ones(len(self.free), dtype=np.bool_)
        self.up[sorted(cluster.down)] = False
        self.jobs: dict[int, PlacedJob] = {}
        self.applications = HostApplications(cluster)
        self.gains = 0  # number of releases, and of hosts that have come back
        self.losses = 0  # number of hosts that have failed
        self.changed = ChangedHosts(len(self.free))
        self._rows = PlacedRows()
        self._rooms = KeptRooms(
            *(self.free, self.up, cluster.most_of_vm),
            *(cluster.topology, self.changed),
        )
        self.usable = cluster.total.astype(np.float64)  # of hosts without any VM
        self.usable.setflags(write=False)
        self._reals: Reals = np.zeros((0, 2))  # what is free, at this moment
        self._moment = -1

    def room(self, vcpus: int, memory_mb: int) -> Room:
        """Return the VMs of a size that hosts still take. O(hosts changed since the last time)."""
        return self._rooms.of((vcpus, memory_mb))

    def capacity(self, vcpus: int, memory_mb: int) -> Array:
        """Return how many VMs hosts still take, read-only. Shape (hosts,)."""
        return self.room(vcpus, memory_mb).per_host

    def accepts(self, vcpus: int, memory_mb: int) -> Mask:
        """True for hosts that are up and not too small for a VM, if empty. Shape (hosts,)."""
        if self.cluster.most_of_vm is None:
            return self.up
        return self.up & self._rooms.fits((vcpus, memory_mb))

    @property
    def free_as_reals(self) -> Reals:
        """What is free, as policies read it; read-only. Shape (hosts, 2)."""
        if self._moment != self.changed.now:
            self._moment = self.changed.now
            self._reals = self.free.astype(np.float64)
            self._reals.setflags(write=False)
        return self._reals

    def take(self, placed: PlacedJob) -> None:
        """Start a job on its hosts.

        :raises exceptions.ConservationError: if they have no room for it
        """
        job, hosts = placed.job, placed.hosts
        vms = sum(placed.counts.tolist())
        if job.number in self.jobs or vms != job.count:
            runs = " and runs already" if job.number in self.jobs else ""
            raise exceptions.ConservationError(
                f"job {job.number} of {job.count} VMs was to start {vms} of them{runs}"
            )
        left = self.free[hosts] - placed.takes
        if min(left.ravel().tolist()) < 0 or not all(self.up[hosts].tolist()):
            wrong = int(hosts[(left < 0).any(axis=1) | ~self.up[hosts]][0])
            raise exceptions.ConservationError(
                f"job {job.number} was placed on host {self.cluster.topology.hosts[wrong]!r}, "
                f"which has no room for it: {self.free[wrong].tolist()} vcpus and MB are free"
            )
        self.free[hosts] = left
        self.jobs[job.number] = placed
        self._count(job, -job.count)
        self.applications.add(placed)
        if self.uplinks is not None:
            self.uplinks.add(placed)
        self._rows.add(placed)
        self.changed.note(hosts)

    def release(self, number: int) -> PlacedJob:
        """Release the hosts of a job, and return it.

        :raises exceptions.ConservationError: for a job that does not run
        """
        placed = self.jobs.pop(number, None)
        if placed is None:
            raise exceptions.ConservationError(f"job {number} was to end and does not run")
        self.free[placed.hosts] += placed.takes
        self._count(placed.job, placed.job.count)
        self.applications.remove(placed)
        if self.uplinks is not None:
            self.uplinks.remove(placed)
        self._rows.remove(number)
        self.gains += 1
        self.changed.note(placed.hosts)
        return placed

    def _count(self, job: Job, released: int) -> None:
        for resource, amount in enumerate(job.size):
            self.free_in_total[resource] += released * amount

    def set_up(self, host: int, up: bool) -> None:
        """Disable or enable a host, whose jobs have been released before."""
        self.up[host] = up
        self.gains += up
        self.losses += not up
        self._rooms.up_changes += 1
        self.changed.note(np.array([host]))

    def check(self) -> None:
        """Check what is free against the sum over all jobs. O(hosts of all jobs).

        :raises exceptions.ConservationError: if they differ
        """
        free = self._free_at_start - self._rows.taken(len(self.free))
        if free.min(initial=0) < 0 or not np.array_equal(free, self.free):
            wrong = int(np.argmax(((free != self.free) | (free < 0)).any(axis=1)))
            raise exceptions.ConservationError(
                f"host {self.cluster.topology.hosts[wrong]!r} should have "
                f"{free[wrong].tolist()} vcpus and MB free, and has {self.free[wrong].tolist()}"
            )
