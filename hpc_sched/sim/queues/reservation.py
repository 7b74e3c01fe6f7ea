"""The reservation of EASY backfilling: when the first job has room, and what is spare then."""

import heapq
import math

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.cluster_state import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation


class Reservation:
    """When the first job will have room, and what is free at that time.

    Room is counted below each switch of the required level, or on each island without one. A
    job that runs beyond its estimate is expected to end at any moment: now.
    """

    def __init__(self, head: Job, simulation: Simulation) -> None:
        """Reserve. O(running jobs)."""
        state = simulation.state
        self._head = head
        self._gains = state.gains
        self._simulation = simulation
        self._up = state.up.copy()
        self._free = state.free.copy()
        self._accepting = state.accepts(head.vcpus, head.memory_mb)
        self._domain = simulation.setting.domains()
        self._rooms = np.zeros(int(self._domain.max()) + 1, dtype=np.int64)
        self._total = 0  # sum of the rooms
        self._count(np.arange(len(self._free)), 1)
        ends = [
            (max(start + placed.job.estimate, simulation.now), number)
            for number, (start, placed) in simulation.running().items()
        ]
        heapq.heapify(ends)
        self.time = math.inf
        while ends and self.time == math.inf:
            time = ends[0][0]
            # What is spare for others is known only with all jobs that end at this time.
            while ends and ends[0][0] == time:
                self._change(state.jobs[heapq.heappop(ends)[1]], 1)
            if self._has_room():
                self.time = time
        self._next_end = ends[0][0] if ends else math.inf  # of a job that counts as running then

    def is_valid(self, head: Job, simulation: Simulation) -> bool:
        """True if it is for this job and no room was released, lost or expected since."""
        state, now = simulation.state, simulation.now
        if self._head is not head or self._gains != state.gains or now >= self._next_end:
            return False
        # Past its time, jobs that run beyond their estimates are expected to end now.
        self.time = max(self.time, now)
        return np.array_equal(self._up, state.up)

    def can_allow(self, job: Job) -> bool:
        """True if there may be hosts on which a job is allowed. Spares most placements."""
        head = self._head
        if self._simulation.now + job.estimate <= self.time:
            return True
        if job.vcpus < head.vcpus or job.memory_mb < head.memory_mb:
            return True
        # Each of its VMs takes the room of at least one VM of the first job.
        return self._total - job.count >= head.count

    def allows(self, placed: PlacedJob) -> bool:
        """True if a job may start on these hosts; it then counts as started."""
        end = self._simulation.now + placed.job.estimate
        if end <= self.time:
            return True
        self._change(placed, -1)
        if self._has_room():
            self._next_end = min(self._next_end, end)
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
        room[~self._accepting[hosts]] = 0
        np.add.at(self._rooms, self._domain[hosts], sign * room)
        self._total += sign * int(room.sum())
