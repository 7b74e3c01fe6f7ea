"""The clock of this process: all that reads the time, or waits for some time, does so by it.

Tests replace :data:`current` by a clock that they turn themselves.
"""

import threading
import time
from collections.abc import Callable, Collection
from concurrent import futures
from typing import Any


class SystemClock:
    """What reads the time of the system, and what ends a wait after some seconds of it."""

    # Built-in functions as they are: the planner reads the time millions of times.
    monotonic = staticmethod(time.monotonic)  # seconds that never go back, from any moment on
    unix_time = staticmethod(time.time)  # seconds since 1970, as other processes know them
    process_time = staticmethod(time.process_time)  # in which this process used a processor, in s

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds; 0 lets other threads run."""
        time.sleep(seconds)

    def wait_for_futures(self, awaited: Collection[futures.Future[Any]], seconds: float) -> None:
        """Wait until all are done, for some seconds at the most."""
        futures.wait(awaited, max(0.0, seconds))

    def wait_for_event(self, event: threading.Event, seconds: float | None) -> bool:
        """Wait for an event; return whether it is set. None: without an end."""
        return event.wait(seconds)

    def wait_for_condition(
        self, condition: threading.Condition, predicate: Callable[[], bool], seconds: float
    ) -> bool:
        """Wait until a predicate holds, with the condition's lock held; return whether it does."""
        return condition.wait_for(predicate, seconds)

    def acquire(self, lock: threading.Lock, seconds: float) -> bool:
        """Acquire a lock; return whether it was acquired within some seconds."""
        return lock.acquire(timeout=max(0.0, seconds))


current = SystemClock()
