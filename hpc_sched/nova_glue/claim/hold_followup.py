"""The end of moves with a hold of their own: it is removed once Nova has claimed the place.

Until then Placement does not show where the instance goes; afterwards the place would count twice.
A thread of each worker looks several times a second while there are any. What it does not reach
ends by itself.
"""

import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass

from nova import objects
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread

LOG = logging.getLogger(__name__)

INTERVAL = 0.2  # seconds between two looks
# Seconds after Nova's last call for a request after which its hold is left to its end.
IDLE = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    claims: RequestClaims
    spec: weakref.ref[objects.RequestSpec]
    instance: str


_followed: list[_Followed] = []
_lock = threading.Lock()  # of the list


def follow(claims: RequestClaims, spec: objects.RequestSpec) -> None:
    """Remove the hold of the instance of a request once Nova has claimed its place, or gives up."""
    with _lock:
        _followed.append(_Followed(claims, weakref.ref(spec), spec.instance_uuid))
    _thread.start()
    _thread.wake()


def look() -> None:
    """Remove the holds of instances that are claimed, or whose requests are over."""
    with _lock:
        found = [one for one in _followed if _is_over(one)]
    if not found:
        return
    written = store.release(one.instance for one in found)
    for one in found:
        is_left = clock.current.monotonic() - one.claims.group.event.at >= IDLE
        if written.answer is Answer.DONE or is_left:
            with _lock, suppress(ValueError):
                _followed.remove(one)


def _is_over(one: _Followed) -> bool:
    claims = one.claims
    hosts = claims.group.nova.hosts
    is_idle = clock.current.monotonic() - claims.group.event.at >= IDLE
    return bool(hosts.placed().any()) or claims.is_over or one.spec() is None or is_idle


def _interval() -> float:
    return INTERVAL if _followed else 0.0


_thread = PeriodicThread(look, _interval, "hpc_sched moves")
