"""One job of a trace: a group of VMs that are alike, start together and end together."""

from dataclasses import dataclass

from hpc_sched.core.sharing.cache_interference import Application

NO_APPLICATION = Application("sync")


@dataclass(frozen=True, slots=True)
class Job:
    """What a job asks for, and how long it takes."""

    number: int  # no other job of the simulation has it
    submit: float  # s since the simulation's start
    runtime: float  # s, on a placement that slows nothing down
    count: int  # VMs
    vcpus: int = 1  # of one VM
    memory_mb: int = 0  # of one VM
    walltime: float | None = None  # s that the user asked for; None: the runtime is known
    application: Application = NO_APPLICATION  # its class, cache score and name

    @property
    def estimate(self) -> float:
        """The runtime, s, that a scheduler plans with."""
        return self.runtime if self.walltime is None else max(self.walltime, 0.0)
