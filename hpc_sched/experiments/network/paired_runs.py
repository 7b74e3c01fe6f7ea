"""The runs of the network study: of each seed all placements, next to the same other jobs."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.experiments.network.compared_placements import RANDOM, placements
from hpc_sched.experiments.network.drawn_cluster import DrawnCluster, NetworkStudy, drawn_cluster
from hpc_sched.experiments.network.job_seconds import (
    NEIGHBOURS,
    LoadedNetwork,
    placed_job,
    slowdown_of_others,
    steps_of,
)
from hpc_sched.experiments.network.rates_left import rates_left
from hpc_sched.sim.network.links import Network
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.statistics.estimate import Estimate

Progress = Callable[[str], object]


class Case(NamedTuple):
    """What a number of the study is of."""

    neighbours: str  # one of NEIGHBOURS
    ranks: int
    pattern: str
    ratio: float  # of the leaves
    placement: str


@dataclass(frozen=True, slots=True, eq=False)
class PairedRuns:
    """What was found, a number for each seed."""

    study: NetworkStudy
    runtime: Mapping[Case, Sequence[float]]  # s an iteration
    slowdown: Mapping[tuple[str, str], Sequence[float]]  # of others, by pattern and placement
    left: Mapping[tuple[str, str], Sequence[float]]  # rates of endless flows, part of those alone
    leaves: Mapping[tuple[int, str], Sequence[int]]  # in use, by ranks and placement

    def against(self, case: Case, placement: str = RANDOM) -> Estimate:
        """Return a runtime over that of another placement with the same seed."""
        pairs = zip(
            self.runtime[case], self.runtime[case._replace(placement=placement)], strict=True
        )
        return Estimate.of_drawn([mine / its for mine, its in pairs])


def other_ranks(study: NetworkStudy) -> int:
    """Return the ranks of the job whose neighbours are looked at: the middle of the sizes."""
    return study.ranks[len(study.ranks) // 2]


def paired_runs(study: NetworkStudy, progress: Progress = lambda _: None) -> PairedRuns:
    """Return the runs of all seeds, some 10 s of processor time each.

    :raises exceptions.SimulationError: for a job that is too large for the free hosts
    """
    topology = study.topology()
    runtime: defaultdict[Case, list[float]] = defaultdict(list)
    slowdown: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    left: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    leaves: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for seed in study.seeds:
        drawn = drawn_cluster(study, topology, seed)
        places = {ranks: placements(drawn, ranks) for ranks in study.ranks}
        for ranks, by_name in places.items():
            for name, hosts in by_name.items():
                leaves[ranks, name].append(len(np.unique(topology.leaf_index[hosts])))
        for ratio in study.ratios:
            progress(f"seed {seed}: leaves at {ratio:g}:1")
            for case, seconds in _runtimes(study, drawn, ratio, places).items():
                runtime[case].append(seconds)
        progress(f"seed {seed}: other jobs")
        network = study.network(topology, max(study.ratios))
        jobs = _jobs(study, network, places[other_ranks(study)])
        for pair, factor in slowdown_of_others(study, drawn, network, jobs).items():
            slowdown[pair].append(factor)
        for pair, part in rates_left(drawn, network, jobs).items():
            left[pair].append(part)
    return PairedRuns(study, dict(runtime), dict(slowdown), dict(left), dict(leaves))


def _runtimes(
    study: NetworkStudy,
    drawn: DrawnCluster,
    ratio: float,
    places: Mapping[int, Mapping[str, Array]],
) -> dict[Case, float]:
    """Return the seconds of an iteration in each case of a seed and a ratio."""
    network = study.network(drawn.topology, ratio)
    loaded = LoadedNetwork.of(study, drawn, ratio)
    found = {}
    for ranks, by_name in places.items():
        for pattern in study.patterns:
            for name, hosts in by_name.items():
                placed = placed_job(network, pattern, hosts)
                for neighbours in NEIGHBOURS:
                    seconds = placed.seconds(loaded.capacity, loaded.others[neighbours])
                    case = Case(neighbours, ranks, pattern, ratio, name)
                    found[case] = study.computation + seconds
    return found


def _jobs(
    study: NetworkStudy, network: Network, places: Mapping[str, Array]
) -> dict[tuple[str, str], PlacedSteps]:
    """Return the job by pattern and placement, with full paths."""
    return {
        (pattern, name): PlacedSteps.of(network, steps_of(pattern, len(hosts)), hosts)
        for pattern in study.patterns
        for name, hosts in places.items()
    }
