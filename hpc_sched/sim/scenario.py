"""One scenario under several policies and seeds: what is simulated, and one run of it."""

import csv
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.host_failures import drawn
from hpc_sched.sim.cluster.processor_types import ProcessorTypes
from hpc_sched.sim.job_lifecycle import LogEntry
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import JobRecord
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.policies import registry
from hpc_sched.sim.queue_disciplines import DEPTH, Easy, Fcfs
from hpc_sched.sim.runtime.runtime_model import PlacedRuntime, RuntimeModel
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import NO_LIMITS, SimulationInput
from hpc_sched.sim.summary import Result, result_of

QUEUES = ("fcfs", "easy")


class Jobs(Protocol):
    """Where the jobs of a run come from; every call begins anew."""

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs of a seed in the order of submission, one at a time."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What all runs have in common."""

    cluster: Cluster
    source: Jobs
    queue: str = "fcfs"
    depth: int = DEPTH  # waiting jobs that backfilling looks at
    limits: Limits = NO_LIMITS
    constraints: Constraints = NO_CONSTRAINTS
    homogeneous: str = "prefer"  # true, prefer or false
    processor_order: tuple[str, ...] = ()
    model: RuntimeModel | None = None
    mtbf: float | None = None  # s between two failures of one host; None: hosts do not fail
    repair: float = 3600.0  # s, mean
    requeue: bool = True
    until: float = math.inf  # s at which a run stops
    vm: tuple[int, int] = (1, 0)  # vcpus and MB of the VMs by which fragmentation is told
    folder: Path | None = None  # where each run writes its jobs and events
    events: bool = False  # whether it writes its events

    def setting(self, policy: str, seed: int) -> SimulationInput:
        """Return the setting of one run.

        :raises exceptions.SimulationError: for a policy that there is not
        """
        minds_types = self.homogeneous != "false"
        types = ProcessorTypes.of(self.cluster, self.processor_order) if minds_types else None
        return SimulationInput(
            cluster=self.cluster,
            policy=registry.policy(policy),
            seed=seed,
            limits=self.limits,
            constraints=self.constraints,
            types=types,
            one_type=self.homogeneous == "true",
            slowdown=None if self.model is None else PlacedRuntime(self.cluster, self.model),
            requeue=self.requeue,
        )

    def discipline(self) -> Discipline:
        """Return the queue of one run.

        :raises exceptions.SimulationError: for one that there is not
        """
        if self.queue not in QUEUES:
            raise exceptions.SimulationError(
                f"there is no queue {self.queue!r}: expected one of {', '.join(QUEUES)}"
            )
        return Fcfs() if self.queue == "fcfs" else Easy(self.depth)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a scenario."""

    policy: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.policy}-seed{self.seed}"


def simulate(
    scenario: Scenario,
    run: Run,
    *,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Return the result of one run; its jobs are written while it lasts.

    :param stopped: asked whether to stop where the run is; what has happened until then counts
    :param progress: told after every job how many are accounted for
    :raises exceptions.HPCSchedError: for a policy that there is not, a trace that cannot be
        read, or a folder that cannot be written
    """
    by_name = np.argsort(scenario.cluster.topology.name_rank).tolist()
    failures = (
        drawn(by_name, scenario.mtbf, scenario.repair, run.seed)
        if scenario.mtbf is not None
        else ()
    )
    with _told_of_the_folder(scenario), ExitStack() as stack:
        write = None if scenario.folder is None else _job_rows(scenario.folder, run, stack)

        def record(found: JobRecord) -> None:
            if write is not None:
                write(found)
            if progress is not None:
                progress(simulation.recorded)

        vcpus, memory_mb = scenario.vm
        simulation = Simulation(
            scenario.setting(run.policy, run.seed),
            scenario.discipline(),
            scenario.source.jobs(run.seed),
            failures=failures,
            measures=Measures(scenario.cluster, vcpus=vcpus, memory_mb=memory_mb),
            on_record=record,
            log=_event_lines(scenario, run, stack),
        )
        simulation.run(scenario.until, stopped)
        simulation.conclude()
    return result_of(run.policy, run.seed, simulation)


def _job_rows(folder: Path, run: Run, stack: ExitStack) -> Callable[[JobRecord], None]:
    """Return what writes a row for each job."""
    writer = csv.writer(stack.enter_context(_opened(folder / f"{run.name}-jobs.csv")))
    writer.writerow(field.name for field in fields(JobRecord))

    def write(record: JobRecord) -> None:
        writer.writerow(astuple(record))

    return write


def _event_lines(
    scenario: Scenario, run: Run, stack: ExitStack
) -> Callable[[LogEntry], None] | None:
    """Return what writes a line for each event, None where they are not wanted."""
    if scenario.folder is None or not scenario.events:
        return None
    stream = stack.enter_context(_opened(scenario.folder / f"{run.name}-events.txt"))
    return lambda entry: print(entry, file=stream)


@contextmanager
def _told_of_the_folder(scenario: Scenario) -> Iterator[None]:
    """Name the folder when it can be written no further: the disk may be full by then."""
    try:
        yield
    except OSError as failure:
        if scenario.folder is None:
            raise
        raise exceptions.SimulationError(
            f"{scenario.folder}: cannot be written: {failure.strerror}"
        ) from failure


def _opened(path: Path) -> IO[str]:
    try:
        return open(path, "w", newline="", encoding="utf-8")
    except OSError as failure:
        raise exceptions.SimulationError(
            f"{path}: cannot be written: {failure.strerror}"
        ) from failure
