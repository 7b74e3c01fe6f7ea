"""A clock that a test turns: its time passes only while all threads of the test wait for it.

Time stands still while any thread works, however long that takes on a busy machine. When all of
them wait by the clock, it jumps to the earliest moment at which one of the waits ends. So a test
sleeps as long as it likes without delay, a read that hangs is one that waits without an end, and
whatever takes no time by the clock is done before time passes.

Threads that were alive before the test take no part, unless they wait by the clock. A thread that
waits for something else (a future's result, a lock, a socket) counts as working: use
:meth:`TurnedClock.started` and :meth:`TurnedClock.results` in place of a pool.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hpc_sched import clock
from hpc_sched.clock import SystemClock

Answer = TypeVar("Answer")

# Real seconds without any change, or of one wait of the test's own thread, after which the test
# fails: a guard against hanging.
GUARD = 120.0
# Real seconds between two looks at what may have changed without notice, as a thread's end.
_POLL = 0.002
# The same by what waits on after the test.
_POLL_AFTERWARDS = 0.1
_START, _UNIX_START = 1024.0, 1_700_000_000.0


class HangingTestError(AssertionError):
    """A test hangs: a thread neither ends nor waits by the clock, or all wait without an end."""


@dataclass(frozen=True, eq=False, slots=True)
class _Wait:
    what: str
    is_ready: Callable[[], bool]
    end: float
    began: float = field(default_factory=time.monotonic)  # real seconds


class TurnedClock(SystemClock):
    """A clock of which the time passes while all threads that take part wait by it."""

    def __init__(self, hangs: Callable[[threading.Thread], bool] = lambda _thread: False) -> None:
        """Begin at a moment of its own.

        :param hangs: True for threads that wait elsewhere without an end, such as for a server
            that never answers
        """
        self.busy = 0.0  # processors that this process uses while time passes
        self._hangs = hangs
        self._now, self._used = _START, 0.0
        self._own = threading.current_thread()
        self._bystanders = set(threading.enumerate()) - {self._own}
        self._waits: dict[threading.Thread, _Wait] = {}
        self._changed = threading.Condition()
        self._changed_at = self._began = time.monotonic()
        self._fault = ""
        self._is_over = False

    def monotonic(self) -> float:  # type: ignore[override]
        """Return the seconds of this clock."""
        return self._now

    def unix_time(self) -> float:  # type: ignore[override]
        """Return the same seconds, since 1970."""
        return _UNIX_START + self._now

    def process_time(self) -> float:  # type: ignore[override]
        """Return the seconds in which the processors were busy."""
        return self._used

    def turn(self, seconds: float) -> None:
        """Let time pass at once, beyond the end of any wait."""
        with self._changed:
            self._pass(seconds)

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds, while threads do what they do in this time."""
        if seconds <= 0:
            time.sleep(0)
        else:
            self._wait(_Wait(f"sleep({seconds:g})", _never, self._now + seconds))

    def wait_for_futures(self, awaited: Collection[futures.Future[Any]], seconds: float) -> None:
        """Wait until all are done, for some seconds at the most."""
        waited = list(awaited)
        self._wait(_Wait("futures", lambda: all(one.done() for one in waited), self._now + seconds))

    def wait_for_event(self, event: threading.Event, seconds: float | None = None) -> bool:
        """Wait for an event; return whether it is set. None: without an end."""
        end = math.inf if seconds is None else self._now + seconds
        self._wait(_Wait("an event", event.is_set, end))
        return event.is_set()

    def wait_for_condition(
        self, condition: threading.Condition, predicate: Callable[[], bool], seconds: float
    ) -> bool:
        """Wait until a predicate holds, with the condition's lock held; return whether it does."""
        end, is_early = self._now + seconds, True
        while not predicate() and is_early:
            condition.release()
            try:
                is_early = self._wait(_Wait("a condition", predicate, end))
            finally:
                condition.acquire()
        return predicate()

    def acquire(self, lock: threading.Lock, seconds: float) -> bool:
        """Acquire a lock; return whether it was acquired within some seconds."""
        end, is_early = self._now + seconds, True
        while not (has_it := lock.acquire(blocking=False)) and is_early:
            is_early = self._wait(_Wait("a lock", lambda: not lock.locked(), end))
        return has_it

    def started(self, function: Callable[..., Answer], *args: Any) -> futures.Future[Answer]:
        """Call a function in a thread of its own; return the future of what it returns."""
        return started(function, *args)

    def results(self, answers: Sequence[futures.Future[Answer]]) -> list[Answer]:
        """Return the results of futures, while time passes."""
        self.wait_for_futures(answers, math.inf)
        return [answer.result() for answer in answers]

    def settle(self) -> None:
        """Wait until all other threads that take part wait or have ended; no time passes."""
        own = threading.current_thread()

        def is_settled() -> bool:
            others = [wait for thread, wait in self._waits.items() if thread is not own]
            return not self._working() and not any(map(self._has_ended, others))

        self._wait(_Wait("all others", is_settled, math.inf))

    def end(self) -> None:
        """Let what still waits do so for as long as it would by the system's clock.

        :raises HangingTestError: if the test hung
        """
        self.let_go()
        if self._fault:
            raise HangingTestError(self._fault)

    def let_go(self) -> None:
        """Do what :meth:`end` does, also after a test that has failed."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _wait(self, wait: _Wait) -> bool:
        """Wait; return whether that ended before its time was up."""
        thread, over_at = threading.current_thread(), math.inf
        with self._changed:
            self._waits[thread] = wait
            self._changed_at = wait.began
            self._changed.notify_all()
            try:
                while not self._has_ended(wait):
                    # A thread of the process outlives the test, whatever becomes of that.
                    if self._fault and thread not in self._bystanders:
                        raise HangingTestError(self._fault)
                    if self._is_over or self._fault:
                        over_at = min(over_at, time.monotonic() + wait.end - self._now)
                        left = over_at - time.monotonic()
                        if left <= 0:
                            return False
                        self._changed.wait(min(_POLL_AFTERWARDS, left))
                        continue
                    if self._hung_for() >= GUARD:
                        self._fail()
                    elif self._jump():
                        continue
                    self._changed.wait(_POLL)
                return self._now < wait.end
            finally:
                del self._waits[thread]
                self._changed_at = time.monotonic()
                self._changed.notify_all()

    def _jump(self) -> bool:
        """Pass the time until the first wait ends, if all wait; return whether it has passed."""
        if self._working() or any(map(self._has_ended, self._waits.values())):
            return False
        first = min(wait.end for wait in self._waits.values())
        if first == math.inf:
            return False
        self._pass(first - self._now)
        self._now = first
        return True

    def _has_ended(self, wait: _Wait) -> bool:
        return self._now >= wait.end or wait.is_ready()

    def _working(self) -> list[threading.Thread]:
        """Return the threads that keep time from passing.

        On eventlet the main thread is no thread of those that Python lists.
        """
        return [
            thread
            for thread in dict.fromkeys([self._own, *threading.enumerate()])
            if thread not in self._bystanders
            and thread not in self._waits
            and not self._hangs(thread)
        ]

    def _pass(self, seconds: float) -> None:
        self._now += seconds
        self._used += seconds * self.busy
        self._changed_at = time.monotonic()
        self._changed.notify_all()

    def _hung_for(self) -> float:
        """Return the real seconds without a change, or of the test's own wait if that is more.

        A test as a whole has five times as long: it may turn in a circle.
        """
        own = self._waits.get(self._own)
        since = self._changed_at if own is None else min(self._changed_at, own.began)
        return max(time.monotonic() - since, time.monotonic() - self._began - 4 * GUARD)

    def _fail(self) -> None:
        """Note which threads work and which wait, for all that wait to raise."""
        frames = sys._current_frames()
        lines = [f"{GUARD:g} s have not been enough; the clock is at {self._now - _START:g} s"]
        lines += [
            f"{thread.name} waits for {wait.what} until {wait.end - _START:g} s"
            for thread, wait in self._waits.items()
        ]
        for thread in self._working():
            lines.append(f"{thread.name} neither ends nor waits by the clock:")
            if thread.ident in frames:
                lines += traceback.format_stack(frames[thread.ident])[-6:]
        self._fault = "\n".join(lines)
        self._changed.notify_all()


def started(function: Callable[..., Answer], *args: Any) -> futures.Future[Answer]:
    """Call a function in a thread of its own; return the future of what it returns."""
    answer: futures.Future[Answer] = futures.Future()

    def run() -> None:
        try:
            answer.set_result(function(*args))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name=f"test {function}", daemon=True).start()
    return answer


def _never() -> bool:
    return False


class StandingClock(SystemClock):
    """A clock whose time a test sets; waits are those of the system.

    For tests with all of Nova, of which most threads wait by no clock. It begins at a whole second:
    sums of seconds are exact, and what is due after ten minutes is.
    """

    def __init__(self) -> None:
        self.now = float(math.ceil(time.monotonic()))

    def monotonic(self) -> float:  # type: ignore[override]
        """Return the time that the test has set."""
        return self.now


class SteppedClock(SystemClock):
    """A clock that is some seconds later at each reading; waits are those of the system.

    For the thread that makes it: in others, which work in the background, it is always 0.
    """

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0
        self._own = threading.get_ident()

    def monotonic(self) -> float:  # type: ignore[override]
        """Return the time of the last reading and a step."""
        if threading.get_ident() != self._own:
            return 0.0
        self.now += self.step
        return self.now


# The variables of modules that hold a moment of the clock for the life of a process.
MOMENTS = (
    ("hpc_sched.nova_glue.claim.claim_followup", "_all_at"),
    ("hpc_sched.nova_glue.claim.hold_followup", "_look_at"),
    ("hpc_sched.nova_glue.claim.holds.hold_ends", "_look_at"),
)
# Those that hold whether such a moment is waited for.
AWAITED = (("hpc_sched.nova_glue.claim.holds.hold_ends", "_is_held"),)


@contextmanager
def own_moments() -> Iterator[None]:
    """Let modules hold no moment of another clock in this block, and none of its clock after it.

    By a clock that is ahead of the next one, what was done last would not be due for hours.
    """
    first = {**dict.fromkeys(MOMENTS, -math.inf), **dict.fromkeys(AWAITED, False)}
    found = [
        (sys.modules[module], name, value)
        for (module, name), value in first.items()
        if module in sys.modules
    ]
    before = [getattr(module, name) for module, name, _ in found]
    for module, name, value in found:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), moment in zip(found, before, strict=True):
            setattr(module, name, moment)


@contextmanager
def installed(replacement: SystemClock) -> Iterator[None]:
    """Let this process use another clock in this block."""
    before = clock.current
    with own_moments():
        clock.current = replacement
        try:
            yield
        finally:
            clock.current = before


@contextmanager
def turned(
    hangs: Callable[[threading.Thread], bool] = lambda _thread: False,
) -> Iterator[TurnedClock]:
    """Let this process use a :class:`TurnedClock` in this block; yield it."""
    found = TurnedClock(hangs)
    try:
        with installed(found):
            yield found
    finally:
        found.let_go()
    found.end()
