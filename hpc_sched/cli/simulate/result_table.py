"""The rows that hpc-sched simulate prints."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_sched.cli.common import output
from hpc_sched.cli.common.base_command import Table
from hpc_sched.sim.measured.measured_window import ALL_OF_IT, MeasuredPart
from hpc_sched.sim.results import Result, Summary, written_fields
from hpc_sched.sim.statistics.columns import COLUMNS, IMPORTANT, plus_minus
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.sim.statistics.kind_comparison import KIND_COLUMNS, kinds
from hpc_sched.sim.statistics.policy_comparison import Comparison, Evidence
from hpc_sched.sim.statistics.sentences import about_marks

STAR = "*"
_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
_WIDTH = 100  # of sentences
TABLE = "table"  # the format for people

# Columns of the format table; -c and -f csv have all.
_OF_A_RUN = (
    *("policy", "seed", "done", "refused", "left", "makespan", "wait_mean", "slowdown_mean"),
    *("vcpu_use", "hops_per_pair", "hop_byte_ratio", "leaf_ratio", "factor_mean"),
)
# The same with prices of core-hours.
_COST_OF_A_RUN = (
    *("policy", "seed", "done", "refused", "left", "makespan", "factor_mean", "core_hours"),
    *("host_core_hours", "revenue", "revenue_per_host_hour", "revenue_per_host_core_hour"),
)
# The same with limits of waiting for a place: what a limit costs and what it gains.
_LIMIT_OF_A_RUN = (
    *("policy", "seed", "done", "refused", "left", "held", "wait_mean", "wait_median", "wait_p95"),
    *("hop_byte_ratio", "leaf_ratio", "as_preferred"),
)
_IMPORTANT = tuple(column.field for column in IMPORTANT)
_LIMIT_OF_A_POLICY = (
    *("done", "refused", "left", "wait_mean", "wait_p95", "hop_byte_ratio", "leaf_ratio"),
    "as_preferred",
)
_NETWORK = ("goodput", "lost")
_COST_OF_A_POLICY = ("core_hours", "host_core_hours", "revenue_per_host_hour")


def of_runs(
    results: Sequence[Result], comparison: Comparison, formatter: str, *, all_columns: bool
) -> Table:
    """Return a row for each run; the format for people marks the best where it is known.

    :param all_columns: whether the format for people has all columns too
    """
    written = written_fields(results)
    names: Sequence[str] = written
    if formatter == TABLE and not all_columns:
        names = _COST_OF_A_RUN if _has_prices(results) else _OF_A_RUN
        names = _with_killed(_LIMIT_OF_A_RUN if has_limits(results) else names, results)
        network = [name for name in _NETWORK if name in written]
        # Seconds in place of hops: a terminal has no room for both.
        names = [*(name for name in names if not network or name != "hops_per_pair"), *network]
    # A mark on one of several runs would say that this run is the best.
    has_marks = formatter == TABLE and comparison.evidence is Evidence.EXACT
    marked = _marked(comparison) if has_marks else {}

    def shown(summary: Summary, name: str) -> Any:
        value = output.cell(getattr(summary, name), formatter)
        return f"{value} {STAR}" if summary.policy in marked.get(name, ()) else value

    return names, [[shown(result.summary, name) for name in names] for result in results]


def of_policies(results: Sequence[Result], comparison: Comparison, *, all_columns: bool) -> Table:
    """Return a row for each policy: means with half the width of their confidence intervals."""
    cost = _COST_OF_A_POLICY if _has_prices(results) else ()
    written = written_fields(results)
    network = (name for name in _NETWORK if name in written)
    of_all = _LIMIT_OF_A_POLICY if has_limits(results) else _IMPORTANT
    names = _with_killed(("policy", "runs", *of_all, *cost, *network), results)
    if all_columns:
        names = ("policy", "runs", *(each.field for each in COLUMNS if each.field in written))
    marked, runs = _marked(comparison), Counter(result.summary.policy for result in results)
    return names, [
        [
            *(policy.name, runs[policy.name]),
            *(_mean(policy.means[n], is_best=policy.name in marked[n]) for n in names[2:]),
        ]
        for policy in comparison.policies
    ]


def below(
    comparison: Comparison, measured: MeasuredPart = ALL_OF_IT, *, has_limits: bool = False
) -> Iterator[str]:
    """Yield what the table means; with confidence intervals the differences to the baseline.

    :param has_limits: whether jobs wait for a preferred place
    """
    if measured != ALL_OF_IT:
        yield from textwrap.wrap(f"Measured: {measured.sentence}.", _WIDTH)
    if comparison.evidence is Evidence.INTERVALS and len(comparison.policies) > 1:
        yield f"Difference to {comparison.policies[0].name}, seed by seed, in % of its mean:"
        header = ["", *(_LIMIT_OF_A_POLICY if has_limits else _IMPORTANT)]
        rows = [
            [policy.name, *(_percent(comparison.percent(policy, each)) for each in header[1:])]
            for policy in comparison.policies[1:]
        ]
        yield from output.aligned([header, *rows], range(1, len(header)))
    for sentence in about_marks(comparison, STAR):
        yield from textwrap.wrap(sentence, _WIDTH)


def of_kinds(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of kinds of jobs, with a network: a row for each kind and policy."""
    found = kinds(results)
    if not found:
        return
    header = ["", "", "policy", *(column.field for column in KIND_COLUMNS)]
    rows = [
        [
            *(kind.dimension, kind.name, policy),
            *(_mean(numbers[column.field], is_best=False) for column in KIND_COLUMNS),
        ]
        for kind in found
        for policy, numbers in kind.policies.items()
    ]
    yield from output.aligned([header, *rows], range(3, len(header)))
    yield ""


def _with_killed(names: Sequence[str], results: Sequence[Result]) -> Sequence[str]:
    """Return the names, and that of the killed jobs where there are any."""
    if not any(result.summary.killed for result in results):
        return names
    behind = names.index("refused") + 1
    return (*names[:behind], "killed", *names[behind:])


def has_limits(results: Sequence[Result]) -> bool:
    """True if the jobs of the runs wait for a preferred place."""
    return any(result.summary.wait_limit is not None for result in results)


def _has_prices(results: Sequence[Result]) -> bool:
    return any(result.summary.revenue is not None for result in results)


def _marked(comparison: Comparison) -> dict[str, frozenset[str]]:
    return {column.field: comparison.marked(column.field, _number) for column in COLUMNS}


def _number(value: float) -> str:
    return str(output.cell(value, TABLE))


def _mean(found: Estimate | None, *, is_best: bool) -> str:
    if found is None:
        return ""
    text = _number(found.mean)
    if found.half_width:
        text = f" {_PLUS_MINUS} ".join(plus_minus(found.mean, found.half_width, ""))
    return f"{text} {STAR}" if is_best else text


def _percent(found: tuple[float, float | None] | None) -> str:
    if found is None or found[1] is None:
        return "-"
    mean, half_width = found
    if not half_width:
        return f"{mean:+.3g}" if mean else "0"
    text, spread = plus_minus(mean, half_width, "")
    return f"{'+' if mean > 0 else ''}{text} {_PLUS_MINUS} {spread}"
