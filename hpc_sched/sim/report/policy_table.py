"""The tables of runs: one row per policy, one column per measure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from hpc_sched import decimals
from hpc_sched.sim.report.policy_runs import LineStyle, PolicyRuns
from hpc_sched.sim.statistics.columns import Column, duration, plus_minus
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.sim.statistics.policy_comparison import ComparedPolicy, Comparison

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class TableCell:
    """The content of one field."""

    text: str
    exact: str = ""  # the number in full if the text is rounded
    span: str = ""  # its confidence interval, or least to most over the seeds
    is_best: bool = False
    is_open: bool = False  # a difference whose interval includes 0


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one policy."""

    policy: str
    look: LineStyle
    cells: tuple[TableCell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of policies under columns."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def headings(self) -> list[tuple[str, int]]:
        """The headings of groups, and how many columns are below each."""
        return [
            (name, len(list(columns)))
            for name, columns in groupby(self.columns, lambda column: column.group)
        ]


def means(
    columns: Sequence[Column], policies: Sequence[PolicyRuns], comparison: Comparison
) -> Table:
    """Return the mean of each measure; the best of a column is marked if it is known."""

    marked = {column.field: comparison.marked(column.field, column.text) for column in columns}

    def cell(column: Column, policy: ComparedPolicy) -> TableCell:
        found = estimated(column, policy.means[column.field])
        return replace(found, is_best=found.text != DASH and policy.name in marked[column.field])

    return _table(columns, zip(policies, comparison.policies, strict=True), cell)


def estimated(column: Column, estimate: Estimate | None) -> TableCell:
    """Return the cell of a mean with its interval, or with the least and most over the seeds."""
    if estimate is None:
        return TableCell(DASH)
    text, span = column.text(estimate.mean), ""
    if estimate.half_width:
        text, half_width = column.interval(estimate.mean, estimate.half_width)
        span = f"\N{PLUS-MINUS SIGN} {half_width}"
    elif estimate.half_width is None:
        least, most = column.text(estimate.least), column.text(estimate.most)
        span = f"{least} to {most}" if least != most else ""
    exact = f"{decimals.text_of(estimate.mean)} s" if column.text is duration else ""
    return TableCell(text, exact=exact, span=span)


def differences(
    columns: Sequence[Column], policies: Sequence[PolicyRuns], comparison: Comparison
) -> Table:
    """Return the differences of the other policies to the first, in % of its means."""

    def cell(found: tuple[float, float | None] | None) -> TableCell:
        if found is None or found[1] is None:
            return TableCell(DASH)
        mean, half_width = found
        if not half_width:
            return TableCell(_signed(mean, f"{abs(mean):.1f}"), is_open=not mean)
        text, spread = plus_minus(abs(mean), half_width)
        return TableCell(
            _signed(mean, text),
            span=f"\N{PLUS-MINUS SIGN} {spread}",
            is_open=abs(mean) <= half_width,
        )

    return _table(
        columns,
        islice(zip(policies, comparison.policies, strict=True), 1, None),
        lambda column, policy: cell(comparison.percent(policy, column.field)),
    )


def _table(
    columns: Sequence[Column],
    policies: Iterable[tuple[PolicyRuns, ComparedPolicy]],
    cell: Callable[[Column, ComparedPolicy], TableCell],
) -> Table:
    """Return a table with a row for each policy."""
    return Table(
        tuple(columns),
        tuple(
            Row(policy.name, runs.look, tuple(cell(column, policy) for column in columns))
            for runs, policy in policies
        ),
    )


def _signed(value: float, magnitude: str) -> str:
    return f"{'+' if value > 0 else MINUS}{magnitude}" if value else "0"
