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
# Seconds until the next look after one in vain: Placement fails, or others write all the time.
FAILED_PAUSE = 3.0
# Seconds after which Nova has claimed the place or given up. A request that it refuses lives on
# until its objects are collected.
IDLE = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    claims: weakref.ref[RequestClaims]  # lives as long as the RequestSpec
    instance: str
    since: float  # monotonic time


_followed: list[_Followed] = []
_look_at = 0.0  # no look before that; monotonic time
_lock = threading.Lock()  # of the list
_look = threading.Lock()  # one look at a time: two would write the same holds


def follow(claims: RequestClaims, spec: objects.RequestSpec) -> None:
    """Remove the hold of the instance of a request once Nova has claimed its place, or gives up."""
    one = _Followed(weakref.ref(claims), spec.instance_uuid, clock.current.monotonic())
    with _lock:
        _followed.append(one)
    _thread.start()
    _thread.wake()


def look() -> None:
    """Remove the holds of instances that are claimed, or whose requests are over."""
    with _look:
        _release_ended()


def _release_ended() -> None:
    global _look_at
    now = clock.current.monotonic()
    if now < _look_at:
        return
    with _lock:
        found = [one for one in _followed if _is_over(one)]
    if not found:
        return
    written = store.release(one.instance for one in found)
    if written.answer is not Answer.DONE:
        _look_at = now + FAILED_PAUSE
    for one in found:
        if written.answer is Answer.DONE or _is_old(one):
            with _lock, suppress(ValueError):
                _followed.remove(one)


def _is_over(one: _Followed) -> bool:
    claims = one.claims()
    if claims is None or claims.is_over or _is_old(one):
        return True
    return bool(claims.group.nova.hosts.placed().any())


def _is_old(one: _Followed) -> bool:
    return clock.current.monotonic() - one.since >= IDLE


def _interval() -> float:
    return INTERVAL if _followed else 0.0


_thread = PeriodicThread(look, _interval, "hpc_sched moves")
