"""Disciplines that try waiting jobs in an order: FCFS, list scheduling, EASY backfilling.

EASY reserves the time at which the first job has room, and keeps what is not spare then.
"""

import heapq
import math
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.queue_discipline import DEPTH, Order, Queue, by_submission
from hpc_sched.sim.simulation import Simulation


class Fcfs:
    """First come, first served: no job starts before an earlier one, in any order of the queue."""

    def __init__(self, order: Order = by_submission) -> None:
        """Start with an empty queue."""
        self._order = order
        self._blocked: tuple[int, int] | None = None  # first job, and releases seen so far

    def __call__(self, simulation: Simulation) -> Job | None:
        """Start jobs from the head of the queue; return the first that cannot start, or None."""
        while simulation.waiting:
            head = self._order(simulation, 1)[0]
            seen = (head.number, simulation.state.gains)
            # A job that did not fit cannot fit before something is released.
            if self._blocked == seen or not simulation.start(head):
                self._blocked = seen
                return head
        return None


class ListScheduling:
    """List scheduling (Graham 1969; Garey, Graham 1975): jobs that do not fit are passed over.

    Jobs are tried in the order of submission, and nothing is reserved: a large job may wait for
    as long as smaller ones keep arriving.
    """

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._not_fitting: set[int] = set()  # jobs without a place since the last release
        self._gains = 0  # releases seen so far

    def __call__(self, simulation: Simulation) -> None:
        """Start what fits. O(waiting jobs) after a release, else O(new jobs), placements each."""
        # A job that did not fit cannot fit before something is released.
        if self._gains != simulation.state.gains:
            self._gains = simulation.state.gains
            self._not_fitting.clear()
        # New jobs are at the end of the queue; one that has lost a host has released others.
        latest = reversed(simulation.waiting.values())
        untried = list(takewhile(lambda job: job.number not in self._not_fitting, latest))
        for job in reversed(untried):
            if not simulation.start(job):
                self._not_fitting.add(job.number)


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
        return (
            self._simulation.now + job.estimate <= self.time
            or job.vcpus < head.vcpus
            or job.memory_mb < head.memory_mb
            # Each of its VMs takes the room of at least one VM of the first job.
            or self._total - job.count >= head.count
        )

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


class Easy:
    """EASY backfilling (Lifka 1995): later jobs may start first if they do not delay the head.

    The first job that does not fit gets a reservation: the earliest time at which, by the
    walltimes of the running jobs, one island, or one switch of a required level, has room for
    all its VMs. A later job starts before it if it ends by then, or leaves that room free. Room
    is vcpus and memory. Cache scores, processor types and a bound on leaves may delay the first
    job further; the reservation does not foresee that.

    Jobs that run beyond their estimates delay the reservation: they are expected to end at any
    moment.
    """

    def __init__(self, depth: int = DEPTH, order: Order = by_submission) -> None:
        """Start with an empty queue.

        :param depth: number of waiting jobs behind the first one that may start before it
        """
        self._depth = depth
        self._order = order
        self._in_order = Fcfs(order)
        self.reservation: Reservation | None = None  # of the first waiting job
        self._not_fitting: set[int] = set()  # jobs without a place since the reservation was made

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(running jobs + depth * a placement)."""
        head = self._in_order(simulation)
        if head is None or self._depth == 0:
            return
        kept = self.reservation
        if kept is None or not kept.is_valid(head, simulation):
            kept = self.reservation = Reservation(head, simulation)
            self._not_fitting.clear()
        for job in self._order(simulation, 1 + self._depth)[1:]:
            # A job that did not fit cannot fit before something is released.
            if job.number in self._not_fitting:
                continue
            if not (kept.can_allow(job) and simulation.start(job, kept.allows)):
                self._not_fitting.add(job.number)


def by_estimate(simulation: Simulation, most: int) -> Sequence[Job]:
    """Return the jobs of the shortest estimates; equal ones as submitted. O(waiting jobs)."""
    return heapq.nsmallest(most, simulation.waiting.values(), key=lambda job: job.estimate)


FCFS = Queue("fcfs", "first come, first served", lambda _options: Fcfs())
LIST_SCHEDULING = Queue(
    "list-scheduling",
    "every job that fits starts, without reservations (Graham 1969)",
    lambda _options: ListScheduling(),
)
EASY = Queue(
    "easy",
    "EASY backfilling (Lifka 1995)",
    lambda options: Easy(options.depth),
    ("depth",),
)
SHORTEST_FIRST = Queue(
    "shortest-first",
    "the shortest estimate first, with EASY backfilling behind the first job",
    lambda options: Easy(options.depth, by_estimate),
    ("depth",),
)
