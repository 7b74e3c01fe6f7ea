"""The table of all runs: one row per policy, one column per measure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from hpc_sched.sim.report import number_text
from hpc_sched.sim.report.number_text import DASH
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.summary import Summary

MORE, LESS = 1, -1  # what is better


@dataclass(frozen=True, slots=True)
class Column:
    """A measure; the columns of one group have one heading above theirs."""

    group: str
    name: str  # with the unit
    better: int  # MORE or LESS
    value: Callable[[Summary], float | None]
    text: Callable[[float], str]
    exact: Callable[[float], str] | None = None  # for a tooltip


@dataclass(frozen=True, slots=True)
class TableCell:
    """The content of one field."""

    text: str
    exact: str = ""  # the number in full if the text is rounded
    span: str = ""  # least to most over the seeds
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy."""

    runs: PolicyRuns
    cells: tuple[TableCell, ...]


def _time(group: str, name: str, value: Callable[[Summary], float | None]) -> Column:
    return Column(group, name, LESS, value, number_text.duration, number_text.exact_seconds)


COLUMNS = (
    Column("Jobs", "done", MORE, lambda s: s.done, number_text.whole),
    Column("Jobs", "refused", LESS, lambda s: s.refused, number_text.whole),
    Column("Jobs", "failed", LESS, lambda s: s.failed, number_text.whole),
    Column("Jobs", "left", LESS, lambda s: s.left, number_text.whole),
    Column("Jobs", "apart", LESS, lambda s: s.apart, number_text.whole),
    _time("Time", "makespan", lambda s: s.makespan),
    _time("Wait", "mean", lambda s: s.wait_mean),
    _time("Wait", "median", lambda s: s.wait_median),
    _time("Wait", "95 %", lambda s: s.wait_p95),
    Column("Bounded slowdown", "mean", LESS, lambda s: s.slowdown_mean, number_text.ratio),
    Column("Bounded slowdown", "95 %", LESS, lambda s: s.slowdown_p95, number_text.ratio),
    Column("Use", "vcpus, %", MORE, lambda s: s.vcpu_use, number_text.percent),
    Column("Use", "memory, %", MORE, lambda s: s.memory_use, number_text.percent),
    Column("Hop-Byte", "over least", LESS, lambda s: s.hop_byte_ratio, number_text.ratio),
    Column("Hops", "per pair", LESS, lambda s: s.hops_per_pair, number_text.ratio),
    Column("Leaves", "over least", LESS, lambda s: s.leaf_ratio, number_text.ratio),
    Column("Crossing jobs per leaf", "mean", LESS, lambda s: s.crossing, number_text.ratio),
    Column("Crossing jobs per leaf", "most", LESS, lambda s: s.most_crossing, number_text.whole),
    Column("Runtime", "factor", LESS, lambda s: s.factor_mean, number_text.ratio),
)

MEANINGS = (
    ("Jobs", "refused: no place even on the empty cluster; failed: lost a host; left: ran or "
     "waited when the run stopped; apart: done with VMs on several islands, which no Hop-Byte "
     "knows. The other columns are about jobs that were done."),
    ("Makespan", "From the first start to the last end."),
    ("Wait", "From submission to start; 95 % of the jobs done waited no longer than stated."),
    ("Bounded slowdown", "Time from submission to end over the runtime, which counts as 10 s at "
     "least; 1 is a job that did not wait."),
    ("Use", "Share of the cluster's vcpus and memory that VMs had, over the makespan."),
    ("Hop-Byte over least", "Hops between VMs of a job, summed over pairs and jobs, over the sum "
     "of what each job would have alone on the cluster."),
    ("Hops per pair", "Hops between two VMs of one job, on average over all pairs."),
    ("Leaves over least", "Leaf switches of jobs over those that each would have alone."),
    ("Crossing jobs per leaf", "Jobs that have VMs under a leaf and under others: on average "
     "over leaves and time, and most at one leaf at one time."),
    ("Runtime factor", "By which placements made jobs longer, on average; 1 without a model of "
     "runtimes."),
)  # fmt: skip


def headings() -> list[tuple[str, int]]:
    """Return the headings of groups, and how many columns are below each."""
    return [(name, len(list(group))) for name, group in groupby(COLUMNS, lambda each: each.group)]


def is_fair(policies: Sequence[PolicyRuns]) -> bool:
    """True if all policies have done equally many jobs of each seed."""
    found = {
        tuple(sorted((result.summary.seed, result.summary.done) for result in runs.results))
        for runs in policies
    }
    return len(found) < 2


def rows(policies: Sequence[PolicyRuns]) -> list[PolicyRow]:
    """Return a row for each policy; the best of each column is marked, unless all are alike.

    A policy that has done no job is best in nothing: its waits of 0 mean nothing.
    """
    columns = [_cells(column, policies) for column in COLUMNS]
    return [
        PolicyRow(runs, cells)
        for runs, cells in zip(policies, zip(*columns, strict=True), strict=True)
    ]


def _cells(column: Column, policies: Sequence[PolicyRuns]) -> list[TableCell]:
    found = [number_text.finite_values(runs.results, column.value) for runs in policies]
    means = [fmean(values) if values else None for values in found]
    numbers = [
        mean
        for mean, runs in zip(means, policies, strict=True)
        if mean is not None and runs.has_done
    ]
    best = max(numbers, key=lambda mean: column.better * mean, default=None)
    # Equal texts are equally good: a mark on one of them could not be understood.
    is_alike = len({column.text(mean) for mean in numbers}) < 2
    return [
        TableCell(DASH)
        if mean is None
        else TableCell(
            text=column.text(mean),
            exact=column.exact(mean) if column.exact else "",
            span=_span(column, values),
            is_best=(
                not is_alike
                and best is not None
                and runs.has_done
                and column.text(mean) == column.text(best)
            ),
        )
        for mean, values, runs in zip(means, found, policies, strict=True)
    ]


def _span(column: Column, values: Sequence[float]) -> str:
    if len(values) < 2:
        return ""
    least, most = column.text(min(values)), column.text(max(values))
    return f"{least} to {most}" if least != most else ""
