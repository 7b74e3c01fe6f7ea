"""What an experiment has to show: rows of plain values, and what they rest on."""

from dataclasses import dataclass

Cell = str | int | float | None  # None: nothing was published or measured


@dataclass(frozen=True, slots=True)
class Table:
    """Results beside what was published, for somebody else to print."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # as long as columns, each
    notes: tuple[str, ...]  # a sentence each; settings that are guessed say so


def percent(part: float) -> float:
    """Return a part of one as a percentage with one digit after the point."""
    return round(100 * part, 1) + 0.0  # no minus before a zero


def gain(before: float, after: float) -> float:
    """Return by which part of ``before`` the time ``after`` is shorter."""
    return 1 - after / before
