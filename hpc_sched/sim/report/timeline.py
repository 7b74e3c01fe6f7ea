"""Measures over time, one line per policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpc_sched.sim.measures import Series
from hpc_sched.sim.report import line_styles, number_text
from hpc_sched.sim.report.plot import Panel, Plot, drawn, parted
from hpc_sched.sim.report.policy_runs import PolicyRuns

# Number of means that replace the samples of a measure that jumps from sample to sample.
_MEANS = 64


@dataclass(frozen=True, slots=True)
class Measure:
    """What is drawn over time."""

    name: str  # prefix of its pictures' ids
    title: str
    axis: str  # label, with the unit
    reading: str
    values: Callable[[Series], Sequence[float]]
    top: float | None = None  # of the axis; None: fits the values
    is_count: bool = False  # has no ticks between whole numbers
    is_smoothed: bool = False  # is drawn as means of neighbouring samples


_OVER_TIME = (
    Measure(
        name="done",
        title="Jobs done",
        axis="Jobs done",
        reading="The steeper a line, the more jobs end in a time; the policy whose line is above "
        "another's has done more jobs by then.",
        values=lambda series: series.done,
        is_count=True,
    ),
    Measure(
        name="waiting",
        title="Jobs waiting",
        axis="Jobs waiting",
        reading="Jobs that were submitted and have not started yet. Lower is better; a line that "
        "keeps rising means that more is submitted than is worked off.",
        values=lambda series: series.waiting,
        is_count=True,
    ),
    Measure(
        name="running",
        title="Jobs running",
        axis="Jobs running",
        reading="Jobs that have their VMs. At the same use of vcpus, more of them are smaller "
        "ones.",
        values=lambda series: series.running,
        is_count=True,
    ),
    Measure(
        name="vcpus",
        title="Use of vcpus",
        axis="vcpus in use (%)",
        reading="Share of the cluster's vcpus that VMs have. Low while jobs wait, the policy or "
        "the queue leaves room unused; low with none waiting, there was no more work.",
        values=lambda series: [100 * share for share in series.vcpus],
        top=100.0,
    ),
)
_CROSSING = Measure(
    name="crossing",
    title="Crossing jobs per leaf",
    axis="Jobs per leaf",
    reading="Jobs that have VMs under a leaf and under other leaves too, on average over all "
    "leaves: they share its uplinks. Lower is better.",
    values=lambda series: series.crossing,
)
_GANGS = Measure(
    name="gangs",
    title="Largest group that fits",
    axis="VMs",
    reading="VMs of the largest group that would fit under one switch of the level, as means "
    "over neighbouring samples. Where it is low although vcpus are free, the free ones are "
    "scattered: higher means less fragmented.",
    values=lambda series: series.time,
    is_count=True,
    is_smoothed=True,
)


def over_time(policies: Sequence[PolicyRuns]) -> tuple[Plot, ...]:
    """Return jobs and use of vcpus over time."""
    return tuple(_plot(measure, policies) for measure in _OVER_TIME)


def crossing(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the number of jobs that share the uplinks of a leaf."""
    return _plot(_CROSSING, policies)


def fragmentation(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the largest group that fits, one picture per level of the fabric, bottom up."""
    key, missing = parted(policies, lambda each: _GANGS.values(each.shown.series))
    levels = list(dict.fromkeys(level for each in key for level in each.shown.series.gangs))
    panels = []
    for number, level in enumerate(levels, start=1):

        def gangs(series: Series, level: str = level) -> Sequence[float]:
            return series.gangs.get(level, [])

        title = f"{_GANGS.title}, {level}"
        measure = replace(_GANGS, name=f"{_GANGS.name}-{number}", title=title, values=gangs)
        panels.append(_panel(measure, key, level))
    return Plot(_GANGS.title, _GANGS.reading, tuple(panels), key, missing)


def set_time_axis(axes: Axes, end: float) -> float:
    """Label the time axis, set its limits, and return its unit in s.

    :param end: of the axis, s; it begins at 0, so that plots can be compared
    """
    unit, name = number_text.time_unit(end)
    axes.set_xlabel(f"Simulated time ({name})")
    axes.set_xlim(0, end / unit if end > 0 else 1.0)
    return unit


def end_of(policies: Sequence[PolicyRuns]) -> float:
    """Return the time of the last sample of any policy, s."""
    return max((max(each.shown.series.time, default=0.0) for each in policies), default=0.0)


def _plot(measure: Measure, policies: Sequence[PolicyRuns]) -> Plot:
    key, missing = parted(policies, lambda each: measure.values(each.shown.series))
    panels = (_panel(measure, key),) if key else ()
    return Plot(measure.title, measure.reading, panels, key, missing)


def _panel(measure: Measure, policies: Sequence[PolicyRuns], caption: str = "") -> Panel:
    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = set_time_axis(axes, end_of(policies))
        highest = 0.0
        for number, each in enumerate(policies):
            values = measure.values(each.shown.series)
            times = [time / unit for time in each.shown.series.time[: len(values)]]
            if measure.is_smoothed:
                times, values = _means(times), _means(values)
            line_styles.draw_line(axes, each.look, times, values, number, len(policies))
            highest = max(highest, max(values, default=0.0))
        axes.set_ylabel(measure.axis)
        if measure.is_count:
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_ylim(0, max(measure.top or 0.0, highest * 1.05) or 1.0)

    label = f"{measure.title}: a line for each policy over time."
    return Panel(drawn(measure.name, label, draw), caption)


def _means(values: Sequence[float]) -> list[float]:
    """Return about _MEANS means of neighbouring values."""
    together = math.ceil(len(values) / _MEANS)
    return [fmean(values[i : i + together]) for i in range(0, len(values), together or 1)]
