"""The table of whole queues: the exact plan against each peer, by oversubscription and share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from hpc_sched import exceptions
from hpc_sched.experiments.experiment_table import Setting, Table, mean_and_width
from hpc_sched.experiments.traces import trace_study
from hpc_sched.experiments.traces.trace_study import MEASURED, PEERS, PLAN, TraceStudy
from hpc_sched.sim.results import Summary
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.topology.plurals import text as counted

# Returns the summary of each run of a scenario.
Simulate = Callable[[Scenario, Sequence[Run]], Mapping[Run, Summary]]


class Row(NamedTuple):
    """The exact plan less a peer, seed by seed; what is better is said by the measure."""

    ratio: float
    share: float
    peer: str
    goodput: Estimate  # percentage points
    runtime: Estimate  # % of the peer's mean factor
    lost: Estimate  # percentage points of hosts' time
    wait: Estimate  # s


def rows(study: TraceStudy, simulate: Simulate, progress: Callable[[str], object]) -> list[Row]:
    """Return a row for each oversubscription, share and peer.

    :raises exceptions.SimulationError: naming a run in which no measured job is done
    """
    found = []
    for ratio in study.ratios:
        for share in study.shares:
            progress(f"leaves at {ratio:g}:1, {100 * share:g} % communication")
            runs = simulate(study.scenario(ratio, share), list(study.policies()))
            _check_done(runs)
            found += [_row(study, ratio, share, peer, runs) for peer in PEERS]
    return found


def table(study: TraceStudy, found: Sequence[Row]) -> Table:
    """Return the table of rows."""
    return Table(
        source="Traces",
        title="the exact plan less another policy, seed by seed",
        columns=(
            *("oversubscription", "communication, %", "policy"),
            *("goodput, points", "± goodput", "runtime, %", "± runtime"),
            *("lost by neighbours, points", "± lost", "wait, s", "± wait"),
        ),
        rows=tuple(
            (
                *(row.ratio, 100 * row.share, row.peer),
                *mean_and_width(row.goodput, _rounded),
                *mean_and_width(row.runtime, _rounded),
                *mean_and_width(row.lost, _rounded),
                *mean_and_width(row.wait, partial(_rounded, digits=0)),
            )
            for row in found
        ),
        settings=_settings(study),
        notes=tuple(_notes(found)),
    )


def _check_done(runs: Mapping[Run, Summary]) -> None:
    """Raise an error for a run without a job that is done: nothing can be compared."""
    for run, summary in runs.items():
        if not summary.done:
            raise exceptions.SimulationError(
                f"{run.policy}, seed {run.seed}: none of {counted(summary.jobs, 'measured job')} "
                f"is done, {summary.refused} refused: expected jobs that the hosts can hold"
            )


def _row(
    study: TraceStudy, ratio: float, share: float, peer: str, runs: Mapping[Run, Summary]
) -> Row:
    pairs = [
        (runs[Run(PLAN, seed)], runs[Run(peer, seed)])
        for seed in range(study.seed, study.seed + study.runs)
    ]

    def less(measure: str, unit: float) -> Estimate:
        return Estimate.of_drawn(
            [
                unit * ((getattr(one, measure) or 0.0) - (getattr(other, measure) or 0.0))
                for one, other in pairs
            ]
        )

    mean = sum(other.factor_mean or 0.0 for _, other in pairs) / len(pairs)
    return Row(
        *(ratio, share, peer),
        goodput=less("goodput", 100.0),
        runtime=less("factor_mean", 100.0 / mean),
        lost=less("lost", 100.0),
        wait=less("wait_mean", 1.0),
    )


def _rounded(number: float, digits: int = 2) -> float:
    return round(number, digits) + 0.0  # no minus before a zero


def _settings(study: TraceStudy) -> tuple[Setting, ...]:
    jobs = f"{study.jobs} drawn" if study.trace is None else f"the first {study.jobs} of the trace"
    return (
        Setting("jobs", jobs, "--jobs, and the trace"),
        Setting("runs", str(study.runs), "paired by seed, 95 % intervals of Student's t"),
        Setting(
            "fat tree",
            f"{study.hosts} hosts, {trace_study.HOSTS_A_LEAF} a leaf, "
            f"{trace_study.LEAVES_A_POD} leaves a pod, a VM a host",
            "assumed",
        ),
        Setting("patterns", trace_study.MIX, "assumed, drawn by seed"),
        Setting("queue", "EASY backfilling", "assumed"),
        *(
            (
                Setting("offered load", f"{100 * study.use:g} %", "--use"),
                Setting("sizes", trace_study.SIZES, "assumed"),
                Setting("runtimes", trace_study.RUNTIMES, "assumed"),
                Setting("measured", "{} % to {} % of the jobs".format(*MEASURED), "assumed"),
            )
            if study.trace is None
            else (Setting("speed of arrivals", f"{study.load:g}", "--load"),)
        ),
    )


def _notes(found: Sequence[Row]) -> Iterator[str]:
    yield (
        "A runtime is over that of the job alone on its best hosts, those of the plan of least "
        "Hop-Byte on the cluster without jobs. Below 0 the exact plan has shorter runtimes, loses "
        "less and waits less; above 0 it has more goodput."
    )
    for measure, sign, what in (
        ("goodput", 1, "more goodput"),
        ("runtime", -1, "shorter runtimes"),
        ("lost", -1, "less loss by neighbours"),
    ):
        better = worse = 0
        for row in found:
            estimate: Estimate = getattr(row, measure)
            above, below = estimate.is_above(0), estimate.is_below(0)
            better += above if sign > 0 else below
            worse += below if sign > 0 else above
        yield (
            f"Of {len(found)} comparisons the exact plan has {what} in {better}, the peer in "
            f"{worse}; in the others the interval includes 0."
        )
