"""Reads that serve all the requests that wait for one."""

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hpc_sched import clock, exceptions

Key = TypeVar("Key")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Batch(Generic[Key, Result]):
    """Requests that wait for the same read."""

    context: contextvars.Context  # of the first of them: tests count queries by it
    keys: list[Key] = field(default_factory=list)
    answer: futures.Future[Result] = field(default_factory=futures.Future)


class SharedRead(Generic[Key, Result]):
    """A read of which at most one runs, and one waits; used by all threads.

    Each request gets a read that begins after it came: all that come while one runs share the
    next. A read that costs more than the time between two requests would otherwise be made ever
    more often at the same time, and each would take ever longer.
    """

    def __init__(self, read: Callable[[Sequence[Key], Result | None], Result]) -> None:
        """Start nothing: Nova builds its scheduler before it forks.

        :param read: gets the keys of the requests and the last result; it must end by itself
        """
        self.last: Result | None = None
        self._read = read
        self._lock = threading.Lock()
        self._next: _Batch[Key, Result] | None = None
        self._is_running = False

    def ask(self, key: Key, seconds: float) -> Result | None:
        """Return what a read that begins after this call returns, or None if that takes longer.

        :param key: of the request, given to the read
        :param seconds: for which the caller waits
        :raises exceptions.UnansweredError: if no thread can be started for the read
        :raises Exception: what the read raises
        """
        with self._lock:
            batch = self._next = self._next or _Batch(contextvars.copy_context())
            batch.keys.append(key)
            must_start = not self._is_running
            self._is_running = True
        if must_start:
            self._start()
        clock.current.wait_for_futures([batch.answer], seconds)
        return batch.answer.result() if batch.answer.done() else None

    def _start(self) -> None:
        """Start the thread that reads; the requests that wait get an error if there is none."""
        try:
            threading.Thread(target=self._serve, name="hpc_sched shared read", daemon=True).start()
        except Exception as error:  # out of threads or memory
            with self._lock:
                batch, self._next = self._next, None
                self._is_running = False
            assert batch is not None
            batch.answer.set_exception(
                exceptions.UnansweredError(f"no thread can be started: {error}")
            )

    def _serve(self) -> None:
        """Read until no request waits."""
        while True:
            with self._lock:
                batch, self._next = self._next, None
                if batch is None:
                    self._is_running = False
                    return
            try:
                self.last = batch.context.run(self._read, batch.keys, self.last)
            except BaseException as error:
                if not isinstance(error, Exception):
                    # An exit of this thread must not become an exit of the requests'.
                    error = exceptions.UnansweredError(f"{type(error).__name__}: {error}")
                batch.answer.set_exception(error)
            else:
                batch.answer.set_result(self.last)
