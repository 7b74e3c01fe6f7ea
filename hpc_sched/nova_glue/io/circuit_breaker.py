"""The circuit breakers of sources: their reads that may hang, each in a thread of its own.

A source is a cell's database, the API database or Placement; each has a circuit breaker. A read
that hangs cannot be stopped, only abandoned together with its thread. Nova's own pool for reads of
cells has five threads, which the host manager needs: none of these reads runs there.
"""

import contextvars
import math
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar

from nova.conf import CONF

from hpc_sched import clock, exceptions
from hpc_sched.nova_glue.io import request_deadline

Answer = TypeVar("Answer")

# Concurrent reads of one source, and so the reads that hang when it begins to.
MAX_READS = 4
# Abandoned reads of one source beyond which it is probed rarely: they may never return.
MAX_STUCK = 16
# Seconds that a breaker stays open; the longer pause applies from MAX_STUCK abandoned reads on.
PAUSE, LONG_PAUSE = 60.0, 600.0
# A read for many requests goes on as long as rows come: fraction of cell_timeout between two.
PART_FOR_ROWS = 0.5
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


def of(source: str, max_reads: int) -> CircuitBreaker:
    """Return the circuit breaker of a source.

    :param max_reads: concurrent reads of the source
    """
    with _lock:
        return breakers.setdefault(source, CircuitBreaker(source, max_reads))
