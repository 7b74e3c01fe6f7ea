"""State of the simulated cluster: which jobs run on which hosts, and what is free."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.capacity import UNBOUNDED, capacities
from hpc_sched.core.sharing import cache_interference
from hpc_sched.core.sharing.cache_interference import Application, Limits, attraction
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import Places
from hpc_sched.topology.model import Topology

# Sums of scores that differ by less than this part of them may be equal by the rules.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PlacedJob:
    """A running job and its hosts."""

    job: Job
    hosts: Array  # indices, ascending
    counts: Array  # VMs on each of them

    @classmethod
    def of(cls, job: Job, places: Places) -> "PlacedJob":
        """Return a job with the hosts of its VMs."""
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

    @property
    def takes(self) -> Array:
        """vcpus and MB that the job takes of each host. Shape (its hosts, 2)."""
        return np.outer(self.counts, (self.job.vcpus, self.job.memory_mb))


class ClusterState:
    """The mutable part of the cluster. Every change is checked, and made in full or not at all."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free = cluster.free_at_start
        self.up = np.ones(len(self.free), dtype=np.bool_)
        self.up[sorted(cluster.down)] = False
        self.jobs: dict[int, PlacedJob] = {}
        # Per host: job number to application and number of VMs.
        self._there: defaultdict[int, dict[int, tuple[Application, int]]] = defaultdict(dict)
        self._listed: dict[int, list[Application]] = {}  # cache of the same, one entry per VM
        self._occupied = np.zeros(len(self.free), dtype=np.bool_)  # hosts with a VM
        self.scores = np.zeros(len(self.free))  # sum of the cache scores of the VMs of each host
        for host in cluster.running:
            self._changed(host)
        self.gains = 0  # number of releases
        self._changes = 0
        self._known: dict[tuple[int, int], tuple[int, Array]] = {}

    def capacity(self, vcpus: int, memory_mb: int) -> Array:
        """Return how many VMs hosts still take, read-only. Shape (hosts,). O(hosts)."""
        known = self._known.get((vcpus, memory_mb))
        if known is None or known[0] != self._changes:
            if len(self._known) > 64:
                self._known.clear()
            room = capacities(self.free, (vcpus, memory_mb))
            room[~self.accepts(vcpus, memory_mb)] = 0
            room.setflags(write=False)  # shared by all policies
            known = self._known[vcpus, memory_mb] = self._changes, room
        return known[1]

    def accepts(self, vcpus: int, memory_mb: int) -> Mask:
        """True for hosts that are up and not too small for a VM, if empty. Shape (hosts,)."""
        if self.cluster.most_of_vm is None:
            return self.up
        return self.up & (self.cluster.most_of_vm >= (vcpus, memory_mb)).all(axis=1)

    def rooms_beside(
        self,
        newcomer: Application,
        limits: Limits,
        room: Array,
        apart: Collection[str] = (),
    ) -> Array:
        """Return how many VMs of an application each host takes next to those it has.

        Bounded by dedication, cache scores and the interference index (Gupta2013), see
        ``cache_interference``. O(hosts + VMs on hosts below the limit).

        :param room: VMs that fit on each host by vcpus and memory. Shape (hosts,)
        :param apart: applications with which the newcomer must not share a host
        """
        rooms = np.minimum(room, _beside(newcomer, (), limits, apart))
        if newcomer.app_class != "extreme":
            # Most hosts of a full cluster are at the limit: the rules need not be applied to them.
            is_sync = newcomer.app_class == "sync"
            limit = min(limits.alpha, limits.beta) if is_sync else limits.alpha
            slack = _ROUNDING * (1 + newcomer.score + limit)
            rooms[self.scores + newcomer.score > limit + slack] = 0
        for host in np.flatnonzero((rooms > 0) & self._occupied).tolist():
            there = self._neighbours(host)
            rooms[host] = min(int(room[host]), _beside(newcomer, there, limits, apart))
        return rooms

    def attractions(self, newcomer: Application, gains: Mapping[str, float]) -> Reals | None:
        """Return the attraction of each host for an application; None without any.

        Shape (hosts,). O(VMs).

        :param gains: of the application, see ``core.sharing.cache_interference``
        """
        if not gains:
            return None
        found = np.zeros(len(self.free))
        for host in {*self.cluster.running, *self._there}:
            found[host] = attraction(newcomer, self._neighbours(host), gains)
        return found

    def _neighbours(self, host: int) -> list[Application]:
        found = self._listed.get(host)
        if found is None:
            found = self._listed[host] = list(self.cluster.running.get(host, ()))
            for application, count in self._there[host].values():
                found.extend([application] * count)
        return found

    def _changed(self, host: int) -> None:
        """Count the VMs of a host anew."""
        self._listed.pop(host, None)
        scores = [application.score for application in self.cluster.running.get(host, ())]
        scores += [one.score * count for one, count in self._there[host].values()]
        self._occupied[host] = bool(scores)
        self.scores[host] = math.fsum(scores)

    def neighbours_of(self, placed: PlacedJob) -> Iterator[list[tuple[Application, int]]]:
        """Yield the VMs of others on each of a job's hosts: applications and their numbers."""
        for host in placed.hosts.tolist():
            there = [(application, 1) for application in self.cluster.running.get(host, ())]
            yield there + [
                vms for number, vms in self._there[host].items() if number != placed.job.number
            ]

    def take(self, placed: PlacedJob) -> None:
        """Start a job on its hosts.

        :raises exceptions.ConservationError: if they have no room for it
        """
        job, hosts, vms = placed.job, placed.hosts, int(placed.counts.sum())
        if job.number in self.jobs or vms != job.count:
            runs = " and runs already" if job.number in self.jobs else ""
            raise exceptions.ConservationError(
                f"job {job.number} of {job.count} VMs was to start {vms} of them{runs}"
            )
        left = self.free[hosts] - placed.takes
        if (left < 0).any() or not self.up[hosts].all():
            wrong = int(hosts[(left < 0).any(axis=1) | ~self.up[hosts]][0])
            raise exceptions.ConservationError(
                f"job {job.number} was placed on host {self.cluster.topology.hosts[wrong]!r}, "
                f"which has no room for it: {self.free[wrong].tolist()} vcpus and MB are free"
            )
        self.free[hosts] = left
        self.jobs[job.number] = placed
        for host, count in zip(hosts.tolist(), placed.counts.tolist(), strict=True):
            self._there[host][job.number] = job.application, count
            self._changed(host)
        self._changes += 1

    def release(self, number: int) -> PlacedJob:
        """Release the hosts of a job, and return it.

        :raises exceptions.ConservationError: for a job that does not run
        """
        placed = self.jobs.pop(number, None)
        if placed is None:
            raise exceptions.ConservationError(f"job {number} was to end and does not run")
        self.free[placed.hosts] += placed.takes
        for host in placed.hosts.tolist():
            del self._there[host][number]
            self._changed(host)
        self.gains += 1
        self._changes += 1
        return placed

    def set_up(self, host: int, up: bool) -> None:
        """Disable or enable a host, whose jobs have been released before."""
        self.up[host] = up
        self.gains += up
        self._changes += 1

    def jobs_on(self, host: int) -> list[int]:
        """Return the numbers of the jobs with VMs on a host, in the order of their start."""
        return list(self._there[host])

    def check(self) -> None:
        """Check what is free against the sum over all jobs. O(hosts of all jobs).

        :raises exceptions.ConservationError: if they differ
        """
        free = self.cluster.free_at_start
        if self.jobs:
            # Vectorized: job by job, the thousands of checks would take most of a run.
            there = list(self.jobs.values())
            sizes = [(placed.job.vcpus, placed.job.memory_mb) for placed in there]
            each = np.repeat(sizes, [len(placed.hosts) for placed in there], axis=0)
            counts = np.concatenate([placed.counts for placed in there])
            hosts = np.concatenate([placed.hosts for placed in there])
            np.subtract.at(free, hosts, each * counts[:, np.newaxis])
        if (free < 0).any() or not np.array_equal(free, self.free):
            wrong = int(np.argmax(((free != self.free) | (free < 0)).any(axis=1)))
            raise exceptions.ConservationError(
                f"host {self.cluster.topology.hosts[wrong]!r} should have "
                f"{free[wrong].tolist()} vcpus and MB free, and has {self.free[wrong].tolist()}"
            )


def _beside(
    newcomer: Application,
    there: Collection[Application],
    limits: Limits,
    apart: Collection[str],
) -> int:
    return min(
        cache_interference.dedicated_room(newcomer, there),
        cache_interference.room(newcomer, there, limits, apart),
        UNBOUNDED,
    )
