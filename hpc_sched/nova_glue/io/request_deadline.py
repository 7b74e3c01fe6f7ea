"""The time that one request may spend waiting for databases and Placement."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import nova.conf

CONF = nova.conf.CONF


@dataclass
class RequestDeadline:
    """Waiting time and logged problems of one request; used only by the thread that serves it."""

    waited: float = 0.0  # seconds
    logged: set[str] = field(default_factory=set)  # sources whose problems have been logged


_current: ContextVar[RequestDeadline | None] = ContextVar("hpc_sched deadline", default=None)


@contextmanager
def active(deadline: RequestDeadline) -> Iterator[RequestDeadline]:
    """Apply a request's deadline to this thread's reads in this block; yield it."""
    before = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(before)


def remaining() -> float:
    """Return how many seconds the next read may take.

    At most ``cell_timeout``, and twice that for all reads of the request: after one source has
    timed out there is time left for the others.
    """
    deadline = _current.get() or RequestDeadline()
    timeout = CONF.hpc_sched.cell_timeout
    return float(min(timeout, 2 * timeout - deadline.waited))


@contextmanager
def charged() -> Iterator[float]:
    """Charge the time spent waiting in this block to the request's deadline.

    Yields the time.monotonic() at which waiting must end, see :func:`remaining`.
    """
    deadline = _current.get() or RequestDeadline()
    began = time.monotonic()
    try:
        yield began + remaining()
    finally:
        deadline.waited += time.monotonic() - began


def not_yet_logged(problems: Sequence[str]) -> list[str]:
    """Return the first problem of each source that this request has not logged; note them.

    The source is what a problem names before its first colon.
    """
    deadline = _current.get() or RequestDeadline()
    found = []
    for problem in problems:
        source = problem.partition(": ")[0]
        if source not in deadline.logged:
            deadline.logged.add(source)
            found.append(problem)
    return found
