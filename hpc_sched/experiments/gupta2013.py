"""Gupta2013, trace simulation: the first jobs of METACENTRUM-2009-2 on 1,024 cores.

Published: when the default placement has completed 801 of 1,500 jobs, MDOBP has completed 910
(Figure 9a), and MDOBP with limited interference up to 1,060, if jobs thereby run 10 % or 20 %
shorter (Figure 9b; beta 40 and 60). The memory of each node, the times of arrival, the queue, and
the cache misses of each job are not published: they are guessed here, and the tables of
gupta2013_tables say so.
"""

import csv
import io
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState, PlacedJob
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs import distributions, workload
from hpc_sched.sim.jobs.distributions import Distribution
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.jobs.workload import Memory, Workload
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.policies import host_order, plugin
from hpc_sched.sim.policies.base import Policy
from hpc_sched.sim.queues.easy import Easy
from hpc_sched.sim.queues.fcfs import Fcfs
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import SimulationInput

JOBS = 1500
SCORES = "uniform:0:30"
_SCORES = distributions.read(SCORES)
_MB = 1024  # in a GB
_INTERVAL = 6 * 3600.0  # s between checks that no slot is used twice


@dataclass(frozen=True, slots=True)
class TraceSetup:
    """What the paper does not state, as guessed."""

    nodes: int = 256  # published: 1,024 cores, 4 a node
    cores: int = 4
    memories: tuple[int, ...] = (2, 4, 8, 16)  # GB of a node; equally many nodes of each
    memory: Memory = "total"  # what the trace's memory is of; divided by processors
    arrivals: Literal["at once", "full load", "trace"] = "at once"
    queue: Literal["fcfs", "easy", "none"] = "fcfs"  # none: a job that does not fit at once is lost
    sync: Literal["parallel", "all", "none"] = "parallel"  # jobs of class sync; others are async
    scores: Distribution = _SCORES  # cache score of a job's VMs
    alpha: float = 100.0
    quicker: Literal["all", "sync"] = "all"  # jobs that run shorter if interference is limited


GUESSED = TraceSetup()


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """A policy, and its assumed effect on runtimes."""

    policy: Policy
    beta: float = math.inf  # limit of cache scores on hosts with sync VMs, if the policy keeps it
    less: float = 0.0  # fraction by which jobs run shorter

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
BETAS = (40.0, 60.0)
LESS = (0.0, 0.1, 0.2)
# Compared by Figure 9b.
LIMITED = tuple(PlacementRule(IN_LIMITS, beta, less) for beta in BETAS for less in LESS)

CURVE_COLUMNS = ("placement", "seconds", "jobs")


def curve(
    rows: Sequence[TraceRow],
    rule: PlacementRule,
    seed: int,
    setting: TraceSetup = GUESSED,
    *,
    until: float = math.inf,
    enough: float = math.inf,
) -> Sequence[float]:
    """Return the ends of the jobs completed, s, ascending. The same seed gives the same ones.

    The seed deals the memories to the nodes and draws the cache scores; both are the same for
    all placements.
    """
    nodes = cluster(setting, seed)
    limits = Limits(setting.alpha, rule.beta)

    def slowdown(_state: ClusterState, placed: PlacedJob) -> float:
        is_shorter = setting.quicker == "all" or placed.job.application.app_class == "sync"
        return 1.0 - rule.less if is_shorter else 1.0

    simulation = Simulation(
        SimulationInput(nodes, rule.policy, seed, limits, slowdown=slowdown),
        _QUEUES[setting.queue](),
        jobs(rows, setting, seed),
        measures=Measures(nodes, interval=_INTERVAL),
    )
    ends = simulation.measures.ends
    simulation.run(until, lambda: len(ends) >= enough)
    simulation.conclude()
    return ends.tolist()


def cluster(setting: TraceSetup, seed: int) -> Cluster:
    """Return nodes under one switch, as topology does not matter; memories are dealt by the seed.

    Each of the memories has equally many nodes, the first ones one more if there is a remainder.
    """
    topology = FatTree(levels=1, radix=setting.nodes).topology()
    sizes = [setting.memories[i % len(setting.memories)] for i in range(setting.nodes)]
    random.Random(f"{seed} memories").shuffle(sizes)
    types = [HostType(setting.cores, size * _MB) for size in sizes]
    return uniform(topology, types[0], dict(zip(topology.hosts, types, strict=True)))


def jobs(rows: Sequence[TraceRow], setting: TraceSetup, seed: int) -> Iterator[Job]:
    """Return the jobs: one VM of one core per processor, with its share of the memory used."""
    stretch = 0.0 if setting.arrivals == "at once" else 1.0
    if setting.arrivals == "full load":
        stretch = offered_load(rows, setting.nodes * setting.cores)
    drawn = Workload(memory=setting.memory, scores=setting.scores)
    for job in workload.jobs(rows, drawn, seed):
        is_sync = setting.sync == "all" or (setting.sync == "parallel" and job.count > 1)
        application = replace(job.application, app_class="sync" if is_sync else "async")
        yield replace(job, submit=job.submit * stretch, application=application)


def offered_load(rows: Sequence[TraceRow], cores: int) -> float:
    """Return the offered load of the jobs on a number of cores, 1 for full load."""
    span = max(rows[-1].submit - rows[0].submit, 1.0)
    return math.fsum(row.processors * row.runtime for row in rows) / (cores * span)


class NoQueue:
    """No queue: a job starts when it is submitted or never."""

    def __init__(self) -> None:
        self._last = 0  # number of the last job seen

    def __call__(self, simulation: Simulation) -> None:
        """Start the new jobs that can be started."""
        for job in [job for number, job in simulation.waiting.items() if number > self._last]:
            self._last = job.number
            simulation.start(job)


_QUEUES: Mapping[str, Callable[[], Discipline]] = {"fcfs": Fcfs, "easy": Easy, "none": NoQueue}


def curves_csv(rows: Sequence[TraceRow], seed: int) -> str:
    """Return the curves of Figures 9a and 9b, with the setup as guessed, as CSV.

    One row per completed job: its end, and the number of jobs until then.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CURVE_COLUMNS)
    for rule in (LEAST_FREE, MOST_FREE, MDOBP, *LIMITED):
        for number, end in enumerate(curve(rows, rule, seed), start=1):
            writer.writerow((rule.name, f"{end:g}", number))
    return text.getvalue()
