"""Whole mixes of jobs, all planned by one objective: the settings, and the runs of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hpc_sched import exceptions
from hpc_sched.experiments.objectives.fabrics import (
    FABRICS,
    OBJECTIVES,
    PATTERNS,
    Objective,
    network_of,
)
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.jobs.communication import Communications, read_patterns
from hpc_sched.sim.jobs.distributions import Distribution, read
from hpc_sched.sim.jobs.job_sources import Synthetic
from hpc_sched.sim.jobs.offered_load import arriving
from hpc_sched.sim.measured.measured_window import MeasuredPart
from hpc_sched.sim.measured.measured_window import read as read_part
from hpc_sched.sim.network.neighbours.job_speeds import JobNetwork
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.topology.model import Topology
from hpc_sched.topology.plurals import text as counted

# Returns the result of each run of a scenario.
Simulate = Callable[[Scenario, Sequence[Run]], Mapping[Run, Result]]

ALL = "all"  # a mix of all patterns, each as often
# Jobs that a leaf of 16 holds, that it does not, and that no pod of 4 such leaves does.
SIZES = "choice:4:8:12:16:24:32:48:64:96"
RUNTIMES = "lognormal:600:1"
MEASURED = (20, 90)  # of the jobs those from and until which %


class Setting(NamedTuple):
    """What all objectives are compared in."""

    leaves: int  # of the fabric
    pod_ratio: float
    leaf_ratio: float
    use: float  # offered load
    mix: str  # a pattern, or ALL


@dataclass(frozen=True, slots=True)
class MixStudy:
    """The mixes of jobs, and the fabrics that they run on; all values assumed."""

    seed: int = 1
    runs: int = 10
    fabrics: tuple[int, ...] = (16,)  # leaves, of FABRICS
    pod_ratios: tuple[float, ...] = (1.0, 2.0)
    leaf_ratios: tuple[float, ...] = (8.0,)
    uses: tuple[float, ...] = (0.9,)
    mixes: tuple[str, ...] = (ALL,)
    objectives: tuple[Objective, ...] = OBJECTIVES  # hops first
    sizes: str = SIZES
    jobs: int = 200
    share: float = 0.3  # communication of the runtimes

    @property
    def seeds(self) -> range:
        """The seed of each run."""
        return range(self.seed, self.seed + self.runs)

    def settings(self) -> Iterator[Setting]:
        """Yield each setting, in the order of the table."""
        for leaves in self.fabrics:
            for pod_ratio in self.pod_ratios:
                for leaf_ratio in self.leaf_ratios:
                    for use in self.uses:
                        for mix in self.mixes:
                            yield Setting(leaves, pod_ratio, leaf_ratio, use, mix)

    def scenario(self, setting: Setting) -> Scenario:
        """Return what all runs in a setting have in common."""
        topology = FABRICS[setting.leaves].topology()
        return scenario(topology, setting, self.sizes, self.jobs, self.share)


def scenario(
    topology: Topology,
    setting: Setting,
    sizes: str,
    jobs: int,
    share: float,
    queue: str = "easy",
) -> Scenario:
    """Return drawn jobs on a network, one VM a host.

    :param sizes: distribution of the VMs of a job
    :param share: communication of the runtimes
    :param queue: discipline
    """
    patterns = PATTERNS if setting.mix == ALL else (setting.mix,)
    mix = read_patterns(",".join(f"{name}=1" for name in patterns), "MIX")
    drawn = Synthetic(
        jobs,
        sizes=read(sizes),
        runtimes=read(RUNTIMES),
        communications=Communications(mix, Distribution("constant", (share,))),
    )
    return Scenario(
        cluster=uniform(topology, HostType(1, 0)),
        source=arriving(drawn, setting.use, len(topology.hosts)),
        queue=queue,
        network=JobNetwork(network_of(topology, setting.leaf_ratio, setting.pod_ratio)),
        measured=measured(),
        jobs=jobs,
    )


def measured() -> MeasuredPart:
    """Return the jobs that are measured: not those of the empty cluster, nor the last ones."""
    since, until = MEASURED
    return read_part(f"{since}%,{until}%", "MEASURED")


def results(
    base: Scenario,
    seeds: Sequence[int],
    simulate: Simulate,
    objectives: Sequence[Objective],
) -> dict[str, list[Result]]:
    """Return the results of each objective, in the order of the seeds, by its name.

    :raises exceptions.SimulationError: naming a run in which no measured job is done
    """
    found = {}
    for objective in objectives:
        runs = [Run(objective.policy, seed) for seed in seeds]
        by_run = simulate(replace(base, tradeoff=objective.tradeoff), runs)
        found[objective.name] = [by_run[run] for run in runs]
        for run in runs:
            summary = by_run[run].summary
            if not summary.done:
                raise exceptions.SimulationError(
                    f"{objective.name}, seed {run.seed}: none of "
                    f"{counted(summary.jobs, 'measured job')} is done, {summary.refused} refused: "
                    "expected jobs that the hosts can hold"
                )
    return found
