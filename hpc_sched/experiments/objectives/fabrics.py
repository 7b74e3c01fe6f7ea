"""The fabrics of the study of objectives, and the objectives that it compares."""

from dataclasses import dataclass
from fractions import Fraction

from hpc_sched.core.plan.objective import TRADEOFF
from hpc_sched.sim.cluster.pods import pods
from hpc_sched.sim.network.links import Network, fat_tree
from hpc_sched.topology.model import Topology

HOST_RATE = 1.25e9  # bytes/s, 10 Gb/s
HOST_LATENCY = 1e-6  # s, of a host's link
PATTERNS = ("ring", "doubling", "bt", "halo2", "halo3", "alltoall")


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective as the study names it, and the policy of the simulator that has it."""

    name: str
    policy: str
    tradeoff: Fraction | None = TRADEOFF  # of plans of least bottleneck; None: no bound


HOPS = Objective("hops", "exact-plan")
BOTTLENECK = Objective("bottleneck", "bottleneck")
STATED = Objective("bottleneck, pattern", "bottleneck-pattern")  # a job states hpc:pattern
UNBOUNDED = Objective("bottleneck, unbounded", "bottleneck", None)
ISOLATED = Objective("isolated", "isolated")
OBJECTIVES = (HOPS, BOTTLENECK, STATED, UNBOUNDED, ISOLATED)
OTHERS = OBJECTIVES[1:]  # what is compared with hops


@dataclass(frozen=True, slots=True)
class Fabric:
    """Equal pods of equal leaves, and what their uplinks are oversubscribed by."""

    pods: int
    leaves: int  # of a pod
    hosts: int = 16  # of a leaf

    def topology(self) -> Topology:
        """Return the tree; ``n2-3-07`` is a host under ``leaf2-3`` in ``pod2``."""
        return pods(self.pods, self.leaves, self.hosts)


# By their leaves.
FABRICS = {16: Fabric(4, 4), 64: Fabric(8, 8)}


def network_of(topology: Topology, leaf_ratio: float, pod_ratio: float) -> Network:
    """Return the links of a fabric with an oversubscription of its leaves, and of its pods."""
    return fat_tree(
        topology,
        host_rate=HOST_RATE,
        oversubscription=(leaf_ratio, pod_ratio),
        host_latency=HOST_LATENCY,
    )
