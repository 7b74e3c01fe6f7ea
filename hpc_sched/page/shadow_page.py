"""The page of the report on shadow mode."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure

from hpc_sched.page import rendering

# A project and a number of VMs, with the texts of the other columns.
TextRow = tuple[str, str, Sequence[Any]]


def page(
    about: Sequence[tuple[str, str]],
    notes: Sequence[str],
    headings: Sequence[str],
    rows: Sequence[TextRow],
    ratios: Sequence[tuple[str, float]],
) -> str:
    """Return the report as one HTML page that loads nothing. Same input, same text.

    :param ratios: number of VMs to the cost of stock Nova over that of the plans
    """
    return rendering.rendered(
        "shadow.html",
        title="Shadow mode: plans and what stock Nova did",
        about=about,
        notes=notes,
        headings=headings,
        rows=rows,
        picture=_bars(ratios) if ratios else None,
    )


def _bars(ratios: Sequence[tuple[str, float]]) -> Markup:
    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        names, values = zip(*ratios, strict=True)
        bars = axes.barh(range(len(names)), values, height=0.62, tick_label=names, color="#0072b2")
        axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=5)
        axes.axvline(1, color="#1a1a1a", linewidth=1)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel("Hop-Byte of stock Nova over that of the plans")
        axes.set_ylabel("VMs of the request")
        axes.grid(visible=False, axis="y")

    return rendering.drawn("shadow-cost", "Cost by size", draw, 0.9 + 0.3 * len(ratios))
