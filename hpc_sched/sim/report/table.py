"""The table of all runs: one row per policy, one column per measure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from hpc_sched import decimals
from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.results import Result, Summary

DASH = "\N{EN DASH}"
MORE, LESS = 1, -1  # what is better

# Smaller unit in s, how many make the larger unit, most of the larger unit, names.
_PAIRS = ((1, 60, 60, "min", "s"), (60, 60, 24, "h", "min"), (3600, 24, math.inf, "d", "h"))


def duration(seconds: float) -> str:
    """Return a time with its two largest units: ``3d 4h``, ``5min 20s``, ``12.5 s``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    for part, parts, most, large, small in _PAIRS:
        # Rounded before it is compared: 59min 59.7s is 1h.
        whole, rest = divmod(round(seconds / part), parts)
        text = f"{whole:,}{large} {rest}{small}" if rest else f"{whole:,}{large}"
        if whole < most:
            break
    return text


def ratio(value: float) -> str:
    """Return a number with two decimals."""
    return f"{value:,.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 100 else f"{amount:.3g}"


def finite_values(
    results: Iterable[Result], value: Callable[[Summary], float | None]
) -> list[float]:
    """Return the value of each result that has one and can be shown."""
    found = (value(result.summary) for result in results)
    return [each for each in found if each is not None and math.isfinite(each)]


@dataclass(frozen=True, slots=True)
class Column:
    """A measure; the columns of one group have one heading above theirs."""

    group: str
    name: str  # with the unit
    better: int  # MORE or LESS
    value: Callable[[Summary], float | None]
    text: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class TableCell:
    """The content of one field."""

    text: str
    exact: str = ""  # the number in full if the text is rounded
    span: str = ""  # least to most over the seeds
    is_best: bool = False


COLUMNS = (
    Column("Jobs", "done", MORE, lambda s: s.done, _whole),
    Column("Jobs", "refused", LESS, lambda s: s.refused, _whole),
    Column("Jobs", "failed", LESS, lambda s: s.failed, _whole),
    Column("Jobs", "left", LESS, lambda s: s.left, _whole),
    Column("Jobs", "apart", LESS, lambda s: s.apart, _whole),
    Column("Time", "makespan", LESS, lambda s: s.makespan, duration),
    Column("Wait", "mean", LESS, lambda s: s.wait_mean, duration),
    Column("Wait", "median", LESS, lambda s: s.wait_median, duration),
    Column("Wait", "95 %", LESS, lambda s: s.wait_p95, duration),
    Column("Bounded slowdown", "mean", LESS, lambda s: s.slowdown_mean, ratio),
    Column("Bounded slowdown", "95 %", LESS, lambda s: s.slowdown_p95, ratio),
    Column("Use", "vcpus, %", MORE, lambda s: s.vcpu_use, _percent),
    Column("Use", "memory, %", MORE, lambda s: s.memory_use, _percent),
    Column("Hop-Byte", "over least", LESS, lambda s: s.hop_byte_ratio, ratio),
    Column("Hops", "per pair", LESS, lambda s: s.hops_per_pair, ratio),
    Column("Leaves", "over least", LESS, lambda s: s.leaf_ratio, ratio),
    Column("Crossing jobs per leaf", "mean", LESS, lambda s: s.crossing, ratio),
    Column("Crossing jobs per leaf", "most", LESS, lambda s: s.most_crossing, _whole),
    Column("Runtime", "factor", LESS, lambda s: s.factor_mean, ratio),
    Column("Core-hours", "of VMs", LESS, lambda s: s.core_hours, _whole),
    Column("Core-hours", "of hosts in use", LESS, lambda s: s.host_core_hours, _whole),
)
# Only where core-hours have prices.
REVENUE = Column("Revenue", "per host-hour", MORE, lambda s: s.revenue_per_host_hour, _money)

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
    ("Core-hours", "Of VMs: their vcpus times the hours that they ran, which users pay for. Of "
     "hosts in use: all cores of the hosts that had a VM, which the operator runs. All jobs that "
     "ran count, not only those done."),
    ("Revenue per host-hour", "What users pay for the core-hours of their VMs, over the hours of "
     "the hosts in use."),
)  # fmt: skip


def columns(policies: Sequence[PolicyRuns]) -> tuple[Column, ...]:
    """Return the columns, that of the revenue only where core-hours have prices."""
    results = (result for runs in policies for result in runs.results)
    has_prices = any(result.summary.revenue is not None for result in results)
    return (*COLUMNS, REVENUE) if has_prices else COLUMNS


def headings(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Return the headings of groups, and how many columns are below each."""
    return [(name, len(list(group))) for name, group in groupby(columns, lambda each: each.group)]


def is_fair(policies: Sequence[PolicyRuns]) -> bool:
    """True if all policies have done equally many jobs of each seed."""
    found = {
        tuple(sorted((result.summary.seed, result.summary.done) for result in runs.results))
        for runs in policies
    }
    return len(found) < 2


def rows(policies: Sequence[PolicyRuns]) -> list[tuple[PolicyRuns, tuple[TableCell, ...]]]:
    """Return each policy with its cells; the best of a column is marked, unless all are alike.

    A policy that has done no job is best in nothing: its waits of 0 mean nothing.
    """
    cells = [_cells(column, policies) for column in columns(policies)]
    return list(zip(policies, zip(*cells, strict=True), strict=True))


def _cells(column: Column, policies: Sequence[PolicyRuns]) -> list[TableCell]:
    found = [finite_values(runs.results, column.value) for runs in policies]
    means = [fmean(values) if values else None for values in found]
    numbers = [
        mean
        for mean, runs in zip(means, policies, strict=True)
        if mean is not None and runs.has_done
    ]
    # Equal texts are equally good: a mark on one of them could not be understood.
    is_alike = len(set(map(column.text, numbers))) < 2
    best = "" if is_alike else column.text(max(numbers, key=lambda mean: column.better * mean))
    return [
        TableCell(DASH) if mean is None else _cell(column, mean, values, best, runs.has_done)
        for mean, values, runs in zip(means, found, policies, strict=True)
    ]


def _cell(
    column: Column, mean: float, values: Sequence[float], best: str, has_done: bool
) -> TableCell:
    text, least, most = map(column.text, (mean, min(values), max(values)))
    return TableCell(
        text=text,
        exact=f"{decimals.text_of(mean)} s" if column.text is duration else "",
        span=f"{least} to {most}" if least != most else "",
        is_best=has_done and text == best,
    )
