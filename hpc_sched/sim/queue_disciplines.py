"""Which waiting job starts next: first come, first served, and EASY backfilling."""

import heapq
import math
from itertools import islice

import numpy as np

from hpc_sched.core.capacity import capacities
from hpc_sched.core.constraints import level_of
from hpc_sched.sim.cluster.cluster_state import Array, Standing
from hpc_sched.sim.jobs.job import Job
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
    walltimes of those that run, one island, or one switch of a required level, has room for all
    its VMs. A later job starts before it if it ends by then, or leaves that room alone. Room is
    vcpus and memory; that neighbours, processor types or a bound on leaves may keep the first
    job waiting all the same is not foreseen.
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
    """When the first job will have room, and what is free then.

    Room below one switch of the required level counts, or on one island where none is required.
    """

    def __init__(self, head: Job, simulation: Simulation) -> None:
        occupancy, topology = simulation.occupancy, simulation.setting.cluster.topology
        self._head = head
        self._gains = occupancy.gains
        self._simulation = simulation
        self._up = occupancy.up.copy()
        self._free = occupancy.free.copy()
        level = level_of(topology, simulation.setting.constraints.require)
        self._domain = topology.groups[level - 1]
        self._rooms = np.zeros(len(topology.switches), dtype=np.int64)
        self._count(np.arange(len(self._free)), 1)
        self.time = math.inf
        ends = [
            (max(start + standing.job.estimate, simulation.now), number)
            for number, (start, standing) in simulation.running().items()
        ]
        heapq.heapify(ends)
        while ends:
            self.time, number = heapq.heappop(ends)
            self._change(occupancy.jobs[number], 1)
            if self._has_room():
                return
        self.time = math.inf

    def is_of(self, head: Job, simulation: Simulation) -> bool:
        """Tell whether it is this job's, and no room has been given back or lost since."""
        occupancy = simulation.occupancy
        return (
            self._head is head
            and self._gains == occupancy.gains
            and np.array_equal(self._up, occupancy.up)
        )

    def allows(self, standing: Standing) -> bool:
        """Tell whether a job may start on these places; if it may, count it as started."""
        if self._simulation.now + standing.job.estimate <= self.time:
            return True
        self._change(standing, -1)
        if self._has_room():
            return True
        self._change(standing, 1)
        return False

    def _has_room(self) -> bool:
        return int(self._rooms.max()) >= self._head.count

    def _change(self, standing: Standing, sign: int) -> None:
        """Give back what a job takes, or take it."""
        self._count(standing.hosts, -1)
        self._free[standing.hosts] += sign * standing.takes
        self._count(standing.hosts, 1)

    def _count(self, hosts: Array, sign: int) -> None:
        """Add or take off what the first job has room for on some hosts."""
        head = self._head
        room = capacities(self._free[hosts], (head.vcpus, head.memory_mb))
        room[~self._up[hosts]] = 0
        np.add.at(self._rooms, self._domain[hosts], sign * room)
