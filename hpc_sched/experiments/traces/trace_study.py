"""Queues of jobs on a network: the set-up, and the runs of each policy."""

from collections.abc import Iterator
from dataclasses import dataclass

from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.pods import pods
from hpc_sched.sim.jobs.communication import Communications, read_patterns
from hpc_sched.sim.jobs.distributions import Distribution, read
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs, Workload
from hpc_sched.sim.jobs.offered_load import arriving
from hpc_sched.sim.measured.measured_window import ALL_OF_IT, MeasuredPart
from hpc_sched.sim.measured.measured_window import read as read_part
from hpc_sched.sim.network.links import fat_tree
from hpc_sched.sim.network.neighbours.job_speeds import JobNetwork
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.topology.model import Topology

PLAN = "exact-plan"
# Stock Nova, Listing 1, Slurm and Kueue, and hosts at random.
PEERS = ("nova-default", "dudina2013", "slurm-tree", "kueue-best-fit", "random")
LEAVES_A_POD, HOSTS_A_LEAF = 4, 16
MIX = "ring=1,doubling=1,alltoall=1,halo2=1,halo3=1,bt=1"
SIZES = "choice:1:2:4:8:16:32:64:128"
RUNTIMES = "lognormal:600:1"
MEASURED = (20, 90)  # of drawn jobs those from and until which %


@dataclass(frozen=True, slots=True)
class TraceStudy:
    """A queue of jobs, the fabrics that it runs on, and the shares that jobs communicate for."""

    seed: int = 1
    runs: int = 10
    trace: str | None = None  # None: drawn jobs
    jobs: int = 1000  # drawn, or the first of the trace
    hosts: int = 512  # one VM each; a multiple of the hosts of a pod
    use: float = 0.9  # offered load of drawn jobs
    load: float = 1.0  # factor by which a trace is faster
    ratios: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)  # of the leaves
    shares: tuple[float, ...] = (0.1, 0.3, 0.5)

    def topology(self) -> Topology:
        """Return pods of 4 leaves of 16 hosts."""
        number = max(self.hosts // (LEAVES_A_POD * HOSTS_A_LEAF), 1)
        return pods(number, LEAVES_A_POD, HOSTS_A_LEAF)

    def scenario(self, ratio: float, share: float) -> Scenario:
        """Return the setting of all runs with an oversubscription and a share."""
        topology = self.topology()
        communications = Communications(
            read_patterns(MIX, "MIX"), Distribution("constant", (share,))
        )
        links = fat_tree(
            topology, host_rate=1.25e9, oversubscription=(ratio, 1.0), host_latency=1e-6
        )
        return Scenario(
            cluster=uniform(topology, HostType(1, 0)),
            source=self._source(communications, len(topology.hosts)),
            queue="easy",
            network=JobNetwork(links),
            measured=self._measured(),
            jobs=self.jobs,
        )

    def policies(self) -> Iterator[Run]:
        """Yield the runs: of each policy one for each seed."""
        for policy in (PLAN, *PEERS):
            for seed in range(self.seed, self.seed + self.runs):
                yield Run(policy, seed)

    def _source(self, communications: Communications, vms: int) -> TraceJobs | Synthetic:
        if self.trace is not None:
            workload = Workload(load=self.load, communications=communications)
            return TraceJobs(self.trace, workload, self.jobs)
        drawn = Synthetic(
            self.jobs,
            sizes=read(SIZES),
            runtimes=read(RUNTIMES),
            communications=communications,
        )
        return arriving(drawn, self.use, vms)

    def _measured(self) -> MeasuredPart:
        since, until = MEASURED
        is_drawn = self.trace is None
        return read_part(f"{since}%,{until}%", "MEASURED") if is_drawn else ALL_OF_IT
