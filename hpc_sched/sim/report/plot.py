"""Plots of the page: their parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hpc_sched.sim.report.policy_runs import PolicyRuns


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, with a caption if the plot has several."""

    svg: Markup
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One or more pictures that are read alike."""

    title: str
    reading: str  # how to read it, a sentence or two
    panels: tuple[Panel, ...]  # empty if no run has anything to draw
    key: tuple[PolicyRuns, ...] = ()  # policies in the key of line styles
    missing: tuple[str, ...] = ()  # policies with nothing to draw


@dataclass(frozen=True, slots=True)
class Section:
    """Plots under one heading."""

    anchor: str
    title: str
    plots: tuple[Plot, ...]
    hint: str = ""  # on all of its plots


def parted(
    policies: Sequence[PolicyRuns], has: Callable[[PolicyRuns], object]
) -> tuple[tuple[PolicyRuns, ...], tuple[str, ...]]:
    """Return the policies that have something to draw, and the names of the others."""
    missing = tuple(each.policy for each in policies if not has(each))
    return tuple(each for each in policies if has(each)), missing
