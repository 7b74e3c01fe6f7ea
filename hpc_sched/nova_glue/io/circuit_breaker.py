"""Reads that may hang, each in its own thread, limited in time and number per source.

A source is a cell's database, the API database or Placement; each has a circuit breaker. A read
that hangs cannot be stopped, only abandoned together with its thread. Nova's own pool for reads of
cells has five threads, which the host manager needs: none of these reads runs there.
"""

import contextvars
import math
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, TypeVar

from nova.conf import CONF

from hpc_sched import clock, exceptions
from hpc_sched.core.logged.decision_summary import READS
from hpc_sched.nova_glue.io import request_deadline

Answer = TypeVar("Answer")

# Concurrent reads of one source, and so the reads that hang when it begins to.
MAX_READS = 4
# Abandoned reads of one source beyond which it is probed rarely: they may never return.
MAX_STUCK = 16
# Seconds that a breaker stays open; the longer pause applies from MAX_STUCK abandoned reads on.
PAUSE, LONG_PAUSE = 60.0, 600.0
# Fraction of cell_timeout for which a read for many requests waits for a probe.
PART_FOR_PROBES = 0.1
# Such a read goes on as long as rows come: fraction of cell_timeout between two of them.
PART_FOR_ROWS = 0.5
# And as long as this process is so busy, in processors, that its threads that read may have to
# wait: where many requests come at once, that is no fault of the source.
BUSY = 0.5
_LOOK = 0.1  # seconds between two looks

LEFT_ALONE = "left alone after a timeout"


# The source that this thread reads.
_reading: contextvars.ContextVar["CircuitBreaker | None"] = contextvars.ContextVar(
    "hpc_sched source", default=None
)


def note_progress() -> None:
    """Note that rows of the source that this thread reads are coming: it does not hang."""
    if (source := _reading.get()) is not None:
        source.progress_at = clock.current.monotonic()


class CircuitBreaker:
    """Starts the reads of one source; used by all threads.

    It opens when a read has timed out and no other has returned meanwhile. After a pause it lets
    one read at a time probe the source, and closes when a probe ends in time, even with an error.
    A probe may go on without a request that waits for it.
    """

    def __init__(self, source: str, max_reads: int) -> None:
        self.retry_at: float | None = None  # a monotonic time; None while closed
        self._pause = PAUSE  # seconds that ended at retry_at
        self._thread_name = f"hpc_sched read: {source}"
        self._max_reads = max_reads
        self._changed = threading.Condition()
        self._pending: set[futures.Future[Any]] = set()
        self._abandoned: dict[futures.Future[Any], float] = {}  # to a monotonic time
        self._last_end = -math.inf  # monotonic time at which a read returned last
        self.probe: futures.Future[Any] | None = None  # the read that probes the source
        self._probe_began = -math.inf  # a monotonic time
        self.progress_at = -math.inf  # monotonic time at which a row came last

    @property
    def is_open(self) -> bool:
        """True while a pause lasts, and for as long after it, when a busy cloud probes the source.

        Not for longer: without a request there is no probe that could close it.
        """
        retry_at = self.retry_at
        return retry_at is not None and clock.current.monotonic() < retry_at + self._pause

    def begin(self, read: Callable[[], Answer], seconds: float) -> futures.Future[Answer] | None:
        """Start a read and return its future, or None if too many others are running.

        The future holds an UnansweredError if the breaker is open.

        :param seconds: how long to wait for one of those to end
        """
        answer: futures.Future[Answer] = futures.Future()
        with self._changed:
            clock.current.wait_for_condition(
                self._changed, lambda: self.retry_at is not None or self._has_room(), seconds
            )
            if self.retry_at is not None:
                now = clock.current.monotonic()
                if self.probe and self._hangs(self._probe_began, CONF.hpc_sched.cell_timeout):
                    self._leave(self.probe)
                    self._open()
                if now < self.retry_at or self.probe is not None:
                    answer.set_exception(exceptions.UnansweredError(LEFT_ALONE))
                    return answer
                self.probe, self._probe_began = answer, now
            elif not self._has_room():
                return None
            self._pending.add(answer)
        # The thread gets the caller's context variables: tests count queries by them.
        run = contextvars.copy_context().run
        try:
            threading.Thread(
                target=run, args=(self._run, read, answer), name=self._thread_name, daemon=True
            ).start()
        except Exception as error:  # out of threads or memory, which is no fault of the source
            with self._changed:
                self._pending.discard(answer)
                if self.probe is answer:
                    self.probe = None
                self._changed.notify_all()
            answer.set_exception(exceptions.UnansweredError(f"no thread can be started: {error}"))
        return answer

    def abandon(self, answer: futures.Future[Any] | None, began: float) -> None:
        """Stop waiting for a read; open the breaker if the source is at fault.

        :param answer: None for a read that could not begin
        :param began: monotonic time since when it was waited for
        """
        with self._changed:
            self._leave(answer)
            # Many requests at once wait long for a source that answers them one by one.
            has_answered = self.retry_at is None and self._last_end > began
            # A request near its deadline says nothing about the source's speed.
            if not has_answered and self._hangs(began, PART_FOR_ROWS * CONF.hpc_sched.cell_timeout):
                self._open()

    def _hangs(self, began: float, silence: float) -> bool:
        """True if a read has brought no row for some seconds, or takes too long in all.

        :param began: monotonic time at which it began
        """
        now = clock.current.monotonic()
        is_silent = now - max(began, self.progress_at) >= silence
        return is_silent or now - began >= request_deadline.most_for_rows()

    def _leave(self, answer: futures.Future[Any] | None) -> None:
        """Abandon a read that is under way."""
        if answer is not None and answer in self._pending:
            self._pending.remove(answer)
            self._abandoned[answer] = clock.current.monotonic()
        if self.probe is answer:
            self.probe = None

    def _open(self) -> None:
        self._pause = PAUSE if len(self._abandoned) < MAX_STUCK else LONG_PAUSE
        self.retry_at = clock.current.monotonic() + self._pause
        self._changed.notify_all()

    def _has_room(self) -> bool:
        now = clock.current.monotonic()
        # Reads abandoned longer ago are not expected to return.
        slow = sum(now - since < PAUSE for since in self._abandoned.values())
        max_reads = self._max_reads if len(self._abandoned) < MAX_STUCK else 1
        return len(self._pending) + slow < max_reads

    def _run(self, read: Callable[[], Answer], answer: futures.Future[Answer]) -> None:
        _reading.set(self)
        try:
            found = read()
        except BaseException as error:
            self._end(answer)
            if not isinstance(error, Exception):
                # An exit of this thread must not become an exit of the caller's.
                error = exceptions.UnansweredError(f"{type(error).__name__}: {error}")
            answer.set_exception(error)
        else:
            self._end(answer)
            answer.set_result(found)

    def _end(self, answer: futures.Future[Any]) -> None:
        with self._changed:
            self._pending.discard(answer)
            self._abandoned.pop(answer, None)
            self._last_end = clock.current.monotonic()
            if self.probe is answer:
                self.probe, self.retry_at = None, None
            self._changed.notify_all()


breakers: dict[str, CircuitBreaker] = {}  # by source: the cells, and three more
_lock = threading.Lock()


def open_sources() -> list[str]:
    """Return the sources that are left alone, or were until a pause ago and have not answered."""
    with _lock:
        return [source for source, breaker in breakers.items() if breaker.is_open]


def ask(
    reads: Mapping[str, Callable[[], Answer]], max_reads: int = MAX_READS
) -> dict[str, Answer | Exception]:
    """Return what the read of each source returns, or the exception that it raised.

    Reads all sources concurrently within the seconds of :func:`request_deadline.remaining`, which
    are charged to the request. A read that has not returned by then is an UnansweredError. A read
    for many requests goes on as long as rows come or this process is busy, all of them together
    until the deadline's ``rows_until``; its time is charged only if a source has not answered.

    :param max_reads: concurrent reads of one source
    """
    request = request_deadline.current()
    with request.clock.part(READS):
        return _ask(request, reads, max_reads)


def _ask(
    request: request_deadline.RequestDeadline,
    reads: Mapping[str, Callable[[], Answer]],
    max_reads: int,
) -> dict[str, Answer | Exception]:
    found: dict[str, Answer | Exception] = {
        source: exceptions.UnansweredError(f"no answer within {CONF.hpc_sched.cell_timeout} s")
        for source in reads
    }
    is_busy = _busy_from_now()
    began, limit = clock.current.monotonic(), request_deadline.remaining()
    if limit <= 0:
        return found
    deadline = began + limit
    with _lock:
        asked = {
            source: breakers.setdefault(source, CircuitBreaker(source, max_reads))
            for source in reads
        }
    started = {source: asked[source].begin(read, 0.0) for source, read in reads.items()}
    # Busy sources come last: waiting for one of them does not delay the others.
    for source in [source for source, answer in started.items() if answer is None]:
        started[source] = asked[source].begin(
            reads[source], max(0.0, deadline - clock.current.monotonic())
        )
    if request.rows_until is not None:
        probes = {
            source: answer
            for source, answer in _late(started).items()
            if asked[source].probe is answer
        }
        wait = min(
            deadline - clock.current.monotonic(), PART_FOR_PROBES * CONF.hpc_sched.cell_timeout
        )
        clock.current.wait_for_futures(probes.values(), wait)
        for source in _late(probes):
            del started[source]
            found[source] = exceptions.UnansweredError(LEFT_ALONE)
    clock.current.wait_for_futures(_late(started).values(), deadline - clock.current.monotonic())
    if request.rows_until is not None:
        _wait_for_rows(asked, started, request.rows_until, is_busy)
    is_late = False
    for source, answer in started.items():
        if answer is None or not answer.done():
            asked[source].abandon(answer, began)
            is_late = True
        else:
            error = answer.exception()
            found[source] = error if isinstance(error, Exception) else answer.result()
    # What answers late, as many requests want the processor, takes no time from other sources.
    if request.rows_until is None or is_late:
        request.waited += min(clock.current.monotonic() - began, limit)
    return found


def _busy_from_now() -> Callable[[], bool]:
    """Return a function that is True if this process has been busy since now."""
    began, used = clock.current.monotonic(), clock.current.process_time()
    return lambda: clock.current.process_time() - used >= BUSY * (clock.current.monotonic() - began)


def _wait_for_rows(
    asked: Mapping[str, CircuitBreaker],
    started: Mapping[str, futures.Future[Any] | None],
    until: float,
    is_busy: Callable[[], bool],
) -> None:
    """Wait for reads that have not returned as long as rows come for any, or the process is busy.

    :param until: a monotonic time at which it ends
    """
    while True:
        late, now = _late(started), clock.current.monotonic()
        since = now - PART_FOR_ROWS * CONF.hpc_sched.cell_timeout
        has_rows = any(asked[source].progress_at >= since for source in late)
        if not late or now >= until or not (has_rows or is_busy()):
            return
        clock.current.wait_for_futures(late.values(), min(_LOOK, until - now))


def _late(started: Mapping[str, futures.Future[Any] | None]) -> dict[str, futures.Future[Any]]:
    """Return the reads that have begun and not returned, by source."""
    return {
        source: answer
        for source, answer in started.items()
        if answer is not None and not answer.done()
    }


def ask_one(source: str, read: Callable[[], Answer], max_reads: int = MAX_READS) -> Answer:
    """Return what the read of one source returns; raises its error, or an UnansweredError."""
    [found] = ask({source: read}, max_reads).values()
    if isinstance(found, Exception):
        raise found
    return found
