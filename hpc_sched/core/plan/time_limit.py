"""The time limit of planning, and what the search for a plan may still cost."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from hpc_sched import clock


class TimeLimitPassed(Exception):
    """The time for planning is over, before a plan was found."""


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


class EffortSpent(Exception):
    """The search has made as many sums as it may."""


class Effort:
    """The time limit of a search, the sums of two scores that it made, and those that it may make.

    The number makes the work, and so the answer, the same on each machine.
    """

    def __init__(self, limit: TimeLimit = NO_LIMIT) -> None:
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
