"""How long the reads of one request are waited for, all of them together."""

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
    """What one request has waited so far; used by the one thread that serves it."""

    waited: float = 0.0  # seconds
    told: set[str] = field(default_factory=set)  # sources of which the log has spoken


_current: ContextVar[RequestDeadline | None] = ContextVar("hpc_sched patience", default=None)


@contextmanager
def of(request: RequestDeadline) -> Iterator[None]:
    """Count what this thread waits for as waited by a request."""
    before = _current.set(request)
    try:
        yield
    finally:
        _current.reset(before)


def left() -> float:
    """Return how many seconds to wait for what is asked now.

    A timeout, and two in all for the request: what is silent does not cost it what others would
    answer at once.
    """
    request = _current.get() or RequestDeadline()
    timeout = CONF.hpc_sched.cell_timeout
    return float(min(timeout, 2 * timeout - request.waited))


@contextmanager
def waiting() -> Iterator[float]:
    """Yield the time.monotonic() until which to wait for what is asked now, see :func:`left`."""
    request = _current.get() or RequestDeadline()
    began = time.monotonic()
    try:
        yield began + left()
    finally:
        request.waited += time.monotonic() - began


def untold(problems: Sequence[str]) -> list[str]:
    """Return the problems of which the log has not spoken in this request.

    Of one source, which a problem names before its first colon, it speaks once.
    """
    request = _current.get() or RequestDeadline()
    found = []
    for problem in problems:
        source = problem.partition(": ")[0]
        if source not in request.told:
            request.told.add(source)
            found.append(problem)
    return found
