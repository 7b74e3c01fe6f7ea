"""The uplinks that running jobs use: of switches above a part of their VMs."""

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.objectives.used_uplinks import used_by
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.topology.model import Topology


class UsedUplinks:
    """How many jobs use the uplinks of each switch. A change costs O(leaves of the job * depth)."""

    def __init__(self, topology: Topology) -> None:
        """Start without a job."""
        self._topology = topology
        self.jobs = np.zeros(len(topology.switches), dtype=np.int64)  # by switch

    @property
    def is_used(self) -> Mask:
        """Whether any job uses the uplinks of each switch. Shape (switches,)."""
        return self.jobs > 0

    def add(self, placed: PlacedJob) -> None:
        """Count a job that starts."""
        self.jobs[self._used_by(placed)] += 1

    def remove(self, placed: PlacedJob) -> None:
        """Count a job no more, which has ended."""
        self.jobs[self._used_by(placed)] -= 1

    def _used_by(self, placed: PlacedJob) -> list[int]:
        return used_by(self._topology, placed.by_leaf(self._topology), placed.job.count)
