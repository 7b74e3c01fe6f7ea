"""The room that running jobs leave when they end by their estimates."""

import math

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.cluster_state import PlacedJob
from hpc_sched.sim.simulation import Simulation


class Releases:
    """Room of each domain now and after each expected end, counted host by host.

    Domains are those of :meth:`SimulationInput.domains`, ordered by the names of their switches.
    A job that runs beyond its estimate is expected to end at any moment: now.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Count. O(hosts + hosts of running jobs)."""
        self._state = simulation.state
        self._domain, self.domains = _by_name(simulation)
        running = list(simulation.running().values())
        ends = [max(start + placed.job.estimate, simulation.now) for start, placed in running]
        self.next_end = min(ends, default=math.inf)  # s
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


def _by_name(simulation: Simulation) -> tuple[Array, int]:
    """Return the domain of each host, numbered by name, and the number of domains."""
    setting = simulation.setting
    indices, domain = np.unique(setting.domains(), return_inverse=True)
    names = [setting.cluster.topology.switches[index].name for index in indices.tolist()]
    rank: Array = np.argsort(np.argsort(names))
    return rank[domain], len(names)
