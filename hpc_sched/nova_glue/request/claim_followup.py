"""The end of requests with gang claims: what Nova does not use is released.

Nothing of hpc_sched is called after the last claim of a request, nor when a request dies. A thread
of each worker looks at the requests with claims several times a second while there are any.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from nova import objects
from oslo_log import log as logging

from hpc_sched.nova_glue.claim.gang_claim import GangClaim
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.request.group_state import GroupState

LOG = logging.getLogger(__name__)

INTERVAL = 0.2  # seconds between two looks
# Seconds without a call of Nova after which a request is over whatever else there is to see.
IDLE = 600.0
# Looks in succession that must not find a thread in the scheduler.
ABSENCES = 2
_SCHEDULER = "nova.scheduler.manager"
# Seconds after a request for which a transaction without an answer may still be made, and for
# which what Placement did not answer is tried again.
LATE = 120.0
# Seconds between two tries, doubled from the first to the last.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 15.0


@dataclass(eq=False)
class _Followed:
    gang: GangClaim
    state: GroupState
    spec: weakref.ref[objects.RequestSpec]
    thread: int  # that serves the request, or a greenlet
    frame: Callable[[], types.FrameType | None]  # what that executes; None once it has ended
    is_over: bool = False
    has_failed: bool = False  # whether a failure to follow it was logged
    absences: int = 0
    over_at: float | None = None  # time.monotonic()
    clean_at: float = 0.0  # likewise
    pause: float = FIRST_PAUSE


_followed: list[_Followed] = []
_lock = threading.Lock()  # of the list


def follow(gang: GangClaim, state: GroupState, spec: objects.RequestSpec) -> None:
    """Release what Nova does not use of a request's claims, once the request is over."""
    entry = _Followed(gang, state, weakref.ref(spec), threading.get_ident(), _frame_of_this())
    with _lock:
        _followed.append(entry)
    _thread.start()
    _thread.wake()


def end_others() -> None:
    """Note that the requests that this thread served before are over: it serves one at a time."""
    if not _followed:
        return
    thread = threading.get_ident()
    with _lock:
        for one in _followed:
            one.is_over |= one.thread == thread


def look() -> None:
    """Settle all claims that Nova has made, and release those of requests that are over."""
    with _lock:
        found = list(_followed)
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
            is_done = time.monotonic() - one.state.observed_at >= IDLE + LATE
        if is_done:
            with _lock, suppress(ValueError):
                _followed.remove(one)


def _is_done(one: _Followed) -> bool:
    gang, state = one.gang, one.state
    one.absences = 0 if _serves(one.frame()) else one.absences + 1
    is_released = state.is_over
    is_over = one.is_over or one.spec() is None or is_released or one.absences >= ABSENCES
    state.settle()
    if is_released:
        gang.forget_settled()
    if gang.is_clean and gang.is_complete:
        return True
    now = time.monotonic()
    if not is_over and now - state.observed_at < IDLE:
        return False
    if one.over_at is None:
        one.over_at = now
    is_last = now - one.over_at >= LATE
    if not is_last and now < one.clean_at:
        return False
    gang.clean()
    one.clean_at, one.pause = now + one.pause, min(2 * one.pause, LONGEST_PAUSE)
    if is_last:
        gang.give_up()
    return is_last or gang.is_clean


def _serves(frame: types.FrameType | None) -> bool:
    """Return False if a thread is not in Nova's scheduler any more.

    After an exception the RequestSpec may live until the next garbage collection, for tracebacks
    make cycles of references.
    """
    while frame is not None:
        if frame.f_globals.get("__name__") == _SCHEDULER:
            return True
        frame = frame.f_back
    return False


def _frame_of_this() -> Callable[[], types.FrameType | None]:
    """Return a function for what this thread, or with Nova on eventlet this greenlet, executes."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is None or not patcher.is_monkey_patched("thread"):
        return partial(_frame_of, threading.get_ident())
    own = weakref.ref(sys.modules["greenlet"].getcurrent())
    # The one that runs has none, and that is the one that asks.
    return lambda: getattr(own(), "gr_frame", None)


def _frame_of(thread: int) -> types.FrameType | None:
    """Return what a thread executes.

    Before Python 3.12 a garbage collection within sys._current_frames() may deadlock the process
    (CPython issue 106883): it would need the lock of all threads' states, which is held meanwhile.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if is_enabled:
            gc.enable()


def _interval() -> float:
    return INTERVAL if _followed else 0.0


_thread = PeriodicThread(look, _interval, "hpc_sched claims")
