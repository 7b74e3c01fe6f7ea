"""The table of whole mixes: each objective for all jobs, less the hops plan for all."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hpc_sched.experiments.experiment_table import Setting as Assumed
from hpc_sched.experiments.experiment_table import Table, mean_and_width
from hpc_sched.experiments.objectives import mix_study
from hpc_sched.experiments.objectives.fabrics import HOPS
from hpc_sched.experiments.objectives.mix_study import ALL, MixStudy, Setting, Simulate, results
from hpc_sched.sim.measured.job_kinds import PATTERN
from hpc_sched.sim.results import Result
from hpc_sched.sim.statistics.estimate import Estimate


class Row(NamedTuple):
    """An objective less the hops plan, seed by seed; what is better is said by the measure."""

    setting: Setting
    pattern: str  # of the jobs, or ALL
    objective: str
    runtime: Estimate  # mean factor over that of the hops plan
    goodput: Estimate  # percentage points
    lost: Estimate  # percentage points of hosts' time
    wait: Estimate | None  # s; None: of one pattern of a mix


def rows(study: MixStudy, simulate: Simulate, progress: Callable[[str], object]) -> list[Row]:
    """Return a row for each setting, objective and pattern.

    :raises exceptions.SimulationError: naming a run in which no measured job is done
    """
    found: list[Row] = []
    for setting in study.settings():
        leaves, pod_ratio, leaf_ratio, use, mix = setting
        progress(
            f"{leaves} leaves at {leaf_ratio:g}:1, pods at {pod_ratio:g}:1, "
            f"use {100 * use:g} %, patterns {mix}"
        )
        runs = results(study.scenario(setting), study.seeds, simulate, study.objectives)
        found += of_setting(setting, runs)
    return found


def of_setting(setting: Setting, runs: dict[str, list[Result]]) -> Iterator[Row]:
    """Yield the rows of a setting: of all jobs, then of each pattern of a mix."""
    before = runs[HOPS.name]
    for objective, after in runs.items():
        if objective == HOPS.name:
            continue
        yield Row(
            *(setting, setting.mix, objective),
            runtime=_paired(before, after, _factor, _over),
            goodput=_paired(before, after, lambda run: 100 * (run.summary.goodput or 0.0), _less),
            lost=_paired(before, after, lambda run: 100 * (run.summary.lost or 0.0), _less),
            wait=_paired(before, after, lambda run: run.summary.wait_mean or 0.0, _less),
        )
        if setting.mix == ALL:
            yield from _of_patterns(setting, objective, before, after)


def _of_patterns(
    setting: Setting, objective: str, before: Sequence[Result], after: Sequence[Result]
) -> Iterator[Row]:
    """Yield a row for each pattern that jobs of all runs have."""
    kinds = [
        {kind.name: kind for kind in run.kinds if kind.dimension == PATTERN and kind.done}
        for run in (*before, *after)
    ]
    its, mine = kinds[: len(before)], kinds[len(before) :]
    for pattern in sorted(set.intersection(*map(set, kinds))):
        pairs = [(old[pattern], new[pattern]) for old, new in zip(its, mine, strict=True)]
        yield Row(
            *(setting, pattern, objective),
            runtime=Estimate.of_drawn(
                [(new.factor_mean or 1.0) / (old.factor_mean or 1.0) for old, new in pairs]
            ),
            goodput=Estimate.of_drawn([100 * (new.goodput - old.goodput) for old, new in pairs]),
            lost=Estimate.of_drawn(
                [100 * ((new.lost or 0.0) - (old.lost or 0.0)) for old, new in pairs]
            ),
            wait=None,
        )


def _factor(run: Result) -> float:
    return run.summary.factor_mean or 1.0


def _over(mine: float, its: float) -> float:
    return mine / its


def _less(mine: float, its: float) -> float:
    return mine - its


def _paired(
    before: Sequence[Result],
    after: Sequence[Result],
    value: Callable[[Result], float],
    compared: Callable[[float, float], float],
) -> Estimate:
    pairs = zip(before, after, strict=True)
    return Estimate.of_drawn([compared(value(mine), value(its)) for its, mine in pairs])


def table(study: MixStudy, found: Sequence[Row]) -> Table:
    """Return the table of rows."""
    return Table(
        source="Objectives, whole mixes",
        title="all jobs by an objective, against all jobs by hops, seed by seed",
        columns=(
            *("leaves", "pods, :1", "leaves, :1", "use, %", "pattern", "objective"),
            *("runtime", "± runtime", "goodput, points", "± goodput"),
            *("lost, points", "± lost", "wait, s", "± wait"),
        ),
        rows=tuple(
            (
                *(row.setting.leaves, row.setting.pod_ratio, row.setting.leaf_ratio),
                *(round(100 * row.setting.use, 1), _shown(row), row.objective),
                *mean_and_width(row.runtime, lambda number: round(number, 3)),
                *mean_and_width(row.goodput, _two_digits),
                *mean_and_width(row.lost, _two_digits),
                *((None, None) if row.wait is None else mean_and_width(row.wait, round)),
            )
            for row in found
        ),
        settings=_settings(study),
        notes=tuple(_notes(found)),
    )


def _shown(row: Row) -> str:
    return row.pattern if row.setting.mix == ALL else f"only {row.pattern}"


def _two_digits(number: float) -> float:
    return round(number, 2) + 0.0  # no minus before a zero


def _settings(study: MixStudy) -> tuple[Assumed, ...]:
    return (
        Assumed("runs", str(study.runs), "paired by seed, 95 % intervals of Student's t"),
        Assumed("jobs", f"{study.jobs} drawn", "--jobs"),
        Assumed("sizes", study.sizes, "--sizes"),
        Assumed("runtimes", mix_study.RUNTIMES, "assumed"),
        Assumed("communication", f"{100 * study.share:g} % of the runtimes", "assumed"),
        Assumed("measured", "{} % to {} % of the jobs".format(*mix_study.MEASURED), "assumed"),
        Assumed("queue", "EASY backfilling", "assumed"),
        Assumed("fabrics", "leaves of 16 hosts, a VM a host; 4 x 4 or 8 x 8 leaves", "assumed"),
    )


def _notes(found: Sequence[Row]) -> Iterator[str]:
    yield (
        "A runtime is the mean over the jobs, each over that of the job alone on its hosts by the "
        "hops plan, divided by that mean where all jobs are planned by hops. Lost is the share of "
        "their hosts' time that jobs lose by their neighbours, less that by hops. Below 1, and "
        "below 0, the objective is better; above 0 it has more goodput."
    )
    settings = [row for row in found if row.wait is not None]
    for objective in dict.fromkeys(row.objective for row in settings):
        of_it = [row for row in settings if row.objective == objective]
        less, more = _split([row.runtime for row in of_it], 1)
        worse, better = _split([row.goodput for row in of_it], 0)
        yield (
            f"{objective}: runtimes of all jobs are shorter than by hops in {less} of "
            f"{len(of_it)} settings and longer in {more}; goodput is more in {better} and less in "
            f"{worse}; in the others the interval includes no difference."
        )


def _split(found: Sequence[Estimate], bound: float) -> tuple[int, int]:
    """Return how many are below a number, and how many above it."""
    return sum(each.is_below(bound) for each in found), sum(each.is_above(bound) for each in found)
