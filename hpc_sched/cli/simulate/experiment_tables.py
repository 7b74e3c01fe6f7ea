"""Tables of the papers' experiments, for people and for programs."""

import textwrap
from collections.abc import Sequence

from hpc_sched import decimals
from hpc_sched.experiments.table import Cell, Table

WIDTH = 100  # of the notes; a table is as wide as it has to be


def render(tables: Sequence[Table]) -> str:
    """Return tables with their titles and notes, a blank line between them."""
    return "\n\n".join("\n".join(_lines(table)) for table in tables) + "\n"


def rows(tables: Sequence[Table]) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return the columns and the rows of tables as one, which has the columns of all.

    A row of a table that lacks a column has nothing there.
    """
    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    found = []
    for table in tables:
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            found.append(tuple(cells.get(name) for name in columns))
    return columns, found


def _lines(table: Table) -> list[str]:
    """Return the lines of a table, without columns in which nothing stands."""
    columns = [
        (name.split(), cells)
        for name, *cells in zip(table.columns, *table.rows, strict=True)
        if any(cell is not None for cell in cells)
    ]
    is_number = [not any(isinstance(cell, str) for cell in cells) for _, cells in columns]
    shown = [list(row) for row in zip(*(map(_text, cells) for _, cells in columns), strict=True)]
    # Headings are longer than what stands below them: a word a line, down to the cells.
    words = [name for name, _ in columns]
    height = max(map(len, words))
    heading = [list(line) for line in zip(*(_down(each, height) for each in words), strict=True)]
    cells = heading + shown
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [table.title, ""]
    for row in cells:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(2 + height, "  ".join("-" * width for width in widths))
    lines.append("")
    for note in table.notes:
        lines += textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
    return lines


def _down(words: list[str], height: int) -> list[str]:
    return [""] * (height - len(words)) + words


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else decimals.text_of(cell)
