"""The table of an experiment: rows of plain values, and notes."""

from dataclasses import dataclass

Cell = str | int | float | None  # None: nothing was published or measured


@dataclass(frozen=True, slots=True)
class Table:
    """Published and simulated results; printed by the command."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # each as long as columns
    notes: tuple[str, ...]  # a sentence each; guesses say so


def percent(part: float) -> float:
    """Return a fraction in percent, with one decimal."""
    return round(100 * part, 1) + 0.0  # no minus before a zero


def gain(before: float, after: float) -> float:
    """Return the fraction of ``before`` by which ``after`` is shorter."""
    return 1 - after / before
