"""Tables of text cells, from CSV or YAML, with the line of each row."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import yaml

from hpc_sched import decimals, exceptions, yaml_nodes

# Ten million bytes hold the pairs of some 700 applications, and as YAML those of 600.
MAX_BYTES = 10_000_000
# A list of lists.
_MAX_NESTING = 4
# splitlines() also counts breaks that no editor counts: line numbers in errors would be wrong.
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_FLOATS = ("nan", "inf", "infinity")
# Names and numbers have no '#'. As in YAML, a comment begins a line or follows a blank.
_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass(frozen=True, slots=True)
class TableRow:
    """The cells on one line of a file."""

    file: str
    line: int
    cells: tuple[str, ...]

    def error(self, text: str) -> exceptions.InterferenceError:
        """Return an error with file and line."""
        return exceptions.InterferenceError(f"{self.file}:{self.line}: {text}")

    def check_width(self, columns: Sequence[str]) -> None:
        """Raise InterferenceError unless there is a cell for every column."""
        if len(self.cells) != len(columns):
            raise self.error(
                f"expected {len(columns)} columns ({', '.join(columns)}), found {len(self.cells)}"
            )

    def text(self, column: int, expected: str, is_valid: Callable[[str], bool]) -> str:
        """Return the text in a column, or raise InterferenceError."""
        text = self.cells[column]
        if not is_valid(text):
            found = f"{text[:60]!r}" if text else "nothing"
            raise self.error(f"column {column + 1}: expected {expected}, found {found}")
        return text

    def number(self, column: int, expected: str, most: float) -> float:
        """Return the number in a column, above 0, at most ``most``, or raise InterferenceError."""
        text = self.text(
            column, expected, lambda found: 0 < (decimals.number_in(found) or 0) <= most
        )
        return float(text)


def csv_rows(text: str, file: str, number_columns: Sequence[int]) -> list[TableRow]:
    """Return the rows of a CSV text, without comments, blank lines and the header.

    A header is a first row that begins with ``app`` (application) and has words in the number
    columns, counted from 0; any other word there is an error. InterferenceError names file and
    line of bad quotes.
    """
    error = exceptions.InterferenceError
    rows = [TableRow(file, line, cells) for line, cells in csv_lines(text, file, error)]
    return rows[1:] if rows and _is_header(rows[0], number_columns) else rows


def csv_lines(
    text: str, file: str, error: type[exceptions.HPCSchedError]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line numbers and cells without comments and blank lines; errors name file and line."""
    for number, line in enumerate(_LINE_BREAK.split(text), start=1):
        content = _COMMENT.sub("", line)
        if not content.strip():
            continue
        try:
            # Line by line: names have no line breaks, and an open quote ends with its line.
            [cells] = csv.reader([content], strict=True, skipinitialspace=True)
        except csv.Error as failure:
            raise error(f"{file}:{number}: not CSV: {failure}") from failure
        yield number, tuple(cell.strip() for cell in cells)


def yaml_rows(content: bytes, file: str) -> Iterator[TableRow]:
    """Yield the rows of a YAML list of lists, cells as spelt; errors name file and line.

    One by one: a long row may have as many aliases as the file has bytes.
    """
    root = yaml_nodes.compose(content, file, exceptions.InterferenceError, _MAX_NESTING)
    for node in [] if root is None else _items(root, file):
        cells = _items(node, file)
        for cell in cells:
            if not isinstance(cell, yaml.ScalarNode):
                raise _unexpected(cell, file, "a name or a number")
        texts = ("" if yaml_nodes.is_null(cell) else str(cell.value).strip() for cell in cells)
        yield TableRow(file, yaml_nodes.line_of(node), tuple(texts))


def _items(node: yaml.Node, file: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise _unexpected(node, file, "a list of lists")
    items: list[yaml.Node] = node.value
    return items


def _unexpected(node: yaml.Node, file: str, expected: str) -> exceptions.InterferenceError:
    row = TableRow(file, yaml_nodes.line_of(node), ())
    return row.error(f"expected {expected}, found {yaml_nodes.kind_of(node)}")


def _is_header(row: TableRow, number_columns: Sequence[int]) -> bool:
    cells = [row.cells[column] for column in number_columns if column < len(row.cells)]
    return (
        len(cells) == len(number_columns)
        and row.cells[0].casefold().startswith("app")
        and all(cell[:1].isalpha() and cell.casefold() not in _FLOATS for cell in cells)
    )
