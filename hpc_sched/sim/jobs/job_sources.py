"""Where jobs come from: a trace, or stated distributions."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Literal

from hpc_sched import exceptions, files
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.jobs import swf
from hpc_sched.sim.jobs.communication import NO_COMMUNICATION, Communication, Communications
from hpc_sched.sim.jobs.distributions import ALL_SYNC, MAX_NUMBER, ZERO, Distribution, Mix, read
from hpc_sched.sim.jobs.job import Job

# What a trace's memory is of: ignored, a processor's, as the format states, or the job's, as in
# METACENTRUM.
Memory = Literal["none", "per-processor", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnApplications:
    """The mixes that the applications of jobs are drawn from."""

    classes: Mix = ALL_SYNC
    scores: Distribution = ZERO  # cache scores, at least 0
    applications: Mix | None = None  # by name; None: the numbers that a trace has, if any
    communications: Communications | None = None  # None: jobs do not communicate

    @property
    def draws(self) -> bool:
        """True if the jobs of two seeds may differ."""
        if self.communications is not None and self.communications.draws:
            return True
        drawn = (getattr(self, field.name) for field in fields(self))
        return any(not each.is_constant for each in drawn if isinstance(each, Distribution | Mix))

    def application(
        self, rng: random.Random, seed: int, number: int, name: str | None = None
    ) -> Application:
        """Return the application of a job.

        Its name is drawn apart from the other values, which are the same with and without names.

        :param name: that of a job whose name is not drawn
        """
        if self.applications is not None:
            name = self.applications.draw(random.Random(f"{seed} {number} application"))
        return Application(self.classes.draw(rng), name, self.scores.draw(rng))

    def communication(
        self, seed: int, number: int, trace_job: int | None, application: Application
    ) -> Communication:
        """Return what a job communicates."""
        if self.communications is None:
            return NO_COMMUNICATION
        return self.communications.of(seed, number, trace_job, application.name)


@dataclass(frozen=True, slots=True)
class Workload(DrawnApplications):
    """How rows become jobs; what a trace does not state is drawn.

    A job of P processors is ceil(P / cores_per_vm) VMs of min(P, cores_per_vm) cores. All VMs
    are equal: the last one may have more cores than the job has processors left.

    :raises exceptions.ConfigError: for a load out of bounds
    """

    cores_per_vm: int = 1
    memory: Memory = "none"
    load: float = 1.0  # factor by which jobs arrive faster than in the trace

    def __post_init__(self) -> None:
        low, high = 1e-6, 1e6  # anything beyond is a typing error
        if not low <= self.load <= high:
            raise exceptions.ConfigError(
                f"load: expected a factor from {low:g} to {high:g}, found {self.load}"
            )


_PLAIN = Workload()


def jobs(records: Iterable[swf.TraceRow], workload: Workload, seed: int = 0) -> Iterator[Job]:
    """Return the jobs of the rows of a trace, one at a time; the first is submitted at 0.

    They are numbered from 1, since the numbers of a trace need not be unique. The numbers drawn
    for a job depend on the seed and the job's number only.
    """
    start = None
    # To seed a source of randomness for each job takes longer than all the rest.
    draws = workload.draws
    drawn: dict[str | None, Application] = {}  # by name, if all of one name are equal
    for number, record in enumerate(records, start=1):
        start = record.submit if start is None else start
        cores = min(record.processors, workload.cores_per_vm)
        name = None if record.application is None else str(record.application)
        application = drawn.get(name)
        if application is None:
            rng = random.Random(f"{seed} {number}")
            application = workload.application(rng, seed, number, name)
            if not draws:
                drawn[name] = application
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
            application=application,
            user=record.user,
            communication=workload.communication(seed, number, record.number, application),
        )


def _memory_mb(record: swf.TraceRow, cores: int, memory: Memory) -> int:
    if memory == "none" or record.memory_kb is None:
        return 0
    shares = record.processors if memory == "total" else 1
    return -(-record.memory_kb * cores // (shares * 1024))


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
        return self.workload.draws

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs; what the trace does not state is drawn with the seed.

        :raises exceptions.TraceError: naming file and line of what cannot be read
        """
        return jobs(self._rows(swf.TraceStatistics()), self.workload, seed)

    def statistics(self) -> swf.TraceStatistics:
        """Return how many rows can be used. Reads the whole trace.

        :raises exceptions.TraceError: as :meth:`jobs` does
        """
        counts = swf.TraceStatistics()
        deque(self._rows(counts), maxlen=0)
        return counts

    def _rows(self, counts: swf.TraceStatistics) -> Iterator[swf.TraceRow]:
        return swf.read(self.path, limit=self.limit, partitions=self.partitions, statistics=counts)


_15_SECONDS = read("exponential:15")
_UP_TO_128 = read("choice:4:8:16:32:64:128")
_TEN_MINUTES = read("lognormal:600:1")
_TWICE = read("constant:2")


@dataclass(frozen=True, slots=True)
class Synthetic(DrawnApplications):
    """Distributions of the jobs; by default up to 128 VMs, mostly minutes long, some hours.

    All numbers are 0 or more. Arrivals are a Poisson process where the times between them are
    exponential.
    """

    count: int  # jobs
    interarrivals: Distribution = _15_SECONDS  # s
    sizes: Distribution = _UP_TO_128  # VMs, rounded
    runtimes: Distribution = _TEN_MINUTES  # s
    walltimes: Distribution = _TWICE  # requested walltime, in runtimes
    vcpus: int = 1  # of one VM
    memory_mb: Distribution = ZERO  # of one VM, rounded

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs, one at a time, numbered from 1; the first is submitted at 0.

        The numbers drawn for a job depend on the seed and the job's number only.
        """
        submit = 0.0
        for number in range(1, self.count + 1):
            rng = random.Random(f"{seed} {number}")
            # The application first, as for a job of a trace: both draw the same one.
            application = self.application(rng, seed, number)
            between = self.interarrivals.draw(rng)
            if number > 1:
                submit += between
            runtime = self.runtimes.draw(rng)
            yield Job(
                number=number,
                submit=submit,
                runtime=runtime,
                # A long tail is unbounded; no cluster holds a job beyond the bound either.
                count=max(1, round(min(self.sizes.draw(rng), MAX_NUMBER))),
                vcpus=self.vcpus,
                memory_mb=round(self.memory_mb.draw(rng)),
                walltime=runtime * self.walltimes.draw(rng),
                trace_job=number,
                trace_submit=submit,
                application=application,
                communication=self.communication(seed, number, number, application),
            )
