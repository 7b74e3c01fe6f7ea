"""The lines of the decision log: a decision on a group, and where the VMs of its request landed."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from hpc_sched.core.logged.decision_summary import (
    LoggedClaim,
    LoggedLanding,
    LoggedPlan,
    LoggedRejection,
    LoggedScheduler,
)
from hpc_sched.core.logged.logged_objective import LoggedObjective


@dataclass(frozen=True, slots=True)
class LeafCandidates:
    """The candidates under one leaf switch."""

    hosts: int = 0
    room: int = 0  # VMs that they take


@dataclass(frozen=True, slots=True)
class LoggedShunned:
    """The candidates that are shunned for one reason."""

    count: int = 0
    hosts: tuple[str, ...] = ()  # the first of them


@dataclass(frozen=True, slots=True)
class LoggedPrice:
    """What plans pay for free slots on leaves and pods that they use, see FragmentationPrice."""

    leaf: float
    pod: float
    leaf_slots: int = 1
    pod_slots: int = 1


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
    followers: int = 0
    is_move: bool = False
    by_mdobp: bool = False  # whether MDOBP chooses the hosts of a leaf
    shunned: tuple[str, ...] = ()  # reasons, by number
    removed: tuple[str, ...] = ()  # filters, by number: why they removed hosts before the plan
    processors: tuple[str, ...] = ()  # types, best first
    member_processors: Mapping[str, int] = field(default_factory=dict)  # "": not known
    homogeneous: str = "false"  # as HPCHomogeneityFilter took it
    services: tuple[int, ...] = ()  # members per service host, by number
    price: LoggedPrice | None = None  # None: each plan is best for its group alone


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
    # None for class async, moves of several VMs, and a group that gather_groups brings together.
    input: LoggedInput | None = None
    objective: LoggedObjective | None = None  # None: the least Hop-Byte

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        values = asdict(self)
        return {
            known.name: values[known.name]
            for known in fields(self)
            if known.default is MISSING or values[known.name] != known.default
        }
