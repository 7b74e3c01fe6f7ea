"""One job among neighbours: its runtime and theirs, by the objective of its plan."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck, Objective
from hpc_sched.experiments.objectives.drawn_neighbours import (
    NEIGHBOURS,
    DrawnNeighbours,
    drawn_neighbours,
    placed,
)
from hpc_sched.experiments.objectives.fabrics import (
    BOTTLENECK,
    FABRICS,
    HOPS,
    HOST_RATE,
    ISOLATED,
    PATTERNS,
    STATED,
    UNBOUNDED,
    network_of,
)
from hpc_sched.sim.network.link_bytes import LinkBytes
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.messages.iteration import Iteration, iteration
from hpc_sched.sim.network.neighbours.shared_links import SharedLinks
from hpc_sched.sim.network.neighbours.traffic import Traffic
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.statistics.estimate import Estimate

VOLUME = 1e8  # bytes that the busiest rank sends in an iteration; only latencies depend on it
_JOB = -1  # number of the job among its neighbours
Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class JobStudy:
    """The fabrics, the load and the jobs that are placed; all values assumed."""

    seed: int = 1  # of the first run
    runs: int = 10
    fabrics: tuple[int, ...] = (16,)  # leaves, of FABRICS
    pod_ratios: tuple[float, ...] = (1.0, 2.0)  # of pods: bandwidth below over above
    leaf_ratios: tuple[float, ...] = (8.0,)
    neighbours: tuple[str, ...] = NEIGHBOURS
    ranks: tuple[int, ...] = (64,)
    patterns: tuple[str, ...] = PATTERNS
    taken: float = 0.4  # part of the hosts with a rank of another job, at most
    share: float = 0.3  # communication of the runtime, with its hosts' links for itself

    @property
    def computation(self) -> float:
        """Computation of an iteration, of the job and of its neighbours, s."""
        return VOLUME / HOST_RATE * (1 - self.share) / self.share


class Case(NamedTuple):
    """What a number of the study is of."""

    leaves: int  # of the fabric
    pod_ratio: float
    leaf_ratio: float
    neighbours: str
    ranks: int
    pattern: str
    objective: str

    def by(self, objective: str) -> "Case":
        """Return the case with another objective."""
        return self._replace(objective=objective)


class Found(NamedTuple):
    """What a job does in one run."""

    runtime: float  # s an iteration
    others: float  # part by which its neighbours take longer than without it, mean over their hosts


@dataclass(frozen=True, slots=True, eq=False)
class JobRuns:
    """What was found, for each seed; None where the objective has no plan."""

    study: JobStudy
    found: Mapping[Case, Sequence[Found | None]]

    def runtime(self, case: Case) -> Estimate | None:
        """Return the runtime over that of the hops plan of the same seed; None without any."""
        return self._paired(case, lambda mine, its: mine.runtime / its.runtime)

    def others(self, case: Case) -> Estimate | None:
        """Return what neighbours lose less what they lose by the hops plan, parts of their time."""
        return self._paired(case, lambda mine, its: mine.others - its.others)

    def others_alone(self, case: Case) -> Estimate | None:
        """Return the part of their time that neighbours lose."""
        return self._paired(case, lambda mine, _: mine.others)

    def placed(self, case: Case) -> int:
        """Return the number of seeds with a plan."""
        return sum(each is not None for each in self.found[case])

    def _paired(self, case: Case, value: Callable[[Found, Found], float]) -> Estimate | None:
        pairs = zip(self.found[case], self.found[case.by(HOPS.name)], strict=True)
        values = [value(mine, its) for mine, its in pairs if mine is not None and its is not None]
        return Estimate.of(values, is_drawn=True)


def job_runs(study: JobStudy, progress: Progress = lambda _: None) -> JobRuns:
    """Return the runs of all seeds.

    :raises exceptions.SimulationError: for a job that is too large for the free hosts
    """
    found: defaultdict[Case, list[Found | None]] = defaultdict(list)
    for leaves in study.fabrics:
        topology = FABRICS[leaves].topology()
        for seed in range(study.seed, study.seed + study.runs):
            progress(f"{leaves} leaves, seed {seed}")
            for kind in study.neighbours:
                drawn = drawn_neighbours(topology, seed, kind, study.taken)
                for pod_ratio in study.pod_ratios:
                    for leaf_ratio in study.leaf_ratios:
                        case = Case(leaves, pod_ratio, leaf_ratio, kind, 0, "", "")
                        for one, value in _of_links(study, drawn, case):
                            found[one].append(value)
    return JobRuns(study, dict(found))


def _of_links(
    study: JobStudy, drawn: DrawnNeighbours, case: Case
) -> Iterator[tuple[Case, Found | None]]:
    """Yield what is found for each job with some links of the fabric."""
    network = network_of(drawn.topology, case.leaf_ratio, case.pod_ratio)
    shared = SharedLinks(network.capacity)
    for number, job in enumerate(drawn.jobs):
        shared.add(number, traffic(study, network, job.pattern, job.hosts))
    shared.settle()
    alone = _neighbour_seconds(study, shared)
    for ranks in study.ranks:
        whatever = plans(drawn, network, ranks)
        for pattern in study.patterns:
            known: dict[tuple[int, ...], Found] = {}
            stated = {STATED.name: stated_plan(drawn, network, ranks, pattern)}
            for objective, hosts in (whatever | stated).items():
                one = case._replace(ranks=ranks, pattern=pattern, objective=objective)
                if hosts is None:
                    yield one, None
                    continue
                key = tuple(hosts.tolist())
                if key not in known:
                    shared.add(_JOB, traffic(study, network, pattern, hosts))
                    shared.settle()
                    runtime = study.computation + shared.members[_JOB].seconds
                    longer = _neighbour_seconds(study, shared) / alone - 1
                    by_hosts = np.array([len(job.hosts) for job in drawn.jobs], dtype=np.float64)
                    known[key] = Found(runtime, float(longer @ by_hosts / by_hosts.sum()))
                    shared.remove(_JOB)
                yield one, known[key]


def plans(drawn: DrawnNeighbours, network: Network, ranks: int) -> dict[str, Array | None]:
    """Return the host of each rank by an objective that knows no pattern; None without a plan.

    :raises exceptions.SimulationError: if there are fewer free hosts than ranks
    """
    capacities = network.capacities()
    by_name = {
        HOPS.name: None,
        BOTTLENECK.name: LeastBottleneck(capacities, BOTTLENECK.tradeoff),
        UNBOUNDED.name: LeastBottleneck(capacities, UNBOUNDED.tradeoff),
        ISOLATED.name: Isolation(drawn.uses_uplinks),
    }
    return {name: _placed(drawn, ranks, objective) for name, objective in by_name.items()}


def stated_plan(drawn: DrawnNeighbours, network: Network, ranks: int, pattern: str) -> Array | None:
    """Return the host of each rank by least bottleneck, for the pattern that the job states."""
    stated = LeastBottleneck(network.capacities(), STATED.tradeoff, pattern)
    return _placed(drawn, ranks, stated)


def _placed(drawn: DrawnNeighbours, ranks: int, objective: Objective | None) -> Array | None:
    return placed(drawn.topology, drawn.free, ranks, f"job {drawn.seed}", objective)


@lru_cache(maxsize=64)
def steps_of(pattern: str, ranks: int) -> Iteration:
    """Return the messages of an iteration."""
    return iteration(pattern, ranks, VOLUME)


def traffic(study: JobStudy, network: Network, pattern: str, hosts: Array) -> Traffic:
    """Return what a job with one rank a host sends in an iteration."""
    sent = LinkBytes.of(network, PlacedSteps.of(network, steps_of(pattern, len(hosts)), hosts))
    return Traffic.of(
        sent,
        network.capacity,
        computation=study.computation,
        hosts=len(hosts),
        # One rank a host: the hosts' own links bound each step.
        least=np.zeros(len(sent.times)),
    )


def _neighbour_seconds(study: JobStudy, shared: SharedLinks) -> Reals:
    """Return the seconds of an iteration of each neighbour."""
    members = shared.members.items()
    return np.array([study.computation + each.seconds for n, each in members if n != _JOB])
