"""Queue disciplines that keep nothing: all waiting and running jobs are looked at each time.

What the disciplines of the simulator keep and correct must give the same starts.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.fair_share import DecayedUsage
from hpc_sched.sim.simulation import Simulation

Key = Callable[[Job], float]


class ScannedReservation:
    """When the first job has room, by releasing one running job after the other."""

    def __init__(self, head: Job, simulation: Simulation) -> None:
        self.head, self.now, self.time = head, simulation.now, math.inf
        self.free = simulation.state.free.copy()
        self.state = simulation.state
        self.domain = simulation.setting.domains()
        self.gains, self.up = simulation.state.gains, simulation.state.up.copy()
        ends = sorted(
            (max(start + placed.job.estimate, simulation.now), number)
            for number, (start, placed) in simulation.running().items()
        )
        while ends and self.time == math.inf:
            time = ends[0][0]
            while ends and ends[0][0] == time:
                placed = simulation.state.jobs[ends.pop(0)[1]]
                self.free[placed.hosts] += placed.takes
            if self.rooms().max() >= head.count:
                self.time = time
        self.next_end = ends[0][0] if ends else math.inf

    def rooms(self) -> Array:
        """Return the room of each domain, by the index of its switch."""
        room = capacities(self.free, self.head.size)
        room[~self.state.accepts(*self.head.size)] = 0
        return np.bincount(self.domain, weights=room).astype(np.int64)

    def holds(self, head: Job, simulation: Simulation) -> bool:
        """True if it is for this job and no room was released, lost or expected since."""
        self.now = simulation.now
        if head is not self.head or self.gains != simulation.state.gains:
            return False
        self.time = max(self.time, self.now) if self.now < self.next_end else self.time
        return self.now < self.next_end and np.array_equal(self.up, simulation.state.up)

    def allows(self, placed: PlacedJob) -> bool:
        """True if a job leaves the first one its room; it then counts as started."""
        end = self.now + placed.job.estimate
        if end <= self.time:
            return True
        self.free[placed.hosts] -= placed.takes
        if self.rooms().max() >= self.head.count:
            self.next_end = min(self.next_end, end)
            return True
        self.free[placed.hosts] += placed.takes
        return False


class ScannedEasy:
    """EASY backfilling in the order of a key; equal jobs in the order of the queue."""

    def __init__(self, depth: int, key: Key) -> None:
        self.depth, self.key = depth, key
        self.reservation: ScannedReservation | None = None
        self.blocked: tuple[int, int] | None = None
        self.not_fitting: set[int] = set()

    def first(self, simulation: Simulation, most: int) -> Sequence[Job]:
        """Return the first jobs of the queue."""
        return heapq.nsmallest(most, simulation.waiting.values(), key=self.key)

    def __call__(self, simulation: Simulation) -> None:
        while simulation.waiting:
            head = self.first(simulation, 1)[0]
            seen = head.number, simulation.state.gains
            if self.blocked == seen or not simulation.start(head):
                self.blocked = seen
                break
        if not simulation.waiting or not self.depth:
            return
        if self.reservation is None or not self.reservation.holds(head, simulation):
            self.reservation = ScannedReservation(head, simulation)
            self.not_fitting.clear()
        for job in self.first(simulation, 1 + self.depth)[1:]:
            if job.number not in self.not_fitting and not simulation.start(
                job, self.reservation.allows
            ):
                self.not_fitting.add(job.number)


class ScannedFairShare:
    """Fair share: usage of all running jobs, counted at each event."""

    def __init__(self, depth: int, half_life: float) -> None:
        self.usage = DecayedUsage(half_life)
        self.vcpus: Counter[int | None] = Counter()
        self.easy = ScannedEasy(depth, lambda job: self.usage.of(job.user))

    def __call__(self, simulation: Simulation) -> None:
        self.usage.advance(simulation.now, self.vcpus)
        self.easy(simulation)
        self.vcpus = Counter()
        for placed in simulation.state.jobs.values():
            self.vcpus[placed.job.user] += placed.job.count * placed.job.vcpus


class ScannedList:
    """List scheduling: all waiting jobs are tried at each event."""

    def __call__(self, simulation: Simulation) -> None:
        for job in list(simulation.waiting.values()):
            simulation.start(job)
