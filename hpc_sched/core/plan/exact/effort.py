"""What the search for a plan may still cost."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit


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
