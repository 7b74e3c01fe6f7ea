"""Measures over time, one line per policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpc_sched.page.rendering import drawn
from hpc_sched.sim.report.policy_runs import Panel, Plot, PolicyRuns, draw_lines, parted
from hpc_sched.sim.series import Series

# Time axes: least length in s, unit in s, name; the first unit that the axis is long enough for.
_UNITS = ((259200, 86400, "d"), (7200, 3600, "h"), (120, 60, "min"), (-math.inf, 1, "s"))


@dataclass(frozen=True, slots=True)
class Measure:
    """What is drawn over time."""

    name: str  # of its series, and prefix of its pictures' ids
    title: str
    axis: str  # label, with the unit
    reading: str
    factor: int = 1  # on the series
    top: float | None = None  # of the axis; None: fits the values
    is_count: bool = False  # has no ticks between whole numbers


PROGRESS = (
    Measure("done", "Jobs done", "Jobs done",
        "The steeper a line, the more jobs end in a time; the policy whose line is above "
        "another's has done more jobs by then.", is_count=True),
    Measure("waiting", "Jobs waiting", "Jobs waiting",
        "Jobs that were submitted and have not started yet. Lower is better; a line that keeps "
        "rising means that more is submitted than is worked off.", is_count=True),
    Measure("running", "Jobs running", "Jobs running",
        "Jobs that have their VMs. At the same use of vcpus, more of them are smaller ones.",
        is_count=True),
    Measure("vcpus", "Use of vcpus", "vcpus in use (%)",
        "Share of the cluster's vcpus that VMs have. Low while jobs wait, the policy or the queue "
        "leaves room unused; low with none waiting, there was no more work.",
        factor=100, top=100.0),
)  # fmt: skip
CROSSING = Measure("crossing", "Crossing jobs per leaf", "Jobs per leaf",
    "Jobs that have VMs under a leaf and under other leaves too, on average over all leaves: they "
    "share its uplinks. Lower is better.")  # fmt: skip
_GANGS = Measure("gangs", "Largest group that fits", "VMs",
    "VMs of the largest group that would fit under one switch of the level, as means over "
    "neighbouring samples. Where it is low although vcpus are free, the free ones are scattered: "
    "higher means less fragmented.", is_count=True)  # fmt: skip


def plot(measure: Measure, policies: Sequence[PolicyRuns]) -> Plot:
    """Return a picture of a measure, without a line for policies that have no sample."""
    key, missing = parted(policies, lambda each: getattr(each.shown.series, measure.name))
    return Plot(
        *(measure.title, measure.reading),
        panels=(_panel(measure, key),) if key else (),
        key=key,
        missing=missing,
    )


def fragmentation(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the largest group that fits, one picture per level of the fabric, bottom up."""
    key, missing = parted(policies, lambda each: each.shown.series.time)
    levels = dict.fromkeys(level for each in key for level in each.shown.series.gangs)
    panels = (_panel(_GANGS, key, number, level) for number, level in enumerate(levels, start=1))
    return Plot(_GANGS.title, _GANGS.reading, tuple(panels), key, missing)


def set_time_axis(axes: Axes, end: float) -> float:
    """Label the time axis, set its limits, and return its unit in s.

    :param end: of the axis, s; it begins at 0, so that plots can be compared
    """
    unit, name = time_unit(end)
    axes.set_xlabel(f"Simulated time ({name})")
    axes.set_xlim(0, end / unit if end > 0 else 1.0)
    return unit


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit for an axis of a length in s: its length in s, and its name."""
    return next((float(unit), name) for least, unit, name in _UNITS if seconds >= least)


def end_of(policies: Sequence[PolicyRuns]) -> float:
    """Return the time of the last sample of any policy, s."""
    return max((max(each.shown.series.time, default=0.0) for each in policies), default=0.0)


def _panel(
    measure: Measure, policies: Sequence[PolicyRuns], number: int = 0, level: str = ""
) -> Panel:
    """Return the picture of a measure; of the largest group, that of a level with a number."""

    def line(series: Series, unit: float) -> tuple[Sequence[float], Sequence[float]]:
        scaled = (measure.factor * value for value in getattr(series, measure.name))
        values: Sequence[float] = series.gangs.get(level, []) if number else list(scaled)
        times = [time / unit for time in series.time[: len(values)]]
        return (_means(times), _means(values)) if number else (times, values)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = set_time_axis(axes, end_of(policies))
        lines = [line(each.shown.series, unit) for each in policies]
        draw_lines(axes, policies, lines)
        highest = max((max(values, default=0.0) for _, values in lines), default=0.0)
        axes.set_ylabel(measure.axis)
        if measure.is_count:
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_ylim(0, max(measure.top or 0.0, highest * 1.05) or 1.0)

    name = f"{measure.name}-{number}" if number else measure.name
    title = f"{measure.title}, {level}" if number else measure.title
    return Panel(drawn(name, f"{title}: a line for each policy over time.", draw), level)


def _means(values: Sequence[float]) -> list[float]:
    """Return 64 means at most, in place of samples that jump from one to the next."""
    together = math.ceil(len(values) / 64)
    return [fmean(values[i : i + together]) for i in range(0, len(values), together or 1)]
