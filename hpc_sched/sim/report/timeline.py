"""Measures over time, one line per policy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpc_sched.page.rendering import drawn
from hpc_sched.sim.report.interval_means import (
    Steps,
    about_samples,
    about_steps,
    draw_steps,
    sampled_steps,
    steps,
)
from hpc_sched.sim.report.policy_runs import Panel, Plot, PolicyRuns, draw_lines, parted
from hpc_sched.sim.report.time_axis import TimeAxis
from hpc_sched.sim.series import Series

_GROUPS = 64  # means of the largest group, which jumps from sample to sample
_LOW = 0.25  # of the top of an axis; below it the axis fits the values


@dataclass(frozen=True, slots=True)
class Measure:
    """What is drawn over time."""

    name: str  # of its list in the totals, and prefix of its pictures' ids
    title: str
    axis: str  # label, with the unit
    reading: str
    factor: int = 1  # on the means
    top: float | None = None  # of the axis, unless all values are low; None: fits the values
    is_count: bool = False  # a line with ticks at whole numbers; if not, means as steps

    def scaled(self, of: Steps) -> Steps:
        """Return means in the unit of the axis."""
        return Steps(of.edges, [self.factor * mean for mean in of.means])


PROGRESS = (
    Measure("done", "Jobs done", "Jobs done",
        "The steeper a line, the more jobs end in a time; the policy whose line is above "
        "another's has done more jobs by then.", is_count=True),
    Measure("waiting", "Jobs waiting", "Jobs waiting",
        "Jobs that were submitted and have not started yet. Lower is better; a line that keeps "
        "rising means that more is submitted than is worked off."),
    Measure("running", "Jobs running", "Jobs running",
        "Jobs that have their VMs. At the same use of vcpus, more of them are smaller ones."),
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

_UPLINKS = Measure("uplinks", "Use of uplinks", "uplinks in use (%)",
    "Share of the rate of the uplinks of a level's switches that messages take, both directions, "
    "on average over the switches: one of them may be full where the mean is low. Lower is "
    "better: what is left is there for others.", factor=100, top=100.0)  # fmt: skip


def plot(measure: Measure, policies: Sequence[PolicyRuns], axis: TimeAxis) -> Plot:
    """Return a picture of a measure, without a line for policies whose run took no time."""
    key, missing = parted(policies, lambda each: each.took_time)
    runs = [each.shown.series for each in key]
    found: list[Steps] = []
    if not measure.is_count:
        found = [steps(run, getattr(run.totals, measure.name), axis.end) for run in runs]
    reading = f"{measure.reading} {about_steps(found)}" if found else measure.reading

    def draw(axes: Axes, unit: float) -> float:
        if measure.is_count:
            lines = [
                _until(axis.end, run.totals.time, getattr(run.totals, measure.name)) for run in runs
            ]
            draw_lines(axes, key, [(np.divide(x, unit).tolist(), y) for x, y in lines])
            return max(max(y) for _, y in lines)
        scaled = [measure.scaled(of) for of in found]
        draw_steps(axes, key, scaled, axis.end, unit)
        return max(max(of.means) for of in scaled)

    return Plot(
        *(measure.title, f"{reading} {axis.hint}".rstrip()),
        panels=(_panel(measure, axis, draw),) if key else (),
        key=key,
        missing=missing,
    )


def fragmentation(policies: Sequence[PolicyRuns], axis: TimeAxis) -> Plot:
    """Return the largest group that fits, one picture per level of the fabric, bottom up."""
    key, _ = parted(policies, lambda each: each.took_time)
    return _by_level(
        *(_GANGS, policies, axis),
        lambda series: series.gangs,
        lambda series, sizes: sampled_steps(series, sizes, axis.end, _GROUPS),
        about_samples(key),
    )


def uplinks(policies: Sequence[PolicyRuns], axis: TimeAxis) -> Plot:
    """Return the use of uplinks, one picture per level of switches that have some, bottom up."""
    return _by_level(
        *(_UPLINKS, policies, axis),
        lambda series: series.totals.uplinks,
        lambda series, integral: steps(series, integral, axis.end),
    )


def _by_level(
    measure: Measure,
    policies: Sequence[PolicyRuns],
    axis: TimeAxis,
    levels_of: Callable[[Series], Mapping[str, Sequence[float]]],
    means: Callable[[Series, Sequence[float]], Steps],
    about: str = "",
) -> Plot:
    """Return one picture of a measure per level, bottom up.

    :param levels_of: returns what a run has of each level; ``means`` makes steps of it
    """
    key, missing = parted(policies, lambda each: each.took_time)
    levels = dict.fromkeys(level for each in key for level in levels_of(each.shown.series))

    def drawing(level: str) -> Callable[[Axes, float], float]:
        def draw(axes: Axes, unit: float) -> float:
            having = [each for each in key if level in levels_of(each.shown.series)]
            runs = [each.shown.series for each in having]
            found = [measure.scaled(means(run, levels_of(run)[level])) for run in runs]
            draw_steps(axes, having, found, axis.end, unit)
            return max(max(of.means) for of in found)

        return draw

    panels = tuple(
        _panel(measure, axis, drawing(level), number, level)
        for number, level in enumerate(levels, start=1)
    )
    reading = " ".join(filter(None, (measure.reading, about, axis.hint)))
    return Plot(measure.title, reading, panels, key, missing)


def _panel(
    measure: Measure,
    axis: TimeAxis,
    draw_in: Callable[[Axes, float], float],
    number: int = 0,
    level: str = "",
) -> Panel:
    """Return the picture of a measure; of the largest group, that of a level with a number.

    :param draw_in: draws all lines in a unit of time, in s, and returns the highest value
    """

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        highest = draw_in(axes, axis.set(axes))
        axes.set_ylabel(measure.axis)
        if measure.is_count:
            axes.yaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        # Low values would be a flat line at the bottom of an axis that shows all of 100 %.
        top = measure.top if measure.top and highest > _LOW * measure.top else 0.0
        axes.set_ylim(0, max(top, highest * 1.05) or 1.0)

    name = f"{measure.name}-{number}" if number else measure.name
    title = f"{measure.title}, {level}" if number else measure.title
    return Panel(drawn(name, f"{title}: a line for each policy over time.", draw), level)


def _until(
    end: float, times: Sequence[float], values: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the part of a line until a time, or all of it if it ends before."""
    last = min(end, times[-1])
    inside = [time for time in times if time < last]
    x = [*inside, last]
    return x, [*values[: len(inside)], float(np.interp(last, times, values))]
