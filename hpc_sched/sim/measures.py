"""Measures of a running simulation: integrals over time, numbers of jobs, samples."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.fragmentation.price import POD
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS, Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job_record import JobRecord, NetworkedJobRecord, Outcome
from hpc_sched.sim.measured.job_kinds import JobKinds
from hpc_sched.sim.measured.measured_jobs import MeasuredJobs
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window
from hpc_sched.sim.measured.size_classes import SizeClasses
from hpc_sched.sim.measured.time_integrals import (
    CROSSINGS,
    RUNNING,
    UPLINKS,
    WAITING,
    TimeIntegrals,
)
from hpc_sched.sim.series import Series, Totals

# At this number of samples every other one is dropped, and the interval doubles: the samples cover
# the whole run evenly and in bounded memory. Even: the last sample is dropped, so the next is due
# later.
MOST_SAMPLES = 512


class Measures:
    """The measures of one run; updated in the order of time. O(hosts of the job) per change.

    With a window, integrals are over the time in it, and the numbers of jobs are of those that
    were submitted in it, whenever they end. Samples are of the whole run.
    """

    def __init__(
        self,
        cluster: Cluster,
        vcpus: int = 1,
        memory_mb: int = 0,
        *,
        interval: float = 60.0,
        window: Window = WHOLE_RUN,
        levels: Sequence[str] = (),
    ) -> None:
        """Start at time 0; VMs of ``vcpus`` and ``memory_mb`` measure fragmentation.

        :param interval: between the first samples, s
        :param levels: with uplinks, on a network
        """
        self.cluster = cluster
        self.window = window
        self.integrals = TimeIntegrals(cluster, window)
        self.jobs = MeasuredJobs()
        self.kinds = JobKinds(SizeClasses(cluster), window)  # of jobs on a network
        self.outcomes: Counter[Outcome] = Counter()  # of all jobs, in the window or not
        topology = cluster.topology
        gangs: dict[str, list[int]] = {level: [] for level in topology.levels}
        self.series = Series([], [], [], [], [], [], [], gangs, [], Totals.empty(levels))
        self._leaf = topology.leaf_index
        self._leaves, first = np.unique(self._leaf, return_index=True)
        # The switch of each level above each leaf. Shape (levels, leaves)
        self._above = topology.groups[:, first]
        # Leaves in the order of a sample's, as indices of switches.
        self.leaves_sampled: list[int] = self._leaves.tolist()
        self._vm = vcpus, memory_mb
        # vcpus of hosts that take VMs. Shape (leaves,)
        usable = cluster.total[:, VCPUS].copy()
        usable[sorted(cluster.down)] = 0
        self._per_leaf = self._sums(usable)
        # Of the last sample, and of the moment of the cluster's state: the largest group below a
        # switch of each level, the vcpus of each leaf in use, and their rounded share.
        self._moment = -1
        self._largest: list[int] = []
        self._used = np.zeros_like(self._per_leaf)
        self._shares = [0.0] * len(self._leaves)
        self._running = 0
        self._interval = interval
        # What jobs occupy at this moment: the array of the integrals, which change it in place.
        self._now = self.integrals.now
        self._share = self.integrals.share

    def advance(self, time: float, waiting: int = 0) -> None:
        """Advance to the time of the next change.

        :param waiting: jobs that have waited since the change before
        """
        self._now[WAITING] = waiting
        self.integrals.advance(time)

    def started(self, placed: PlacedJob) -> None:
        """Count a job that has started."""
        self._running += 1
        self.integrals.started(placed)

    def ended(self, placed: PlacedJob) -> None:
        """Count a job that has left its hosts, for any reason."""
        self._running -= 1
        self.integrals.ended(placed)

    def uplinks_used(self, parts: Reals | None) -> None:
        """Note which part of the uplinks of each level jobs take from now on; None: no network."""
        if parts is not None:
            self._now[UPLINKS] = parts

    def recorded(self, record: JobRecord) -> None:
        """Count a job by its record."""
        self.outcomes[record.outcome] += 1
        if self.window.holds(record.submit):
            self.jobs.add(record)
        if isinstance(record, NetworkedJobRecord):
            self.kinds.add(record)

    def sample(self, now: float, state: ClusterState, waiting: int) -> float:
        """Take a sample, and return when the next one is due. O(hosts + leaves * levels)."""
        if state.changed.now != self._moment:
            self._moment = state.changed.now
            self._look_at_leaves(state)
        series = self.series
        series.time.append(now)
        series.vcpus.append(self._share(self._now[VCPUS], VCPUS))
        series.memory.append(self._share(self._now[MEMORY_MB], MEMORY_MB))
        series.running.append(self._running)
        series.waiting.append(waiting)
        series.done.append(self.outcomes[Outcome.DONE])
        series.crossing.append(float(self._now[CROSSINGS]) / len(self._leaves))
        series.leaves.append(self._shares)
        for samples, largest in zip(series.gangs.values(), self._largest, strict=True):
            samples.append(largest)
        self._sum_up(now)
        if len(series.time) >= MOST_SAMPLES:
            for every in series.lists:
                del every[1::2]
            series.totals.thin(series.time)
            self._interval *= 2
        return self.series.time[-1] + self._interval

    @property
    def largest_gang(self) -> float | None:
        """VMs that fit below one switch just above leaves, mean over samples in the window.

        Samples are as far from each other as the next: it is the mean over time. None without any.
        """
        gangs = list(self.series.gangs.values())[:POD][-1]
        found = [
            number
            for time, number in zip(self.series.time, gangs, strict=True)
            if self.window.holds(time)
        ]
        return sum(found) / len(found) if found else None

    def concluded(self) -> None:
        """Add the totals of the whole run to the series."""
        totals, now = self.series.totals, self.integrals.time
        if totals.time[-1:] == [now]:  # a sample of the last moment lacks the jobs left
            for numbers in totals.lists:
                numbers.pop()
        self._sum_up(now)

    def _sum_up(self, now: float) -> None:
        """Add the totals until now to the series."""
        sums = self.integrals.of_run.tolist()
        ended = self.outcomes.total() - self.outcomes[Outcome.REFUSED]
        self.series.totals.append(
            *(now, self.outcomes[Outcome.DONE], ended),
            *(self._share(sums[VCPUS], VCPUS), self._share(sums[MEMORY_MB], MEMORY_MB)),
            *(sums[RUNNING], sums[WAITING], sums[CROSSINGS] / len(self._leaves)),
            uplinks=dict(zip(self.cluster.topology.levels, sums[UPLINKS], strict=True)),
        )

    def _look_at_leaves(self, state: ClusterState) -> None:
        """Count what a sample has of leaves and switches. O(hosts + leaves * levels)."""
        room = state.room(*self._vm).by_leaf[self._leaves]
        self._largest = [int(np.bincount(switches, weights=room).max()) for switches in self._above]
        used = self._per_leaf - self._sums(state.free[:, VCPUS])
        self._shares = list(self._shares)  # earlier samples keep theirs
        # To round takes longer than all the rest of a sample, and few leaves have changed.
        for leaf in np.flatnonzero(used != self._used).tolist():
            self._shares[leaf] = round(float(used[leaf] / self._per_leaf[leaf]), 4)
        self._used = used

    def _sums(self, per_host: Array) -> Reals:
        """Return the sum over the hosts of each leaf. Shape (leaves,)."""
        sums: Reals = np.bincount(self._leaf, per_host.astype(np.float64)).astype(np.float64)
        return sums[self._leaves]
