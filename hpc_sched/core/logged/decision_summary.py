"""What log and decision log both have of a decision: its mode and times, the plan, the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpc_sched.core.plan.result import Gang

LANDED = "landed"
# Parts of the time that a decision took.
READS = "reads"  # of databases and Placement
TURNS = "turns"  # waiting for other requests of the group
PLANNING = "planning"
CLAIMS = "claims"  # transactions of Placement, and reads of what they have made
OTHER = "other"
PARTS = (READS, TURNS, PLANNING, CLAIMS, OTHER)
# Where the name of a part does not speak for itself.
_WORDS = {TURNS: "waiting for others"}
# Shorter parts are not named, in milliseconds.
_LEAST = 0.1
# Values of the option mode.
ACTIVE, SHADOW = "active", "shadow"


@dataclass(frozen=True, slots=True)
class LoggedPlan:
    """The plan of a decision; costs are Hop-Bytes."""

    leaves: Mapping[str, int] = field(default_factory=dict)  # leaf to planned VMs
    hosts: Mapping[str, int] = field(default_factory=dict)  # host to planned VMs
    hop_bytes: float | None = None
    # The least possible with all candidates and without constraints; None if it is not known.
    least: float | None = None


@dataclass(frozen=True, slots=True)
class LoggedRejection:
    """Why there is no plan."""

    reason: str = ""
    count: int = 0  # VMs to place
    # Largest group that meets the constraints; None if the members themselves break one, or if it
    # is not proven which it is.
    fits: Gang | None = None
    largest: tuple[Gang, ...] = ()  # largest group on each level, bottom up


@dataclass(frozen=True, slots=True)
class LoggedLanding:
    """Where the VMs of a request were claimed."""

    leaves: Mapping[str, int] = field(default_factory=dict)  # leaf to VMs
    hosts: Mapping[str, int] = field(default_factory=dict)  # host to VMs
    hop_bytes: float | None = None  # of members plus these VMs; None: on several islands
    planned: Mapping[str, int] | None = None  # leaf to VMs of the logged plan; None without one
    as_planned: bool | None = None  # whether each VM is on a planned host; None without a plan
    released: bool = False  # whether the request has failed and Nova has released the claims


@dataclass(frozen=True, slots=True)
class LoggedClaim:
    """The gang claim of a request."""

    vms: int = 0  # that are claimed at once, ahead of Nova; 0 if no transaction was made
    transactions: int = 0  # that were sent to Placement


@dataclass(frozen=True, slots=True)
class LoggedScheduler:
    """The scheduler that decided, with the digests of what it used."""

    host: str = ""  # as its service has it
    version: str = ""  # of hpc_sched
    options: str = ""
    topology: str = ""
    interference: str | None = None  # of the interference index; None if none was read

    @property
    def digests(self) -> str:
        """The digests as a part of a line."""
        index = "" if self.interference is None else f", interference index {self.interference}"
        return f"options {self.options}, topology {self.topology}{index}"

    def text(self) -> str:
        """Return version, host and digests as one line."""
        return f"hpc_sched {self.version} on {self.host}: {self.digests}"


def total_seconds(parts: Mapping[str, float]) -> float:
    """Return the seconds of all parts, with a precision of microseconds."""
    return round(sum(parts.values()), 6)


def times_text(parts: Mapping[str, float]) -> str:
    """Return seconds by part as ``9.3 ms (reads 2.1, planning 3.0, claims 4.2)``."""
    named = [
        f"{_WORDS.get(part, part)} {1000 * parts[part]:.1f}"
        for part in PARTS
        if 1000 * parts.get(part, 0.0) >= _LEAST
    ]
    split = f" ({', '.join(named)})" if named else ""
    return f"{1000 * total_seconds(parts):.1f} ms{split}"
