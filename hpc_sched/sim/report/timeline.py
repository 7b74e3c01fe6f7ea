"""Measures over time, a line a policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpc_sched.sim.report import drawing, line_styles, number_text
from hpc_sched.sim.report.plot import Panel, Plot, parted
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.summary import Series

# What jumps up and down from sample to sample is drawn as means, about so many.
_MEANS = 64

Values = Callable[[Series], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is drawn over time."""

    name: str  # of its pictures' ids
    title: str
    axis: str  # label, with the unit
    reading: str
    values: Values
    top: float | None = None  # of the axis; None: what is drawn fits
    is_count: bool = False  # half a job is no tick
    is_smoothed: bool = False  # means over a few samples are drawn


def plot(measure: Measure, policies: Sequence[PolicyRuns]) -> Plot:
    """Return one measure over time, all policies in one picture."""
    key, missing = parted(policies, lambda each: measure.values(each.shown.series))
    panels = (Panel(_picture(measure, key)),) if key else ()
    return Plot(measure.title, measure.reading, panels, key, missing)


def plot_by_level(
    measure: Measure, of_level: Callable[[str], Values], policies: Sequence[PolicyRuns]
) -> Plot:
    """Return a measure over time, a picture for each level of the fabric, bottom up."""
    key, missing = parted(policies, lambda each: each.shown.series.time)
    levels = list(dict.fromkeys(level for each in key for level in each.shown.series.gangs))
    panels = []
    for number, level in enumerate(levels, start=1):
        here = replace(
            measure,
            name=f"{measure.name}-{number}",
            title=f"{measure.title}, {level}",
            values=of_level(level),
        )
        panels.append(Panel(_picture(here, key), level))
    return Plot(measure.title, measure.reading, tuple(panels), key, missing)


def set_time_axis(axes: Axes, end: float) -> float:
    """Return the unit of the time axis in s, once the axis is labelled and has its limits.

    :param end: of the axis, s; from 0, so that plots can be compared
    """
    unit, name = number_text.time_unit(end)
    axes.set_xlabel(f"Simulated time ({name})")
    axes.set_xlim(0, end / unit if end > 0 else 1.0)
    return unit


def end_of(policies: Sequence[PolicyRuns]) -> float:
    """Return the time of the last sample of any policy, s."""
    return max((max(each.shown.series.time, default=0.0) for each in policies), default=0.0)


def _picture(measure: Measure, policies: Sequence[PolicyRuns]) -> Markup:
    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = set_time_axis(axes, end_of(policies))
        highest = 0.0
        for number, each in enumerate(policies):
            values = measure.values(each.shown.series)
            times = [time / unit for time in each.shown.series.time[: len(values)]]
            if measure.is_smoothed:
                times, values = _means(times), _means(values)
            line_styles.add(axes, each.look, times, values, number, len(policies))
            highest = max(highest, max(values, default=0.0))
        axes.set_ylabel(measure.axis)
        if measure.is_count:
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_ylim(0, max(measure.top or 0.0, highest * 1.05) or 1.0)

    return drawing.drawn(measure.name, f"{measure.title}: a line for each policy over time.", draw)


def _means(values: Sequence[float]) -> list[float]:
    """Return the means of as many neighbours each as leave about _MEANS of them."""
    together = math.ceil(len(values) / _MEANS)
    return [fmean(values[i : i + together]) for i in range(0, len(values), together or 1)]
