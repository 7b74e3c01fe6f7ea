"""The input of a simulation except its jobs: its settings, and failures of hosts."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints, level_of
from hpc_sched.core.extra_spec_names import BOTTLENECK, ISOLATED
from hpc_sched.core.fragmentation.rates import NO_PRICE, FragmentationRates
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.objective import TRADEOFF, Isolation, LeastBottleneck, Objective
from hpc_sched.core.plan.problem import KeptSums
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.sim.cluster.cluster import Cluster, ProcessorTypes
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import Outcome
from hpc_sched.sim.network.neighbours.job_speeds import JobNetwork
from hpc_sched.sim.policies.placement_policy import NO_RANDOMNESS, PlacementRequest, Policy
from hpc_sched.sim.preference.place_preference import PlacePreference
from hpc_sched.topology.capacities import Capacities

NO_LIMITS = Limits(math.inf, math.inf)
_ROUNDING = 1e-9  # of sums of times: a job is not killed for it
_SHORTEST, _LONGEST = 1.0, 1e15  # bounds of mean times, s; anything beyond is a typing error


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """The cluster, the policy and the rules of one run."""

    cluster: Cluster
    policy: Policy
    seed: int = 0
    # For policies that limit interference: of cache scores, and of the interference index.
    limits: Limits = NO_LIMITS
    interference: InterferenceRules = NO_RULES
    mdobp_classes: frozenset[str] = frozenset(mdobp_classes.DEFAULT)  # for policies by class
    constraints: Constraints = NO_CONSTRAINTS  # of every job
    preference: PlacePreference | None = None  # of every job; None: none waits for a better place
    types: ProcessorTypes | None = None  # None: policies ignore processor types
    one_type: bool = False  # whether a job must wait for hosts of one type
    # By the placement; None: no placement slows a job down.
    slowdown: Callable[[ClusterState, PlacedJob], float] | None = None
    network: JobNetwork | None = None  # that slows jobs down; None: none does
    # Of uplinks and hosts' links, for policies that read them; None: they plan without.
    capacities: Capacities | None = None
    tradeoff: Fraction | None = TRADEOFF  # see LeastBottleneck
    rates: FragmentationRates = NO_PRICE  # for policies that plan by Hop-Byte
    requeue: bool = True  # whether a job that lost a host starts again, first in the queue
    kills_overruns: bool = False  # whether a job is ended when its walltime is over

    def empty_state(self) -> ClusterState:
        """Return the state of the cluster without a job."""
        return ClusterState(
            self.cluster, counts_uplinks=self.policy.objective == ISOLATED, rates=self.rates
        )

    def domains(self) -> Array:
        """Return per host the index of the switch that all VMs of a job are below. Shape (hosts,).

        The one of the required level, or the root of the island.

        :raises exceptions.RequestError: for an unknown level
        """
        topology = self.cluster.topology
        domains: Array = topology.groups[level_of(topology, self.constraints.bounds.level) - 1]
        return domains

    def capacity(self, job: Job, state: ClusterState) -> Array:
        """Return the VMs of a job that each host takes next to its VMs. Shape (hosts,)."""
        room = state.room(*job.size)
        # Too few resources: the limits on neighbours need not be checked.
        if not self.policy.bounded_by_neighbours or room.total < job.count:
            return room.per_host
        return state.applications.rooms_beside(
            *(job.application, self.limits, room.per_host),
            apart=self.interference.apart_from(job.application.name),
        )

    def placed(self, job: Job, state: ClusterState) -> PlacedJob | None:
        """Return a job on the hosts that the policy finds for it; None without such hosts."""
        # Without an array of all hosts: most attempts of waiting jobs end here.
        if state.room(*job.size).total < job.count:
            return None
        capacity = self.capacity(job, state)
        if self.policy.bounded_by_neighbours and int(capacity.sum()) < job.count:
            return None
        places = self.policy.places(self.request(job, capacity, state))
        return None if isinstance(places, Rejection) else PlacedJob.of(job, places)

    def duration(self, job: Job, left: float, ran: float = 0.0) -> tuple[float, Outcome]:
        """Return how long a job runs from now on, s, and how it ends.

        :param left: for which it would run if it were not ended, s
        :param ran: since its start, s
        """
        # The runtime stands for a walltime that the trace does not state, and is no limit.
        longest = job.estimate * (1 + _ROUNDING)
        if self.kills_overruns and job.walltime is not None and ran + left > longest:
            return max(job.estimate - ran, 0.0), Outcome.KILLED
        return left, Outcome.DONE

    def request(self, job: Job, capacity: Array, state: ClusterState) -> PlacementRequest:
        """Return the request of a job, the input of a policy."""
        room = state.room(*job.size)
        group = GroupRequest(
            topology=self.cluster.topology,
            tie=TieOrder(self.cluster.topology, str(job.number)),
            host_index=None,
            room=capacity,
            members=np.zeros(len(capacity), dtype=np.int64),
            left=job.count,
            awaiting=job.count,
            constraints=self.constraints,
            packing=self._packing(job, state) if self.policy.packs else None,
            homogeneous="true" if self.one_type else "prefer",
            processors=None if self.types is None else self.types.with_room(capacity),
            kept=KeptSums(room.per_host, room.by_leaf),
            objective=self._objective(job, state),
            price=state.prices.of(job.size, job.count, room.per_host),
        )
        draw = random.Random(f"{self.seed} {job.number}") if self.policy.draws else NO_RANDOMNESS
        return PlacementRequest(group, job.application, draw, self.mdobp_classes)

    def _objective(self, job: Job, state: ClusterState) -> Objective | None:
        """Return the objective of a job's plan; of policies without one None."""
        if self.policy.objective == BOTTLENECK and self.capacities is not None:
            pattern = job.communication.pattern if self.policy.follows_pattern else None
            return LeastBottleneck(self.capacities, self.tradeoff, pattern)
        # All jobs are isolated from each other.
        return None if state.uplinks is None else Isolation(state.uplinks.is_used)

    def _packing(self, job: Job, state: ClusterState) -> MDOBPInput:
        """Return what MDOBP reads, and policies that compare what is free on hosts."""
        rules = self.interference if self.policy.bounded_by_neighbours else NO_RULES
        return MDOBPInput(
            demand=np.array(job.size, dtype=np.float64),
            free=state.free_as_reals,
            usable=state.usable,
            attraction=state.applications.attractions(
                job.application, rules.gains_of(job.application.name)
            ),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one host."""

    time: float  # s
    host: int  # index in topology.hosts
    repair: float | None = None  # s until the host is back; None: never


def drawn_failures(
    hosts: Sequence[int], mtbf: float, repair: float, seed: int
) -> Iterator[Failure]:
    """Yield failures without end: exponential times between them, all hosts equally likely.

    :param hosts: indices, in an order that does not depend on the topology file
    :param repair: mean time to its repair, exponential as well, s
    :raises exceptions.ConfigError: for a mean time out of bounds
    """
    for what, mean in (("failures of a host", mtbf), ("repair", repair)):
        if not _SHORTEST <= mean <= _LONGEST:
            raise exceptions.ConfigError(
                f"{what}: expected a mean time of {_SHORTEST:g} to {_LONGEST:g} s, found {mean:g}"
            )
    draw = random.Random(f"failures {seed}")
    time = 0.0
    while True:
        time += draw.expovariate(len(hosts) / mtbf)
        yield Failure(time, hosts[draw.randrange(len(hosts))], draw.expovariate(1 / repair))
