"""Tables of a report in parts that fit into a window."""

from itertools import groupby

import pytest

from hpc_sched.sim.report import policy_runs, policy_table, table_parts
from hpc_sched.sim.report.policy_table import Table
from hpc_sched.sim.statistics import columns
from hpc_sched.sim.statistics.policy_comparison import compare
from tests.sim_results import lived


def table_of(count: int = 3) -> Table:
    results = [lived(f"policy{number}") for number in range(count)]
    return policy_table.means(columns.COLUMNS, policy_runs.by_policy(results), compare(results))


@pytest.mark.parametrize("room", [1.0, table_parts.NARROW, table_parts.WIDE, 1e6])
def test_every_column_is_in_one_part_with_its_cells(room):
    table = table_of()
    parts = table_parts.parts(table, room)
    assert [column for part in parts for column in part.columns] == list(table.columns)
    for number, row in enumerate(table.rows):
        assert {part.rows[number].policy for part in parts} == {row.policy}
        assert [cell for part in parts for cell in part.rows[number].cells] == list(row.cells)


def test_groups_are_not_parted_where_there_is_room():
    parts = table_parts.parts(table_of(), table_parts.WIDE)
    assert 1 < len(parts) < 4
    found = [name for part in parts for name, _ in part.headings]
    assert found == [name for name, _ in groupby(column.group for column in columns.COLUMNS)]


def test_a_narrow_window_has_few_columns_a_part_and_a_wide_one_all():
    narrow = table_parts.parts(table_of(), table_parts.NARROW)
    assert {len(part.columns) for part in narrow} <= {1, 2, 3, 4}
    assert len(table_parts.parts(table_of(), 1e6)) == 1
    assert len(table_parts.parts(table_of(), 1.0)) == len(columns.COLUMNS)


def test_a_table_without_columns_has_no_parts():
    assert table_parts.parts(Table((), ()), table_parts.WIDE) == []
