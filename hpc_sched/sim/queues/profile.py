"""Free room over the time to come, by the estimates of running and waiting jobs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation


class Releases:
    """Room of each domain now and after each expected end, counted host by host.

    Domains are those of :meth:`SimulationInput.domains`, ordered by the names of their switches.
    A job that runs beyond its estimate is expected to end at any moment: now.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Count. O(hosts + hosts of running jobs)."""
        self._state = simulation.state
        self._domain = simulation.domains.of_host
        self.domains = simulation.domains.number
        running = list(simulation.running().values())
        ends = [max(start + placed.job.estimate, simulation.now) for start, placed in running]
        self.next_end = min(ends, default=math.inf)  # the first end of a running job, s
        # Now, and the later ends.
        self.times: Reals
        self.times, index = np.unique([simulation.now, *ends], return_inverse=True)
        # A row for each host of each running job, by host and time: the host, the index of the
        # time, and what is released there until then. Shapes (rows,), (rows,), (rows, 2).
        per_job = [placed.hosts for _, placed in running]
        hosts = np.concatenate([np.zeros(0, dtype=np.int64), *per_job])
        times = np.repeat(index[1:], [len(each) for each in per_job])
        order = np.lexsort((times, hosts))
        self._hosts: Array = hosts[order]
        self._times: Array = times[order]
        takes = [placed.takes for _, placed in running]
        amounts = np.concatenate([np.zeros((0, 2), dtype=np.int64), *takes])[order]
        self._is_first = np.diff(self._hosts, prepend=-1) != 0
        first_row = np.maximum.accumulate(np.where(self._is_first, np.arange(len(order)), 0))
        total = np.cumsum(amounts, axis=0)
        self._released: Array = total - (total - amounts)[first_row]

    def room(self, size: tuple[int, int], started: PlacedJob | None = None) -> Array:
        """Return how many VMs of a size fit at each of the times. Shape (times, domains).

        :param size: vcpus and MB of one VM
        :param started: a job that takes its hosts now and does not end
        """
        free = self._state.free
        if started is not None:
            free = free.copy()
            free[started.hosts] -= started.takes
        accepts = self._state.accepts(*size)
        now = np.where(accepts, capacities(free, size), 0)
        later = capacities(free[self._hosts] + self._released, size)
        later[~accepts[self._hosts]] = 0
        before = np.roll(later, 1)
        before[self._is_first] = now[self._hosts[self._is_first]]
        room = np.zeros((len(self.times), self.domains), dtype=np.int64)
        np.add.at(room[0], self._domain, now)
        np.add.at(room, (self._times, self._domain[self._hosts]), later - before)
        return np.cumsum(room, axis=0)


@dataclass(frozen=True, slots=True)
class ReservedJob:
    """A waiting job and its reservation."""

    job: Job
    start: float  # s; infinity: there is no room for it at any time
    domain: int = 0  # that all its VMs are in, as Releases numbers them

    @property
    def end(self) -> float:
        """The end of the reservation, s."""
        return self.start + self.job.estimate


class Profile:
    """Room of each domain from now on: what running jobs leave, less what is reserved.

    A reservation has no hosts yet. It is counted in vcpus and memory of its domain.
    """

    def __init__(self, simulation: Simulation, reserved: Iterable[ReservedJob] = ()) -> None:
        """Count. O(hosts + hosts of running jobs + reservations * stretches)."""
        self._now = simulation.now
        self.releases = Releases(simulation)
        self._free: dict[tuple[int, int], Array] = {}  # rooms of Releases, by size of VM
        kept = list(reserved)
        self._jobs = {each.job.number: each for each in kept}
        # Stretches of time in which nothing changes: the first instant of each, how many of the
        # releases are past, and what is reserved. Shapes (stretches,), the same, and
        # (stretches, domains, 2); vcpus and MB.
        instants = [(each.start, each.end) for each in kept if each.start < math.inf]
        times = self.releases.times
        self._starts: Reals = np.unique([*times, *chain.from_iterable(instants)])
        self._past: Array = np.searchsorted(times, self._starts, side="right") - 1
        self._reserved: Array = self._sums([each for each in kept if each.start < math.inf])

    def _sums(self, reserved: Sequence[ReservedJob]) -> Array:
        """Return what reservations take that begin at some time. As ``_reserved``."""
        change = np.zeros((len(self._starts) + 1, self.releases.domains, 2), dtype=np.int64)
        domains = [each.domain for each in reserved]
        takes = np.array([(each.job.vcpus, each.job.memory_mb) for each in reserved]).reshape(-1, 2)
        takes *= np.array([each.job.count for each in reserved], dtype=np.int64).reshape(-1, 1)
        for sign, times in (
            (1, [each.start for each in reserved]),
            (-1, [each.end for each in reserved]),
        ):
            index = np.searchsorted(self._starts, np.array(times, dtype=np.float64))
            np.add.at(change, (index, np.array(domains, dtype=np.int64)), sign * takes)
        return np.cumsum(change[:-1], axis=0)

    def add(self, reserved: ReservedJob) -> None:
        """Take the room of a reservation. O(stretches)."""
        self._jobs[reserved.job.number] = reserved
        self._change(reserved, 1)

    def remove(self, reserved: ReservedJob) -> None:
        """Give the room of a reservation back. O(stretches)."""
        del self._jobs[reserved.job.number]
        self._change(reserved, -1)

    def earliest(self, job: Job, at_least: float) -> ReservedJob:
        """Return the earliest reservation that leaves all others their room.

        Of several domains the one with the least room, of these the first by name.
        O(stretches * domains).

        :param at_least: now, or the expected end of a running job, s
        """
        starts = self._starts[:, np.newaxis]
        room = self._room(job)
        is_enough = room >= job.count
        # The next instant without enough room, from each stretch on.
        ends = np.minimum.accumulate(np.where(is_enough, math.inf, starts)[::-1])[::-1]
        fits = is_enough & (ends >= starts + job.estimate) & (starts >= at_least)
        first = int(np.argmax(fits.any(axis=1)))
        if not fits[first].any():
            return ReservedJob(job, math.inf)
        domain = int(np.argmin(np.where(fits[first], room[first], np.iinfo(np.int64).max)))
        return ReservedJob(job, float(self._starts[first]), domain)

    def allows(self, placed: PlacedJob) -> bool:
        """True if a job that starts on these hosts now leaves all reservations their room.

        O((hosts + hosts of running jobs) * sizes of VMs + reservations * stretches).
        """
        end = self._now + placed.job.estimate
        before: dict[tuple[int, int], tuple[Array, Array]] = {}
        for reserved in self._jobs.values():
            if reserved.start >= end:
                continue
            size = _size(reserved.job)
            if size not in before:
                left = self._room(reserved.job)
                lost = self._free[size] - self.releases.room(size, placed)
                before[size] = left, lost[self._past]
            left, lost = before[size]
            stretches = np.searchsorted(self._starts, (reserved.start, min(reserved.end, end)))
            during = slice(*stretches.tolist()), reserved.domain
            # A host that failed, or VMs of many sizes, may have taken the room already.
            if (lost[during] > np.maximum(left[during], 0)).any():
                return False
        return True

    def _room(self, job: Job) -> Array:
        """Return the VMs of a job that there is room for. Shape (stretches, domains)."""
        size = _size(job)
        if size not in self._free:
            self._free[size] = self.releases.room(size)
        room: Array = self._free[size][self._past]
        taken = np.zeros_like(room)
        for resource, amount in enumerate(size):
            if amount > 0:
                np.maximum(taken, -(-self._reserved[:, :, resource] // amount), out=taken)
        return room - taken

    def _change(self, reserved: ReservedJob, sign: int) -> None:
        if reserved.start < math.inf:
            during = slice(self._cut(reserved.start), self._cut(reserved.end))
            amounts = sign * reserved.job.count * np.array(_size(reserved.job))
            self._reserved[during, reserved.domain] += amounts

    def _cut(self, time: float) -> int:
        """Return the index of the stretch that begins at a time; divides one if needed."""
        index = int(np.searchsorted(self._starts, time))
        if index == len(self._starts) or self._starts[index] != time:
            # The new stretch begins like the one that it is cut from.
            self._starts = _repeated(self._starts, index - 1)
            self._starts[index] = time
            self._past = _repeated(self._past, index - 1)
            self._reserved = _repeated(self._reserved, index - 1)
        return index


def _repeated(rows: NDArray[Any], index: int) -> NDArray[Any]:
    """Return the rows with one of them twice; np.insert takes several times as long."""
    return np.concatenate((rows[: index + 1], rows[index:]))


def _size(job: Job) -> tuple[int, int]:
    return job.vcpus, job.memory_mb
