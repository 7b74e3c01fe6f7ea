"""The waiting jobs in the order of the queue, and orders of them that are kept."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from itertools import islice
from typing import TypeVar

from hpc_sched.sim.jobs.job import Job


class KeptOrder(ABC):
    """An order of the waiting jobs that is corrected when one enters or leaves the queue."""

    @abstractmethod
    def enter(self, job: Job, rank: int) -> None:
        """Insert a job.

        :param rank: grows along the queue
        """

    @abstractmethod
    def leave(self, job: Job, rank: int) -> None:
        """Remove a job."""


_Kept = TypeVar("_Kept", bound=KeptOrder)


class WaitingJobs(OrderedDict[int, Job]):
    """Waiting jobs by number, in the order of the queue. A job is put last, or first."""

    def __init__(self) -> None:
        """Start with an empty queue."""
        super().__init__()
        self._orders: dict[type[KeptOrder], KeptOrder] = {}
        self._ranks: dict[int, int] = {}
        self._first, self._last = 0, 0  # ranks in use
        # The first jobs, and the number of them that was wanted; -1: they have changed.
        self._head: list[Job] = []
        self._head_of = -1

    def __setitem__(self, number: int, job: Job) -> None:
        self._last += 1
        super().__setitem__(number, job)
        self._enter(job, self._last)

    def put_first(self, job: Job) -> None:
        """Put a job before all others."""
        self._first -= 1
        self._head_of = -1
        super().__setitem__(job.number, job)
        self.move_to_end(job.number, last=False)
        self._enter(job, self._first)

    def __delitem__(self, number: int) -> None:
        job, rank = self[number], self._ranks.pop(number)
        self._head_of = -1
        super().__delitem__(number)
        for order in self._orders.values():
            order.leave(job, rank)

    def first(self, most: int) -> list[Job]:
        """Return the first jobs, at most this number of them; the same list until they change."""
        if self._head_of != most or (len(self._head) < most and len(self._head) < len(self)):
            self._head_of, self._head = most, list(islice(self.values(), most))
        return self._head

    def kept(self, order: type[_Kept]) -> _Kept:
        """Return the order of a type; made when it is first read, from then on kept."""
        found = self._orders.get(order)
        if found is None:
            found = self._orders[order] = order()
            for number, job in self.items():
                found.enter(job, self._ranks[number])
        assert isinstance(found, order)
        return found

    def _enter(self, job: Job, rank: int) -> None:
        self._ranks[job.number] = rank
        for order in self._orders.values():
            order.enter(job, rank)
