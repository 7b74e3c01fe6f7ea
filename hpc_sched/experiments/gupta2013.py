"""Gupta2013, trace simulation: the first jobs of METACENTRUM-2009-2 on 1,024 cores.

Published: when the default placement has completed 801 of 1,500 jobs, MDOBP has completed 910
(Figure 9a), and MDOBP that minds interference up to 1,060, if jobs thereby run 10 % or 20 %
shorter (Figure 9b; beta 40 and 60). How much memory which node has, when jobs arrive, what
happens to those that do not fit, and which job misses the cache how often is not known to us: it
is guessed here, and the tables of gupta2013_tables say so.
"""

import bisect
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hpc_sched import files
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState, PlacedJob
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs import distributions, swf, workload
from hpc_sched.sim.jobs.distributions import Distribution
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import Outcome
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.jobs.workload import Memory, Workload
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.policies import host_order, plugin
from hpc_sched.sim.policies.base import Policy
from hpc_sched.sim.queue_disciplines import Easy, Fcfs
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import SimulationInput, Slowdown

JOBS = 1500
SCORES = distributions.read("uniform:0:30")
_MB = 1024  # in a GB
_INTERVAL = 6 * 3600.0  # s between checks that no slot is used twice


@dataclass(frozen=True, slots=True)
class TraceSetup:
    """What the paper leaves open, as guessed."""

    nodes: int = 256  # published: 1,024 cores, 4 a node
    cores: int = 4
    memories: tuple[int, ...] = (2, 4, 8, 16)  # GB of a node; equally many nodes of each
    memory: Memory = "total"  # what the trace's memory is that of; it goes by processors
    arrivals: Literal["at once", "full load", "trace"] = "at once"
    queue: Literal["fcfs", "easy", "none"] = "fcfs"  # none: what does not fit at once is lost
    sync: Literal["parallel", "all", "none"] = "parallel"  # jobs of class sync; others are async
    scores: Distribution = SCORES  # cache score of a job's VMs
    alpha: float = 100.0
    quicker: Literal["all", "sync"] = "all"  # jobs that run shorter where interference is minded


GUESSED = TraceSetup()


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """A rule, and what it does to runtimes."""

    policy: Policy
    beta: float = math.inf  # the most cache score beside sync VMs, if the policy minds it
    less: float = 0.0  # part of its runtime that a job is spared

    @property
    def name(self) -> str:
        """``mdobp in limits, beta 40, -10 %``."""
        if not self.policy.bounded_by_neighbours:
            return self.policy.name
        return f"{self.policy.name}, beta {self.beta:g}, -{100 * self.less:g} %"


LEAST_FREE = PlacementRule(host_order.LEAST_FREE_PE)
MOST_FREE = PlacementRule(host_order.MOST_FREE_PE)
MDOBP = PlacementRule(plugin.MDOBP)
IN_LIMITS = replace(plugin.MDOBP, name="mdobp in limits", bounded_by_neighbours=True)


@dataclass(frozen=True, slots=True)
class Curve:
    """The jobs completed over time by one placement, for a plot."""

    placement: str
    seed: int
    ends: tuple[float, ...]  # s since the start, ascending; one a completed job
    refused: int  # jobs that no empty cluster of this kind could hold

    def done_by(self, time: float) -> int:
        """Return how many jobs have been completed by a time, s. O(log jobs)."""
        return bisect.bisect_right(self.ends, time)

    def time_of(self, count: int) -> float:
        """Return when so many jobs were completed, s; infinity where that never happens."""
        return self.ends[count - 1] if 0 < count <= len(self.ends) else math.inf


def records(trace: files.Path, count: int = JOBS) -> tuple[TraceRow, ...]:
    """Return the first jobs of a trace.

    :raises exceptions.TraceError: naming file and line of what cannot be read
    """
    return tuple(swf.read(trace, limit=count))


def curve(
    rows: Sequence[TraceRow],
    placement: PlacementRule,
    seed: int,
    setting: TraceSetup = GUESSED,
    *,
    until: float = math.inf,
    enough: float = math.inf,
) -> Curve:
    """Return the jobs completed over time. The same seed gives the same curve.

    The seed deals the memories to the nodes and draws the cache scores; both are the same for
    all placements.

    :param until: time, s, after which nobody looks
    :param enough: completed jobs after which nobody looks
    """
    nodes = cluster(setting, seed)
    simulation = Simulation(
        SimulationInput(
            cluster=nodes,
            policy=placement.policy,
            seed=seed,
            limits=Limits(setting.alpha, placement.beta),
            slowdown=_slowdown(placement, setting),
        ),
        _discipline(setting),
        jobs(rows, setting, seed),
        measures=Measures(nodes, interval=_INTERVAL),
    )
    ends = simulation.measures.done.ends
    simulation.run(until, lambda: len(ends) >= enough)
    simulation.conclude()
    refused = simulation.measures.outcomes[Outcome.REFUSED]
    return Curve(placement.name, seed, tuple(ends), refused)


def cluster(setting: TraceSetup, seed: int) -> Cluster:
    """Return nodes under one switch, as topology plays no part; memories are dealt by the seed.

    Equally many nodes have each of the memories, the first ones one more where it does not come
    out even.
    """
    topology = FatTree(levels=1, radix=setting.nodes).topology()
    sizes = [setting.memories[i % len(setting.memories)] for i in range(setting.nodes)]
    random.Random(f"{seed} memories").shuffle(sizes)
    types = {
        host: HostType(setting.cores, size * _MB)
        for host, size in zip(topology.hosts, sizes, strict=True)
    }
    return uniform(topology, HostType(setting.cores, 0), types)


def jobs(rows: Sequence[TraceRow], setting: TraceSetup, seed: int) -> Iterator[Job]:
    """Return the jobs: one VM of one core a processor, with its share of the memory used."""
    stretch = _stretch(rows, setting)
    drawn = Workload(memory=setting.memory, scores=setting.scores, seed=seed)
    for job in workload.jobs(rows, drawn):
        is_sync = setting.sync == "all" or (setting.sync == "parallel" and job.count > 1)
        app_class = "sync" if is_sync else "async"
        yield replace(
            job,
            submit=job.submit * stretch,
            application=replace(job.application, app_class=app_class),
        )


def offered_load(rows: Sequence[TraceRow], cores: int) -> float:
    """Return how busy the jobs would keep so many cores while they arrive, 1 being all of them."""
    span = max(rows[-1].submit - rows[0].submit, 1.0)
    return math.fsum(row.processors * row.runtime for row in rows) / (cores * span)


def _stretch(rows: Sequence[TraceRow], setting: TraceSetup) -> float:
    """Return by what the times of submission are multiplied."""
    if setting.arrivals == "at once":
        return 0.0
    return 1.0 if setting.arrivals == "trace" else offered_load(rows, setting.nodes * setting.cores)


class Once:
    """No queue: a job starts when it is submitted or never."""

    def __init__(self) -> None:
        self._last = 0  # number of the job that was looked at last

    def __call__(self, simulation: Simulation) -> None:
        """Start what can be started of the jobs that are new."""
        new = [job for number, job in simulation.waiting.items() if number > self._last]
        for job in new:
            self._last = job.number
            simulation.start(job)


def _discipline(setting: TraceSetup) -> Discipline:
    if setting.queue == "fcfs":
        return Fcfs()
    return Easy() if setting.queue == "easy" else Once()


def _slowdown(placement: PlacementRule, setting: TraceSetup) -> Slowdown:
    def factor(_occupancy: ClusterState, standing: PlacedJob) -> float:
        spared = setting.quicker == "all" or standing.job.application.app_class == "sync"
        return 1.0 - placement.less if spared else 1.0

    return factor
