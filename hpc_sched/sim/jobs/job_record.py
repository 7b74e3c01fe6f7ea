"""What became of one job."""

from dataclasses import dataclass
from enum import StrEnum

# Jobs shorter than this count as if they took so many s: a wait of a minute is no disaster for
# one that runs a second (Feitelson's bounded slowdown).
SLOWDOWN_BOUND = 10.0


class Outcome(StrEnum):
    """How it ended."""

    DONE = "done"
    REFUSED = "refused"  # has no place on the cluster even when nobody else is there
    FAILED = "failed"  # lost a host
    RUNNING = "running"  # when the simulation stopped
    WAITING = "waiting"  # when the simulation stopped


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job from its submission to its end; times in s since the simulation's start."""

    number: int
    outcome: Outcome
    app_class: str
    submit: float
    start: float | None
    end: float | None
    runtime: float  # as the trace has it
    factor: float  # by which the placement made it longer
    vms: int
    vcpus: int  # of one VM
    memory_mb: int  # of one VM
    hosts: int
    leaves: int
    least_leaves: int | None  # on the cluster without jobs
    hop_bytes: float
    least_hop_bytes: float | None  # on the cluster without jobs
    restarts: int = 0
    reason: str = ""  # why it was refused

    @property
    def wait(self) -> float | None:
        """From submission to the last start."""
        return None if self.start is None else self.start - self.submit

    @property
    def slowdown(self) -> float | None:
        """Bounded slowdown: time in the system over runtime, at least 1; None unless done."""
        if self.outcome is not Outcome.DONE or self.end is None:
            return None
        return max((self.end - self.submit) / max(self.runtime, SLOWDOWN_BOUND), 1.0)
