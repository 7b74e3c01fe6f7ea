"""How long jobs communicate next to each other: a fixed point.

A job that communicates a part of its time takes that part of its rate from the links that it
shares, and the part depends on what others leave it. Jobs are out of phase: each meets the others
as often as they are there on average, which is Schweitzer's approximation of mean value analysis
(Bard: Some extensions to multiclass queueing network analysis, 1979) with links as its stations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.network.neighbours.traffic import SharedSteps

MOST_ROUNDS = 240
# Change of a time in a round, relative to it, below which it is found: the model itself is off by
# some percent.
NEAR = 1e-4
# Part of the way to its next time that a job goes in a round: at first, and from round to round.
_FIRST_PART, _LONGER, _SHORTER = 0.5, 1.5, 0.5
_WHOLE_ROUNDS = 20  # from then on the part is bounded by the inverse of the rounds
_LEAST = 1e-9  # load of a link, which is not divided by 0


@dataclass(frozen=True, slots=True, eq=False)
class Contention:
    """Jobs next to each other."""

    seconds: Reals  # of communication in an iteration. Shape (jobs,)
    lost: Reals  # part of its time that a job loses by the others. Shape (jobs,)
    caused: Reals  # host-seconds that the others lose by a job, a second. Shape (jobs,)
    # What the others take of each shared link of each job, one job after the other: mean bytes/s,
    # and their messages that are there at a time.
    taken: Reals
    present: Reals


def contention(capacity: Reals, jobs: Sequence[SharedSteps]) -> Contention:
    """Return how long jobs communicate next to each other, whatever there was before.

    O(rounds * entries), at most ``MOST_ROUNDS``.

    :param capacity: bytes/s by link
    """
    every = _Jobs.of(capacity, jobs)
    # Means of steps that differ can add up to more than a link carries: then all get less of it.
    alone = every.alone
    seconds, scale = alone, np.ones(len(every.capacity))
    change, part = np.zeros(len(jobs)), np.full(len(jobs), _FIRST_PART)
    for number in range(1, MOST_ROUNDS + 1):
        found = every.seconds(seconds, scale)
        before, change = change, found - seconds
        # What others take falls where they are slowed down, and the more jobs a full link has, the
        # steeper: no fixed part of the way suits all. A job that turns back has gone too far, and
        # jobs that push each other to and fro settle on means.
        grown = np.minimum(part * _LONGER, min(_WHOLE_ROUNDS / number, 1.0))
        part = np.where(change * before < 0, part * _SHORTER, grown)
        seconds = seconds + part * change
        load = every.load(seconds)
        scale = np.minimum(scale / np.maximum(load, _LEAST), 1.0)
        if (np.abs(change) <= NEAR * found).all() and (load <= 1 + NEAR).all():
            break
    # Where links are full nearly all the time, the rounds may end before the fixed point.
    seconds = every.within_capacity(seconds)
    lost = np.maximum(seconds - alone, 0.0) / (every.computation + seconds)
    return Contention(seconds, lost, every.caused(seconds, scale), *every.others(seconds))


@dataclass(frozen=True, slots=True, eq=False)
class _Jobs:
    """All jobs as one: a row is a step of a job, a pair is a job on a link."""

    computation: Reals  # s. Shape (jobs,)
    alone: Reals  # s of communication. Shape (jobs,)
    base: Reals  # shape (jobs,)
    hosts: Reals  # shape (jobs,)
    row_job: Array
    row_starts: Array  # first entry of each row
    times: Reals  # shape (rows,)
    least: Reals  # shape (rows,)
    entry_row: Array
    entry_pair: Array
    sizes: Reals  # shape (entries,)
    messages: Reals  # shape (entries,)
    pair_job: Array
    pair_link: Array  # as an index in the links that any job shares
    totals: Reals  # shape (pairs,)
    present: Reals  # shape (pairs,)
    capacity: Reals  # bytes/s of the links that any job shares

    @classmethod
    def of(cls, capacity: Reals, jobs: Sequence[SharedSteps]) -> "_Jobs":
        numbers = np.arange(len(jobs))
        row_job = np.repeat(numbers, [len(job.times) for job in jobs])
        pair_job = np.repeat(numbers, [len(job.links) for job in jobs])
        first_row = np.cumsum([0, *(len(job.times) for job in jobs)]).tolist()
        first_pair = np.cumsum([0, *(len(job.links) for job in jobs)]).tolist()
        entry_row = _joined(job.rows + first for job, first in zip(jobs, first_row, strict=False))
        links = np.concatenate([job.links for job in jobs])
        used, pair_link = np.unique(links, return_inverse=True)
        return cls(
            computation=np.array([job.traffic.computation for job in jobs]),
            alone=np.array([job.traffic.alone for job in jobs]),
            base=np.array([job.base for job in jobs]),
            hosts=np.array([float(job.traffic.hosts) for job in jobs]),
            row_job=row_job,
            row_starts=np.flatnonzero(np.diff(entry_row, prepend=-1)),
            times=np.concatenate([job.times for job in jobs]),
            least=np.concatenate([job.least for job in jobs]),
            entry_row=entry_row,
            entry_pair=_joined(
                job.columns + first for job, first in zip(jobs, first_pair, strict=False)
            ),
            sizes=np.concatenate([job.sizes for job in jobs]),
            messages=np.concatenate([job.messages for job in jobs]),
            pair_job=pair_job,
            pair_link=pair_link,
            totals=np.concatenate([job.totals for job in jobs]),
            present=np.concatenate([job.present for job in jobs]),
            capacity=capacity[used],
        )

    def load(self, seconds: Reals) -> Reals:
        """Return what all jobs take of each link, as a part of its capacity. Shape (links,)."""
        rate, _ = self._taken(seconds)
        return np.bincount(self.pair_link, rate, len(self.capacity)) / self.capacity

    def within_capacity(self, seconds: Reals) -> Reals:
        """Return the times with which no link carries more than it can, s; no shorter ones."""
        excess = np.maximum(self.load(seconds) - 1, 0.0)[self.pair_link]
        of_jobs = np.zeros(len(seconds))
        np.maximum.at(of_jobs, self.pair_job, excess)
        return seconds + (self.computation + seconds) * of_jobs

    def seconds(self, before: Reals, scale: Reals) -> Reals:
        """Return how long each job communicates where the others do so for given times, s.

        :param scale: of what each link gives to each job, 1 or less
        """
        needed = self._needed(before, scale)
        rows = np.maximum(np.maximum.reduceat(needed, self.row_starts), self.least)
        return self.base + np.bincount(self.row_job, rows * self.times, len(self.base))

    def caused(self, seconds: Reals, scale: Reals) -> Reals:
        """Return the host-seconds that others lose by each job, a second. Shape (jobs,).

        What a step loses is lost on its slowest link, and caused by the others there, each for its
        part of what they take.
        """
        needed = self._needed(seconds, scale)
        slowest = np.maximum.reduceat(needed, self.row_starts)
        whole = self.capacity[self.pair_link[self.entry_pair]]
        alone = np.maximum.reduceat(self.sizes / whole, self.row_starts)
        lost = self.times * np.maximum(slowest - np.maximum(alone, self.least), 0.0)
        at = np.flatnonzero(needed == slowest[self.entry_row])
        at = at[np.unique(self.entry_row[at], return_index=True)[1]]
        of_pairs = np.bincount(self.entry_pair[at], lost, len(self.pair_job))
        # Host-seconds a second, in all what the job loses, however near the fixed point is.
        sums = np.bincount(self.pair_job, of_pairs, len(self.base))
        a_second = self.hosts * np.maximum(seconds - self.alone, 0.0) / (self.computation + seconds)
        of_pairs *= np.divide(a_second, sums, out=np.zeros_like(sums), where=sums > 0)[
            self.pair_job
        ]
        rate, _ = self._taken(seconds)
        others = self._of_others(rate)
        blame = np.divide(of_pairs, others, out=np.zeros_like(others), where=others > 0)
        found = np.bincount(self.pair_job, rate * self._of_others(blame), len(self.base))
        return found.astype(np.float64)

    def _needed(self, before: Reals, scale: Reals) -> Reals:
        """Return the time that each entry needs for its bytes, s. Shape (entries,)."""
        others_rate, others_present = self.others(before)
        pair, link = self.entry_pair, self.pair_link[self.entry_pair]
        whole = self.capacity[link]
        share = self.messages / (self.messages + others_present[pair])
        left = np.maximum(whole - others_rate[pair], whole * share)
        return self.sizes / (left * scale[link])

    def others(self, seconds: Reals) -> tuple[Reals, Reals]:
        """Return what the others take of each pair's link, bytes/s, and their messages there."""
        rate, present = self._taken(seconds)
        return self._of_others(rate), self._of_others(present)

    def _taken(self, seconds: Reals) -> tuple[Reals, Reals]:
        """Return the mean rate of each job on each link, and its messages there at a time."""
        period = self.computation + seconds
        part = seconds / period
        return self.totals / period[self.pair_job], self.present * part[self.pair_job]

    def _of_others(self, of_pairs: Reals) -> Reals:
        """Return for each pair the sum of the other jobs on its link."""
        sums = np.bincount(self.pair_link, of_pairs)
        return np.maximum(sums[self.pair_link] - of_pairs, 0.0)


def _joined(parts: Iterable[Array]) -> Array:
    return np.concatenate(list(parts))
