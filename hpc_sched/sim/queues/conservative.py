"""Conservative backfilling: every waiting job has a reservation."""

import math
from collections.abc import Sequence

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.sim.cluster.kept_rooms import Size
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.profile import Profile, ReservedJob
from hpc_sched.sim.queues.queue_discipline import DEPTH, Queue
from hpc_sched.sim.queues.slot_profile import SlotProfile
from hpc_sched.sim.queues.slot_reservations import SlotReservations
from hpc_sched.sim.simulation import Simulation


class Conservative:
    """Conservative backfilling (Mu'alem, Feitelson 2001): no job delays an earlier one.

    A job gets a reservation when it is submitted: the earliest time from which on one island, or
    one switch of a required level, has room for all its VMs for as long as it runs by its
    estimate, next to the running jobs and all earlier reservations. When a job ends, the waiting
    jobs are moved forward one by one, in the order of the queue, each as far as the reservations
    of all others permit. So a job starts no later than it was first promised, unless a job runs
    beyond its estimate, a host fails, or a policy does not use the room that was counted; then
    all reservations are made anew, in the order of the queue.

    Only the first jobs of the queue have reservations, and only they can start. Room is counted
    as by EASY.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        """Start with an empty queue.

        :param depth: number of jobs behind the first one that have reservations
        """
        self._depth = depth
        self.reserved: dict[int, ReservedJob] = {}  # by number of the job
        self._size: Size | None = None  # of the VMs of the first job
        self._is_by_slots = False  # whether all VMs had this size and one domain so far
        self._slots: SlotReservations | None = None  # while they have
        self._chances, self._losses = 0, 0  # chances and failed hosts seen so far
        # Hosts that were up when the reservations were made.
        self._up: Mask = np.zeros(0, dtype=np.bool_)
        self._wake_up = -math.inf  # the last time at which the simulation was to call

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started. O(depth * (running jobs + depth)) when a job has ended."""
        now, state = simulation.now, simulation.state
        has_released = self._chances != simulation.chances
        has_other_hosts = (
            has_released or self._losses != state.losses or not len(self._up)
        ) and not np.array_equal(self._up, state.up)
        due = [
            job
            for job in self._first(simulation)
            if has_released
            # Without a reservation, or with one that begins now.
            or (kept := self.reserved.get(job.number)) is None
            or kept.start == now
        ]
        # Nothing has changed: the end of a start that a failure has undone, for example.
        if not due and not has_other_hosts:
            return
        if has_other_hosts or any(reserved.start < now for reserved in self.reserved.values()):
            self.reserved.clear()
            self._slots = None
            due = self._first(simulation)
        self._chances, self._losses = simulation.chances, state.losses
        if has_other_hosts:
            self._up = state.up.copy()
        while due:
            # Once one has started, other jobs have become the first ones of the queue.
            first = self._first(simulation) if self._reserve(due, simulation) else []
            due = [job for job in first if job.number not in self.reserved]
        self._wake_at_next_start(simulation)

    def _reserve(self, jobs: Sequence[Job], simulation: Simulation) -> bool:
        """Start jobs, or reserve their earliest room; return whether one has started."""
        if self._size is None:
            self._size = jobs[0].size
            self._is_by_slots = SlotProfile.is_exact(simulation, self._size)
        # From the first VM of another size on, hosts are counted.
        if self._is_by_slots and all(job.size == self._size for job in jobs):
            if self._slots is None:
                self._slots = SlotReservations(simulation, self._size, self.reserved)
            return self._slots.reserve(jobs, simulation)
        self._is_by_slots = False
        return reserve_by_hosts(jobs, self.reserved, simulation)

    def _first(self, simulation: Simulation) -> list[Job]:
        """Return the jobs that have, or get, a reservation."""
        return simulation.waiting.first(1 + self._depth)

    def _wake_at_next_start(self, simulation: Simulation) -> None:
        """Have the simulation call again when the next reservation begins."""
        now = simulation.now
        starts = [each.start for each in self.reserved.values() if each.start > now]
        start = min(starts, default=math.inf)
        if start not in (self._wake_up, math.inf):
            self._wake_up = start
            simulation.wake(start)


def reserve_by_hosts(
    jobs: Sequence[Job], reserved: dict[int, ReservedJob], simulation: Simulation
) -> bool:
    """Start jobs, or reserve their earliest room; return whether one has started.

    :param reserved: all reservations, by number of the job; changed
    """
    now, has_started = simulation.now, False
    profile = Profile(simulation, reserved.values())
    for job in jobs:
        kept = reserved.pop(job.number, None)
        if kept is not None:
            profile.remove(kept)
        found = profile.earliest(job, now)
        # A policy that ignores domains may find hosts where no domain has room.
        if (found.start <= now or profile.releases.domains > 1) and simulation.start(
            job, profile.allows
        ):
            has_started = True
            profile = Profile(simulation, reserved.values())
            continue
        if found.start <= now:
            found = profile.earliest(job, profile.releases.next_end)
        reserved[job.number] = found
        profile.add(found)
    return has_started


CONSERVATIVE = Queue(
    "conservative",
    "conservative backfilling (Mu'alem, Feitelson 2001)",
    lambda options: Conservative(options.depth),
    ("depth",),
)
