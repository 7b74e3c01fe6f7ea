"""What a job communicates."""

from dataclasses import dataclass

from hpc_sched.sim.network.messages.patterns import NONE, sends


@dataclass(frozen=True, slots=True)
class Communication:
    """A pattern, and the part of the job's runtime that it takes."""

    pattern: str  # a key of PATTERNS
    share: float  # 0 to 1, of the stated runtime, which is that of the job alone on its best hosts

    def is_of(self, ranks: int) -> bool:
        """Return whether this many ranks communicate, so that a network can slow them down."""
        return self.share > 0 and sends(self.pattern, ranks)


NO_COMMUNICATION = Communication(NONE, 0.0)
