"""The table of an experiment: rows of plain values with their settings, verdict and notes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hpc_sched.sim.statistics.estimate import Estimate

Word = Literal["reproduced", "explained", "explained in part", "not reproduced"]
Cell = str | int | float | None  # None: nothing was published or measured


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that an experiment is run with."""

    name: str
    value: str
    source: str  # section of the paper; else "guessed" or "inferred: ...", or how it is varied


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the simulated numbers compare with the published ones."""

    word: Word
    why: str


@dataclass(frozen=True, slots=True)
class Table:
    """Published and simulated results; printed by the command."""

    source: str  # paper and figure, as in ``Gupta2013, Figure 9a``
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # each as long as columns
    settings: tuple[Setting, ...] = ()
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()  # a sentence each


def percent(part: float) -> float:
    """Return a fraction in percent, with one decimal."""
    return round(100 * part, 1) + 0.0  # no minus before a zero


def mean_and_width(found: Estimate, shown: Callable[[float], float]) -> tuple[Cell, Cell]:
    """Return the mean over runs and the half-width of its interval; None: too few runs.

    :param shown: rounds a number
    """
    width = found.half_width
    return shown(found.mean), None if width is None else shown(width)


def gain(before: float, after: float) -> float:
    """Return the fraction of ``before`` by which ``after`` is shorter."""
    return 1 - after / before
