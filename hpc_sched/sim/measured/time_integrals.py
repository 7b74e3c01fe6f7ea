"""What jobs occupy, integrated over the measured time: use, crossings of leaves, core-hours."""

import math

import numpy as np

from hpc_sched.core.arrays import Array, Mask, Reals
from hpc_sched.core.cost import Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS, Cluster
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window

# What is integrated: vcpus and MB of all jobs, crossings of leaves, hosts in use, their cores, the
# vcpus of each class, the use of uplinks by level, jobs that run and jobs that wait.
CROSSINGS, RUNNING, WAITING = 2, -2, -1
UPLINKS = slice(5 + len(APP_CLASSES), -2)
_TAKEN, _HOSTS, _CORES = slice(VCPUS, MEMORY_MB + 1), 3, 4
_CLASS = {name: i for i, name in enumerate(APP_CLASSES, start=5)}
_HOUR = 3600.0  # s


class TimeIntegrals:
    """Integrals over the time of one run; updated in the order of time.

    O(hosts of the job) per change. All time on a host counts, also that of starts which a failure
    undid, and of jobs that never ended; of a job that a bound of the window cuts, the part inside.
    """

    def __init__(self, cluster: Cluster, window: Window = WHOLE_RUN) -> None:
        """Start at time 0, without a job."""
        # At this moment: what jobs occupy, changed in place. Integrals have it times s.
        self.now = np.zeros(7 + len(APP_CLASSES) + cluster.topology.depth)
        self.most_crossing = 0  # jobs at one leaf at one time
        self._cluster = cluster
        self._window = window
        topology = cluster.topology
        self._leaf = topology.leaf_index
        self._crossing = np.zeros(len(topology.switches), dtype=np.int64)
        self._total = cluster.free_at_start.sum(axis=0).astype(np.float64)
        self._running = 0
        self._began = math.inf
        self.time = self._busy_until = 0.0  # s
        self.of_run = np.zeros_like(self.now)  # integrals from the start until now
        # The sums at each bound of the window that time has reached.
        self._sums_at = {0.0: self.of_run.copy()}
        # VMs that are no jobs stay: their hosts are in use all the time, whatever jobs do.
        used = cluster.total * 0 if cluster.used is None else cluster.used
        always: Mask = np.any(used, axis=1)
        always[sorted(cluster.running)] = True
        self._always = int(always.sum()), int(cluster.total[always, VCPUS].sum())
        # A VM there that never goes: no job is the first or the last of these hosts.
        self._vms: Array = always.astype(np.int64)

    def advance(self, time: float) -> None:
        """Advance to the time of the next change."""
        window = self._window
        if self.time <= window.since < time:
            # Jobs that run at this bound have started before it, and cross leaves inside.
            self.most_crossing = max(self.most_crossing, int(self._crossing.max()))
        for bound in (window.since, window.until):
            if self.time < bound <= time:
                self._integrate(bound)
                self._sums_at[bound] = self.of_run.copy()
        self._integrate(time)

    def started(self, placed: PlacedJob) -> None:
        """Count a job that has started."""
        self._change(placed, 1)
        self._began = min(self._began, self.time)

    def ended(self, placed: PlacedJob) -> None:
        """Count a job that has left its hosts, for any reason."""
        self._change(placed, -1)
        self._busy_until = self.time

    @property
    def span(self) -> float:
        """Time from the first start to the last end, or until now while jobs run, s.

        The part of it that is in the window.
        """
        end = self.time if self._running else self._busy_until
        window = self._window
        return max(min(end, window.until) - max(self._began, window.since), 0.0)

    @property
    def utilisation(self) -> tuple[float, float]:
        """Share of vcpus and of memory in use, over the span."""
        vcpus, memory_mb = self._integrals[_TAKEN] / self.span if self.span > 0 else (0.0, 0.0)
        return self.share(vcpus, VCPUS), self.share(memory_mb, MEMORY_MB)

    @property
    def available(self) -> float:
        """Vcpu-seconds that jobs could have had, over the span."""
        return float(self._total[VCPUS]) * self.span

    @property
    def uplink_use(self) -> dict[str, float]:
        """Share of the uplinks of each level's switches in use, mean over the span."""
        means = self._integrals[UPLINKS] / self.span if self.span > 0 else self.now[UPLINKS] * 0
        return dict(zip(self._cluster.topology.levels, means.tolist(), strict=True))

    @property
    def crossing(self) -> float:
        """Jobs with VMs under a leaf and under others, per leaf, mean over the span."""
        crossed = float(self._integrals[CROSSINGS])  # jobs * leaves * s
        leaves = len(np.unique(self._leaf))
        return crossed / self.span / leaves if self.span > 0 else 0.0

    @property
    def usage(self) -> Usage:
        """Core-hours of all jobs, and of the hosts in use, over the span."""
        hours = (self._integrals / _HOUR).tolist()
        hosts, cores = (always * self.span / _HOUR for always in self._always)
        return Usage(
            core_hours={name: hours[i] for name, i in _CLASS.items() if hours[i]},
            host_hours=hours[_HOSTS] + hosts,
            host_core_hours=hours[_CORES] + cores,
        )

    def share(self, amount: float, resource: int) -> float:
        """Return an amount of vcpus or MB over all that jobs can have; 0 if that is nothing."""
        return float(amount / self._total[resource]) if self._total[resource] else 0.0

    @property
    def _integrals(self) -> Reals:
        """The integrals over the window, as far as time has come."""
        end = self._sums_at.get(self._window.until, self.of_run)
        found: Reals = end - self._sums_at.get(self._window.since, end)
        return found

    def _integrate(self, time: float) -> None:
        self.of_run += self.now * (time - self.time)
        self.time = time

    def _change(self, placed: PlacedJob, sign: int) -> None:
        """Count a job that starts (sign 1), or leaves its hosts (sign -1)."""
        job = placed.job
        self._running += sign
        self.now[RUNNING] += sign
        vms = sign * job.count
        self.now[VCPUS] += vms * job.vcpus
        self.now[MEMORY_MB] += vms * job.memory_mb
        self.now[_CLASS[job.application.app_class]] += vms * job.vcpus
        host = placed.only_host
        if host is None:
            self._change_hosts(placed, sign)
            return
        before = self._vms.item(host)
        self._vms[host] = before + vms
        if not before or not before + vms:
            self.now[_HOSTS] += sign
            self.now[_CORES] += sign * self._cluster.total.item(host, VCPUS)

    def _change_hosts(self, placed: PlacedJob, sign: int) -> None:
        """Count the hosts of a job that has several, and the leaves at which it crosses others."""
        hosts = placed.hosts
        before = self._vms[hosts]
        self._vms[hosts] = after = before + sign * placed.counts
        changed = hosts[(before if sign > 0 else after) == 0]
        self.now[_HOSTS] += sign * len(changed)
        self.now[_CORES] += sign * sum(self._cluster.total[changed, VCPUS].tolist())
        leaves = list(set(self._leaf[hosts].tolist()))
        if len(leaves) > 1:
            self._crossing[leaves] += sign
            self.now[CROSSINGS] += sign * len(leaves)
            if self._window.holds(self.time):
                most = int(self._crossing[leaves].max())
                self.most_crossing = max(self.most_crossing, most)
