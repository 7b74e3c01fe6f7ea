"""What is known of the requests that are being served."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from nova import objects
from nova.scheduler import host_manager

from hpc_sched import exceptions
from hpc_sched.core.extra_specs import HPCSpecs
from hpc_sched.nova_glue.instances import colocated_instances, group_members
from hpc_sched.nova_glue.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.io import circuit_breaker, loaded_topology
from hpc_sched.nova_glue.request import decision_record, request_extra_specs, request_spec
from hpc_sched.nova_glue.request.group_state import GroupState


@dataclass
class _Entry:
    """One request; used by the one thread that serves it."""

    fabric: loaded_topology.Fabric  # as it was when the request came
    deadline: circuit_breaker.RequestDeadline = field(
        default_factory=circuit_breaker.RequestDeadline
    )
    is_read: bool = False
    state: GroupState | None = None
    colocated: ColocatedInstances | None = None
    told: bool = False  # whether its refusal is, where it has no state
    # Why it cannot be served, for operator and tenant, for HPCGroupFilter to tell. Not the
    # exception: its traceback would hold the RequestSpec, and that this entry, for ever.
    refusal: tuple[str, str] | None = None


@dataclass
class _Registry:
    """The requests being served, by RequestSpec, as long as those live."""

    entries: weakref.WeakKeyDictionary[objects.RequestSpec, _Entry] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    lock: threading.Lock = field(default_factory=threading.Lock)

    def entry(self, spec: objects.RequestSpec) -> _Entry:
        with self.lock:
            found = self.entries.get(spec)
            if found is None:
                found = self.entries[spec] = _Entry(loaded_topology.current())
            return found


_registry = _Registry()


def held() -> list[objects.RequestSpec]:
    """Return the requests that are being served, or have been and are not collected yet."""
    with _registry.lock:
        return list(_registry.entries)


def state_of(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> GroupState | None:
    """Return the state of the group that a request places, or None where there is none.

    Read from the databases once, when the request is first seen; every later VM of the same
    request gets the same object, brought up to date. A reading that fails altogether is not
    tried again for this request.
    """
    entry = _registry.entry(spec)
    began = time.perf_counter()
    if not entry.is_read or (
        entry.state is not None and not entry.state.claims.hosts.knows(states)
    ):
        entry.is_read, entry.state = True, None
        request = request_spec.from_spec(spec, entry.fabric.topology.levels)
        if request is not None:
            beside = colocated_with(spec, states) if request.reads_colocated else None
            in_flight = beside.host_instances.in_flight if beside is not None else {}
            group = group_members.read(request, states, in_flight)
            entry.state = GroupState(request, group, states, entry.fabric, beside)
    if entry.state is not None:
        entry.state.observe(spec.instance_uuid)
        entry.state.planning.seconds += time.perf_counter() - began
    return entry.state


def waiting_for(
    spec: objects.RequestSpec,
) -> AbstractContextManager[circuit_breaker.RequestDeadline]:
    """Charge the time spent waiting in this block to the request's deadline."""
    return circuit_breaker.active(_registry.entry(spec).deadline)


def hpc_specs_of(spec: objects.RequestSpec) -> HPCSpecs:
    """Return what a request says of its group, judged by the levels of its fabric."""
    return request_extra_specs.read(spec, _registry.entry(spec).fabric.topology.levels)


def colocated_with(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> ColocatedInstances:
    """Return what runs on the hosts already, read once when the request is first seen."""
    entry = _registry.entry(spec)
    if entry.colocated is None or not entry.colocated.knows(states):
        entry.colocated = colocated_instances.read(spec, states)
    return entry.colocated


def known(spec: objects.RequestSpec) -> GroupState | None:
    """Return the state of a request that has been seen, or None; reads nothing."""
    return _registry.entry(spec).state


def placed(spec: objects.RequestSpec) -> int:
    """Return how many VMs a request has placed, as far as it has been looked at."""
    entry = _registry.entry(spec)
    of_group = entry.state.claims.number if entry.state is not None else 0
    return max(of_group, entry.colocated.placed if entry.colocated is not None else 0)


def log_early_refusal(spec: objects.RequestSpec, why: str) -> None:
    """Log the refusal of a request of which no group has been read, once.

    Nothing is refused where all VMs of the request have their places and Nova looks for
    alternates.
    """
    entry = _registry.entry(spec)
    beside = entry.colocated
    if entry.told:
        return
    if beside is not None:
        wanted = 1 if beside.host_instances.is_move else request_spec.count_of(spec)
        if beside.placed >= wanted:
            return
    entry.told = True
    decision_record.log_early_refusal(spec, why)


def refuse_later(spec: objects.RequestSpec, refused: exceptions.RefusedError) -> None:
    """Note why a request cannot be served, for HPCGroupFilter to tell; the first reason counts."""
    entry = _registry.entry(spec)
    entry.refusal = entry.refusal or (str(refused), refused.tenant)


def refusal_of(spec: objects.RequestSpec) -> exceptions.RefusedError | None:
    """Return why a request cannot be served, None where nobody has said so."""
    refusal = _registry.entry(spec).refusal
    return exceptions.RefusedError(*refusal) if refusal is not None else None
