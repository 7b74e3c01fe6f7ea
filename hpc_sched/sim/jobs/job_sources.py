"""Where the jobs of a simulation come from: a trace, or stated distributions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hpc_sched import files
from hpc_sched.sim.jobs import swf, synthetic, workload
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.synthetic import Synthetic
from hpc_sched.sim.jobs.trace_statistics import TraceStatistics
from hpc_sched.sim.jobs.workload import Workload

_PLAIN = Workload()


@dataclass(frozen=True, slots=True)
class TraceJobs:
    """The jobs of a trace; read anew for every run."""

    path: files.Path
    workload: Workload = _PLAIN
    limit: int | None = None
    partitions: tuple[int, ...] = ()

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs; a seed draws what the trace does not have.

        :raises exceptions.TraceError: naming file and line of what cannot be read
        """
        records = swf.read(self.path, limit=self.limit, partitions=self.partitions)
        return workload.jobs(records, replace(self.workload, seed=seed))

    def tally(self) -> TraceStatistics:
        """Return how many rows can be used. Reads the whole trace.

        :raises exceptions.TraceError: as :meth:`jobs` does
        """
        tally = TraceStatistics()
        for _ in swf.read(self.path, limit=self.limit, partitions=self.partitions, tally=tally):
            pass
        return tally


@dataclass(frozen=True, slots=True)
class DrawnJobs:
    """Jobs by stated distributions; another seed, other jobs."""

    synthetic: Synthetic

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs of a seed."""
        return synthetic.jobs(replace(self.synthetic, seed=seed))
