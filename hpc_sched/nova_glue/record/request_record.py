"""The record of one request: its decision, logged once, and what its outcome is compared with."""

from __future__ import annotations

from oslo_log import log as logging

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.record import decision_record
from hpc_sched.nova_glue.record.followed_request import LoggedDecision, Subject

LOG = logging.getLogger(__name__)


class RequestRecord:
    """The record of a group's request; a ``followed_request.Followed``."""

    def __init__(self, claims: RequestClaims) -> None:
        self.is_logged = False  # whether the decision is logged, or could not be
        self.logged: LoggedDecision | None = None
        self._claims = claims

    def log(self, answer: Plan | Rejection, refused: str | None = None) -> None:
        """Log the decision once; later calls do nothing. Never raises.

        :param refused: the operator's text if the request is refused
        """
        if not self.is_logged:
            self.is_logged = True
            self.logged = decision_record.log(self._claims, answer, refused)

    def log_refusal(self, among: Array, why: str) -> None:
        """Log that the request is refused.

        :param among: positions of the HostStates that are candidates
        :param why: the operator's text
        """
        group = self._claims.group
        try:
            answer = group.decide(group.request(among))
        except Exception:
            LOG.exception("The plan of a request that is refused (%s) cannot be logged", why)
            return
        self.log(answer, why)

    @property
    def observed_at(self) -> float:
        """Monotonic time of Nova's last call."""
        return self._claims.group.event.at

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates of the first call."""
        return self._claims.group.nova.hosts

    @property
    def subject(self) -> Subject:
        """What the record of the outcome has of the request."""
        return subject_of(self._claims.group.inputs)

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        return self._claims.group.inputs.name_of(position)


def subject_of(inputs: Inputs) -> Subject:
    """Return what the records of a group's request have of it."""
    request = inputs.request
    return Subject(
        request_id=request.request_id,
        instance=request.instance_uuid,
        instances=inputs.membership.queue,
        group=request.group_uuid,
        left=inputs.membership.left,
        name=request.name,
        topology=inputs.topology,
        digest=inputs.fabric.digest,
        members=inputs.members,
        by_topology=request.hpc_specs.by_topology,
    )
