"""One job: a group of equal VMs that start together and end together."""

from dataclasses import dataclass, field

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.jobs.communication import NO_COMMUNICATION, Communication

NO_APPLICATION = Application("sync")


@dataclass(frozen=True, slots=True)
class Job:
    """The request of a job, and its runtime."""

    number: int  # unique in a simulation
    submit: float  # s since the simulation's start
    runtime: float  # s, on a placement that does not slow it down
    count: int  # VMs
    vcpus: int = 1  # of one VM
    memory_mb: int = 0  # of one VM
    walltime: float | None = None  # s requested by the user; None: the runtime is known
    trace_job: int | None = None  # number in the trace, which may repeat it
    trace_submit: float | None = None  # s, as in the trace
    application: Application = NO_APPLICATION  # its class, cache score and name
    user: int | None = None  # its number in the trace; None: unknown
    communication: Communication = NO_COMMUNICATION  # what a network can slow down
    # What follows from these, and queues read often: vcpus and MB of one VM, and the runtime that
    # backfilling assumes, s.
    size: tuple[int, int] = field(init=False, repr=False, compare=False)
    estimate: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        estimate = self.runtime if self.walltime is None else max(self.walltime, 0.0)
        object.__setattr__(self, "size", (self.vcpus, self.memory_mb))
        object.__setattr__(self, "estimate", estimate)
