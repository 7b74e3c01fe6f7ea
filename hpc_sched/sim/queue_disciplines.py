"""Which waiting job starts next: first come, first served, and EASY backfilling."""

import heapq
import math
from itertools import islice

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.core.constraints import level_of
from hpc_sched.sim.cluster.cluster_state import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation

DEPTH = 100  # waiting jobs considered behind the first one, as Slurm bounds it (bf_max_job_test)


class Fcfs:
    """First come, first served: no job starts before an earlier one."""

    def __init__(self) -> None:
        self._blocked: tuple[int, int] | None = None  # first job, and releases seen so far

    def __call__(self, simulation: Simulation) -> Job | None:
        """Start jobs from the head of the queue; return the first that cannot start, or None."""
        while simulation.waiting:
            head = next(iter(simulation.waiting.values()))
            seen = (head.number, simulation.state.gains)
            # A job that did not fit cannot fit before something is released.
            if self._blocked == seen or not simulation.start(head):
                self._blocked = seen
                return head
        return None


class Easy:
    """EASY backfilling (Lifka 1995): later jobs may start first if they do not delay the head.

    The first job that does not fit gets a reservation: the earliest time at which, by the
    walltimes of the running jobs, one island, or one switch of a required level, has room for
    all its VMs. A later job starts before it if it ends by then, or leaves that room free. Room
    is vcpus and memory. Cache scores, processor types and a bound on leaves may delay the first
    job further; the reservation does not foresee that.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        """Start with an empty queue."""
        self._depth = depth
        self._fcfs = Fcfs()
        self.reservation: Reservation | None = None  # of the first waiting job
        self._not_fitting: set[int] = set()  # jobs without a place since the reservation was made

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(running jobs + depth * a placement)."""
        head = self._fcfs(simulation)
        if head is None:
            return
        kept = self.reservation
        if kept is None or not kept.is_valid(head, simulation):
            kept = self.reservation = Reservation(head, simulation)
            self._not_fitting.clear()
        for job in list(islice(simulation.waiting.values(), 1, 1 + self._depth)):
            # A job that did not fit cannot fit before something is released.
            if job.number not in self._not_fitting and not simulation.start(job, kept.allows):
                self._not_fitting.add(job.number)


class Reservation:
    """When the first job will have room, and what is free at that time.

    Room is counted below each switch of the required level, or on each island without one.
    """

    def __init__(self, head: Job, simulation: Simulation) -> None:
        state, topology = simulation.state, simulation.setting.cluster.topology
        self._head = head
        self._gains = state.gains
        self._simulation = simulation
        self._up = state.up.copy()
        self._free = state.free.copy()
        level = level_of(topology, simulation.setting.constraints.require)
        self._domain = topology.groups[level - 1]
        self._rooms = np.zeros(len(topology.switches), dtype=np.int64)
        self._count(np.arange(len(self._free)), 1)
        self.time = math.inf
        ends = [
            (max(start + placed.job.estimate, simulation.now), number)
            for number, (start, placed) in simulation.running().items()
        ]
        heapq.heapify(ends)
        while ends:
            self.time, number = heapq.heappop(ends)
            self._change(state.jobs[number], 1)
            if self._has_room():
                return
        self.time = math.inf

    def is_valid(self, head: Job, simulation: Simulation) -> bool:
        """True if it is for this job, and no room was released or lost since."""
        state = simulation.state
        is_for = self._head is head and self._gains == state.gains
        return is_for and np.array_equal(self._up, state.up)

    def allows(self, placed: PlacedJob) -> bool:
        """True if a job may start on these hosts; it then counts as started."""
        if self._simulation.now + placed.job.estimate <= self.time:
            return True
        self._change(placed, -1)
        if self._has_room():
            return True
        self._change(placed, 1)
        return False

    def _has_room(self) -> bool:
        return int(self._rooms.max()) >= self._head.count

    def _change(self, placed: PlacedJob, sign: int) -> None:  # 1: released, -1: taken
        self._count(placed.hosts, -1)
        self._free[placed.hosts] += sign * placed.takes
        self._count(placed.hosts, 1)

    def _count(self, hosts: Array, sign: int) -> None:
        head = self._head
        room = capacities(self._free[hosts], (head.vcpus, head.memory_mb))
        room[~self._up[hosts]] = 0
        np.add.at(self._rooms, self._domain[hosts], sign * room)
