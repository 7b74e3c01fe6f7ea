"""A plot of the page: pictures, what to call them, and how to read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hpc_sched.sim.report.policy_runs import PolicyRuns


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, with what stands above it where there are several."""

    svg: Markup
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """One or more pictures that are read alike."""

    title: str
    reading: str  # how to read it, a sentence or two
    panels: tuple[Panel, ...]  # none where no run has anything to draw
    key: tuple[PolicyRuns, ...] = ()  # the policies whose lines are to be told apart
    missing: tuple[str, ...] = ()  # the policies with nothing to draw


@dataclass(frozen=True, slots=True)
class Section:
    """Plots under one heading."""

    anchor: str
    title: str
    plots: tuple[Plot, ...]
    hint: str = ""  # what holds for all of them


def parted(
    policies: Sequence[PolicyRuns], has: Callable[[PolicyRuns], object]
) -> tuple[tuple[PolicyRuns, ...], tuple[str, ...]]:
    """Return the policies that have something to draw, and the names of the others."""
    return (
        tuple(each for each in policies if has(each)),
        tuple(each.policy for each in policies if not has(each)),
    )
