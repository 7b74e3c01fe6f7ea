"""How long one request may wait for reads of databases and Placement, and what its time went to."""

import contextvars
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from nova.conf import CONF

from hpc_sched import clock
from hpc_sched.core.logged.decision_summary import OTHER, PARTS
from hpc_sched.nova_glue import request_metrics

# Reads for many requests go on as long as rows come: multiple of cell_timeout for all of them.
MAX_FOR_ROWS = 6


@dataclass
class RequestClock:
    """The parts of a request's time; used only by the thread that serves it.

    From each of Nova's calls until it returns. A part that runs within another one takes its time
    from that: so they add up to the whole.
    """

    _spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    _part: str | None = None  # that runs now; None between Nova's calls
    _since: float = 0.0  # monotonic time

    @contextmanager
    def part(self, name: str, since: float | None = None) -> Iterator[None]:
        """Count the time of this block as a part.

        :param since: when the part began, if no other one runs: a monotonic time
        """
        before = self._part
        self._switch(name)
        if since is not None and before is None:
            self._since = since
        try:
            yield
        finally:
            self._switch(before)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each part up to now."""
        self._switch(self._part)
        return dict(self._spent)

    def _switch(self, name: str | None) -> None:
        now = clock.current.monotonic()
        if self._part is not None:
            self._spent[self._part] += now - self._since
        self._part, self._since = name, now


@dataclass
class RequestDeadline:
    """Waiting time and logged problems of one request; used only by the thread that serves it."""

    waited: float = 0.0  # seconds
    # Monotonic time until which reads for many requests go on as long as rows come; None for
    # the reads of one request.
    rows_until: float | None = None
    logged: set[str] = field(default_factory=set)  # sources whose problems have been logged
    silent: set[str] = field(default_factory=set)  # databases that have not answered it in time
    clock: RequestClock = field(default_factory=RequestClock)
    # Called before the plugin returns to Nova.
    at_return: list[Callable[[], None]] = field(default_factory=list)


def shared() -> RequestDeadline:
    """Return the deadline of a read for many requests that begins now."""
    return RequestDeadline(rows_until=clock.current.monotonic() + most_for_rows())


def most_for_rows() -> float:
    """Return how many seconds all reads for many requests may take as long as rows come."""
    return float(MAX_FOR_ROWS * CONF.hpc_sched.cell_timeout)


_current: contextvars.ContextVar[RequestDeadline | None] = contextvars.ContextVar(
    "hpc_sched deadline", default=None
)


@contextmanager
def active(deadline: RequestDeadline, since: float | None = None) -> Iterator[RequestDeadline]:
    """Apply a request's deadline to this thread's reads in this block, and count its time.

    :param since: when Nova's call began: a monotonic time
    """
    is_outermost = _current.get() is not deadline
    before = _current.set(deadline)
    try:
        with deadline.clock.part(OTHER, since):
            try:
                yield deadline
            finally:
                while is_outermost and deadline.at_return:
                    deadline.at_return.pop(0)()
    finally:
        _current.reset(before)


def before_return(function: Callable[[], None]) -> None:
    """Call a function that never raises just before this thread's call of Nova returns.

    At once if no request is active.
    """
    if (request := _current.get()) is None:
        function()
    else:
        request.at_return.append(function)


def current() -> RequestDeadline:
    """Return the deadline of this thread's request, or one of its own."""
    return _current.get() or RequestDeadline()


def remaining() -> float:
    """Return how many seconds the next read may take.

    At most ``cell_timeout``, and twice that for all reads of the request: after one source has
    timed out there is time left for the others.
    """
    return float(min(CONF.hpc_sched.cell_timeout, remaining_in_all()))


def remaining_in_all() -> float:
    """Return how many seconds all further reads of the request may take."""
    return float(2 * CONF.hpc_sched.cell_timeout - current().waited)


def has_waited_long() -> bool:
    """True if the request can do without reads that it does not need."""
    return bool(current().waited >= CONF.hpc_sched.cell_timeout / 2)


@contextmanager
def charged(part: str, most: float = math.inf) -> Iterator[None]:
    """Charge the time of this block to the request's deadline.

    :param part: of the request's time
    :param most: seconds that are charged at the most
    """
    request = current()
    began = clock.current.monotonic()
    try:
        with request.clock.part(part):
            yield
    finally:
        request.waited += min(clock.current.monotonic() - began, most)


def not_yet_logged(problems: Sequence[str]) -> list[str]:
    """Return the first problem of each source that this request has not logged; note them.

    The source is what a problem names before its first colon.
    """
    deadline = current()
    found = []
    for problem in problems:
        source = problem.partition(": ")[0]
        if source not in deadline.logged:
            request_metrics.current.degraded(source, deadline.logged)
            deadline.logged.add(source)
            found.append(problem)
    return found
