"""What the runs of a sweep on a network show about kinds of jobs: means and intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_sched.sim.measured.job_kinds import DIMENSIONS, KindMeasures
from hpc_sched.sim.results import Result
from hpc_sched.sim.statistics.columns import LESS, MORE, Column, duration, percent, ratio, whole
from hpc_sched.sim.statistics.estimate import Estimate

# By field of KindMeasures.
KIND_COLUMNS = (
    Column("Jobs", "done", "done", MORE, whole),
    Column("Goodput", "%", "goodput", MORE, percent),
    Column("Wait", "mean", "wait_mean", LESS, duration),
    Column("Bounded slowdown", "mean", "slowdown_mean", LESS, ratio),
    Column("Runtime", "over alone", "factor_mean", LESS, ratio),
    Column("Lost", "by neighbours, %", "lost", LESS, percent),
    Column("Caused", "to neighbours, %", "caused", LESS, percent),
)
_SUMS = ("done", "goodput")  # over jobs, not means of them
KIND_MEANINGS = (
    "Sizes are the smallest part of the empty cluster that holds the job. Goodput: vcpu-hours of "
    "jobs done, as long as they are stated to take, over those of the cluster. Runtime over alone: "
    "over the stated runtime, which is that of the job alone on its best hosts. Lost and caused: "
    "host-hours that jobs lost by their neighbours, and their neighbours by them, over the "
    "host-hours of the jobs."
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of jobs under all policies."""

    dimension: str
    name: str
    # By policy, in the order of their first results, and by field of KindMeasures.
    policies: Mapping[str, Mapping[str, Estimate | None]]


def kinds(results: Sequence[Result]) -> tuple[Kind, ...]:
    """Return the kinds of jobs of all runs; none without a network.

    By dimension, and in the order in which the runs have them.
    """
    order: dict[tuple[str, str], list[str]] = {}
    for result in results:
        names = [(each.dimension, each.name) for each in result.kinds]
        for number, name in enumerate(names):
            order.setdefault(name, []).append(f"{number:06}")
    found = sorted(order, key=lambda kind: (DIMENSIONS.index(kind[0]), max(order[kind]), kind[1]))
    policies = dict.fromkeys(result.summary.policy for result in results)
    return tuple(
        Kind(*kind, {policy: _numbers(results, policy, kind) for policy in policies})
        for kind in found
    )


def _numbers(
    results: Sequence[Result], policy: str, kind: tuple[str, str]
) -> dict[str, Estimate | None]:
    rows: list[KindMeasures] = []
    is_drawn, runs = False, 0
    for result in results:
        if result.summary.policy == policy:
            is_drawn |= result.summary.drawn
            runs += 1
            rows += [each for each in result.kinds if (each.dimension, each.name) == kind]
    # A run without such a job has done none; of its wait nothing is known.
    none = [0.0] * (runs - len(rows)) if rows else []
    return {
        column.field: Estimate.of(
            [float(value) for row in rows if (value := getattr(row, column.field)) is not None]
            + (none if column.field in _SUMS else []),
            is_drawn=is_drawn,
        )
        for column in KIND_COLUMNS
    }
