"""By how much a placement makes a job longer, going by the runtime model."""

from dataclasses import dataclass

from hpc_sched.sim.cluster import Cluster
from hpc_sched.sim.occupancy import Occupancy, Standing
from hpc_sched.sim.runtime_model import RuntimeModel, pairs_by_level


@dataclass(frozen=True, slots=True)
class PlacedRuntime:
    """The runtime model on one cluster.

    A job's factor is set when it starts: neighbours that come or go later do not change it.
    """

    cluster: Cluster
    model: RuntimeModel

    def __call__(self, occupancy: Occupancy, standing: Standing) -> float:
        """Return the factor of a job that has just got its places. O(its hosts * depth)."""
        hosts = standing.hosts.tolist()
        counts = dict(zip(hosts, standing.counts.tolist(), strict=True))
        return self.model.factor(
            pairs=pairs_by_level(self.cluster.topology, counts),
            processors=[self.cluster.processors[host] for host in hosts],
            score=occupancy.scores_beside(standing),
        )
