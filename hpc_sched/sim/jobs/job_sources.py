"""Sources of the jobs of a simulation: a trace, or stated distributions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hpc_sched import files
from hpc_sched.sim.jobs import swf, synthetic, workload
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.swf import TraceRow, TraceStatistics
from hpc_sched.sim.jobs.synthetic import Synthetic
from hpc_sched.sim.jobs.workload import Workload

_PLAIN = Workload()


@dataclass(frozen=True, slots=True)
class TraceJobs:
    """The jobs of a trace; read again for every run."""

    path: files.Path
    workload: Workload = _PLAIN
    limit: int | None = None
    partitions: tuple[int, ...] = ()

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs; what the trace does not state is drawn with the seed.

        :raises exceptions.TraceError: naming file and line of what cannot be read
        """
        return workload.jobs(self._rows(), replace(self.workload, seed=seed))

    def statistics(self) -> TraceStatistics:
        """Return how many rows can be used. Reads the whole trace.

        :raises exceptions.TraceError: as :meth:`jobs` does
        """
        counts = TraceStatistics()
        for _ in self._rows(counts):
            pass
        return counts

    def _rows(self, counts: TraceStatistics | None = None) -> Iterator[TraceRow]:
        return swf.read(self.path, limit=self.limit, partitions=self.partitions, statistics=counts)


@dataclass(frozen=True, slots=True)
class DrawnJobs:
    """Jobs drawn from stated distributions; another seed, other jobs."""

    synthetic: Synthetic

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs of a seed."""
        return synthetic.jobs(replace(self.synthetic, seed=seed))
