"""A job from its submission on, while it has not ended."""

from dataclasses import dataclass

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.sim.cluster.cluster_state import PlacedJob
from hpc_sched.sim.ideal_placement import IdealPlacement
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_record import JobRecord, Outcome
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One thing that happened."""

    time: float  # s
    what: str  # submit, refuse, start, end, fail, repair
    job: int | None
    more: str = ""

    def __str__(self) -> str:
        job = "" if self.job is None else f" {self.job}"
        more = f": {self.more}" if self.more else ""
        return f"{self.time:g} {self.what}{job}{more}"


@dataclass(slots=True)
class SubmittedJob:
    """What is known of a job that has been submitted."""

    job: Job
    best: IdealPlacement
    standing: PlacedJob | None = None  # where it runs, or ran last
    start: float = 0.0
    factor: float = 1.0  # by which its placement makes it longer
    starts: int = 0

    def record(self, outcome: Outcome, topology: Topology, now: float) -> JobRecord:
        """Return what became of the job. O(its hosts * depth)."""
        job, standing = self.job, self.standing
        has_ended = outcome in (Outcome.DONE, Outcome.FAILED)
        counts: dict[str, int] = {}
        leaves = 0
        if standing is not None:
            hosts = standing.hosts.tolist()
            leaves = len(set(topology.leaf_index[standing.hosts].tolist()))
            counts = {
                topology.hosts[host]: count
                for host, count in zip(hosts, standing.counts.tolist(), strict=True)
            }
        refusal = self.best.refusal
        return JobRecord(
            number=job.number,
            outcome=outcome,
            app_class=job.application.app_class,
            submit=job.submit,
            start=None if standing is None else self.start,
            end=now if has_ended else None,
            runtime=job.runtime,
            factor=self.factor,
            vms=job.count,
            vcpus=job.vcpus,
            memory_mb=job.memory_mb,
            hosts=len(counts),
            leaves=leaves,
            least_leaves=self.best.leaves,
            hop_bytes=hop_bytes_of_counts(topology=topology, counts=counts),
            least_hop_bytes=self.best.hop_bytes,
            restarts=max(self.starts - 1, 0),
            reason="" if refusal is None else refusal.operator,
        )
