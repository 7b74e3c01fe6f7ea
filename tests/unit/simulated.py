"""Small simulations, and what happens in them as lines of text."""

from collections.abc import Iterable, Sequence

from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import JobRecord
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import Fcfs
from hpc_sched.sim.simulation import Discipline, Simulation
from hpc_sched.sim.simulation_input import Failure, SimulationInput
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import LinkDefaults, capacities
from tests.unit import fabrics


def cluster(vcpus: int = 2, memory_mb: int = 0, topology: Topology | None = None) -> Cluster:
    """Return a cluster of equal hosts, by default those of :func:`fabrics.two_leaves`."""
    return uniform(topology or fabrics.two_leaves(), HostType(vcpus, memory_mb))


class Simulated:
    """A simulation that has run, with its log and records."""

    def __init__(
        self,
        policy: str | Policy,
        jobs: Iterable[Job],
        *,
        on: Cluster | None = None,
        discipline: Discipline | None = None,
        failures: Sequence[Failure] = (),
        until: float = float("inf"),
        window: Window = WHOLE_RUN,
        **setting: object,
    ) -> None:
        self.log: list[str] = []
        self.records: list[JobRecord] = []
        loaded = policy if isinstance(policy, Policy) else POLICIES.load(policy)
        there = on or cluster()
        links = capacities(there.topology, LinkDefaults(dict.fromkeys(there.topology.levels, 4.0)))
        given = {"capacities": links, **setting}
        self.simulation = Simulation(
            SimulationInput(there, loaded, **given),  # type: ignore[arg-type]
            discipline or Fcfs(),
            jobs,
            failures=failures,
            measures=Measures(there, window=window),
            on_record=self.records.append,
            log=lambda entry: self.log.append(str(entry)),
        )
        self.simulation.run(until)
        self.simulation.conclude()

    @property
    def starts(self) -> list[str]:
        """The log lines of starts."""
        return [line for line in self.log if " start " in line]
