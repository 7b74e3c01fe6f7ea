"""The second table of the network study: what a job leaves to the other jobs."""

from collections.abc import Iterator

from hpc_sched.experiments.experiment_table import Cell, Table, mean_and_width
from hpc_sched.experiments.network.compared_placements import PLACEMENTS
from hpc_sched.experiments.network.paired_runs import PairedRuns, other_ranks
from hpc_sched.experiments.network.runtime_table import rounded, settings
from hpc_sched.sim.statistics.estimate import Estimate


def table(runs: PairedRuns) -> Table:
    """Return a row for each pattern and placement."""
    study = runs.study
    ranks, ratio = other_ranks(study), max(study.ratios)
    return Table(
        source="Network, other jobs",
        title=f"time and rates next to the job over those without it, {ranks} ranks at {ratio:g}:1",
        columns=("pattern", "placement", "time", "± of time", "rate of flows", "± of rate"),
        rows=tuple(_rows(runs)),
        settings=settings(study),
        notes=(
            "Time is an iteration of the other jobs, the mean over them. Each communicates "
            f"{100 * study.share:g} % of its runtime where it has its hosts' links for itself. Job "
            "and other jobs slow each other down.",
            "The rate is that of endless flows of the other jobs while the job sends, the mean "
            "over them. A ring waits for its slowest flow: a job that takes much of few uplinks "
            "leaves more on average, and may yet delay more rings.",
            *_findings(runs),
        ),
    )


def _rows(runs: PairedRuns) -> Iterator[tuple[Cell, ...]]:
    for pattern in runs.study.patterns:
        for name in PLACEMENTS:
            yield (
                *(pattern, name),
                *mean_and_width(Estimate.of_drawn(runs.slowdown[pattern, name]), rounded),
                *mean_and_width(Estimate.of_drawn(runs.left[pattern, name]), rounded),
            )


def _findings(runs: PairedRuns) -> Iterator[str]:
    """Yield a sentence on the placement of each pattern that others lose least and most by."""
    for pattern in runs.study.patterns:
        means = {name: Estimate.of_drawn(runs.slowdown[pattern, name]).mean for name in PLACEMENTS}
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        if rounded(means[least]) < rounded(means[most]):
            yield (
                f"{pattern}: others lose least by {least} ({100 * (means[least] - 1):.1f} %), most "
                f"by {most} ({100 * (means[most] - 1):.1f} %)."
            )
