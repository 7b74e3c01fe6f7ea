"""Tables in parts that are narrow enough for a window: all columns are seen without scrolling."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from hpc_sched.sim.report.policy_table import Row, Table
from hpc_sched.sim.statistics.columns import Column

# Room for the columns of one part in a window of 1280 and of 360 pixels, a small phone: without the
# margins of the page, a scroll bar and the names of the policies.
WIDE, NARROW = 1010.0, 204.0
# Pixels of a letter in page.css: of a number, of one in bold type, of an interval. The widest
# fonts in use, DejaVu Sans and Verdana, have digits of this width.
_NUMBER, _BOLD, _SMALL = 8.4, 9.2, 7.2
_STAR, _AROUND = 18.0, 11.0  # pixels


def parts(table: Table, room: float) -> list[Table]:
    """Return a table in parts whose columns fit into a room, in pixels.

    Columns of one group are in one part unless the group is wider than the room. A column that is
    wider has a part of its own.
    """
    widths = [_width(column, table.rows, i) for i, column in enumerate(table.columns)]
    found: list[list[int]] = []
    for _, columns in groupby(range(len(widths)), lambda i: table.columns[i].group):
        for piece in _pieces(list(columns), widths, room):
            if found and sum(widths[i] for i in (*found[-1], *piece)) <= room:
                found[-1] += piece
            else:
                found.append(piece)
    return [_part(table, indices) for indices in found]


def _pieces(columns: list[int], widths: Sequence[float], room: float) -> Iterator[list[int]]:
    """Yield a group of columns whole, or one by one if it is too wide."""
    if sum(widths[i] for i in columns) <= room:
        yield columns
    else:
        yield from ([i] for i in columns)


def _part(table: Table, indices: Sequence[int]) -> Table:
    rows = (Row(row.policy, row.look, tuple(row.cells[i] for i in indices)) for row in table.rows)
    return Table(tuple(table.columns[i] for i in indices), tuple(rows))


def _width(column: Column, rows: Sequence[Row], index: int) -> float:
    """Return the least width of a column, pixels: headings are broken between words."""
    words = f"{column.group} {column.name}".replace("-", "- ").split()
    texts = [_BOLD * max(map(len, words))]
    for cell in (row.cells[index] for row in rows):
        letter, star = (_BOLD, _STAR) if cell.is_best else (_NUMBER, 0.0)
        texts += [letter * len(cell.text) + star, _SMALL * len(cell.span)]
    return max(texts) + _AROUND
