"""What all runs of a sweep have in common, and one run of it."""

import csv
import math
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, fields
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import IO

import numpy as np

from hpc_sched import decimals, exceptions
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.cost import Prices
from hpc_sched.core.fragmentation.rates import NO_PRICE, FragmentationRates
from hpc_sched.core.plan.objective import TRADEOFF
from hpc_sched.core.processors.processor_ranking import UNRANKED, ProcessorRanking
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import Cluster, ProcessorTypes
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.installed import POLICIES, QUEUES
from hpc_sched.sim.jobs.job_record import JobRecord, NetworkedJobRecord
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs
from hpc_sched.sim.measured.measured_window import ALL_OF_IT, MeasuredPart
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.network.neighbours.job_speeds import JobNetwork
from hpc_sched.sim.preference.place_preference import PlacePreference
from hpc_sched.sim.queues.queue_discipline import DEFAULTS, QueueOptions
from hpc_sched.sim.results import Result, result_of
from hpc_sched.sim.runtime.runtime_model import RuntimeModel
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import NO_LIMITS, Failure, SimulationInput, drawn_failures
from hpc_sched.topology.capacities import Capacities, LinkDefaults, capacities


@dataclass(frozen=True)
class Scenario:
    """The settings of all runs."""

    cluster: Cluster
    source: TraceJobs | Synthetic
    queue: str = "fcfs"  # one of sim.installed.QUEUES
    queue_options: QueueOptions = DEFAULTS
    limits: Limits = NO_LIMITS
    interference: InterferenceRules = NO_RULES
    mdobp_classes: frozenset[str] = frozenset(mdobp_classes.DEFAULT)
    constraints: Constraints = NO_CONSTRAINTS
    preferred: Constraints = NO_CONSTRAINTS  # of the places that jobs wait for
    homogeneous: str = "prefer"  # true, prefer or false
    ranking: ProcessorRanking = UNRANKED  # of processor types
    model: RuntimeModel | None = None
    network: JobNetwork | None = None  # None: no job waits for messages
    rates: FragmentationRates = NO_PRICE  # of the fragmentation price
    tradeoff: Fraction | None = TRADEOFF  # of plans of least bottleneck; None: without a bound
    # Without a network, where the topology states none.
    links: LinkDefaults = field(default_factory=LinkDefaults)
    mtbf: float | None = None  # s between two failures of one host; None: hosts do not fail
    repair: float = 3600.0  # s, mean
    requeue: bool = True
    overruns: str = "run"  # what jobs do beyond their walltimes: run, or kill, which ends them
    until: float = math.inf  # s at which a run stops
    measured: MeasuredPart = ALL_OF_IT
    jobs: int = 0  # of each run; read if a percentage of them bounds what is measured
    prices: Prices | None = None  # of core-hours; None: no revenue
    vm: tuple[int, int] = (1, 0)  # vcpus and MB of the VMs that measure fragmentation
    folder: Path | None = None  # of the files of each run's jobs and events
    events: bool = False  # whether to write the events

    def input(self, policy: str, seed: int, limit: float | None = None) -> SimulationInput:
        """Return the input of one run.

        :param limit: of the wait for a preferred place, s; None: no place is preferred
        :raises exceptions.SimulationError: for an unknown policy
        """
        return SimulationInput(
            cluster=self.cluster,
            policy=POLICIES.load(policy),
            seed=seed,
            limits=self.limits,
            interference=self.interference,
            mdobp_classes=self.mdobp_classes,
            constraints=self.constraints,
            preference=None if limit is None else PlacePreference(self.preferred, limit),
            types=(
                None
                if self.homogeneous == "false"
                else ProcessorTypes.of(self.cluster, self.ranking)
            ),
            one_type=self.homogeneous == "true",
            slowdown=None if self.model is None else partial(self.model.factor_of, self.cluster),
            network=self.network,
            capacities=self.capacities,
            tradeoff=self.tradeoff,
            rates=self.rates,
            requeue=self.requeue,
            kills_overruns=self.overruns == "kill",
        )

    @cached_property
    def capacities(self) -> Capacities:
        """What uplinks and hosts' links carry: in the network, or as the topology states."""
        if self.network is not None:
            return self.network.links.capacities()
        return capacities(self.cluster.topology, self.links)

    def draws(self, policy: str) -> bool:
        """True if the runs of a policy with two seeds may differ.

        :raises exceptions.SimulationError: for an unknown policy
        """
        return self.mtbf is not None or self.source.draws or POLICIES.load(policy).draws

    def discipline(self) -> Discipline:
        """Return the queue discipline of one run.

        :raises exceptions.SimulationError: for an unknown discipline
        """
        return QUEUES.load(self.queue).discipline(self.queue_options)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a scenario, by its policy, its limit of waiting and its seed."""

    policy: str
    seed: int
    limit: float | None = None  # of the wait for a preferred place, s; None: none is preferred
    is_one_of_limits: bool = False  # whether the policy has runs with other limits

    @property
    def label(self) -> str:
        """The policy in tables: with several limits ``exact-plan@600``, as Slurm writes them."""
        if self.limit is None or not self.is_one_of_limits:
            return self.policy
        return f"{self.policy}@{decimals.text_of(self.limit)}"

    @property
    def name(self) -> str:
        """Prefix of its file names."""
        return f"{self.label}-seed{self.seed}"


def simulate(
    scenario: Scenario,
    run: Run,
    *,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda _recorded: None,
) -> Result:
    """Return the result of one run; write its jobs while it lasts.

    :param stopped: called between events; True ends the run, with a result until then
    :raises exceptions.HPCSchedError: for an unknown policy, a trace that cannot be read, a part to
        measure that is empty, or a folder that cannot be written
    """
    window = scenario.measured.window(
        lambda: (job.submit for job in scenario.source.jobs(run.seed)), scenario.jobs
    )
    failures: Iterable[Failure] = ()
    if scenario.mtbf is not None:
        by_name = np.argsort(scenario.cluster.topology.name_rank).tolist()
        failures = drawn_failures(by_name, scenario.mtbf, scenario.repair, run.seed)

    def record(found: JobRecord) -> None:
        if write_row is not None:
            write_row(astuple(found))
        progress(simulation.recorded)

    try:
        with ExitStack() as stack:
            write_row, log = _files(scenario, run, stack)
            simulation = Simulation(
                scenario.input(run.policy, run.seed, run.limit),
                scenario.discipline(),
                scenario.source.jobs(run.seed),
                failures=failures,
                measures=Measures(
                    *(scenario.cluster, *scenario.vm),
                    window=window,
                    levels=() if scenario.network is None else scenario.network.levels,
                ),
                on_record=record,
                log=log,
            )
            simulation.run(scenario.until, stopped)
            simulation.conclude()
    except OSError as failure:
        if scenario.folder is None:
            raise
        raise exceptions.SimulationError(
            f"{failure.filename or scenario.folder}: cannot be written: {failure.strerror}"
        ) from failure
    return result_of(
        *(run.label, run.seed, simulation, scenario.prices), is_drawn=scenario.draws(run.policy)
    )


def _files(
    scenario: Scenario, run: Run, stack: ExitStack
) -> tuple[Callable[[Iterable[object]], object] | None, Callable[[str], None] | None]:
    """Return what writes rows of jobs, and what writes events; None for what is not written."""
    folder = scenario.folder
    if folder is None:
        return None, None

    def opened(name: str) -> IO[str]:
        return stack.enter_context(
            open(folder / f"{run.name}-{name}", "w", newline="", encoding="utf-8")
        )

    rows = csv.writer(opened("jobs.csv"))
    record = JobRecord if scenario.network is None else NetworkedJobRecord
    rows.writerow(column.name for column in fields(record))
    return rows.writerow, partial(print, file=opened("events.txt")) if scenario.events else None
