"""The requests that Nova serves now, a session each."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import nova.conf
from nova import objects

from hpc_sched import conf
from hpc_sched.nova_glue.active_session import ActiveSession
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.nova_glue.shadow_session import ShadowSession

CONF = nova.conf.CONF

# Until Nova drops the RequestSpec.
_sessions: weakref.WeakKeyDictionary[objects.RequestSpec, PlacementSession] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


class _Served(threading.local):
    """The session that this thread, or greenlet, has begun last."""

    session: Callable[[], PlacementSession | None] = staticmethod(lambda: None)


_served = _Served()


def session_of(spec: objects.RequestSpec) -> PlacementSession:
    """Return the session of a request, which begins with its first call."""
    with _lock:
        found = _sessions.get(spec)
        if found is None:
            worker.start()
            found = ShadowSession() if conf.is_shadow(CONF) else ActiveSession()
            _sessions[spec] = found
            _end_before(found)
        return found


def _end_before(session: PlacementSession) -> None:
    """Note that the request that this thread served before is over: it serves one at a time."""
    before = _served.session()
    if before is not None and before.served is not None:
        before.served.claims.is_over = True
    _served.session = weakref.ref(session)
