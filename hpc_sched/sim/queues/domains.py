"""The parts of the cluster that one job can use: below a switch of a level, or on an island."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.cluster.kept_rooms import Room
from hpc_sched.sim.simulation_input import SimulationInput


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """The domains of :meth:`SimulationInput.domains`, ordered by the names of their switches."""

    of_host: Array  # shape (hosts,)
    number: int
    _of_leaf: Array  # 0 for switches above leaves. Shape (switches,)

    @classmethod
    def of(cls, setting: SimulationInput) -> "Domains":
        """Return the domains of a simulation. O(hosts log hosts)."""
        topology = setting.cluster.topology
        indices, domain = np.unique(setting.domains(), return_inverse=True)
        names = [topology.switches[index].name for index in indices.tolist()]
        of_host: Array = np.argsort(np.argsort(names))[domain]
        of_leaf = np.zeros(len(topology.switches), dtype=np.int64)
        of_leaf[topology.leaf_index] = of_host
        return cls(of_host, len(names), of_leaf)

    def sums(self, room: Room) -> Array:
        """Return the room of each domain. Shape (domains,). O(switches)."""
        if self.number == 1:
            return np.array([room.total])
        return np.bincount(self._of_leaf, weights=room.by_leaf).astype(np.int64)
