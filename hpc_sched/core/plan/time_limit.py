"""The time limit of planning, and what the search for a plan may still cost."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from hpc_sched import clock


class TimeLimitPassed(Exception):
    """The time or steps for planning are over, before a plan was found."""


class Limit(Protocol):
    """What the planner may spend. It takes the best plan found until then."""

    def has_passed(self) -> bool:
        """True if nothing is left."""

    def check(self) -> None:
        """Raise TimeLimitPassed if nothing is left."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The moment after which the planner takes the best plan found so far."""

    end: float  # of the monotonic clock, in s; infinity without a limit

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """Return the limit some seconds from now; None: no limit."""
        return cls(math.inf if seconds is None else clock.current.monotonic() + seconds)

    def has_passed(self) -> bool:
        """True if no time is left."""
        return clock.current.monotonic() >= self.end

    def check(self) -> None:
        """Raise TimeLimitPassed if no time is left."""
        if clock.current.monotonic() >= self.end:  # a call less: it is asked very often
            raise TimeLimitPassed


NO_LIMIT = TimeLimit(math.inf)


class StepLimit:
    """A number of steps of the planner: its answer is the same on each machine."""

    def __init__(self, steps: int) -> None:
        """Allow a number of checks, one before each step."""
        self._left = steps

    def has_passed(self) -> bool:
        """True if no step is left."""
        return self._left <= 0

    def check(self) -> None:
        """Count a step; raise TimeLimitPassed if none is left."""
        if self._left <= 0:
            raise TimeLimitPassed
        self._left -= 1


class EffortSpent(Exception):
    """The search has made as many sums as it may."""


class Effort:
    """The time limit of a search, the sums of two scores that it made, and those that it may make.

    The number makes the work, and so the answer, the same on each machine.
    """

    def __init__(self, limit: Limit = NO_LIMIT) -> None:
        """Allow any number of sums until a limit has passed."""
        self.limit = limit
        self.made = 0
        self._most: float = math.inf

    @contextmanager
    def at_most(self, sums: int) -> Iterator[None]:
        """Allow a number of sums for what is done inside."""
        self._most = self.made + sums
        try:
            yield
        finally:
            self._most = math.inf

    def spend(self, sums: int) -> None:
        """Count sums that are made.

        :raises EffortSpent: for too many sums
        :raises TimeLimitPassed: if no time is left
        """
        self.limit.check()
        self.made += sums
        if self.made > self._most:
            raise EffortSpent
