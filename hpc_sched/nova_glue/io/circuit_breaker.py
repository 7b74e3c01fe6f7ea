"""Reads that may hang: each in a thread of its own, bounded in time and in number.

A circuit breaker for each source, a cell's database, the API database or Placement. A read that
hangs cannot be stopped, only left behind with its thread. Nova's own pool for reads of cells has
five threads, which the host manager needs: none of these reads runs there.
"""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, TypeVar

import nova.conf

from hpc_sched import exceptions
from hpc_sched.nova_glue.io import request_deadline

CONF = nova.conf.CONF

Answer = TypeVar("Answer")

# How many reads of one source run at a time: as many hang when it begins to.
MAX_READS = 4
# How many may hang before it is asked but rarely: none of them may ever come back.
MAX_STUCK = 16
# How many seconds a source that did not answer is left alone; more once so many hang.
PAUSE, LONG_PAUSE = 60.0, 600.0


class Breaker:
    """Lets reads of one source begin; used by all threads.

    Once somebody has waited in vain, and no read has come back meanwhile, it is left alone for a
    while. Then one read at a time tries whether it answers again; one that ends in time, be it
    with an error, says that it does.
    """

    def __init__(self, source: str, most: int) -> None:
        """Trust the source.

        :param most: reads that run at a time
        """
        self._name = f"hpc_sched read: {source}"  # as a dump of the threads shows it
        self._most = most
        self._changed = threading.Condition()
        self._awaited: set[futures.Future[Any]] = set()
        # Those that somebody has waited for in vain, and a time.monotonic() since when.
        self._left: dict[futures.Future[Any], float] = {}
        self._retry_at: float | None = None  # a time.monotonic(); None while it is trusted
        self._ended_at = -math.inf  # a time.monotonic(): the last read that came back
        self._probe: futures.Future[Any] | None = None

    def begin(self, read: Callable[[], Answer], seconds: float) -> futures.Future[Answer] | None:
        """Return what a read will answer, or None where too many others run.

        :param seconds: how long to wait for those
        :raises exceptions.UnansweredError: where the source is left alone
        """
        answer: futures.Future[Answer] = futures.Future()
        with self._changed:
            self._changed.wait_for(lambda: self._retry_at is not None or self._has_room(), seconds)
            if self._retry_at is not None:
                may_try = time.monotonic() >= self._retry_at and self._probe is None
                if not may_try:
                    raise exceptions.UnansweredError("left alone after a timeout")
                self._probe = answer
            elif not self._has_room():
                return None
            self._awaited.add(answer)
        # What a test counts in the caller it counts in the thread too.
        run = contextvars.copy_context().run
        thread = threading.Thread(
            target=run, args=(self._run, read, answer), name=self._name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads, which says nothing of the source
            with self._changed:
                self._awaited.discard(answer)
                self._forget(answer)
                self._changed.notify_all()
            raise
        return answer

    def leave(self, answer: futures.Future[Any] | None, began: float) -> None:
        """Leave a read behind for which nobody waits any more, or one that could not begin.

        :param began: a time.monotonic() since when it was waited for
        """
        with self._changed:
            if answer in self._awaited:
                self._awaited.remove(answer)
                self._left[answer] = time.monotonic()
            self._forget(answer)
            # Many at once wait long for a source that answers one after the other.
            if self._retry_at is None and self._ended_at > began:
                return
            # Who came with little time left cannot say that the source is slow.
            if time.monotonic() - began >= CONF.hpc_sched.cell_timeout / 2:
                pause = PAUSE if len(self._left) < MAX_STUCK else LONG_PAUSE
                self._retry_at = time.monotonic() + pause
                self._changed.notify_all()

    def _has_room(self) -> bool:
        """Tell whether one more read may run beside those that do.

        What was left behind long ago will not come back, and keeps no room for ever.
        """
        now = time.monotonic()
        slow = sum(now - since < PAUSE for since in self._left.values())
        most = self._most if len(self._left) < MAX_STUCK else 1
        return len(self._awaited) + slow < most

    def _forget(self, answer: futures.Future[Any] | None) -> None:
        """Let another read try, where this one has."""
        if answer is not None and self._probe is answer:
            self._probe = None

    def _run(self, read: Callable[[], Answer], answer: futures.Future[Answer]) -> None:
        try:
            found = read()
        except BaseException as error:
            self._end(answer)
            if not isinstance(error, Exception):
                # What would end the thread is not to end that of the request.
                error = exceptions.UnansweredError(f"{type(error).__name__}: {error}")
            answer.set_exception(error)
        else:
            self._end(answer)
            answer.set_result(found)

    def _end(self, answer: futures.Future[Any]) -> None:
        with self._changed:
            self._awaited.discard(answer)
            self._left.pop(answer, None)
            self._ended_at = time.monotonic()
            if self._probe is answer:
                self._probe, self._retry_at = None, None
            self._changed.notify_all()


_breakers: dict[str, Breaker] = {}  # by source; as many as cells, and two
_lock = threading.Lock()


def ask(
    reads: Mapping[str, Callable[[], Answer]], most: int = MAX_READS
) -> dict[str, Answer | Exception]:
    """Return what each source answers, or the exception that its read has raised.

    All at the same time, and waits no longer than :func:`patience.waiting` says; whatever has
    not answered by then counts as an UnansweredError.

    :param reads: source to what is asked of it
    :param most: reads of one source that run at a time
    """
    found: dict[str, Answer | Exception] = {}
    asked: dict[str, futures.Future[Answer] | None] = {}
    with request_deadline.waiting() as deadline:
        began = time.monotonic()

        def begin(source: str, seconds: float) -> None:
            try:
                asked[source] = _breaker(source, most).begin(reads[source], seconds)
            except (exceptions.UnansweredError, RuntimeError) as error:
                asked.pop(source, None)
                found[source] = error

        for source in reads if began < deadline else ():
            begin(source, 0.0)
        # A source where too many wait keeps nobody from asking the others.
        for source in [source for source, answer in asked.items() if answer is None]:
            begin(source, max(0.0, deadline - time.monotonic()))
        futures.wait(
            [answer for answer in asked.values() if answer is not None],
            max(0.0, deadline - time.monotonic()),
        )
        for source, answer in asked.items():
            if answer is None or not answer.done():
                _breaker(source, most).leave(answer, began)
            else:
                found[source] = _outcome(answer)
    for source in reads:
        if source not in found:
            found[source] = exceptions.UnansweredError(
                f"no answer within {CONF.hpc_sched.cell_timeout} s"
            )
    return found


def _outcome(answer: futures.Future[Any]) -> Any:
    """Return what a read that has ended answers, or the exception that it has raised."""
    try:
        return answer.result()
    except Exception as error:
        return error


def _breaker(source: str, most: int) -> Breaker:
    with _lock:
        return _breakers.setdefault(source, Breaker(source, most))


def ask_one(source: str, read: Callable[[], Answer], most: int = MAX_READS) -> Answer:
    """Return what one source answers; see :func:`ask`.

    :raises exceptions.UnansweredError: where it does not
    """
    [found] = ask({source: read}, most).values()
    if isinstance(found, Exception):
        raise found
    return found
