"""A request whose outcome is logged: what names it, and what its outcome is compared with."""

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from hpc_sched.core.decision_entry import LoggedPlan, LoggedRejection
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """What was logged of the first decision on a request."""

    made: LoggedPlan | LoggedRejection | None  # None if nothing was planned
    path: str | None  # of the decision log
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """What the records of a request have of it."""

    request_id: str | None
    instance: str
    instances: tuple[str, ...] | None
    group: str | None
    left: int  # VMs of the request
    name: str  # in log lines
    topology: Topology | None
    digest: str  # of the topology
    members: Counter[str] | None  # by host; None if they have not been read
    by_topology: bool  # whether weighers follow a plan


class Followed(Protocol):
    """A request that is followed until its VMs are claimed."""

    logged: LoggedDecision | None  # the decision that was logged

    @property
    def observed_at(self) -> float:
        """Monotonic time of Nova's last call."""

    @property
    def subject(self) -> Subject:
        """What its records have of it; read once the decision is logged."""

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates that may take its VMs."""

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
