"""The input of a simulation except its jobs: its settings, and failures of hosts."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster, ProcessorTypes
from hpc_sched.sim.cluster.cluster_state import ClusterState, PlacedJob
from hpc_sched.sim.policies.base import Policy

NO_LIMITS = Limits(math.inf, math.inf)
Slowdown = Callable[[ClusterState, PlacedJob], float]
# Bounds of mean times, s; anything beyond is a typing error.
_SHORTEST, _LONGEST = 1.0, 1e15


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """The cluster, the policy and the rules of one run."""

    cluster: Cluster
    policy: Policy
    seed: int = 0
    limits: Limits = NO_LIMITS  # of cache scores, for policies that limit interference
    constraints: Constraints = NO_CONSTRAINTS  # of every job
    types: ProcessorTypes | None = None  # None: policies ignore processor types
    one_type: bool = False  # whether a job must wait for hosts of one type
    slowdown: Slowdown | None = None  # by the placement; None: no placement slows a job down
    requeue: bool = True  # whether a job that lost a host starts again, first in the queue


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one host."""

    time: float  # s
    host: int  # index in topology.hosts
    repair: float | None = None  # s until the host is back; None: never


def drawn_failures(
    hosts: Sequence[int], mtbf: float, repair: float, seed: int
) -> Iterator[Failure]:
    """Yield failures endlessly: exponential times between them, all hosts equally likely.

    :param hosts: indices, in an order that does not depend on the topology file
    :param repair: mean time to its repair, exponential as well, s
    :raises exceptions.ConfigError: for a mean time out of bounds
    """
    for what, mean in (("failures of a host", mtbf), ("repair", repair)):
        if not _SHORTEST <= mean <= _LONGEST:
            raise exceptions.ConfigError(
                f"{what}: expected a mean time of {_SHORTEST:g} to {_LONGEST:g} s, found {mean:g}"
            )
    return _drawn(hosts, mtbf, repair, seed)


def _drawn(hosts: Sequence[int], mtbf: float, repair: float, seed: int) -> Iterator[Failure]:
    draw = random.Random(f"failures {seed}")
    time = 0.0
    while True:
        time += draw.expovariate(len(hosts) / mtbf)
        yield Failure(time, hosts[draw.randrange(len(hosts))], draw.expovariate(1 / repair))
