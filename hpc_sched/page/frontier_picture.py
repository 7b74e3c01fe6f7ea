"""The picture of a group's plans: the bottleneck of each by its Hop-Byte and by its harm."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.page.rendering import as_file, drawn

_HEIGHT = 3.0  # inches


@dataclass(frozen=True, slots=True)
class Point:
    """A plan."""

    bottleneck: float  # s
    hop_bytes: float
    harm: float  # s
    leaves: str
    objective: str
    is_chosen: bool
    is_isolated: bool  # so apart from the others


def picture(points: Sequence[Point]) -> str:
    """Return an SVG with a panel for Hop-Byte and one for harm. Same plans, same text.

    :param points: from the least Hop-Byte to the least bottleneck
    """

    def draw(figure: Figure) -> None:
        by_hops, by_harm = figure.subplots(1, 2, sharey=True)
        _panel(by_hops, "Hop-Byte", points, [one.hop_bytes for one in points])
        _panel(by_harm, "harm, s", points, [one.harm for one in points])
        by_hops.set_ylabel("bottleneck, s")
        figure.legend(
            *by_hops.get_legend_handles_labels(),
            loc="outside upper center",
            ncols=3,
            frameon=False,
        )

    label = "; ".join(
        f"{one.objective}{', chosen' if one.is_chosen else ''}: bottleneck {one.bottleneck:.4g} s, "
        f"Hop-Byte {one.hop_bytes:.0f}, harm {one.harm:.4g} s, {one.leaves}"
        for one in points
    )
    return as_file(drawn("frontier", f"Plans of the group. {label}.", draw, _HEIGHT))


def _panel(axes: Axes, name: str, points: Sequence[Point], values: Sequence[float]) -> None:
    heights = [one.bottleneck for one in points]
    line = [i for i, one in enumerate(points) if not one.is_isolated]
    chosen = [i for i, one in enumerate(points) if one.is_chosen]
    for which, label, colour, marker, style in (
        (line, "least bottleneck", "#0072b2", "o", "solid"),
        ([0], "least Hop-Byte", "#1a1a1a", "s", "none"),
        (chosen, "chosen", "#d55e00", "D", "none"),
    ):
        axes.plot(
            [values[i] for i in which],
            [heights[i] for i in which],
            color=colour,
            marker=marker,
            linestyle=style,
            label=label,
        )
    for i in sorted({0, *chosen, len(points) - 1}):
        axes.annotate(
            points[i].leaves,
            (values[i], heights[i]),
            xytext=(5, 4),
            textcoords="offset points",
        )
    axes.set_xlabel(name)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.35, y=0.15)
