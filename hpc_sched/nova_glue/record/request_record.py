"""The record of one request: its decision, logged once, and what its outcome is compared with."""

import nova.conf
from oslo_log import log as logging

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.record import decision_record, landed_record
from hpc_sched.nova_glue.record.landed_record import Subject

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class RequestRecord:
    """The record of a group's request; a ``landed_record.Followed``."""

    def __init__(self, claims: RequestClaims) -> None:
        self.claims = claims
        self.is_logged = False  # whether the decision is logged, or could not be
        self.logged: decision_record.LoggedDecision | None = None

    @property
    def is_accepted(self) -> bool:
        """True if the logged decision does not refuse the request."""
        return self.logged is not None and not self.logged.is_refused

    @property
    def observed_at(self) -> float:
        """Monotonic time of Nova's last call."""
        return self.claims.group.event.at

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates of the first call."""
        return self.claims.group.nova.hosts

    @property
    def subject(self) -> Subject:
        """What the record of the outcome has of the request."""
        inputs = self.claims.group.inputs
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

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        return self.claims.group.inputs.name_of(position)


def log(record: RequestRecord, answer: Plan | Rejection, refused: str | None = None) -> None:
    """Log the decision on a request once, then where its VMs land; never raises.

    :param refused: the operator's text if the request is refused
    """
    if record.is_logged:
        return
    record.is_logged = True
    record.logged = decision_record.log(record.claims, answer, refused)
    if not conf.is_shadow(CONF):
        landed_record.follow(record)


def log_refusal(record: RequestRecord, among: Array, why: str) -> None:
    """Log that a request is refused, as :func:`log` does.

    :param among: positions of the HostStates that are candidates
    :param why: the operator's text
    """
    group = record.claims.group
    try:
        answer = group.answer(group.request(among))
    except Exception:
        LOG.exception("The plan of a request that is refused (%s) cannot be logged", why)
        return
    log(record, answer, why)
