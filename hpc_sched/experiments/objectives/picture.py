"""The picture of one job among neighbours: its runtime over that of the hops plan, by pattern."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hpc_sched.experiments.objectives.fabrics import BOTTLENECK, STATED, UNBOUNDED
from hpc_sched.experiments.objectives.single_jobs import Case, JobRuns
from hpc_sched.page.rendering import as_file, drawn

_PANEL, _LEGEND = 1.5, 0.9  # inches
# Colours of Okabe and Ito, which differ for the colour-blind, and shapes.
_COLOURS = {BOTTLENECK.name: "#d55e00", STATED.name: "#009e73", UNBOUNDED.name: "#56b4e9"}
_MARKERS = ("o", "s")
_APART = 0.12  # of the markers of one pattern


def picture(runs: JobRuns) -> str:
    """Return an SVG: a panel for each fabric and oversubscription of the pods.

    At the highest oversubscription of the leaves, of the middle number of ranks.
    """
    study = runs.study
    ratio, ranks = max(study.leaf_ratios), study.ranks[len(study.ranks) // 2]
    first = Case(0, 1.0, ratio, study.neighbours[0], ranks, "", "")
    shown = [
        first._replace(leaves=leaves, pod_ratio=pod_ratio)
        for leaves in study.fabrics
        for pod_ratio in study.pod_ratios
    ]

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
        for case, axes in zip(shown, panels, strict=True):
            _panel(axes, runs, case)
        panels[-1].set_xticks(range(len(study.patterns)), study.patterns)
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=2,
            frameon=False,
            fontsize=7.5,  # the longest two names fit next to each other
            columnspacing=1.0,
            handletextpad=0.3,
        )

    label = (
        f"Runtime of a job of {ranks} ranks over that by the hops plan, leaves at {ratio:g}:1. "
        + "; ".join(f"{_title(case)}: {_means(runs, case)}" for case in shown)
        + "."
    )
    return as_file(drawn("objectives", label, draw, _LEGEND + _PANEL * len(shown)))


def _title(case: Case) -> str:
    return f"{case.leaves} leaves, pods {case.pod_ratio:g}:1"


def _means(runs: JobRuns, case: Case) -> str:
    """Return the means of the plan of least bottleneck, by pattern, for readers of text."""
    found = {
        pattern: runs.runtime(case._replace(pattern=pattern, objective=BOTTLENECK.name))
        for pattern in runs.study.patterns
    }
    return ", ".join(f"{name} {each.mean:.2f}" for name, each in found.items() if each is not None)


def _panel(axes: Axes, runs: JobRuns, case: Case) -> None:
    patterns, kinds = runs.study.patterns, runs.study.neighbours
    series = [(objective, kind) for objective in _COLOURS for kind in kinds]
    for number, (objective, kind) in enumerate(series):
        found = [
            runs.runtime(case._replace(neighbours=kind, pattern=pattern, objective=objective))
            for pattern in patterns
        ]
        at = [
            (i + (number - (len(series) - 1) / 2) * _APART, each)
            for i, each in enumerate(found)
            if each is not None
        ]
        axes.errorbar(
            [x for x, _ in at],
            [each.mean for _, each in at],
            yerr=[each.half_width or 0.0 for _, each in at],
            color=_COLOURS[objective],
            marker=_MARKERS[kinds.index(kind) % len(_MARKERS)],
            markersize=4.5,
            elinewidth=0.9,
            linestyle="none",
            label=f"{objective}, {kind}",
        )
    axes.axhline(1.0, color="#1a1a1a", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylabel(_title(case).replace(", ", "\n"))
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.5, len(patterns) - 0.5)
