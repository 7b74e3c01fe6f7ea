"""One number per policy, as bars labelled with the number."""

from collections.abc import Callable, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from hpc_sched.sim.report import number_text
from hpc_sched.sim.report.plot import Panel, Plot, drawn, parted
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.summary import Summary
from hpc_sched.topology.writers.svg_layout import cut

_ROW, _AROUND = 0.27, 0.65  # inches: a bar, and the axis below all bars
_NAME_ROOM, _LETTERS = 150, 12  # pixels


def hop_bytes(policies: Sequence[PolicyRuns]) -> Plot:
    """Return Hop-Byte over its least possible value."""
    return _plot(
        "hop-byte",
        "Hop-Byte over least",
        "Hops between the VMs of a job, summed over all pairs and jobs, over the sum that each "
        "job would have alone on the cluster. 1 is the best there is.",
        policies,
        lambda summary: summary.hop_byte_ratio,
    )


def leaves(policies: Sequence[PolicyRuns]) -> Plot:
    """Return the number of leaves over its least possible value."""
    return _plot(
        "leaves",
        "Leaves over least",
        "Leaf switches that jobs have VMs under, over those that each job would have alone on "
        "the cluster. 1 is the best there is.",
        policies,
        lambda summary: summary.leaf_ratio,
    )


def _plot(
    name: str,
    title: str,
    reading: str,
    policies: Sequence[PolicyRuns],
    value: Callable[[Summary], float | None],
) -> Plot:
    found = {each.policy: number_text.finite_values(each.results, value) for each in policies}
    shown, missing = parted(policies, lambda each: found[each.policy])
    if any(len(values) > 1 for values in found.values()):
        reading += " A bar is the mean over the seeds, its whisker reaches from least to most."

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        most = max(max(found[each.policy]) for each in shown)
        for row, each in enumerate(shown):
            values = found[each.policy]
            mean, least, greatest = fmean(values), min(values), max(values)
            axes.barh(row, mean, height=0.62, color=each.look.colour)
            if len(values) > 1:
                axes.errorbar(
                    mean,
                    row,
                    xerr=[[max(0.0, mean - least)], [max(0.0, greatest - mean)]],
                    color="#1a1a1a",
                    capsize=3,
                    linewidth=1,
                )
            axes.annotate(
                number_text.ratio(mean),
                (max(mean, greatest), row),
                xytext=(5, 0),
                textcoords="offset points",
                verticalalignment="center",
            )
        axes.set_yticks(
            range(len(shown)), [cut(each.policy, _NAME_ROOM, _LETTERS) for each in shown]
        )
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.axvline(1.0, color="#1a1a1a", linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_xlabel(f"{title} (ratio)")
        axes.set_xlim(0, 1.18 * max(most, 1.0))  # room for the numbers
        axes.set_ylim(len(shown) - 0.5, -0.5)  # the first on top

    label = f"{title}: " + ", ".join(
        f"{each.policy} {number_text.ratio(fmean(found[each.policy]))}" for each in shown
    )
    height = _AROUND + _ROW * max(len(shown), 2)
    panels = (Panel(drawn(name, f"{label}.", draw, height)),) if shown else ()
    return Plot(title, reading, panels, missing=missing)
