"""Measures of a running simulation: integrals over time, core-hours, samples of the cluster."""

import math
from array import array
from collections import Counter

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.cost import Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS, Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job_record import JobRecord, Outcome
from hpc_sched.sim.series import Series

# At this number of samples every other one is dropped, and the interval doubles: the samples cover
# the whole run evenly and in bounded memory. Even: the last sample is dropped, so the next is due
# later.
MOST_SAMPLES = 512
# Shorter runtimes count as this one, in s: a wait of a minute is no disaster for a job of one
# second (Feitelson's bounded slowdown).
SLOWDOWN_BOUND = 10.0


# What is integrated over time: vcpus and MB of all jobs, crossings of leaves, hosts in use, their
# cores, and the vcpus of each class.
_TAKEN, _CROSSINGS, _HOSTS, _CORES = slice(VCPUS, MEMORY_MB + 1), 2, 3, 4
_CLASS = {name: i for i, name in enumerate(APP_CLASSES, start=5)}
_HOUR = 3600.0  # s


class Measures:
    """The measures of one run; updated in the order of time. O(hosts of the job) per change.

    All time on a host counts, also that of starts which a failure undid, and of jobs that never
    ended.
    """

    def __init__(
        self,
        cluster: Cluster,
        vcpus: int = 1,
        memory_mb: int = 0,
        *,
        interval: float = 60.0,
    ) -> None:
        """Start at time 0; VMs of ``vcpus`` and ``memory_mb`` measure fragmentation.

        :param interval: between the first samples, s
        """
        self.cluster = cluster
        self.outcomes: Counter[Outcome] = Counter()
        self.refusals: Counter[str] = Counter()
        self.restarts = 0
        # Numbers of all jobs that were done, in the order of their ends; 8 bytes each.
        self.waits, self.slowdowns, self.factors = (array("d") for _ in range(3))
        topology = cluster.topology
        gangs: dict[str, list[int]] = {level: [] for level in topology.levels}
        self.series = Series([], [], [], [], [], [], [], gangs, [])
        # Sums over the jobs that were done.
        self.hop_bytes = self.least_hop_bytes = 0.0
        self.pairs = 0
        self.apart = 0  # jobs on several islands, which have no Hop-Byte
        self.leaves = self.least_leaves = 0
        self.most_crossing = 0  # jobs at one leaf at one time
        self._leaf = topology.leaf_index
        self._leaves, first = np.unique(self._leaf, return_index=True)
        # The switch of each level above each leaf. Shape (levels, leaves)
        self._above = topology.groups[:, first]
        # Leaves in the order of a sample's, as indices of switches.
        self.leaves_sampled: list[int] = self._leaves.tolist()
        self._vm = vcpus, memory_mb
        self._total = cluster.free_at_start.sum(axis=0).astype(np.float64)
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
        self._crossing = np.zeros(len(topology.switches), dtype=np.int64)
        self._running = 0
        self._began = math.inf
        self._time = self._busy_until = 0.0
        self._interval = interval
        self._now = np.zeros(5 + len(APP_CLASSES))
        self._integrals = np.zeros_like(self._now)  # times s
        # VMs that are no jobs stay: their hosts are in use all the time, whatever jobs do.
        used = cluster.total * 0 if cluster.used is None else cluster.used
        always: Mask = np.any(used, axis=1)
        always[sorted(cluster.running)] = True
        self._always = int(always.sum()), int(cluster.total[always, VCPUS].sum())
        # A VM there that never goes: no job is the first or the last of these hosts.
        self._vms: Array = always.astype(np.int64)

    def advance(self, time: float) -> None:
        """Advance to the time of the next change."""
        self._integrals += self._now * (time - self._time)
        self._time = time

    def started(self, placed: PlacedJob) -> None:
        """Count a job that has started."""
        self._change(placed, 1)
        self._began = min(self._began, self._time)

    def ended(self, placed: PlacedJob) -> None:
        """Count a job that has left its hosts, for any reason."""
        self._change(placed, -1)
        self._busy_until = self._time

    def recorded(self, record: JobRecord) -> None:
        """Count a job by its record."""
        self.outcomes[record.outcome] += 1
        self.restarts += record.restarts
        if record.outcome is Outcome.REFUSED:
            self.refusals[record.reason] += 1
        if record.outcome is not Outcome.DONE:
            return
        assert record.start is not None
        assert record.end is not None
        self.waits.append(record.start - record.submit)
        runtime = max(record.runtime, SLOWDOWN_BOUND)
        self.slowdowns.append(max((record.end - record.submit) / runtime, 1.0))
        self.factors.append(record.factor)
        if math.isinf(record.hop_bytes):
            self.apart += 1
        elif record.least_hop_bytes is not None:
            self.hop_bytes += record.hop_bytes
            self.least_hop_bytes += record.least_hop_bytes
            self.pairs += math.comb(record.vms, 2)
        if record.least_leaves is not None:
            self.leaves += record.leaves
            self.least_leaves += record.least_leaves

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
        series.crossing.append(float(self._now[_CROSSINGS]) / len(self._leaves))
        series.leaves.append(self._shares)
        for samples, largest in zip(series.gangs.values(), self._largest, strict=True):
            samples.append(largest)
        if len(series.time) >= MOST_SAMPLES:
            for every in series.lists:
                del every[1::2]
            self._interval *= 2
        return self.series.time[-1] + self._interval

    @property
    def span(self) -> float:
        """Time from the first start to the last end, or until now while jobs run, s."""
        end = self._time if self._running else self._busy_until
        return max(end - self._began, 0.0)

    @property
    def utilisation(self) -> tuple[float, float]:
        """Share of vcpus and of memory in use, from the first start to the last end."""
        vcpus, memory_mb = self._integrals[_TAKEN] / self.span if self.span > 0 else (0.0, 0.0)
        return self._share(vcpus, VCPUS), self._share(memory_mb, MEMORY_MB)

    @property
    def crossing(self) -> float:
        """Jobs with VMs under a leaf and under others, per leaf, mean over time."""
        crossed = float(self._integrals[_CROSSINGS])  # jobs * leaves * s
        return crossed / self.span / len(self._leaves) if self.span > 0 else 0.0

    @property
    def usage(self) -> Usage:
        """Core-hours of all jobs, and of the hosts in use from the first start to the last end."""
        hours = (self._integrals / _HOUR).tolist()
        hosts, cores = (always * self.span / _HOUR for always in self._always)
        return Usage(
            core_hours={name: hours[i] for name, i in _CLASS.items() if hours[i]},
            host_hours=hours[_HOSTS] + hosts,
            host_core_hours=hours[_CORES] + cores,
        )

    def _change(self, placed: PlacedJob, sign: int) -> None:
        """Count a job that starts (sign 1), or leaves its hosts (sign -1)."""
        job = placed.job
        self._running += sign
        vms = sign * job.count
        self._now[VCPUS] += vms * job.vcpus
        self._now[MEMORY_MB] += vms * job.memory_mb
        self._now[_CLASS[job.application.app_class]] += vms * job.vcpus
        host = placed.only_host
        if host is None:
            self._change_hosts(placed, sign)
            return
        before = self._vms.item(host)
        self._vms[host] = before + vms
        if not before or not before + vms:
            self._now[_HOSTS] += sign
            self._now[_CORES] += sign * self.cluster.total.item(host, VCPUS)

    def _change_hosts(self, placed: PlacedJob, sign: int) -> None:
        """Count the hosts of a job that has several, and the leaves at which it crosses others."""
        hosts = placed.hosts
        before = self._vms[hosts]
        self._vms[hosts] = after = before + sign * placed.counts
        changed = hosts[(before if sign > 0 else after) == 0]
        self._now[_HOSTS] += sign * len(changed)
        self._now[_CORES] += sign * sum(self.cluster.total[changed, VCPUS].tolist())
        leaves = list(set(self._leaf[hosts].tolist()))
        if len(leaves) > 1:
            self._crossing[leaves] += sign
            self._now[_CROSSINGS] += sign * len(leaves)
            self.most_crossing = max(self.most_crossing, int(self._crossing[leaves].max()))

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

    def _share(self, amount: float, resource: int) -> float:
        return float(amount / self._total[resource]) if self._total[resource] else 0.0

    def _sums(self, per_host: Array) -> Reals:
        """Return the sum over the hosts of each leaf. Shape (leaves,)."""
        sums: Reals = np.bincount(self._leaf, per_host.astype(np.float64)).astype(np.float64)
        return sums[self._leaves]
