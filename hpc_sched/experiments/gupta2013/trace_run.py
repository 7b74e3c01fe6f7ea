"""Gupta2013, section VII: the first jobs of METACENTRUM-2009-2 on 1,024 cores.

Published: after 100 seconds the default placement has completed 801 of 1,500 jobs and MDOBP 910,
on nodes of 2 GB (Figure 9a); MDOBP that limits interference has completed 1,060, where all jobs
run 10 % shorter (Figure 9b). The settings, with their sources, are in ``figure_9a`` and
``figure_9b``.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.experiments.gupta2013.trace_queues import (
    LEAST_FREE_BLIND,
    FcfsByCores,
    ScreenedListScheduling,
)
from hpc_sched.sim.cluster.cluster import VCPUS, Cluster, HostType, uniform
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs import distributions, job_sources
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import JobRecord, Outcome
from hpc_sched.sim.jobs.swf import TraceRow
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.policies import host_order, plugin_policies
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import Fcfs
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import SimulationInput

JOBS = 1500
MOMENT = 100_000.0  # s of the trace, after which completed jobs are counted
ALPHA = 100.0
BETAS = (40.0, 60.0)
LESS = (0.1, 0.2)

Queue = Literal["fcfs", "fcfs by cores", "passing"]
QUEUES: tuple[Queue, ...] = ("fcfs", "passing")
_QUEUES: Mapping[Queue, Callable[[], Discipline]] = {
    "fcfs": Fcfs,
    "fcfs by cores": FcfsByCores,
    "passing": ScreenedListScheduling,
}
Classes = Literal["all sync", "sync above 1 VM", "all async"]

_SCORES = distributions.read("uniform:0:30")

LEAST_FREE, MOST_FREE = host_order.LEAST_FREE_PE, host_order.MOST_FREE_PE
MDOBP = plugin_policies.MDOBP
IN_LIMITS = replace(MDOBP, name="mdobp in limits", bounded_by_neighbours=True)


@dataclass(frozen=True, slots=True)
class TraceRun:
    """A policy, the queue that it serves, and what differs from the settings of Figure 9a."""

    policy: Policy
    queue: Queue = "fcfs"
    memory: float = 2.0  # GB of a node
    nodes: int = 256
    cores: int = 4  # of a node
    beta: float = math.inf  # for policies that limit cache scores
    less: float = 0.0  # fraction by which all jobs run shorter
    scores: distributions.Distribution = _SCORES  # cache score of a job's VMs
    classes: Classes = "all sync"
    arrivals: Literal["at once", "trace"] = "at once"
    until: float = MOMENT
    vm_by_vm: bool = False  # whether VMs of a job start on their own, without the others

    @property
    def name(self) -> str:
        """``least-free-pe, VM by VM``."""
        return f"{self.policy.name}, VM by VM" if self.vm_by_vm else self.policy.name

    @property
    def is_drawn(self) -> bool:
        """True if the result depends on the seed, which draws the cache scores."""
        return self.policy.bounded_by_neighbours


# Closest to the published default.
BLIND = TraceRun(LEAST_FREE_BLIND, "fcfs by cores")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The completed jobs of a run."""

    ends: tuple[float, ...]  # s, ascending
    core_hours: float  # of these jobs, by the run times of this run
    use: float  # fraction of the cores in use, from the start to the moment of counting

    @property
    def jobs(self) -> int:
        """The number of completed jobs."""
        return len(self.ends)


def result(rows: Sequence[TraceRow], run: TraceRun, seed: int = 1) -> TraceResult:
    """Return the jobs completed until the moment of counting. The same seed gives the same ones.

    Jobs with VMs that need more memory than a node has are never started.

    :param seed: draws the cache scores, which are the same for all policies and queues
    """
    nodes = cluster(run.nodes, run.cores, run.memory)
    submitted = list(jobs(rows, run, seed))
    left = [job.count for job in submitted]  # VMs that have not ended
    done: list[tuple[float, float]] = []  # the end of the last VM, and core-hours
    parts, job_of = submitted, list(range(len(submitted)))
    if run.vm_by_vm:
        job_of = [i for i, job in enumerate(submitted) for _ in range(job.count)]
        parts = [replace(submitted[i], number=n, count=1) for n, i in enumerate(job_of, start=1)]

    def ended(record: JobRecord) -> None:
        job = job_of[record.number - 1]
        left[job] -= record.vms if record.outcome is Outcome.DONE else 0
        if not left[job]:
            assert record.end is not None
            done.append((record.end, submitted[job].count * submitted[job].runtime / 3600))

    simulation = Simulation(
        SimulationInput(nodes, run.policy, seed, Limits(ALPHA, run.beta)),
        _QUEUES[run.queue](),
        parts,
        # That no slot is used twice is checked every six hours.
        measures=Measures(nodes, interval=6 * 3600.0),
        on_record=ended,
    )
    simulation.run(run.until)
    use = simulation.measures.integrals.utilisation[VCPUS]
    simulation.conclude()
    return TraceResult(
        ends=tuple(end for end, _ in done),
        core_hours=math.fsum(hours for _, hours in done),
        use=use,
    )


@cache
def cluster(nodes: int, cores: int, memory: float) -> Cluster:
    """Return equal nodes under one switch: topology does not matter here."""
    return uniform(FatTree(levels=1, radix=nodes).topology(), HostType(cores, round(memory * 1024)))


def jobs(rows: Sequence[TraceRow], run: TraceRun, seed: int) -> Iterator[Job]:
    """Return the jobs: a VM of one core per processor, with its share of the memory used."""
    for job in job_sources.jobs(
        rows, job_sources.Workload(memory="total", scores=run.scores), seed
    ):
        is_sync = run.classes == "all sync" or (run.classes == "sync above 1 VM" and job.count > 1)
        yield replace(
            job,
            submit=job.submit if run.arrivals == "trace" else 0.0,
            runtime=job.runtime * (1 - run.less),
            application=replace(job.application, app_class="sync" if is_sync else "async"),
        )


CURVE_COLUMNS = ("placement", "queue", "beta", "runtimes less by", "seconds", "jobs")


def curves_csv(rows: Sequence[TraceRow], seed: int) -> str:
    """Return the curves of Figures 9a and 9b on nodes of 2 GB as CSV.

    One row per completed job: its end, and the number of jobs until then.
    """
    runs = [BLIND, *(TraceRun(policy, each) for each in QUEUES for policy in (LEAST_FREE, MDOBP))]
    runs += [
        TraceRun(IN_LIMITS, each, beta=beta, less=less)
        for each in QUEUES
        for beta in BETAS
        for less in LESS
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CURVE_COLUMNS)
    for run in runs:
        beta = f"{run.beta:g}" if run.is_drawn else ""
        what = run.name, run.queue, beta, f"{run.less:g}"
        for number, end in enumerate(result(rows, run, seed).ends, start=1):
            writer.writerow((*what, f"{end:g}", number))
    return text.getvalue()
