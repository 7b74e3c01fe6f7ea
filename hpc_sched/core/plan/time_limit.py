"""The time limit of planning."""

import math
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
