"""Free slots over the time to come, where all VMs have one size and may be on any host."""

import math
from collections.abc import Container

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.sim.cluster.cluster import VCPUS
from hpc_sched.sim.cluster.kept_rooms import Size
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation


class SlotProfile:
    """Slots that running jobs and reservations leave, from each instant to the next one.

    A slot is the room of one VM. Time that passes changes nothing, and neither does a job that
    starts when its reservation begins, or ends when it was expected to: only changes are counted.
    """

    def __init__(self, simulation: Simulation, size: Size) -> None:
        """Count the running jobs. O(running jobs)."""
        now = simulation.now
        self._instants: Reals = np.array([now])
        self._free: Array = np.array([simulation.state.room(*size).total])
        self._ends: dict[int, tuple[float, int]] = {}  # expected end and VMs of running jobs
        for end, number in simulation.running_jobs.ends:
            count = simulation.state.jobs[number].job.count
            self._ends[number] = end, count
            self.change(max(end, now), math.inf, count)

    @staticmethod
    def is_exact(simulation: Simulation, size: Size) -> bool:
        """True if VMs of a size take one slot wherever they are, where all VMs have it."""
        cluster = simulation.setting.cluster
        return (
            simulation.domains.number == 1
            and cluster.most_of_vm is None
            and size[VCPUS] > 0
            and int(cluster.total[:, VCPUS].max(initial=0)) < UNBOUNDED
        )

    def advance(self, now: float) -> None:
        """Forget the time before. O(instants)."""
        first = self._cut(now)
        self._instants, self._free = self._instants[first:], self._free[first:]

    def start(self, job: Job, now: float) -> None:
        """Count a job that starts now."""
        self._ends[job.number] = now + job.estimate, job.count
        self.change(now, now + job.estimate, -job.count)

    def release(self, running: Container[int], now: float) -> list[tuple[float, float]]:
        """Count what has ended; return the stretches that have gained slots. O(running jobs).

        :param running: numbers of the jobs that still run
        """
        found = []
        for number in [number for number in self._ends if number not in running]:
            end, count = self._ends.pop(number)
            if end > now:
                self.change(now, end, count)
                found.append((now, end))
        return found

    def change(self, start: float, end: float, slots: int) -> None:
        """Add slots to a stretch of time; less than 0: take them. O(instants)."""
        if start < end:
            first = self._cut(start)
            last = len(self._instants) if end == math.inf else self._cut(end)
            self._free[first:last] += slots

    def most(self, end: float) -> int:
        """Return the most slots that are free at any time before one. O(instants)."""
        last = int(np.searchsorted(self._instants, end))
        return int(self._free[:last].max(initial=0))

    def earliest(self, job: Job, at_least: float) -> float:
        """Return the earliest time from which on a job has its slots for as long as it runs, s.

        Infinity if there is none. O(instants).

        :param at_least: from this time on
        """
        if at_least == math.inf:
            return math.inf
        first = self._cut(at_least)
        instants = self._instants[first:]
        is_enough = self._free[first:] >= job.count
        # Stretches with enough slots begin and end where the one before differs.
        edges = np.flatnonzero(np.diff(is_enough, prepend=False, append=False))
        begins, ends = instants[edges[::2]], np.append(instants, math.inf)[edges[1::2]]
        fits = np.flatnonzero(ends >= begins + job.estimate)
        return float(begins[fits[0]]) if len(fits) else math.inf

    def _cut(self, time: float) -> int:
        """Return the index of an instant; inserts it if needed."""
        index = int(np.searchsorted(self._instants, time))
        if index == len(self._instants) or self._instants[index] != time:
            self._instants = np.concatenate(
                (self._instants[:index], [time], self._instants[index:])
            )
            # From there on the same is free as before.
            before = max(index - 1, 0)
            self._free = np.concatenate((self._free[: before + 1], self._free[before:]))
        return index
