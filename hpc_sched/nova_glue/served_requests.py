"""The requests that Nova serves now, a session each."""

import threading
import weakref
from collections.abc import Callable

import nova.conf
from nova import objects

from hpc_sched import conf
from hpc_sched.nova_glue import optional_modules, request_metrics
from hpc_sched.nova_glue.active_session import ActiveSession
from hpc_sched.nova_glue.claim import abandoned_claims
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.session import PlacementSession

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


def start(plugin: str) -> None:
    """Load the topology and what options turn on, and begin to count.

    Raises as :func:`loaded_topology.start` does.

    :param plugin: class of the filter or weigher
    """
    loaded_topology.start()
    abandoned_claims.worker.prepare()
    optional_modules.load()
    if optional_modules.is_on("metrics_address"):
        from hpc_sched.nova_glue.exporter import worker

        worker.prepare(plugin)


def session_of(spec: objects.RequestSpec) -> PlacementSession:
    """Return the session of a request, which begins with its first call."""
    with _lock:
        found = _sessions.get(spec)
        if found is None:
            request_metrics.current.begun()
            found = _sessions[spec] = _new_session()
            _end_before(found)
        return found


def _new_session() -> PlacementSession:
    if not conf.is_shadow(CONF):
        abandoned_claims.thread.start()
        return ActiveSession()
    # Loaded by optional_modules.
    from hpc_sched.nova_glue.shadow_session import ShadowSession

    return ShadowSession()


def _end_before(session: PlacementSession) -> None:
    """Note that the request that this thread served before is over: it serves one at a time."""
    before = _served.session()
    if before is not None and before.served is not None:
        before.served.claims.is_over = True
    _served.session = weakref.ref(session)
