"""Disciplines that try waiting jobs in an order: FCFS, list scheduling, EASY backfilling.

EASY reserves the time at which the first job has room, and keeps what is not spare then.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import takewhile

from hpc_sched.sim.cluster.kept_rooms import Size
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.queue_discipline import DEPTH, Order, Queue, by_submission
from hpc_sched.sim.queues.reservation import Reservation
from hpc_sched.sim.queues.waiting_jobs import KeptOrder
from hpc_sched.sim.simulation import Simulation


class Fcfs:
    """First come, first served: no job starts before an earlier one, in any order of the queue."""

    def __init__(self, order: Order = by_submission, most: int = 1) -> None:
        """Start with an empty queue.

        :param most: jobs that are read of the order; a caller that reads more finds them kept
        """
        self._order = order
        self._most = most
        self._blocked: tuple[int, int] | None = None  # first job, and chances seen so far

    def __call__(self, simulation: Simulation) -> Job | None:
        """Start jobs from the head of the queue; return the first that cannot start, or None."""
        while simulation.waiting:
            head = self._order(simulation, self._most)[0]
            seen = (head.number, simulation.chances)
            # A job that did not fit cannot fit before something is released.
            if self._blocked == seen or not simulation.start(head):
                self._blocked = seen
                return head
        return None


class MostVms(dict[Size, float]):
    """A bound on the VMs of each size that fit: what is free in total holds no more of them.

    A comparison with it spares most placements. To be cleared when a job has started.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Start without any size."""
        super().__init__()
        self._state = simulation.state

    def __missing__(self, size: Size) -> float:
        pairs = zip(self._state.free_in_total, size, strict=True)
        rooms = (free // amount for free, amount in pairs if amount > 0)
        found = self[size] = min(rooms, default=math.inf)
        return found


class ListScheduling:
    """List scheduling (Graham 1969; Garey, Graham 1975): jobs that do not fit are passed over.

    Jobs are tried in the order of submission, and nothing is reserved: a large job may wait for
    as long as smaller ones keep arriving.
    """

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._not_fitting: set[int] = set()  # jobs without a place since the last release
        self._chances = 0  # seen so far

    def __call__(self, simulation: Simulation) -> None:
        """Start what fits. O(waiting jobs) after a release, else O(new jobs), placements each."""
        # A job that did not fit cannot fit before something is released.
        if self._chances != simulation.chances:
            self._chances = simulation.chances
            self._not_fitting.clear()
        # New jobs are at the end of the queue; one that has lost a host has released others.
        latest = reversed(simulation.waiting.values())
        untried = list(takewhile(lambda job: job.number not in self._not_fitting, latest))
        self._not_fitting.update([job.number for job in untried])
        most = MostVms(simulation)
        # Room can only become less.
        for job in [job for job in reversed(untried) if job.count <= most[job.size]]:
            if job.count <= most[job.size] and simulation.start(job):
                most.clear()


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
        self._in_order = Fcfs(order, 1 + depth)
        self.reservation: Reservation | None = None  # of the first waiting job
        self._not_fitting: set[int] = set()  # jobs without a place since the reservation was made
        self._tried: Sequence[Job] = ()  # the first jobs of the queue, all of which were tried

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(depth), a reservation after a release, and placements."""
        head = self._in_order(simulation)
        if head is None or self._depth == 0:
            return
        kept = self.reservation
        if kept is None or not kept.is_valid(head, simulation):
            kept = self.reservation = Reservation(head, simulation)
            self._not_fitting.clear()
            self._tried = ()
        first = self._order(simulation, 1 + self._depth)
        if first is not self._tried:
            self._tried = first
            self._backfill(first[1:], kept, simulation)

    def _backfill(
        self, jobs: Sequence[Job], reservation: Reservation, simulation: Simulation
    ) -> None:
        """Start what the reservation allows of jobs."""
        # A job that did not fit cannot fit before something is released.
        tried = self._not_fitting
        untried = [job for job in jobs if job.number not in tried]
        tried.update([job.number for job in untried])
        most = MostVms(simulation)
        # Room, and what the reservation allows, can only become less.
        for job in [job for job in untried if job.count <= most[job.size]]:
            if (
                job.count <= most[job.size]
                and reservation.can_allow(job)
                and simulation.start(job, reservation.allows)
            ):
                most.clear()


class ByEstimate(KeptOrder):
    """Waiting jobs by their estimates; equal ones in the order of the queue."""

    def __init__(self) -> None:
        """Start with an empty queue."""
        self._jobs: list[tuple[float, int, Job]] = []  # estimate and rank

    def enter(self, job: Job, rank: int) -> None:
        """Insert a job. O(log waiting jobs), and a shift."""
        insort(self._jobs, (job.estimate, rank, job))

    def leave(self, job: Job, rank: int) -> None:
        """Remove a job. O(log waiting jobs), and a shift."""
        del self._jobs[bisect_left(self._jobs, (job.estimate, rank))]

    def first(self, most: int) -> Sequence[Job]:
        """Return the first jobs, at most this number of them. O(most)."""
        return [job for _, _, job in self._jobs[:most]]


def by_estimate(simulation: Simulation, most: int) -> Sequence[Job]:
    """Return the jobs of the shortest estimates; equal ones as submitted. O(most)."""
    return simulation.waiting.kept(ByEstimate).first(most)


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
