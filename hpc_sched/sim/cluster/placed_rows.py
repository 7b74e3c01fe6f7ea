"""What running jobs take of each host, in flat arrays: their sum is the whole check."""

from itertools import accumulate, pairwise

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.cluster.placed_job import PlacedJob

_FEWEST = 1024  # rows


class PlacedRows:
    """A row for each host of each running job; rows of jobs that have ended take nothing."""

    def __init__(self) -> None:
        """Start without any job."""
        self._hosts: Array = np.zeros(_FEWEST, dtype=np.int64)
        self._takes: Array = np.zeros((2, _FEWEST), dtype=np.int64)  # vcpus and MB
        self._of: dict[int, slice] = {}  # rows by number of the job
        self._end = 0  # rows in use, those of jobs that have ended included
        self._running = 0  # rows of jobs that run

    def add(self, placed: PlacedJob) -> None:
        """Add a job. O(its hosts), amortized."""
        needed = len(placed.hosts)
        if self._end + needed > len(self._hosts):
            self._rebuild(needed)
        rows = self._of[placed.job.number] = slice(self._end, self._end + needed)
        self._hosts[rows] = placed.hosts
        self._takes[:, rows] = placed.takes.T
        self._end += needed
        self._running += needed

    def remove(self, number: int) -> None:
        """Remove a job. O(its hosts)."""
        rows = self._of.pop(number)
        self._takes[:, rows] = 0
        self._running -= rows.stop - rows.start

    def taken(self, hosts: int) -> Array:
        """Return the vcpus and MB that all jobs take. Shape (hosts, 2). O(rows)."""
        sums: Array = np.zeros((2, hosts), dtype=np.int64)
        for resource, taken in zip(sums, self._takes, strict=True):
            np.add.at(resource, self._hosts[: self._end], taken[: self._end])
        return sums.T

    def _rebuild(self, needed: int) -> None:
        """Drop the rows of jobs that have ended; then half of all rows are free."""
        lengths = [rows.stop - rows.start for rows in self._of.values()]
        kept = np.zeros(len(self._hosts), dtype=np.bool_)
        for rows in self._of.values():
            kept[rows] = True
        more = max(self._running + needed, _FEWEST)
        self._hosts = np.concatenate([self._hosts[kept], np.zeros(more, dtype=np.int64)])
        self._takes = np.hstack([self._takes[:, kept], np.zeros((2, more), dtype=np.int64)])
        # Jobs are added at the end: they are in the order of their rows.
        bounds = accumulate(lengths, initial=0)
        self._of = {
            number: slice(*rows) for number, rows in zip(self._of, pairwise(bounds), strict=True)
        }
        self._end = self._running
