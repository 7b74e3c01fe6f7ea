"""The lines of the decision log: a decision on a group, and where the VMs of its request landed."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from hpc_sched.core.plan.result import Gang


@dataclass(frozen=True, slots=True)
class LeafCandidates:
    """The candidates under one leaf switch."""

    hosts: int = 0
    room: int = 0  # VMs that they take


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
    # Largest group that meets the constraints; None if the members themselves break one.
    fits: Gang | None = None
    largest: tuple[Gang, ...] = ()  # largest group on each level, bottom up


@dataclass(frozen=True, slots=True)
class LoggedShunned:
    """The candidates that are shunned for one reason."""

    count: int = 0
    hosts: tuple[str, ...] = ()  # the first of them


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


@dataclass(frozen=True, slots=True)
class LoggedInput:
    """What the planner was given, so that the group can be planned again without the cloud.

    Hosts have no names, see :mod:`hpc_sched.core.counterfactual.host_classes`.
    """

    levels: tuple[str, ...]  # of the fabric, bottom up
    tree: Mapping[str, Any]  # the switches above hosts of the request; a leaf has its hosts
    heights: Mapping[str, int] = field(default_factory=dict)  # levels that the tree does not show
    max_per_host: int | None = None  # of anti-affinity
    orphans: int = 0  # see PlacementInput
    missing: int = 0
    by_mdobp: bool = False  # whether MDOBP chooses the hosts of a leaf
    shunned: tuple[str, ...] = ()  # reasons, by number
    removed: tuple[str, ...] = ()  # filters, by number: why they removed hosts before the plan
    processors: tuple[str, ...] = ()  # types, best first
    member_processors: Mapping[str, int] = field(default_factory=dict)  # "": not known
    homogeneous: str = "false"  # as HPCHomogeneityFilter took it
    services: tuple[int, ...] = ()  # members per service host, by number


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionEntry:
    """One decision, or its outcome. A field with its default value is not written.

    Both lines have the same request_id, instance, instances and group.
    """

    time: str  # UTC, ISO 8601
    request_id: str | None
    instance: str | None  # uuid of the first VM
    instances: tuple[str, ...] | None = None  # uuids of the server group's VMs without a place
    group: str | None  # uuid of the server group; None without one
    policy: str | None = ""  # of the server group; None without one
    app_class: str = ""
    wishes: Mapping[str, str | int | None] | None = None  # the constraints, and homogeneous
    left: int | None = None  # VMs of this request without a place
    awaiting: int | None = None  # VMs of the group without a place
    members: Mapping[str, int] | None = None  # leaf to VMs of the group with a place
    candidates: Mapping[str, LeafCandidates] | None = None  # per leaf
    removed: Mapping[str, int] | None = None  # reason to hosts that were removed for it
    # Reason to the candidates that a weigher of Nova puts behind all others.
    shunned: Mapping[str, LoggedShunned] | None = None
    uses_shunned: bool = False  # whether the plan has VMs on them
    decision: str  # "planned", "no plan", "refused" or LANDED
    mode: str = ""  # SHADOW if Nova has placed the VMs without hpc_sched
    project: str | None = None  # id of the project that makes the request
    seconds: float | None = None  # in Nova's calls, to the end of the one that decided
    times: Mapping[str, float] | None = None  # its parts, see PARTS
    plan: LoggedPlan | None = None
    # In shadow mode: what the plan has for the VMs of this request, if it has others too.
    own_plan: LoggedPlan | None = None
    # Planned host to its attraction, where applications there gain; see cache_interference.
    attraction: Mapping[str, float] | None = None
    claim: LoggedClaim | None = None  # None if none was tried
    degraded: tuple[str, ...] | None = None  # databases, or Placement, that did not answer
    proven: bool = True  # False if the plan is not proven best
    rejection: LoggedRejection | None = None
    reason: str | None = None  # of a refusal
    landed: LoggedLanding | None = None  # with LANDED alone
    scheduler: LoggedScheduler | None = None  # None before hpc_sched wrote it
    input: LoggedInput | None = None  # None for class async and for moves of several VMs

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        values = asdict(self)
        return {
            known.name: values[known.name]
            for known in fields(self)
            if known.default is MISSING or values[known.name] != known.default
        }


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
