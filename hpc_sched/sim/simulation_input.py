"""The input of a simulation except its jobs."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState, PlacedJob
from hpc_sched.sim.cluster.processor_types import ProcessorTypes
from hpc_sched.sim.policies.base import Policy

NO_LIMITS = Limits(math.inf, math.inf)
Slowdown = Callable[[ClusterState, PlacedJob], float]


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
