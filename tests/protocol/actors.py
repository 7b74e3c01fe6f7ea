"""Threads of which one runs at a time, and only when the test says so.

The plugin's code and Nova's block where they wait for Placement or for time. So each request has a
thread of its own, which stops where it waits and says for what; the test decides who goes on, and
with which answer. Nothing depends on how fast the machine is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any


class KilledError(BaseException):
    """The process of an actor is killed: whatever it still tries has no effect."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that an actor sends to Placement, and waits for."""

    method: str
    path: str
    body: Any = None
    is_plugins: bool = False  # not Nova's
    version: str = "1.36"  # the microversion


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait for time to pass, or for something that may be there earlier."""

    until: float  # a time of the stage
    is_ready: Callable[[], bool] = lambda: False
    is_lock: bool = False  # whether another actor ends it


@dataclass(eq=False)
class Actor:
    """A thread and what it waits for."""

    name: str
    process: Any  # whose memory it uses
    waits_for: Call | Wait | None = None
    is_over: bool = False
    is_killed: bool = False
    result: Any = None
    error: BaseException | None = None
    _answers: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)


class Stage:
    """All actors of a history, and its time."""

    def __init__(self, enter: Callable[[Any], None]) -> None:
        """Begin at time 0.

        :param enter: called with the process of an actor before that goes on
        """
        self.now = 0.0
        self._enter = enter
        self._stopped: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._actors = threading.local()

    def start(self, name: str, process: Any, function: Callable[[], Any]) -> Actor:
        """Let a new actor run until it waits or is over."""
        actor = Actor(name, process)

        def run() -> None:
            self._actors.own = actor
            try:
                actor.result = function()
            except BaseException as error:
                # Its traceback would keep the request alive.
                actor.error = error.with_traceback(None)
                actor.error.__context__ = actor.error.__cause__ = None
            actor.is_over, actor.waits_for = True, None

        self._enter(process)
        _workers.run(run, lambda: self._stopped.put(None))
        self._stopped.get()
        return actor

    def resume(self, actor: Actor, answer: Any = None) -> None:
        """Let an actor go on with an answer, or an exception, until it waits again."""
        self._enter(actor.process)
        actor.waits_for = None
        actor._answers.put(answer)
        self._stopped.get()

    def kill(self, actor: Actor) -> None:
        """End an actor where it waits."""
        actor.is_killed = True
        while not actor.is_over:
            self.resume(actor, KilledError())

    def is_ready(self, actor: Actor) -> bool:
        """True if an actor waits for nothing that is still to come but an answer."""
        wait = actor.waits_for
        return not isinstance(wait, Wait) or wait.until <= self.now or wait.is_ready()

    def wait(self, what: Call | Wait) -> Any:
        """Wait, in an actor's thread; return the answer or raise it."""
        actor: Actor | None = getattr(self._actors, "own", None)
        assert actor is not None, f"{what} outside an actor"
        if actor.is_killed:
            raise KilledError
        actor.waits_for = what
        self._stopped.put(None)
        answer = actor._answers.get()
        try:
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            # Its traceback refers to this frame.
            del answer

    @property
    def own(self) -> Actor:
        """The actor of this thread."""
        found: Actor = self._actors.own
        return found


class StageClock:
    """The plugin's clock by the time of a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def monotonic(self) -> float:
        """Return the seconds of the stage."""
        return self._stage.now

    def unix_time(self) -> float:
        """Return the same, since 1970."""
        return self._stage.now

    def process_time(self) -> float:
        """Return 0: no processor is used."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""
        if seconds > 0:
            self._stage.wait(Wait(self._stage.now + seconds))

    def wait_for_futures(self, awaited: Collection[futures.Future[Any]], seconds: float) -> None:
        """Not used: reads are made in the thread that waits for them."""
        raise NotImplementedError

    def wait_for_event(self, event: threading.Event, seconds: float | None) -> bool:
        """Not used: no thread of the plugin runs in the background."""
        raise NotImplementedError

    def wait_for_condition(
        self, condition: threading.Condition, predicate: Callable[[], bool], seconds: float
    ) -> bool:
        """Not used, likewise."""
        raise NotImplementedError

    def acquire(self, lock: threading.Lock, seconds: float) -> bool:
        """Acquire a lock; return whether it was acquired within some seconds."""
        end = self._stage.now + max(seconds, 0.0)
        while not (has_it := lock.acquire(blocking=False)) and self._stage.now < end:
            self._stage.wait(Wait(end, lambda: not lock.locked(), is_lock=True))
        return has_it


class _Workers:
    """Threads that are used again, as those of a service are."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[_Work]] = []

    def run(self, function: Callable[[], None], at_end: Callable[[], None]) -> None:
        """Run a function in a thread; call another one when the thread is idle again."""
        work: queue.SimpleQueue[_Work]
        if self._idle:
            work = self._idle.pop()
        else:
            work = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(work,), daemon=True).start()
        work.put((function, at_end))

    def _work(self, work: queue.SimpleQueue[_Work]) -> None:
        while True:
            function, at_end = work.get()
            function()
            self._idle.append(work)
            at_end()
            del function, at_end


_Work = tuple[Callable[[], None], Callable[[], None]]
_workers = _Workers()
