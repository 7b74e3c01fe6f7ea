"""The tables of one job among neighbours: its runtime and their loss, against the hops plan."""

from collections.abc import Iterator

from hpc_sched.experiments.experiment_table import Cell, Setting, Table, mean_and_width
from hpc_sched.experiments.objectives.drawn_neighbours import SIZES
from hpc_sched.experiments.objectives.fabrics import HOPS, HOST_RATE, OTHERS
from hpc_sched.experiments.objectives.single_jobs import Case, JobRuns
from hpc_sched.sim.statistics.estimate import Estimate


def table(runs: JobRuns) -> Table:
    """Return a row for each case that any seed has a plan for."""
    study = runs.study
    return Table(
        source="Objectives, one job",
        title="runtime and loss of its neighbours, against the hops plan of the same seed",
        columns=(
            *("leaves", "pods, :1", "leaves, :1", "neighbours", "ranks", "pattern", "objective"),
            *("planned", "runtime", "± runtime", "others lose, %", "± lose"),
            *("more than by hops, points", "± more"),
        ),
        rows=tuple(_row(runs, case) for case in cases(runs) if runs.placed(case)),
        settings=(
            Setting("runs", str(study.runs), "paired by seed, 95 % intervals of Student's t"),
            Setting("fabrics", "leaves of 16 hosts; 4 x 4 or 8 x 8 leaves", "assumed"),
            Setting("link of a host", f"{HOST_RATE * 8 / 1e9:g} Gb/s, 1 us", "assumed"),
            Setting(
                "neighbours",
                f"jobs of {', '.join(map(str, SIZES))} ranks of all patterns on "
                f"{100 * study.taken:g} % of hosts",
                "assumed",
            ),
            Setting(
                "communication",
                f"{100 * study.share:g} % of the runtime, alone on links",
                "assumed",
            ),
        ),
        notes=tuple(_notes(runs)),
    )


def cases(runs: JobRuns) -> Iterator[Case]:
    """Yield all cases but those of the hops plan, in the order of the table."""
    for case in runs.found:
        if case.objective != HOPS.name:
            yield case


def _row(runs: JobRuns, case: Case) -> tuple[Cell, ...]:
    return (
        *(case.leaves, case.pod_ratio, case.leaf_ratio, case.neighbours, case.ranks),
        *(case.pattern, case.objective, f"{runs.placed(case)} of {runs.study.runs}"),
        *_cells(runs.runtime(case), 1.0, 3),
        *_cells(runs.others_alone(case), 100.0, 1),
        *_cells(runs.others(case), 100.0, 1),
    )


def _cells(found: Estimate | None, unit: float, digits: int) -> tuple[Cell, Cell]:
    if found is None:
        return None, None
    return mean_and_width(found, lambda number: round(unit * number, digits) + 0.0)


def _notes(runs: JobRuns) -> Iterator[str]:
    yield (
        "A runtime is over that by the hops plan, next to the same jobs: below 1 the objective "
        "gains. What others lose is how much longer their iterations are than without the job, the "
        "mean over their hosts. Scattered neighbours are on random hosts; packed ones are what is "
        "left of a cluster that was filled job by job by the hops plan."
    )
    yield "Isolated: no uplink that any neighbour uses; rows have the seeds with such a plan only."
    every = list(cases(runs))
    for objective in OTHERS:
        of_it = [case for case in every if case.objective == objective.name]
        runtimes = [each for case in of_it if (each := runs.runtime(case)) is not None]
        others = [each for case in of_it if (each := runs.others(case)) is not None]
        if runtimes:
            yield (
                f"{objective.name}: the job is faster than by hops in "
                f"{sum(each.is_below(1) for each in runtimes)} of {len(of_it)} cases and slower in "
                f"{sum(each.is_above(1) for each in runtimes)}; neighbours lose more in "
                f"{sum(each.is_above(0) for each in others)} and less in "
                f"{sum(each.is_below(0) for each in others)}; in the others the interval includes "
                "no difference, or there is none."
            )
