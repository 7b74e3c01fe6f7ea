"""Distributions of waits and slowdowns over the jobs that were done, as quantiles."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.sim.report import line_styles
from hpc_sched.sim.report.plot import Panel, Plot, drawn, parted
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.summary import Result

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WAIT_TICKS = (
    (0, "0"),
    (1, "1 s"),
    (10, "10 s"),
    (_MINUTE, "1 min"),
    (10 * _MINUTE, "10 min"),
    (_HOUR, "1 h"),
    (6 * _HOUR, "6 h"),
    (_DAY, "1 d"),
    (10 * _DAY, "10 d"),
    (100 * _DAY, "100 d"),
    (1000 * _DAY, "1000 d"),
)
# An axis that reaches beyond it has ticks at whole decades only.
_MANY_DECADES = 1000


def waits(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the quantiles of waits; logarithmic above 1 s, linear below, to include 0."""

    def scale(axes: Axes, highest: float) -> None:
        axes.set_ylabel("Wait")
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.4)
        top = max(1.0, highest) * 1.4
        ticks = [(value, text) for value, text in _WAIT_TICKS if value <= top]
        axes.set_yticks([value for value, _ in ticks], [text for _, text in ticks])
        axes.minorticks_off()
        axes.set_ylim(0, top)

    return _plot(
        "waits",
        "Waits",
        "Jobs that were done, by how long they waited: at 90 %, the line tells how long nine of "
        "ten jobs waited at most. The scale is logarithmic above 1 s. Lower is better.",
        policies,
        lambda result: result.waits,
        scale,
    )


def slowdowns(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the quantiles of bounded slowdowns; logarithmic from 1, the least possible."""

    def scale(axes: Axes, highest: float) -> None:
        axes.set_ylabel("Bounded slowdown")
        axes.set_yscale("log")
        top = max(2.0, highest * 1.4)
        steps = (1,) if top > _MANY_DECADES else (1, 2, 5)
        ticks = [step * 10**power for power in range(16) for step in steps]
        shown = [tick for tick in ticks if tick <= top]
        axes.set_yticks(shown, [f"{tick:,}" for tick in shown])
        axes.minorticks_off()
        axes.set_ylim(1, top)

    return _plot(
        "slowdowns",
        "Bounded slowdowns",
        "Time from submission to end over the runtime, runtimes below 10 s taken as 10 s: 1 is "
        "a job that did not wait. At 90 %, the line tells what nine of ten jobs had at most. "
        "The scale is logarithmic. Lower is better.",
        policies,
        lambda result: result.slowdowns,
        scale,
    )


def _plot(
    name: str,
    title: str,
    reading: str,
    policies: Sequence[PolicyRuns],
    values: Callable[[Result], Sequence[float]],
    scale: Callable[[Axes, float], None],
) -> Plot:
    key, missing = parted(policies, lambda each: values(each.shown))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for number, each in enumerate(key):
            found = values(each.shown)
            last = max(len(found) - 1, 1)
            shares = [100 * step / last for step in range(len(found))]
            line_styles.draw_line(axes, each.look, shares, found, number, len(key))
        axes.set_xlabel("Jobs done (%)")
        axes.set_xlim(0, 100)
        scale(axes, max(max(values(each.shown)) for each in key))

    label = f"{title}: quantiles over the jobs done, a line for each policy."
    panels = (Panel(drawn(name, label, draw)),) if key else ()
    return Plot(title, reading, panels, key, missing)
