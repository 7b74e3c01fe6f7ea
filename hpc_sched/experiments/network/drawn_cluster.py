"""The cluster of the network study: a fat tree, other jobs on it, and what they send."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.cluster.pods import pods
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network, fat_tree, paths_between
from hpc_sched.topology.model import Topology

PATTERNS = ("ring", "doubling", "bt", "halo2", "halo3", "alltoall")
VOLUME = 1e8  # bytes that the busiest rank sends in an iteration; only latencies depend on it


@dataclass(frozen=True, slots=True)
class NetworkStudy:
    """A fat tree of three levels, its load, and the jobs that are placed; all values assumed."""

    seed: int = 1  # of the first run
    runs: int = 10
    ratios: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)  # of leaves: bandwidth below over above
    ranks: tuple[int, ...] = (8, 16, 64, 128)
    patterns: tuple[str, ...] = PATTERNS
    pods: int = 4
    leaves: int = 4  # of a pod
    hosts: int = 16  # of a leaf
    host_rate: float = 1.25e9  # bytes/s, 10 Gb/s
    host_latency: float = 1e-6  # s, of a host's link
    taken: float = 0.4  # fraction of the hosts with a VM of another job
    ring: int = 8  # VMs of another job, one a host
    share: float = 0.3  # communication of the runtime, with its hosts' links for itself

    @property
    def computation(self) -> float:
        """Computation of an iteration, of the job and of the other jobs, s."""
        return VOLUME / self.host_rate * (1 - self.share) / self.share

    @property
    def seeds(self) -> range:
        """The seed of each run."""
        return range(self.seed, self.seed + self.runs)

    def topology(self) -> Topology:
        """Return the tree; ``n2-3-07`` is a host under ``leaf2-3`` in ``pod2``."""
        return pods(self.pods, self.leaves, self.hosts)

    def network(self, topology: Topology, ratio: float) -> Network:
        """Return the links; only the leaves are oversubscribed."""
        return fat_tree(
            topology,
            host_rate=self.host_rate,
            oversubscription=(ratio, 1.0),
            host_latency=self.host_latency,
        )


@dataclass(frozen=True, slots=True, eq=False)
class DrawnCluster:
    """What a seed draws: all placements find the same other jobs."""

    seed: int
    topology: Topology
    rings: tuple[Array, ...]  # hosts of each other job, in the order of its ring

    @property
    def free(self) -> Array:
        """1 for a host without a VM of another job, else 0. Shape (hosts,)."""
        room = np.ones(len(self.topology.hosts), dtype=np.int64)
        room[np.concatenate([np.empty(0, dtype=np.int64), *self.rings])] = 0
        return room


def drawn_cluster(study: NetworkStudy, topology: Topology, seed: int) -> DrawnCluster:
    """Return other jobs on random hosts. The last one is smaller where hosts do not divide."""
    hosts = len(topology.hosts)
    drawn = random.Random(f"neighbours {seed}").sample(range(hosts), round(study.taken * hosts))
    rings = (drawn[i : i + study.ring] for i in range(0, len(drawn), study.ring))
    return DrawnCluster(
        seed, topology, tuple(np.array(ring, dtype=np.int64) for ring in rings if len(ring) > 1)
    )


def endless_flows(network: Network, rings: Sequence[Array]) -> Flows:
    """Return a flow from each VM of a ring to the next one, all of them at a time."""
    none = np.empty(0, dtype=np.int64)
    source = np.concatenate([none, *rings])
    target = np.concatenate([none, *(np.roll(ring, -1) for ring in rings)])
    return Flows.on(paths_between(network, source, target))


def hosts_and_leaves(links: Array) -> Array:
    """Return paths less the links that are never full: those of pods, and of the core.

    A pod's uplink has the rates of its leaves' uplinks together, and each flow on it is on one of
    these. A path begins with its hosts' links and its leaves' uplinks. Shape (paths, 4)
    """
    found: Array = links[:, :4].copy()
    return found


def unbounded_at_one(network: Network, ratio: float) -> Reals:
    """Return the capacities, bytes/s; a leaf at 1:1 carries what its hosts send, and is no bound.

    Shape (links,).
    """
    capacity = network.capacity.copy()
    if ratio <= 1:
        capacity[network.uplinks :] = np.inf
    return capacity
