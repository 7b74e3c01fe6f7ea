"""The group states of the requests that are being served."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from nova import objects
from nova.scheduler import host_manager

from hpc_sched.nova_glue import fabric, members
from hpc_sched.nova_glue import request as request_
from hpc_sched.nova_glue.group import GroupState


@dataclass
class _Registry:
    """The states of the requests being served, by RequestSpec, as long as those live."""

    states: weakref.WeakKeyDictionary[objects.RequestSpec, GroupState | None] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    lock: threading.Lock = field(default_factory=threading.Lock)


_registry = _Registry()


def state_of(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> GroupState | None:
    """Return the state of the group that a request places, or None where there is none.

    Read from the databases once, when the request is first seen; every later VM of the same
    request gets the same object, brought up to date. A reading that fails altogether is not
    tried again for this request.
    """
    with _registry.lock:
        known = spec in _registry.states
        state = _registry.states.get(spec)
    began = time.perf_counter()
    if not known or (state is not None and not state.knows(states)):
        with _registry.lock:
            _registry.states[spec] = None
        request = request_.from_spec(spec)
        state = None
        if request is not None:
            state = GroupState(request, members.read(request, states), states, fabric.current())
        with _registry.lock:
            _registry.states[spec] = state
    if state is not None:
        state.observe(spec.instance_uuid)
        state.record.seconds += time.perf_counter() - began
    return state


def known(spec: objects.RequestSpec) -> GroupState | None:
    """Return the state of a request that has been seen, or None; reads nothing."""
    with _registry.lock:
        return _registry.states.get(spec)
