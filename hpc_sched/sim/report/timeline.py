"""Measures over time, a line a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.sim.report import drawing, quantities
from hpc_sched.sim.report.plot import Panel, Plot, parted
from hpc_sched.sim.report.runs import PolicyRuns
from hpc_sched.sim.summary import Series

# Markers stand so far apart, as a share of the plot's diagonal.
_BETWEEN_MARKERS = 0.16

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


def plot(measure: Measure, policies: Sequence[PolicyRuns]) -> Plot:
    """Return one measure over time, all policies in one picture."""
    key, missing = parted(policies, lambda each: measure.values(each.shown.series))
    panels = (Panel(_picture(measure, key, measure.name)),) if key else ()
    return Plot(measure.title, measure.reading, panels, key, missing)


def plot_by_level(
    measure: Measure, of_level: Callable[[str], Values], policies: Sequence[PolicyRuns]
) -> Plot:
    """Return a measure over time, a picture for each level of the fabric, bottom up."""
    key, missing = parted(policies, lambda each: each.shown.series.time)
    levels = list(dict.fromkeys(level for each in key for level in each.shown.series.gangs))
    panels = []
    for number, level in enumerate(levels, start=1):
        here = Measure(
            name=f"{measure.name}-{number}",
            title=f"{measure.title}, {level}",
            axis=measure.axis,
            reading=measure.reading,
            values=of_level(level),
        )
        panels.append(Panel(_picture(here, key, here.name), level))
    return Plot(measure.title, measure.reading, tuple(panels), key, missing)


def set_time_axis(axes: Axes, end: float) -> float:
    """Return the unit of the time axis in s, once the axis is labelled and has its limits.

    :param end: of the axis, s; from 0, so that plots can be compared
    """
    unit, name = quantities.time_unit(end)
    axes.set_xlabel(f"Simulated time ({name})")
    axes.set_xlim(0, end / unit if end > 0 else 1.0)
    return unit


def end_of(policies: Sequence[PolicyRuns]) -> float:
    """Return the time of the last sample of any policy, s."""
    return max((max(each.shown.series.time, default=0.0) for each in policies), default=0.0)


def _picture(measure: Measure, policies: Sequence[PolicyRuns], name: str) -> Markup:
    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = set_time_axis(axes, end_of(policies))
        highest = 0.0
        for number, each in enumerate(policies):
            values = measure.values(each.shown.series)
            times = [time / unit for time in each.shown.series.time[: len(values)]]
            # Each begins elsewhere: where lines coincide their markers do not.
            begin = _BETWEEN_MARKERS * number / len(policies)
            axes.plot(
                times,
                values,
                color=each.look.colour,
                linestyle=each.look.line,
                marker=each.look.marker,
                markevery=(begin, _BETWEEN_MARKERS) if len(values) > 1 else None,
                clip_on=False,
            )
            highest = max(highest, max(values, default=0.0))
        axes.set_ylabel(measure.axis)
        axes.set_ylim(0, max(measure.top or 0.0, highest * 1.05) or 1.0)

    return drawing.drawn(name, f"{measure.title}: a line for each policy over time.", draw)
