"""The fabric over time: how full each leaf is, one picture per policy."""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hpc_sched.sim.report.plot import Panel, Plot, drawn, parted
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.report.timeline import end_of, set_time_axis
from hpc_sched.sim.results import Result
from hpc_sched.topology.writers.svg_layout import cut

MOST_ROWS = 100
_MOST_COLUMNS = 480  # as many pixels as the picture is wide
# Cividis looks the same with most kinds of colour blindness. One colour per percent is all that
# a reader can distinguish, and packs better.
_COLOURS = "cividis"
_STEPS = 101

_ROW, _AROUND = 0.16, 0.75  # inches: a leaf, and the axis below
_LOW, _HIGH = 1.1, 4.6  # inches of all leaves
_LETTER_ROW = 0.13  # inches that a name takes
_NAME_ROOM, _LETTERS = 110, 10  # pixels

Reals = NDArray[np.float64]


def plot(policies: Sequence[PolicyRuns]) -> Plot:
    """Return a picture for each policy; all have the same axis and the same colours."""
    shown, missing = parted(policies, lambda each: each.shown.series.time and each.shown.leaves)
    end = end_of(shown)
    reading = (
        "Each row is a leaf switch, neighbours in the fabric next to each other; the lighter, "
        "the more of its vcpus VMs have. White: the run had ended. Compact placement "
        "shows as rows that are full or empty, scattered placement as rows that are all alike."
    )
    merged = max((_merged(each.shown) for each in shown), default=1)
    if merged > 1:
        reading += f" A row is the mean of up to {merged} neighbouring leaves, named by the first."
    samples = max((len(each.shown.series.time) for each in shown), default=1)
    count = min(_MOST_COLUMNS, samples) if end > 0 else 1
    panels = tuple(
        Panel(_picture(f"heat-{number}", each, end, count), each.policy)
        for number, each in enumerate(shown, start=1)
    )
    return Plot("Use of the leaves", reading, panels, missing=missing)


def rows(result: Result) -> tuple[list[str], Reals]:
    """Return the names of rows, and the use of vcpus with the shape (rows, samples), 0 to 1.

    Neighbouring leaves are merged until there are no more than MOST_ROWS.
    """
    together = _merged(result)
    starts = range(0, len(result.leaves), together)
    use = np.array(result.series.leaves, dtype=np.float64).T
    sums = np.add.reduceat(use, list(starts), axis=0)
    counts = np.diff([*starts, len(result.leaves)])
    return [result.leaves[start] for start in starts], sums / counts[:, np.newaxis]


def columns(times: Sequence[float], end: float, count: int) -> list[int]:
    """Return the sample that each column shows, or -1 after the run's end. Shape (count,).

    Samples of different runs are taken at different times; columns are equally wide, and
    reach from 0 to the end.
    """
    width = end / count
    middles = (np.arange(count) + 0.5) * width
    found = np.searchsorted(np.asarray(times), middles, side="right") - 1
    found = np.where(middles <= times[-1] + width, np.maximum(found, 0), -1)
    samples: list[int] = found.tolist()
    return samples


def _merged(result: Result) -> int:
    return math.ceil(len(result.leaves) / MOST_ROWS)


def _picture(name: str, runs: PolicyRuns, end: float, count: int) -> Markup:
    names, use = rows(runs.shown)
    samples = columns(runs.shown.series.time, end, count)
    shown = np.ma.masked_array(
        np.clip(100 * use[:, samples], 0, 100),
        mask=np.broadcast_to(np.array(samples) < 0, (len(names), len(samples))),
    )
    tall = min(max(_ROW * len(names), _LOW), _HIGH)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        unit = set_time_axis(axes, end)
        image = axes.imshow(
            shown,
            cmap=matplotlib.colormaps[_COLOURS].resampled(_STEPS),
            vmin=0,
            vmax=100,
            aspect="auto",
            interpolation="none",
            extent=(0, end / unit if end > 0 else 1.0, len(names) - 0.5, -0.5),
        )
        axes.grid(visible=False)
        axes.set_ylabel("Leaf switch")
        every = math.ceil(_LETTER_ROW * len(names) / tall)
        axes.set_yticks(
            range(0, len(names), every),
            [cut(name, _NAME_ROOM, _LETTERS) for name in names[::every]],
            fontsize=7,
        )
        bar = figure.colorbar(image, ax=axes, label="vcpus in use (%)", pad=0.02, aspect=25)
        bar.outline.set_visible(False)

    label = f"Use of the leaves' vcpus over time with {runs.policy}."
    return drawn(name, label, draw, tall + _AROUND)
