"""Reservations of conservative backfilling, where all VMs have one size and may be on any host."""

import math
from collections.abc import Sequence

from hpc_sched.sim.cluster.kept_rooms import Size
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.profile import ReservedJob
from hpc_sched.sim.queues.slot_profile import SlotProfile
from hpc_sched.sim.simulation import Simulation

_MOST = 1000  # stretches that gained slots, until all jobs are moved anew


class SlotReservations:
    """The same reservations as by hosts, and only those are made anew that may differ.

    A reservation was the earliest one when it was made. It still is unless slots were gained
    before its end since then, and there are enough of them at some time before its start.
    """

    def __init__(
        self, simulation: Simulation, size: Size, reserved: dict[int, ReservedJob]
    ) -> None:
        """Start without any reservation.

        :param size: of all VMs
        :param reserved: reservations by number of the job; empty, and changed
        """
        self._profile = SlotProfile(simulation, size)
        self._reserved = reserved
        self._gained: list[tuple[float, float]] = []  # the latest stretches that gained slots
        self._forgotten = 0  # such stretches before these
        # Stretches that had gained slots when a job's reservation was found to be the earliest.
        self._seen: dict[int, int] = {}
        self._gains = simulation.state.gains

    def reserve(self, jobs: Sequence[Job], simulation: Simulation) -> bool:
        """Start jobs, or reserve their earliest room; return whether one has started."""
        self._advance(simulation)
        now, profile, has_started = simulation.now, self._profile, False
        for job in jobs:
            kept = self._reserved.get(job.number)
            if kept is not None and kept.start > now and not self._may_move(kept, now):
                self._seen[job.number] = self._forgotten + len(self._gained)
                continue
            if kept is not None:
                del self._reserved[job.number]
                profile.change(kept.start, kept.end, job.count)
            start = profile.earliest(job, now)
            is_free = start <= now
            if is_free and simulation.start(job):
                has_started = True
                profile.start(job, now)
            else:
                if is_free:
                    # The policy has found no hosts: not before a running job has ended.
                    start = profile.earliest(job, _next_end(simulation))
                found = self._reserved[job.number] = ReservedJob(job, start)
                profile.change(found.start, found.end, -job.count)
            if kept is not None and kept.start != start:
                self._gained.append((kept.start, kept.end))
            if not is_free:
                self._seen[job.number] = self._forgotten + len(self._gained)
            else:
                # It has started, or its reservation is not the earliest by slots.
                self._seen.pop(job.number, None)
        return has_started

    def _advance(self, simulation: Simulation) -> None:
        """Count what has ended since the last time."""
        now, state, profile = simulation.now, simulation.state, self._profile
        profile.advance(now)
        if self._gains != state.gains:
            self._gains = state.gains
            self._gained += profile.release(state.jobs, now)
        if len(self._gained) > _MOST:
            self._forgotten += len(self._gained)
            self._gained.clear()

    def _may_move(self, kept: ReservedJob, now: float) -> bool:
        """True unless a reservation is known to be the earliest."""
        seen = self._seen.get(kept.job.number)
        # A job that is expected to end at once holds no slots: others may have taken them.
        if seen is None or kept.start == kept.end < math.inf:
            return True
        if seen >= self._forgotten:
            gained = self._gained[seen - self._forgotten :]
            if not any(start < kept.end and end > now for start, end in gained):
                return False
        return self._profile.most(kept.start) >= kept.job.count


def _next_end(simulation: Simulation) -> float:
    """Return the first expected end of a running job, s."""
    ends = simulation.running_jobs.ends
    return max(ends[0][0], simulation.now) if ends else math.inf
