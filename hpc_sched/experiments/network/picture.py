"""The picture of the network study: runtimes over those of random hosts, by pattern."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.experiments.network.compared_placements import ALONG, PLACEMENTS, PLAN, RANDOM
from hpc_sched.experiments.network.job_seconds import PART_TIME
from hpc_sched.experiments.network.paired_runs import Case, PairedRuns
from hpc_sched.page.rendering import as_file, drawn

_PANEL, _LEGEND = 1.5, 0.9  # inches
# Colours of Okabe and Ito, which differ for the colour-blind, and shapes.
_LOOKS = dict(
    zip(
        (name for name in PLACEMENTS if name != RANDOM),
        (
            *(("#56b4e9", "s"), ("#999999", "v"), ("#e69f00", "^")),
            *(("#d55e00", "o"), ("#009e73", "D"), ("#cc79a7", "P")),
        ),
        strict=True,
    )
)


def picture(runs: PairedRuns) -> str:
    """Return an SVG: a panel for each number of ranks, at the highest oversubscription."""
    study = runs.study
    ratio = max(study.ratios)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(study.ranks), sharex=True, sharey=True, squeeze=False)[:, 0]
        for ranks, axes in zip(study.ranks, panels, strict=True):
            _panel(axes, runs, ranks, ratio)
        panels[-1].set_xticks(range(len(study.patterns)), study.patterns)
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            frameon=False,
        )

    plan = "; ".join(
        f"{ranks} ranks, "
        + ", ".join(
            f"{pattern} {runs.against(Case(PART_TIME, ranks, pattern, ratio, PLAN)).mean:.2f}"
            for pattern in study.patterns
        )
        for ranks in study.ranks
    )
    label = f"Runtime over that on random hosts at {ratio:g}:1. {PLAN}: {plan}."
    return as_file(drawn("network", label, draw, _LEGEND + _PANEL * len(study.ranks)))


def _panel(axes: Axes, runs: PairedRuns, ranks: int, ratio: float) -> None:
    patterns = runs.study.patterns
    for number, (name, (colour, marker)) in enumerate(_LOOKS.items()):
        found = [runs.against(Case(PART_TIME, ranks, pattern, ratio, name)) for pattern in patterns]
        axes.errorbar(
            [i + (number - (len(_LOOKS) - 1) / 2) * 0.12 for i in range(len(patterns))],
            [each.mean for each in found],
            yerr=[each.half_width or 0.0 for each in found],
            color=colour,
            marker=marker,
            markersize=5.5 if name in (PLAN, ALONG) else 4,
            elinewidth=0.9,
            linestyle="none",
            label=name,
        )
    axes.axhline(1.0, color="#1a1a1a", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylabel(f"{ranks} ranks")
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.5, len(patterns) - 0.5)
