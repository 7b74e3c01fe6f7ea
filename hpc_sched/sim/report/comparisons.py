"""Plots that compare whole runs: a bar per policy, and quantiles over the jobs done."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.page.rendering import drawn
from hpc_sched.sim.report.policy_runs import Panel, Plot, PolicyRuns, draw_lines, parted
from hpc_sched.sim.statistics.columns import ratio
from hpc_sched.sim.statistics.estimate import CONFIDENCE, Estimate
from hpc_sched.sim.statistics.policy_comparison import Comparison
from hpc_sched.topology.writers.svg_layout import cut

_ROW, _AROUND = 0.27, 0.65  # inches: a bar, and the axis below all bars
_NAME_ROOM, _LETTERS = 150, 12  # pixels

_WAIT_TICKS = {
    **{0: "0", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21600: "6 h"},
    **{days * 86400: f"{days} d" for days in (1, 10, 100, 1000)},
}
# Id, title, field of Summary, how to read it.
_RATIOS = (
    ("hop-byte", "Hop-Byte over least", "hop_byte_ratio",
        "Hops between the VMs of a job, summed over all pairs and jobs, over the sum that each "
        "job would have alone on the cluster. 1 is the best there is."),
    ("leaves", "Leaves over least", "leaf_ratio",
        "Leaf switches that jobs have VMs under, over those that each job would have alone on "
        "the cluster. 1 is the best there is."),
)  # fmt: skip
_Axis = tuple[str, float, float, Mapping[int, str]]  # label, limits, ticks


def ratios(policies: Sequence[PolicyRuns], comparison: Comparison) -> tuple[Plot, ...]:
    """Return Hop-Byte, and the number of leaves, over the least possible value of each."""
    return tuple(
        _bars(name, title, reading, policies, {p.name: p.means[field] for p in comparison.policies})
        for name, title, field, reading in _RATIOS
    )


def _bars(
    name: str,
    title: str,
    reading: str,
    policies: Sequence[PolicyRuns],
    found: Mapping[str, Estimate | None],
) -> Plot:
    shown, missing = parted(policies, lambda each: found[each.policy])
    values = [estimate for each in shown if (estimate := found[each.policy]) is not None]
    means = [each.mean for each in values]
    ends = [_ends(each) for each in values]
    reach = None
    if any(each.least < each.most for each in values):
        has_intervals = all(each.half_width is not None for each in values)
        interval = f"{100 * CONFIDENCE:g} % confidence interval of the mean"
        whisker = interval if has_intervals else "range from least to most"
        reading += f" A bar is the mean over the seeds; its whisker is the {whisker}."
        reach = np.abs(np.subtract(np.transpose(ends), means))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        bars = axes.barh(
            range(len(shown)),
            means,
            height=0.62,
            color=[each.look.colour for each in shown],
            tick_label=[cut(each.policy, _NAME_ROOM, _LETTERS) for each in shown],
            xerr=reach,
            error_kw={"ecolor": "#1a1a1a", "capsize": 3, "elinewidth": 1},
        )
        axes.bar_label(bars, list(map(ratio, means)), padding=5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.axvline(1.0, color="#1a1a1a", linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_xlabel(f"{title} (ratio)")
        axes.set_xlim(0, 1.18 * max(1.0, *(high for _, high in ends)))  # room for the numbers
        axes.set_ylim(len(shown) - 0.5, -0.5)  # the first on top

    label = ", ".join(
        f"{each.policy} {ratio(mean)}" for each, mean in zip(shown, means, strict=True)
    )
    height = _AROUND + _ROW * max(len(shown), 2)
    panels = (Panel(drawn(name, f"{title}: {label}.", draw, height)),) if shown else ()
    return Plot(title, reading, panels, missing=missing)


def _ends(estimate: Estimate) -> tuple[float, float]:
    """Return the ends of the confidence interval, or the range if there is none."""
    if estimate.half_width is None:
        return estimate.least, estimate.most
    return estimate.mean - estimate.half_width, estimate.mean + estimate.half_width


def _wait_axis(axes: Axes, highest: float) -> _Axis:
    """Make the axis logarithmic above 1 s, and linear below, to include 0."""
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.4)
    return "Wait", 0.0, max(1.0, highest) * 1.4, _WAIT_TICKS


def _slowdown_axis(axes: Axes, highest: float) -> _Axis:
    """Make the axis logarithmic from 1, the least possible."""
    axes.set_yscale("log")
    top = max(2.0, highest * 1.4)
    steps = (1,) if top > 1000 else (1, 2, 5)  # of many decades whole ones only
    ticks = [step * 10**power for power in range(16) for step in steps]
    return "Bounded slowdown", 1.0, top, {tick: f"{tick:,}" for tick in ticks}


# Id and field of Result, title, axis, how to read it.
_QUANTILES: tuple[tuple[str, str, Callable[[Axes, float], _Axis], str], ...] = (
    ("waits", "Waits", _wait_axis,
        "Jobs that were done, by how long they waited: at 90 %, the line tells how long nine of "
        "ten jobs waited at most. The scale is logarithmic above 1 s. Lower is better."),
    ("slowdowns", "Bounded slowdowns", _slowdown_axis,
        "Time from submission to end over the runtime, runtimes below 10 s taken as 10 s: 1 is "
        "a job that did not wait. At 90 %, the line tells what nine of ten jobs had at most. "
        "The scale is logarithmic. Lower is better."),
)  # fmt: skip


def quantiles(policies: Sequence[PolicyRuns]) -> tuple[Plot, ...]:
    """Return the quantiles of waits, and of bounded slowdowns."""
    return tuple(_quantiles(policies, *each) for each in _QUANTILES)


def _quantiles(
    policies: Sequence[PolicyRuns],
    name: str,
    title: str,
    axis: Callable[[Axes, float], _Axis],
    reading: str,
) -> Plot:
    key, missing = parted(policies, lambda each: getattr(each.shown, name))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        found: list[list[float]] = [getattr(each.shown, name) for each in key]
        draw_lines(axes, key, [(np.linspace(0, 100, len(each)).tolist(), each) for each in found])
        axes.set_xlabel("Jobs done (%)")
        axes.set_xlim(0, 100)
        label, low, top, names = axis(axes, max(map(max, found)))
        ticks = [tick for tick in names if tick <= top]
        axes.set_ylabel(label)
        axes.set_yticks(ticks, [names[tick] for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(low, top)

    about = f"{title}: quantiles over the jobs done, a line for each policy."
    return Plot(
        *(title, reading),
        panels=(Panel(drawn(name, about, draw)),) if key else (),
        key=key,
        missing=missing,
    )
