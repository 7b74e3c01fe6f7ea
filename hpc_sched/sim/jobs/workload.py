"""The jobs of a trace."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hpc_sched import exceptions, files
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.jobs import swf
from hpc_sched.sim.jobs.distributions import ALL_SYNC, ZERO, Distribution, Mix, drawn_name
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.swf import TraceRow, TraceStatistics

# What a trace's memory is of: ignored, a processor's, as the format states, or the job's, as in
# METACENTRUM.
Memory = Literal["none", "per-processor", "total"]

_KB = 1024  # in a MB
_LIMITS = (1e-6, 1e6)  # of the load: anything beyond is a typing error


@dataclass(frozen=True, slots=True)
class Workload:
    """How rows become jobs; what a trace does not state is drawn.

    A job of P processors is ceil(P / cores_per_vm) VMs of min(P, cores_per_vm) cores. All VMs
    are equal: the last one may have more cores than the job has processors left.

    :raises exceptions.ConfigError: for a load out of bounds
    """

    cores_per_vm: int = 1
    memory: Memory = "none"
    load: float = 1.0  # factor by which jobs arrive faster than in the trace
    classes: Mix = ALL_SYNC
    scores: Distribution = ZERO  # cache scores, at least 0
    applications: Mix | None = None  # by name; None: the numbers that the trace has

    def __post_init__(self) -> None:
        low, high = _LIMITS
        if not low <= self.load <= high:
            raise exceptions.ConfigError(
                f"load: expected a factor from {low:g} to {high:g}, found {self.load}"
            )


_PLAIN = Workload()


def jobs(records: Iterable[TraceRow], workload: Workload, seed: int = 0) -> Iterator[Job]:
    """Return the jobs of the rows of a trace, one at a time; the first is submitted at 0.

    They are numbered from 1, since the numbers of a trace need not be unique. The numbers drawn
    for a job depend on the seed and the job's number only.
    """
    start = None
    for number, record in enumerate(records, start=1):
        start = record.submit if start is None else start
        cores = min(record.processors, workload.cores_per_vm)
        rng = random.Random(f"{seed} {number}")
        name = None if record.application is None else str(record.application)
        yield Job(
            number=number,
            submit=(record.submit - start) / workload.load,
            runtime=record.runtime,
            count=-(-record.processors // workload.cores_per_vm),
            vcpus=cores,
            memory_mb=_memory_mb(record, cores, workload.memory),
            # Some traces have 0 where users stated nothing.
            walltime=record.requested_time or None,
            trace_job=record.number,
            trace_submit=record.submit,
            application=Application(
                app_class=workload.classes.draw(rng),
                name=drawn_name(workload.applications, seed, number) or name,
                score=workload.scores.draw(rng),
            ),
            user=record.user,
        )


def _memory_mb(record: TraceRow, cores: int, memory: Memory) -> int:
    if memory == "none" or record.memory_kb is None:
        return 0
    shares = record.processors if memory == "total" else 1
    return -(-record.memory_kb * cores // (shares * _KB))


@dataclass(frozen=True, slots=True)
class TraceJobs:
    """The jobs of a trace; read again for every run."""

    path: files.Path
    workload: Workload = _PLAIN
    limit: int | None = None
    partitions: tuple[int, ...] = ()

    @property
    def draws(self) -> bool:
        """True if the jobs of two seeds may differ."""
        workload = self.workload
        drawn = (workload.classes, workload.scores, workload.applications)
        return any(each is not None and not each.is_constant for each in drawn)

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs; what the trace does not state is drawn with the seed.

        :raises exceptions.TraceError: naming file and line of what cannot be read
        """
        return jobs(self._rows(TraceStatistics()), self.workload, seed)

    def statistics(self) -> TraceStatistics:
        """Return how many rows can be used. Reads the whole trace.

        :raises exceptions.TraceError: as :meth:`jobs` does
        """
        counts = TraceStatistics()
        deque(self._rows(counts), maxlen=0)
        return counts

    def _rows(self, counts: TraceStatistics) -> Iterator[TraceRow]:
        return swf.read(self.path, limit=self.limit, partitions=self.partitions, statistics=counts)
