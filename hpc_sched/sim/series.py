"""The samples of a run, and its totals until each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

# A row of totals is kept if more than one job in this number has ended since the row before it.
FEWEST_ENDED = 128


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals from the start of a run until each sample, and until its end: one list per measure.

    The difference of two integrals over the time between them is the mean of that time, whatever
    samples were dropped between them. There are totals of all samples, and of more moments where
    many jobs ended.
    """

    time: list[float]  # s; the last is the end of the run
    done: list[int]  # jobs
    ended: list[int]  # jobs done, killed or failed; at the end of the run also those that are left
    # Integrals over time.
    vcpus: list[float]  # share in use, times s
    memory: list[float]  # share in use, times s
    running: list[float]  # jobs times s
    waiting: list[float]  # jobs times s
    crossing: list[float]  # jobs with VMs under a leaf and under others, mean over leaves, times s
    # By level: share of its switches' uplinks in use, times s. Without a network empty.
    uplinks: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def empty(cls, levels: Sequence[str] = ()) -> "Totals":
        """Return totals before the first sample.

        :param levels: with uplinks, on a network
        """
        named: dict[str, Any] = {each.name: [] for each in fields(cls)}
        return cls(**named | {"uplinks": {level: [] for level in levels}})

    def append(self, *row: float, uplinks: Mapping[str, float]) -> None:
        """Append a number to each list, in their order."""
        numbers = (*row, *(uplinks[level] for level in self.uplinks))
        for each, number in zip(self.lists, numbers, strict=True):
            each.append(number)

    def thin(self, times: list[float]) -> None:
        """Keep the rows of some times, and others between which many jobs have ended. Linear.

        So the time in which most jobs end keeps its rows when a few jobs run much longer.
        """
        kept, last = [], self.ended[0]
        wanted, many = frozenset(times), self.ended[-1] / FEWEST_ENDED
        for i, ended in enumerate(self.ended):
            after = self.ended[min(i + 1, len(self.ended) - 1)]
            if self.time[i] in wanted or after - last > many:
                kept.append(i)
                last = ended
        for numbers in self.lists:
            numbers[:] = [numbers[i] for i in kept]

    @property
    def lists(self) -> list[list[Any]]:
        """All of them."""
        named = (getattr(self, each.name) for each in fields(self) if each.name != "uplinks")
        return [*named, *self.uplinks.values()]


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of the cluster over time, one list per measure."""

    time: list[float]  # s
    vcpus: list[float]  # share in use
    memory: list[float]  # share in use
    running: list[int]  # jobs
    waiting: list[int]  # jobs
    done: list[int]  # jobs so far
    crossing: list[float]  # jobs with VMs under a leaf and under others, mean over leaves
    gangs: dict[str, list[int]]  # level to the largest group that fits under one of its switches
    leaves: list[list[float]]  # share of each leaf's vcpus in use. Shape (samples, leaves)
    totals: Totals

    @property
    def lists(self) -> list[list[Any]]:
        """All of them, without the totals."""
        parts = ("gangs", "totals")
        named = (getattr(self, each.name) for each in fields(self) if each.name not in parts)
        return [*named, *self.gangs.values()]
