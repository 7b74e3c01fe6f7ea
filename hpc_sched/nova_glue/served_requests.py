"""The requests that Nova serves now, a session each."""

from __future__ import annotations

import threading
import weakref

import nova.conf
from nova import objects

from hpc_sched import conf
from hpc_sched.nova_glue.active_session import ActiveSession
from hpc_sched.nova_glue.claim import claim_followup
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.nova_glue.shadow_session import ShadowSession

CONF = nova.conf.CONF

# Until Nova drops the RequestSpec.
_sessions: weakref.WeakKeyDictionary[objects.RequestSpec, PlacementSession] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def session_of(spec: objects.RequestSpec) -> PlacementSession:
    """Return the session of a request, which begins with its first call."""
    with _lock:
        found = _sessions.get(spec)
        if found is None:
            claim_followup.end_others()
            worker.start()
            found = ShadowSession() if conf.is_shadow(CONF) else ActiveSession()
            _sessions[spec] = found
        return found
