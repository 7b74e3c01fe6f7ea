"""Means over intervals of time, as steps: what was true between samples too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes

from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.series import Series
from hpc_sched.sim.statistics.columns import duration

MOST_STEPS = 120  # on an axis: more could not be distinguished
_MARKERS = 5  # on the line of a policy; fewer where there are many policies


@dataclass(frozen=True, slots=True)
class Steps:
    """Means of a measure over intervals that adjoin."""

    edges: list[float]  # s; one more than means
    means: list[float]


def steps(series: Series, integral: Sequence[float], end: float) -> Steps:
    """Return the means of a measure, MOST_STEPS at most, until an end or that of the run. Linear.

    Each is over whole intervals between totals, and so exact. All but the last have one length
    unless the axis has few samples: then they are as short as the totals allow.

    :param integral: of the measure, one of the totals
    """
    totals = series.totals
    are_even = sum(time < end for time in series.time) >= MOST_STEPS / 2
    wanted = {*series.time, totals.time[-1]} if are_even else set(totals.time)
    least = end / MOST_STEPS * (1 - 1e-9)
    rows = [0]
    for i, time in enumerate(totals.time):
        before = totals.time[rows[-1]]
        is_last = i == len(totals.time) - 1
        if (
            time in wanted
            and before < end
            and before < time
            and (is_last or time - before >= least)
        ):
            rows.append(i)
    edges = np.array(totals.time)[rows]
    sums = np.array(integral)[rows]
    return Steps(edges.tolist(), (np.diff(sums) / np.diff(edges)).tolist())


def about_steps(found: Sequence[Steps]) -> str:
    """Return a sentence on the lengths of steps; the last step of a run may be shorter."""
    lengths = [
        length for of in found for length in np.diff(of.edges[:-1] if of.means[1:] else of.edges)
    ]
    shortest, longest = duration(min(lengths)), duration(max(lengths))
    span = longest if shortest == longest else f"{shortest} to {longest}"
    return f"A step is the mean over {span}."


def sampled_steps(series: Series, values: Sequence[float], end: float, most: int) -> Steps:
    """Return at most as a number of means of neighbouring samples, for what has no integral.

    A sample holds until the next one; the last, until the run ends.
    """
    times = [time for time in series.time if time < end]
    together = math.ceil(len(times) / most)
    starts = range(0, len(times), together)
    means = [fmean(values[i : min(i + together, len(times))]) for i in starts]
    after = [*series.time[1:], series.totals.time[-1]][len(times) - 1]
    return Steps([*(times[i] for i in starts), after], means)


def about_samples(policies: Sequence[PolicyRuns]) -> str:
    """Return a sentence on the time between samples; empty where no run has two."""
    runs = [each.shown.series.time for each in policies if len(each.shown.series.time) > 1]
    if not runs:
        return ""
    between = max(times[1] - times[0] for times in runs)
    return f"Samples are {duration(between)} apart; what happens between them is not seen."


def draw_steps(
    axes: Axes,
    policies: Sequence[PolicyRuns],
    found: Sequence[Steps],
    end: float,
    unit: float,
) -> None:
    """Draw a line of steps per policy. Each has its markers elsewhere, so that all can be seen.

    :param end: of the axis, s
    """
    markers = max(_MARKERS - len(policies) // 5, 2)
    for number, (each, of) in enumerate(zip(policies, found, strict=True)):
        x = np.minimum(of.edges, end)
        axes.plot(
            x / unit,
            [*of.means, of.means[-1]],
            color=each.look.colour,
            drawstyle="steps-post",
            linestyle=(0.0, each.look.dashes) if each.look.dashes else "-",
            clip_on=False,  # a clipped line at the edge would look thinner
        )
        shares = (np.arange(markers) + (number + 0.5) / len(policies)) / markers
        places = shares * x[-1]
        index = np.searchsorted(of.edges, places, side="right") - 1
        axes.plot(
            places / unit,
            np.array(of.means)[index],
            color=each.look.colour,
            linestyle="none",
            marker=each.look.marker,
            clip_on=False,
        )
