"""Core-hours of a running simulation: VMs by application class, and the hosts that run them."""

import numpy as np

from hpc_sched.core.cost.usage import Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.sim.cluster.cluster import VCPUS, Cluster
from hpc_sched.sim.cluster.cluster_state import PlacedJob

_CLASS = {name: i for i, name in enumerate(APP_CLASSES)}
_HOSTS, _CORES = len(APP_CLASSES), len(APP_CLASSES) + 1  # behind the classes
_HOUR = 3600.0  # s


class CoreHours:
    """Integrals over time of the vcpus of jobs, and of the hosts in use and their cores.

    All time on a host counts, also that of starts which a failure undid, and of jobs that never
    ended. O(hosts of the job) per change.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cores = cluster.total[:, VCPUS]
        # VMs that are no jobs stay: their hosts are in use all the time, whatever jobs do.
        always = np.zeros(len(self._cores), dtype=np.bool_)
        always[sorted(cluster.running)] = True
        if cluster.used is not None:
            always |= cluster.used.any(axis=1)
        self._always = int(always.sum()), int(self._cores[always].sum())
        # A VM there that never goes: no job is the first or the last of these hosts.
        self._vms = always.astype(np.int64)
        self._now = np.zeros(len(APP_CLASSES) + 2)  # vcpus per class, hosts, cores
        self._sums = np.zeros_like(self._now)  # times s

    def advance(self, passed: float) -> None:
        """Add a time without changes, s."""
        self._sums += self._now * passed

    def change(self, placed: PlacedJob, sign: int) -> None:
        """Count a job that starts (sign 1), or leaves its hosts (sign -1)."""
        job, hosts = placed.job, placed.hosts
        self._now[_CLASS[job.application.app_class]] += sign * job.vcpus * job.count
        before = self._vms[hosts]
        after = before + sign * placed.counts
        self._vms[hosts] = after
        changed = hosts[(before == 0) != (after == 0)]
        self._now[_HOSTS] += sign * len(changed)
        self._now[_CORES] += sign * int(self._cores[changed].sum())

    def usage(self, span: float) -> Usage:
        """Return the usage so far.

        :param span: time for which the VMs that are no jobs keep their hosts in use, s
        """
        hours = (self._sums / _HOUR).tolist()
        hosts, cores = (always * span / _HOUR for always in self._always)
        return Usage(
            core_hours={name: hours[i] for name, i in _CLASS.items() if hours[i]},
            host_hours=hours[_HOSTS] + hosts,
            host_core_hours=hours[_CORES] + cores,
        )
