"""Shadow mode: what hpc_sched would have done is planned and logged, and Nova notices nothing.

The filters' own decisions are made for the first VM of a request, each among the hosts that those
of hpc_sched before it would have left. They are made once: what Nova does for further VMs is its
own. The decision is logged after the last filter, or if others follow it, or without filters, at
the first weighing. Nothing here raises, and no HostState and no RequestSpec is changed: gang claims
have an obstacle, and allocation candidates are not arranged.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext

import nova.conf
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import utils as scheduler_utils

from hpc_sched import clock, exceptions
from hpc_sched.enabled_plugins import FILTER_ORDER
from hpc_sched.nova_glue import configured_plugins, served_requests
from hpc_sched.nova_glue.io import databases, loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.record import decision_record, landed_record
from hpc_sched.nova_glue.record.followed_request import LoggedDecision, Subject

CONF = nova.conf.CONF

NO_HOST = "no host is left: other filters remove those that hpc_sched keeps"

States = list[host_manager.HostState]
Keep = Callable[[States, objects.RequestSpec], States]
NeedsProof = Callable[[objects.RequestSpec], bool]


class _ShadowRequest:
    """One request; a ``followed_request.Followed``. Used by the thread that serves it."""

    def __init__(self) -> None:
        self.observed_at = clock.current.monotonic()
        self.is_decided = False
        self.filters: set[str] = set()  # that have run
        self.kept: frozenset[int] | None = None  # id() of HostStates; None: all
        self.problem = ""  # the last failure of hpc_sched, or of what it reads
        self.logged: LoggedDecision | None = None
        self._subject: Subject | None = None
        self._fabric: loaded_topology.Fabric | None = None
        self._observer = ClaimObserver(())

    @property
    def subject(self) -> Subject:
        """What the record of the outcome has of the request."""
        assert self._subject is not None
        return self._subject

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates among which Nova chooses."""
        return self._observer

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        state = self._observer.states[position]
        if self._fabric is None:
            return str(state.nodename or state.host)
        return self._fabric.name_of(state.host, state.nodename)

    def among(self, states: States) -> States:
        """Return the HostStates that are candidates for hpc_sched."""
        if self.kept is None:
            return states
        return [state for state in states if id(state) in self.kept]

    def keep(self, kept: States, states: States) -> None:
        """Note which of all HostStates a filter would have left."""
        self.kept = None if len(kept) == len(states) else frozenset(map(id, kept))

    def follow(
        self,
        spec: objects.RequestSpec,
        subject: Subject,
        fabric: loaded_topology.Fabric | None,
        states: States,
        logged: LoggedDecision,
    ) -> None:
        """Log where Nova places the VMs, on any of these HostStates."""
        self.kept = None
        self.logged, self._subject, self._fabric = logged, subject, fabric
        self._observer = ClaimObserver(states)
        landed_record.follow(self, spec)


# The requests being served, until Nova drops the RequestSpec.
_requests: weakref.WeakKeyDictionary[objects.RequestSpec, _ShadowRequest] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def run_filter(
    name: str,
    keep: Keep,
    needs_proof: NeedsProof,
    states: States,
    spec: objects.RequestSpec,
) -> None:
    """Run a filter for the first VM of a request, and note which hosts it would have left.

    :param name: of the filter
    :param keep: returns the hosts that pass, or raises RefusedError
    :param needs_proof: whether a failure refuses the request
    """
    try:
        request = _request(spec)
        if not states or request.is_decided or name in request.filters:
            return
        request.filters.add(name)
        candidates = request.among(states)
        if not candidates:
            _refuse(request, spec, states, candidates, NO_HOST)
            return
        kept = candidates
        try:
            with served_requests.charge_waiting(spec):
                kept = keep(candidates, spec)
        except exceptions.RefusedError as refusal:
            _refuse(request, spec, states, candidates, str(refusal))
            return
        except exceptions.TopologyError:
            _decide(request, states, spec, name)
            return
        except Exception as error:
            request.problem = _problem(spec, name, error, name)
            if _needs_proof(needs_proof, spec):
                why = f"a guarantee cannot be proven: {request.problem}"
                _refuse(request, spec, states, candidates, why)
                return
        request.keep(kept, states)
        if _is_last(name, len(states)):
            _decide(request, states, spec, name)
    except Exception:
        served_requests.log_failure(f"{name} failed in shadow mode", name)


def end(name: str, states: States, spec: objects.RequestSpec) -> None:
    """Log the decision on a request at its first weighing, unless a filter has.

    :param name: of the weigher
    """
    try:
        request = _request(spec)
        if request.is_decided:
            return
        if request.among(states):
            _decide(request, states, spec, name)
        else:
            _refuse(request, spec, states, [], NO_HOST)
    except Exception:
        served_requests.log_failure(f"{name} failed in shadow mode", name)


def _request(spec: objects.RequestSpec) -> _ShadowRequest:
    with _lock:
        found = _requests.get(spec)
        if found is None:
            found = _requests[spec] = _ShadowRequest()
            found.is_decided = scheduler_utils.request_is_rebuild(spec)
    found.observed_at = clock.current.monotonic()
    return found


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


def _decide(
    request: _ShadowRequest, states: States, spec: objects.RequestSpec, plugin: str
) -> None:
    """Plan and log.

    :param states: all that Nova may choose from
    :param plugin: the filter or weigher in which that is done
    """
    request.is_decided = True
    candidates = request.among(states)
    try:
        with served_requests.charge_waiting(spec):
            state = served_requests.get_state(spec, candidates)
            if state is not None:
                state.warn_of_faults()
                positions = state.positions(candidates)
                decision_record.log(state, state.decide(state.group_request(positions)))
    except exceptions.TopologyError as error:
        request.problem = f"no topology: {error}"
        state = None
    except Exception as error:
        request.problem = _problem(spec, "The plan", error, plugin)
        state = None
    if state is not None and state.logged is None:
        request.problem = "the decision cannot be logged, see the scheduler's log"
    if state is not None and state.logged is not None:
        _follow(request, spec, states, state.logged)
    elif request.problem and _is_planned(spec):
        _log_early(request, spec, states, request.problem, "no plan")


def _refuse(
    request: _ShadowRequest,
    spec: objects.RequestSpec,
    states: States,
    candidates: States,
    why: str,
) -> None:
    """Log what would have been refused."""
    request.is_decided = True
    state = served_requests.find_state(spec)
    if state is not None:
        with served_requests.charge_waiting(spec):
            decision_record.log_refusal(state, state.positions(candidates), why)
    if state is not None and state.logged is not None:
        _follow(request, spec, states, state.logged)
    else:
        _log_early(request, spec, states, why, "refused")


def _log_early(
    request: _ShadowRequest, spec: objects.RequestSpec, states: States, why: str, decision: str
) -> None:
    try:
        fabric = served_requests.fabric_of(spec)
    except exceptions.TopologyError:
        fabric = None
    digest = loaded_topology.NO_TOPOLOGY if fabric is None else fabric.digest
    with nullcontext() if fabric is None else served_requests.charge_waiting(spec):
        decision_record.log_early_refusal(spec, why, digest, decision)
    logged = LoggedDecision(None, CONF.hpc_sched.decision_log, is_refused=decision == "refused")
    subject = Subject(
        request_id=request_spec.request_id_of(spec),
        instance=spec.instance_uuid,
        instances=None,
        group=request_spec.server_group_of(spec),
        left=request_spec.number_of(spec),
        name=f"instance {spec.instance_uuid}",
        topology=None if fabric is None else fabric.topology,
        digest=digest,
        members=None,
        by_topology=False,
    )
    request.follow(spec, subject, fabric, states, logged)


def _follow(
    request: _ShadowRequest, spec: objects.RequestSpec, states: States, logged: LoggedDecision
) -> None:
    state = served_requests.find_state(spec)
    assert state is not None
    request.follow(spec, state.subject, state.fabric, states, logged)


def _needs_proof(needs_proof: NeedsProof, spec: objects.RequestSpec) -> bool:
    """True if a failure refuses a request, as in active mode."""
    try:
        return not request_spec.is_move(spec) and needs_proof(spec)
    except Exception:
        return True


def _is_planned(spec: objects.RequestSpec) -> bool:
    """True if a request has a group to plan, as far as a request without a topology shows."""
    try:
        return request_spec.from_spec(spec, ()) is not None
    except Exception:
        # The failure itself is logged. What cannot be read may be a group.
        return True


def _problem(spec: objects.RequestSpec, what: str, error: Exception, plugin: str) -> str:
    """Return a failure as a sentence, and log it.

    :param plugin: the filter or weigher in which it was caught
    """
    if isinstance(error, databases.OUTAGES):
        return served_requests.log_outage(spec, what, error)
    if isinstance(error, exceptions.TopologyError):
        return f"no topology: {error}"
    served_requests.log_failure(f"{what} failed in shadow mode", plugin)
    return f"hpc_sched failed: {type(error).__name__}: {error}"
