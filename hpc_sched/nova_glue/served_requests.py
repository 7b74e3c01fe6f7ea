"""The state of each request while it is served."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

import nova.conf
from nova import objects
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import clock, conf, exceptions
from hpc_sched.core.extra_specs import HPCSpecs
from hpc_sched.metrics import catalogue, counts
from hpc_sched.nova_glue.claim import claim_conditions, claim_followup, group_turns
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.decide.unplanned_request import UnplannedRequest
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.io import databases, loaded_topology, request_deadline
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import colocated_instances, group_members
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.room import shunned_hosts
from hpc_sched.nova_glue.record import decision_record, landed_record

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


@dataclass
class _Entry:
    """One request; used by the one thread that serves it."""

    fabric: loaded_topology.Fabric  # the current one when the request came
    deadline: request_deadline.RequestDeadline = field(
        default_factory=request_deadline.RequestDeadline
    )
    is_read: bool = False
    state: GroupState | None = None
    colocated: ColocatedInstances | None = None
    is_unplanned: bool | None = None  # None: not known yet
    unplanned: UnplannedRequest | None = None
    is_checked: bool = False  # whether HPCGroupFilter has checked it
    is_logged: bool = False  # whether an early refusal is logged
    # Texts for operator and tenant, see store_refusal. Not the exception: its traceback would
    # hold the RequestSpec, and so this entry, for ever.
    refusal: tuple[str, str] | None = None


# The requests being served, until Nova drops the RequestSpec.
_entries: weakref.WeakKeyDictionary[objects.RequestSpec, _Entry] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _entry(spec: objects.RequestSpec) -> _Entry:
    with _lock:
        found = _entries.get(spec)
        if found is None:
            claim_followup.end_others()
            worker.start()
            found = _entries[spec] = _Entry(loaded_topology.current())
        return found


def get_state(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> GroupState | None:
    """Return the state of the group that a request places, or None without a group.

    Read from the databases once per request; later calls return the same object, updated by the
    claims since. A read that fails is not repeated for this request.
    """
    entry = _entry(spec)
    if not entry.is_read or (
        entry.state is not None and not entry.state.claims.hosts.knows(states)
    ):
        entry.is_read, entry.state = True, None
        request = request_spec.from_spec(spec, entry.fabric.topology.request_levels)
        if request is not None:
            colocated = (
                get_colocated(spec, states) if request.bounded_by or request.by_mdobp else None
            )
            in_flight = colocated.host_instances.in_flight if colocated is not None else {}
            turn = group_turns.turn_of(request.group_uuid)
            # Without a claim nothing is looked at again.
            is_claimed = claim_conditions.obstacle() is None
            look_up = turn.look_up if is_claimed else turn.look_up_anew
            group = group_members.read(request, states, partial(look_up, known=in_flight))
            shunned = shunned_hosts.find(states, spec)
            entry.state = GroupState(request, group, states, entry.fabric, colocated, shunned, turn)
            if not conf.is_shadow(CONF):
                landed_record.follow(entry.state)
    if entry.state is not None:
        entry.state.observe(spec.instance_uuid)
    return entry.state


def get_unplanned(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> UnplannedRequest | None:
    """Return a request without a group that MDOBP places, updated by its claims, or None.

    Reads the instances on the hosts once per request.
    """
    entry = _entry(spec)
    if entry.is_unplanned is None:
        entry.is_unplanned = request_spec.is_unplanned(spec)
    if not entry.is_unplanned:
        return None
    found = entry.unplanned
    if found is None or not found.claims.hosts.knows(states):
        found = UnplannedRequest(spec, states, get_colocated(spec, states))
        entry.unplanned = found
    found.claims.observe(spec.instance_uuid)
    return found


def find_state(spec: objects.RequestSpec) -> GroupState | None:
    """Return the state of the request's group if it has been read, else None."""
    return _entry(spec).state


def fabric_of(spec: objects.RequestSpec) -> loaded_topology.Fabric:
    """Return the fabric that a request is placed by."""
    return _entry(spec).fabric


def release_claims(spec: objects.RequestSpec) -> None:
    """Release at once what a request holds that gets no host; never raises.

    Nova releases what it has claimed itself. The request is over, but Nova does not say so: nor
    where it has placed the last VM, which stays if only alternates are refused.
    """
    try:
        state = find_state(spec)
        if state is not None and state.gang is not None:
            state.settle()
            state.gang.release()
    except Exception:
        LOG.exception("The claims of a refused request are released later")


def get_colocated(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> ColocatedInstances:
    """Return the instances on the hosts, read once per request."""
    entry = _entry(spec)
    if entry.colocated is None or not entry.colocated.hosts.knows(states):
        entry.colocated = colocated_instances.read(spec, states)
    return entry.colocated


def get_hpc_specs(spec: objects.RequestSpec) -> HPCSpecs:
    """Return the ``hpc:`` values of a request, checked against the levels of its fabric."""
    return request_spec.hpc_specs_of(spec, _entry(spec).fabric.topology.request_levels)


def begin_check(spec: objects.RequestSpec) -> bool:
    """Return True at the first call for a request, False for its further VMs."""
    entry = _entry(spec)
    is_first, entry.is_checked = not entry.is_checked, True
    return is_first


def charge_waiting(
    spec: objects.RequestSpec,
) -> AbstractContextManager[request_deadline.RequestDeadline]:
    """Count the time of this block, and charge what is waited to the request's deadline."""
    # The first call of a request may have to load the topology, or wait for one that does.
    began = clock.current.monotonic()
    return request_deadline.active(_entry(spec).deadline, began)


def log_outage(spec: objects.RequestSpec, name: str, error: Exception) -> str:
    """Log, once for a request, that the API database has not answered; return it as a problem.

    :param name: of the filter or weigher
    """
    problem = databases.api_problem(error)
    with charge_waiting(spec):
        if request_deadline.not_yet_logged([problem]):
            LOG.warning("%s: %s", name, problem)
    return problem


def log_failure(what: str, plugin: str) -> None:
    """Log the exception that is being handled, with its traceback, and count it.

    :param plugin: the filter or weigher in which it was caught
    """
    LOG.exception("%s", what)
    counts.count(catalogue.ERRORS, plugin=plugin)


def count_placed(spec: objects.RequestSpec) -> int:
    """Return the number of VMs that a request has placed, as of the last update."""
    entry = _entry(spec)
    of_group = entry.state.claims.number if entry.state is not None else 0
    return max(of_group, entry.colocated.placed if entry.colocated is not None else 0)


def store_refusal(spec: objects.RequestSpec, refused: exceptions.RefusedError) -> None:
    """Store the reason for HPCGroupFilter, which reports it to the user; the first one counts."""
    entry = _entry(spec)
    entry.refusal = entry.refusal or (str(refused), refused.tenant)


def get_refusal(spec: objects.RequestSpec) -> exceptions.RefusedError | None:
    """Return the stored refusal, or None."""
    refusal = _entry(spec).refusal
    return exceptions.RefusedError(*refusal) if refusal is not None else None


def log_early_refusal(spec: objects.RequestSpec, why: str) -> None:
    """Log once the refusal of a request whose group has not been read.

    Not if all VMs of the request are placed: Nova then looks for alternates only.
    """
    entry = _entry(spec)
    if entry.is_logged:
        return
    colocated = entry.colocated
    if colocated is not None:
        wanted = 1 if colocated.host_instances.is_move else request_spec.count_of(spec)
        if colocated.placed >= wanted:
            return
    entry.is_logged = True
    decision_record.log_early_refusal(spec, why, entry.fabric.digest)
