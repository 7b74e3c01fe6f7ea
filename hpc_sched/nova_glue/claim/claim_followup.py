"""The end of requests with gang claims: what Nova does not use is released.

Nothing of hpc_sched is called after the last claim of a request, nor when a request dies. A thread
of each worker looks at the requests with claims several times a second while there are any.
"""

import gc
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from nova import objects
from oslo_log import log as logging

from hpc_sched import clock
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.read.instances import request_instances

LOG = logging.getLogger(__name__)

INTERVAL = 0.2  # seconds between two looks
# Seconds without a call of Nova after which a request is over whatever else there is to see.
IDLE = 600.0
# Seconds without a call of Nova after which ended requests are looked for among young objects, at
# each look, and among all objects, the latter again after four times as long. With 10,000 hosts
# that takes 8 ms and 0.3 s at most.
YOUNG_AFTER, ALL_AFTER = 0.4, 2.0
# Seconds between two searches among all objects, whatever the number of requests.
ALL_EVERY = 10.0
# Seconds after a request for which a transaction without an answer may still be made; what
# Placement did not answer is tried again for twice as long.
LATE = 120.0
# Seconds between two tries, doubled from the first to the last.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 15.0


@dataclass(eq=False)
class _Followed:
    claims: RequestClaims
    gang: GangClaim
    spec: weakref.ref[objects.RequestSpec]
    has_failed: bool = False  # whether a failure to follow it was logged
    all_after: float = ALL_AFTER
    over_at: float | None = None  # monotonic time
    clean_at: float = 0.0  # likewise
    pause: float = FIRST_PAUSE


_followed: list[_Followed] = []
_all_at = -ALL_EVERY  # the last search among all objects; monotonic time
_lock = threading.Lock()  # of the list


def follow(claims: RequestClaims, gang: GangClaim, spec: objects.RequestSpec) -> None:
    """Release what Nova does not use of a request's claims, once the request is over."""
    with _lock:
        _followed.append(_Followed(claims, gang, weakref.ref(spec)))
    _thread.start()
    _thread.wake()


def look() -> None:
    """Note all claims that Nova has made, and release those of requests that are over."""
    with _lock:
        found = list(_followed)
    _free_ended(found)
    for one in found:
        try:
            # The request's own thread may wait for Placement; the others' claims need not.
            if not one.gang.lock.acquire(blocking=False):
                continue
            try:
                is_done = _is_done(one)
            finally:
                one.gang.lock.release()
        except Exception:
            if not one.has_failed:
                LOG.exception("The claims of a request cannot be followed")
            one.has_failed = True
            is_done = clock.current.monotonic() - one.claims.group.event.at >= IDLE + LATE
        if is_done:
            with _lock, suppress(ValueError):
                _followed.remove(one)


def _is_done(one: _Followed) -> bool:
    gang, group = one.gang, one.claims.group
    nova_has_released = group.nova.hosts.nova_has_released
    is_over = one.claims.is_over or one.spec() is None or nova_has_released
    one.claims.note_placed()
    if nova_has_released:
        gang.forget_placed()
    if gang.is_clean and one.claims.is_complete:
        return True
    now = clock.current.monotonic()
    if not is_over and now - group.event.at < IDLE:
        return False
    if one.over_at is None:
        one.over_at = now
    if now < one.clean_at:
        return False
    one.clean_at, one.pause = now + one.pause, min(2 * one.pause, LONGEST_PAUSE)
    is_last = now - one.over_at >= LATE
    unanswered = gang.clean(_is_deleted, is_last=is_last)
    is_done = gang.is_clean or (is_last and not unanswered)
    is_given_up = now - one.over_at >= 2 * LATE
    if is_given_up and not is_done:
        LOG.warning(
            "Allocations of instances %s may be left in Placement, which has not answered",
            ", ".join(unanswered),
        )
    return is_done or is_given_up


def _is_deleted(uuid: str) -> bool | None:
    """True if an instance was deleted; None if the database does not answer."""
    try:
        return request_instances.is_deleted(uuid)
    except databases.OUTAGES as error:
        LOG.debug("Instance %s: %s", uuid, databases.api_problem(error))
        return None


def _free_ended(followed: Sequence[_Followed]) -> None:
    """Free the RequestSpecs of requests that have ended with an exception.

    The traceback refers to frames that refer to it and to the RequestSpec: a cycle, which lives
    until it is garbage-collected; mostly it is young. To look which threads are still in the
    scheduler instead is not safe: Python 3.11 has crashed where the frames of a running thread
    were followed.
    """
    global _all_at
    now = clock.current.monotonic()
    idle = [(one, now - one.claims.group.event.at) for one in followed if not one.claims.is_over]
    waiting = [one for one, seconds in idle if seconds >= one.all_after]
    if waiting and now - _all_at >= ALL_EVERY:
        _all_at = now
        gc.collect()
        for one in waiting:
            one.all_after *= 4
    elif any(seconds >= YOUNG_AFTER for _, seconds in idle):
        gc.collect(1)


def _interval() -> float:
    return INTERVAL if _followed else 0.0


_thread = PeriodicThread(look, _interval, "hpc_sched claims")
