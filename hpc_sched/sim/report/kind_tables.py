"""The tables of kinds of jobs: one a kind, a row per policy."""

from collections.abc import Mapping, Sequence

from hpc_sched.sim.report.policy_runs import PolicyRuns
from hpc_sched.sim.report.policy_table import Row, Table, TableCell, estimated
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.sim.statistics.kind_comparison import KIND_COLUMNS, Kind


def tables(kinds: Sequence[Kind], policies: Sequence[PolicyRuns]) -> list[tuple[str, Table]]:
    """Return the title and the table of each kind."""
    return [
        (
            f"{kind.dimension.capitalize()}: {kind.name}",
            Table(
                KIND_COLUMNS,
                tuple(
                    Row(runs.policy, runs.look, _cells(kind.policies[runs.policy]))
                    for runs in policies
                ),
            ),
        )
        for kind in kinds
    ]


def _cells(numbers: Mapping[str, Estimate | None]) -> tuple[TableCell, ...]:
    return tuple(estimated(column, numbers[column.field]) for column in KIND_COLUMNS)
