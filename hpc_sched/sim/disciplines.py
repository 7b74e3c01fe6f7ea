"""Which waiting job starts next: first come, first served, and EASY backfilling."""

import heapq
import math
from itertools import islice

from hpc_sched.core.capacity import capacities
from hpc_sched.sim.job import Job
from hpc_sched.sim.occupancy import Array, Standing
from hpc_sched.sim.simulation import Simulation

# Waiting jobs that are looked at behind the first one, as Slurm bounds it (bf_max_job_test).
DEPTH = 100


class Fcfs:
    """First come, first served: nobody starts before one that has come before."""

    def __init__(self) -> None:
        self._blocked: tuple[int, int] | None = None  # the first job, and room given back so far

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started."""
        self.blocked_head(simulation)

    def blocked_head(self, simulation: Simulation) -> Job | None:
        """Start jobs from the head of the queue; return the first that cannot, if any."""
        while simulation.waiting:
            head = next(iter(simulation.waiting.values()))
            seen = (head.number, simulation.occupancy.gains)
            # What did not go in goes in no better before something is given back.
            if self._blocked == seen or not simulation.start(head):
                self._blocked = seen
                return head
        return None


class Easy:
    """EASY backfilling (Lifka 1995): others may pass the first job as long as they do not delay it.

    The first job that does not fit gets a reservation: the earliest time at which, going by the
    walltimes of those that run, the cluster has room for all its VMs. A later job starts before
    it if it ends by then, or leaves that room alone. Room is what :func:`capacities` counts;
    that a policy or neighbours may refuse the first job all the same is not foreseen.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        """Start with an empty queue.

        :param depth: waiting jobs that are looked at behind the first one
        """
        self._depth = depth
        self._fcfs = Fcfs()
        self.reservation: Reservation | None = None  # of the first job that waits
        self._looked_at: set[int] = set()

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(jobs that run + depth * a placement)."""
        head = self._fcfs.blocked_head(simulation)
        if head is None:
            return
        kept = self.reservation
        if kept is None or not kept.is_of(head, simulation):
            kept = self.reservation = Reservation(head, simulation)
            self._looked_at.clear()
        for job in list(islice(simulation.waiting.values(), 1, 1 + self._depth)):
            # Who could not start has no more room before something is given back.
            if job.number not in self._looked_at and not simulation.start(job, kept.allows):
                self._looked_at.add(job.number)


class Reservation:
    """When the first job will have room, and what is free then."""

    def __init__(self, head: Job, simulation: Simulation) -> None:
        occupancy = simulation.occupancy
        self._head = head
        self._gains = occupancy.gains
        self._simulation = simulation
        self._up = occupancy.up.copy()
        self._free = occupancy.free.copy()
        self.time = math.inf
        total = int(self._room(slice(None)).sum())
        ends = [
            (max(start + standing.job.estimate, simulation.now), number)
            for number, (start, standing) in simulation.running().items()
        ]
        heapq.heapify(ends)
        while ends:
            time, number = heapq.heappop(ends)
            standing = occupancy.jobs[number]
            total -= int(self._room(standing.hosts).sum())
            self._free[standing.hosts] += standing.takes
            total += int(self._room(standing.hosts).sum())
            if total >= head.count:
                self.time = time
                break
        self._spare = total - head.count

    def is_of(self, head: Job, simulation: Simulation) -> bool:
        """Tell whether it is this job's, and nothing has been given back since."""
        return self._head is head and self._gains == simulation.occupancy.gains

    def allows(self, standing: Standing) -> bool:
        """Tell whether a job may start on these places; if it may, count it as started."""
        hosts = standing.hosts
        if self._simulation.now + standing.job.estimate <= self.time:
            return True
        loses = int(self._room(hosts).sum())
        self._free[hosts] -= standing.takes
        loses -= int(self._room(hosts).sum())
        if loses > self._spare:
            self._free[hosts] += standing.takes
            return False
        self._spare -= loses
        return True

    def _room(self, hosts: Array | slice) -> Array:
        head = self._head
        room = capacities(self._free[hosts], (head.vcpus, head.memory_mb))
        room[~self._up[hosts]] = 0
        return room
