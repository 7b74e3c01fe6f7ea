"""A request in shadow mode: what hpc_sched would have done is logged, and Nova notices nothing.

The filters' own decisions are made for the first VM of a request, each among the hosts that those
of hpc_sched before it would have left. They are made once: what Nova does for further VMs is its
own. The decision is logged after the last filter, or if others follow it, or without filters, at
the first weighing. Nothing here raises, and no HostState and no RequestSpec is changed: gang claims
have an obstacle, and allocation candidates are not arranged.

The option ``mode`` is read in other modules too, for what a session does not do itself:

==================================  ==================================================
``served_requests``                 which session serves a request
``claim.claim_conditions``          nothing is claimed
``read.room.host_rooms``            allocation candidates keep their order
``read.room.cache_limits``          a wrong interference index is logged
``io.loaded_topology``              a wrong topology or option is logged, and tried again
``record.decision_record``          the VMs of the request alone are recorded as well
``record.request_record``           the session itself follows where the VMs land
``record.landed_record``            a request without a claim is recorded too
==================================  ==================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import nova.conf
from nova.scheduler import utils as scheduler_utils
from nova.scheduler import weights

from hpc_sched import clock, exceptions
from hpc_sched.enabled_plugins import FILTER_ORDER
from hpc_sched.nova_glue import configured_plugins, failures
from hpc_sched.nova_glue.decide import checks, plans
from hpc_sched.nova_glue.io import databases, loaded_topology, request_deadline
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.phases import Call, ServedGroup, States
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.record import decision_record, landed_record, request_record
from hpc_sched.nova_glue.record.decision_record import LoggedDecision
from hpc_sched.nova_glue.record.landed_record import Subject
from hpc_sched.nova_glue.session import PlacementSession, Plugin, Weigher

CONF = nova.conf.CONF

NO_HOST = "no host is left: other filters remove those that hpc_sched keeps"


@dataclass
class ShadowRecord:
    """A request whose outcome is Nova's own; a ``landed_record.Followed``."""

    subject: Subject
    logged: LoggedDecision | None
    fabric: Fabric | None
    observer: ClaimObserver  # of the HostStates among which Nova chooses
    observed_at: float = field(default_factory=lambda: clock.current.monotonic())

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        state = self.observer.states[position]
        if self.fabric is None:
            return str(state.nodename or state.host)
        return self.fabric.name_of(state.host, state.nodename)


class ShadowSession(PlacementSession):
    """A request that Nova places, planned to be compared; used by the thread that serves it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_decided = False
        self._filters: set[str] = set()  # that have run
        self._kept: frozenset[int] | None = None  # id() of HostStates; None: all
        self._problem = ""  # the last failure of hpc_sched, or of what it reads
        self._record: ShadowRecord | None = None

    def filtered(self, call: Call, plugin: Plugin) -> States:
        """Return all hosts, after a filter has noted which of them it would have left."""
        try:
            if self._begins(call) and call.states and call.plugin not in self._filters:
                self._filters.add(call.plugin)
                with request_deadline.active(self.deadline, call.began):
                    self._filter(call, plugin)
        except Exception:
            failures.log(f"{call.plugin} failed in shadow mode", call.plugin)
        return call.states

    def weighed(
        self, call: Call, plugin: Weigher, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return no weights; log the decision at the first weighing, unless a filter has."""
        try:
            if self._begins(call):
                with request_deadline.active(self.deadline, call.began):
                    if self._among(call.states):
                        self._decide(call)
                    else:
                        self._refuse(call, [], NO_HOST)
        except Exception:
            failures.log(f"{call.plugin} failed in shadow mode", call.plugin)
        return []

    def _begins(self, call: Call) -> bool:
        """True unless the decision is logged, or the request is a rebuild."""
        if self._record is not None:
            self._record.observed_at = call.began
        self._is_decided |= scheduler_utils.request_is_rebuild(call.spec)
        return not self._is_decided

    def _filter(self, call: Call, plugin: Plugin) -> None:
        candidates = self._among(call.states)
        if not candidates:
            self._refuse(call, candidates, NO_HOST)
            return
        kept, refused = candidates, None
        try:
            kept = plugin.keep(self, replace(call, states=candidates))
        except exceptions.RefusedError as refusal:
            refused = str(refusal)
        except exceptions.TopologyError as error:
            # The read that has failed is not repeated.
            self._problem = self._reported(call, call.plugin, error)
            self._decide(call)
            return
        except Exception as error:
            self._problem = self._reported(call, call.plugin, error)
            if self._needs_proof(call, plugin):
                refused = f"a guarantee cannot be proven: {self._problem}"
        if refused is not None:
            self._refuse(call, candidates, refused)
            return
        self._kept = None if len(kept) == len(call.states) else frozenset(map(id, kept))
        if _is_last(call.plugin, len(call.states)):
            self._decide(call)

    def _among(self, states: States) -> States:
        """Return the HostStates that are candidates for hpc_sched."""
        if self._kept is None:
            return states
        return [state for state in states if id(state) in self._kept]

    def _decide(self, call: Call) -> None:
        """Plan and log."""
        self._is_decided = True
        try:
            served = self._read(replace(call, states=self._among(call.states)))
            if served is not None:
                checks.warn_of_faults(served.group)
                request_record.log(served.record, plans.plan_of_candidates(served.group))
        except Exception as error:
            self._problem, served = self._reported(call, "The plan", error), None
        if served is not None and served.record.logged is None:
            self._problem = "the decision cannot be logged, see the scheduler's log"
        if not self._follow_group(call, served) and self._problem and _is_planned(call):
            self._log_early(call, self._problem, "no plan")

    def _refuse(self, call: Call, candidates: States, why: str) -> None:
        """Log what would have been refused."""
        self._is_decided = True
        if self.served is not None:
            among = self.served.positions(candidates)
            request_record.log_refusal(self.served.record, among, why)
        if not self._follow_group(call, self.served):
            self._log_early(call, why, "refused")

    def _follow_group(self, call: Call, served: ServedGroup | None) -> bool:
        """Log where Nova places the VMs of a group whose decision is logged; return whether."""
        if served is None or served.record.logged is None:
            return False
        self._follow(call, served.record.subject, served.record.logged)
        return True

    def _log_early(self, call: Call, why: str, decision: str) -> None:
        """Log a decision on a request whose group has not been read."""
        try:
            fabric = self._fabric
        except exceptions.TopologyError:
            fabric = None
        digest = loaded_topology.NO_TOPOLOGY if fabric is None else fabric.digest
        decision_record.log_early(call.spec, why, digest, decision)
        logged = LoggedDecision(None, CONF.hpc_sched.decision_log, decision == "refused")
        subject = Subject(
            request_id=request_spec.request_id_of(call.spec),
            instance=call.spec.instance_uuid,
            instances=None,
            group=request_spec.server_group_of(call.spec),
            left=request_spec.number_of(call.spec),
            name=f"instance {call.spec.instance_uuid}",
            topology=None if fabric is None else fabric.topology,
            digest=digest,
            members=None,
            by_topology=False,
        )
        self._follow(call, subject, logged)

    def _follow(self, call: Call, subject: Subject, logged: LoggedDecision) -> None:
        observer = ClaimObserver(call.states)
        self._record = ShadowRecord(subject, logged, self._known_fabric, observer)
        landed_record.follow(self._record, call.spec)

    def _reported(self, call: Call, what: str, error: Exception) -> str:
        """Return a failure as a sentence, and log it."""
        if isinstance(error, databases.OUTAGES):
            return failures.log_outage(what, error)
        if isinstance(error, exceptions.TopologyError):
            return f"no topology: {error}"
        failures.log(f"{what} failed in shadow mode", call.plugin)
        return f"hpc_sched failed: {type(error).__name__}: {error}"


def _is_planned(call: Call) -> bool:
    """True if a request has a group to plan, as far as a request without a topology shows."""
    try:
        return request_spec.from_spec(call.spec, ()) is not None
    except Exception:
        # The failure itself is logged. What cannot be read may be a group.
        return True


def _is_last(name: str, hosts: int) -> bool:
    """True if the decision is logged after a filter; else a weigher follows.

    :param hosts: that Nova may choose from
    """
    plugins = configured_plugins.enabled()
    behind = plugins.filters[plugins.filters.index(name) + 1 :] if name in plugins.filters else ()
    if not behind:
        return True
    # Nova's own filters behind those of hpc_sched remove candidates too; for one host Nova calls
    # no weigher.
    return not set(FILTER_ORDER) & set(behind) and (hosts == 1 or not plugins.multipliers)
