"""Which applications run on each host, and what they leave for others by the rules of sharing."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing import cache_interference
from hpc_sched.core.sharing.cache_interference import Application, Limits, attraction
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.placed_job import PlacedJob

# Sums of scores that differ by less than this part of them may be equal by the rules.
_ROUNDING = 1e-6


class HostApplications:
    """The VMs on each host by application, with those that are no jobs.

    Scores are counted when they are read: most policies read none.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Start without any job."""
        hosts = len(cluster.total)
        self._cluster = cluster
        # Per host: job number to application and number of VMs.
        self._there: defaultdict[int, dict[int, tuple[Application, int]]] = defaultdict(dict)
        self._listed: dict[int, list[Application]] = {}  # cache of the same, one entry per VM
        self._occupied = np.zeros(hosts, dtype=np.bool_)  # hosts with a VM
        self._scores = np.zeros(hosts)
        self._uncounted = set(cluster.running)  # hosts that have changed since they were counted

    def add(self, placed: PlacedJob) -> None:
        """Add the VMs of a job. O(its hosts)."""
        number, application = placed.job.number, placed.job.application
        hosts = placed.hosts.tolist()
        for host, count in zip(hosts, placed.counts.tolist(), strict=True):
            self._there[host][number] = application, count
        self._uncounted.update(hosts)

    def remove(self, placed: PlacedJob) -> None:
        """Remove the VMs of a job. O(its hosts)."""
        hosts = placed.hosts.tolist()
        for host in hosts:
            del self._there[host][placed.job.number]
        self._uncounted.update(hosts)

    def jobs_on(self, host: int) -> list[int]:
        """Return the numbers of the jobs with VMs on a host, in the order of their start."""
        return list(self._there[host])

    @property
    def scores(self) -> Reals:
        """Sum of the cache scores of the VMs of each host. Shape (hosts,)."""
        self._count()
        return self._scores

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
        scores = self.scores
        if newcomer.app_class != "extreme":
            # Most hosts of a full cluster are at the limit: the rules need not be applied to them.
            is_sync = newcomer.app_class == "sync"
            limit = min(limits.alpha, limits.beta) if is_sync else limits.alpha
            slack = _ROUNDING * (1 + newcomer.score + limit)
            rooms[scores + newcomer.score > limit + slack] = 0
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
        self._count()
        found = np.zeros(len(self._scores))
        for host in {*self._cluster.running, *self._there}:
            found[host] = attraction(newcomer, self._neighbours(host), gains)
        return found

    def neighbours_of(self, placed: PlacedJob) -> Iterator[list[tuple[Application, int]]]:
        """Yield the VMs of others on each of a job's hosts: applications and their numbers."""
        for host in placed.hosts.tolist():
            there = [(application, 1) for application in self._cluster.running.get(host, ())]
            yield there + [
                vms for number, vms in self._there[host].items() if number != placed.job.number
            ]

    def _neighbours(self, host: int) -> list[Application]:
        found = self._listed.get(host)
        if found is None:
            found = self._listed[host] = list(self._cluster.running.get(host, ()))
            for application, count in self._there[host].values():
                found.extend([application] * count)
        return found

    def _count(self) -> None:
        """Count the VMs of hosts that have changed anew."""
        for host in self._uncounted:
            self._listed.pop(host, None)
            scores = [application.score for application in self._cluster.running.get(host, ())]
            scores += [one.score * count for one, count in self._there[host].values()]
            self._occupied[host] = bool(scores)
            self._scores[host] = math.fsum(scores)
        self._uncounted.clear()


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
