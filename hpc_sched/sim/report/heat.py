"""The fabric over time: how full each leaf is, one picture per policy."""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from hpc_sched.core.arrays import Reals
from hpc_sched.page.rendering import drawn
from hpc_sched.sim.report.interval_means import about_samples, sampled_steps
from hpc_sched.sim.report.policy_runs import Panel, Plot, PolicyRuns, parted
from hpc_sched.sim.report.time_axis import TimeAxis
from hpc_sched.sim.results import Result
from hpc_sched.topology.writers.svg_layout import cut

MOST_ROWS, MOST_COLUMNS = 100, 128
# Cividis looks the same with most kinds of colour blindness. One colour per percent is all that
# a reader can distinguish, and packs better.
_COLOURS = matplotlib.colormaps["cividis"].resampled(101)

_ROW, _AROUND = 0.16, 0.75  # inches: a leaf, and the axis below
_NAME_ROOM, _LETTERS = 110, 11  # pixels


def plot(policies: Sequence[PolicyRuns], axis: TimeAxis) -> Plot:
    """Return a picture for each policy; all have the same axis and the same colours."""
    shown, missing = parted(policies, lambda each: each.took_time and each.shown.leaves)
    reading = (
        "Each row is a leaf switch, neighbours in the fabric next to each other; the lighter, "
        "the more of its vcpus VMs have. White: the run had ended. Compact placement "
        "shows as rows that are full or empty, scattered placement as rows that are all alike."
    )
    merged = max((_merged(each.shown) for each in shown), default=1)
    if merged > 1:
        reading += f" A row is the mean of up to {merged} neighbouring leaves, named by the first."
    if any(len(each.shown.series.time) > MOST_COLUMNS for each in shown):
        reading += " A column is the mean of neighbouring samples."
    reading = " ".join(filter(None, (reading, about_samples(shown), axis.hint)))
    panels = tuple(
        Panel(_picture(f"heat-{number}", each, axis), each.policy)
        for number, each in enumerate(shown, start=1)
    )
    return Plot("Use of the leaves", reading, panels, missing=missing)


def rows(result: Result) -> tuple[list[str], Reals]:
    """Return the names of rows, and the use of vcpus with the shape (rows, samples), 0 to 1.

    Neighbouring leaves are merged until there are no more than MOST_ROWS.
    """
    starts = range(0, len(result.leaves), _merged(result))
    use = np.array(result.series.leaves, dtype=np.float64).T
    sums = np.add.reduceat(use, list(starts), axis=0)
    counts = np.diff([*starts, len(result.leaves)])
    return [result.leaves[start] for start in starts], sums / counts[:, np.newaxis]


def _merged(result: Result) -> int:
    return math.ceil(len(result.leaves) / MOST_ROWS)


def _picture(name: str, runs: PolicyRuns, axis: TimeAxis) -> Markup:
    names, use = rows(runs.shown)
    columns = [
        sampled_steps(runs.shown.series, leaf, axis.end, MOST_COLUMNS) for leaf in use.tolist()
    ]
    tall = min(max(_ROW * len(names), 1.1), 4.6)  # inches of all leaves

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = axis.set(axes)
        image = axes.pcolormesh(
            np.minimum(columns[0].edges, axis.end) / unit,
            np.arange(len(names) + 1) - 0.5,
            [[100 * mean for mean in leaf.means] for leaf in columns],
            cmap=_COLOURS,
            vmin=0,
            vmax=100,
            rasterized=True,
        )
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_ylabel("Leaf switch")
        every = math.ceil(0.15 * len(names) / tall)  # 0.15: inches that a name takes
        axes.set_yticks(
            range(0, len(names), every),
            [cut(name, _NAME_ROOM, _LETTERS) for name in names[::every]],
            fontsize=8,
        )
        figure.colorbar(
            image, ax=axes, label="vcpus in use (%)", pad=0.02, aspect=25
        ).outline.set_visible(False)

    return drawn(
        *(name, f"Use of the leaves' vcpus over time with {runs.policy}.", draw), tall + _AROUND
    )
