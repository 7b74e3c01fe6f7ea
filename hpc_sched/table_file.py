"""Rows of text cells, from CSV or YAML, that know the line they stand on."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from hpc_sched import decimals, exceptions, yaml_nodes
from hpc_sched.core import extra_spec_names

# Ten million bytes hold the pairs of some 700 applications.
MAX_BYTES = 10_000_000
# A list of lists.
_MAX_NESTING = 4
# splitlines() would also count breaks that no editor counts, and the lines in errors be wrong.
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# Neither names nor numbers hold a '#'. As in YAML, a comment begins a line or follows a blank.
_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass(frozen=True, slots=True)
class Row:
    """Some cells on one line of a file."""

    file: str
    line: int
    cells: tuple[str, ...]

    def error(self, text: str) -> exceptions.InterferenceError:
        """Return an error that names file and line."""
        return exceptions.InterferenceError(f"{self.file}:{self.line}: {text}")

    def check_width(self, columns: Sequence[str]) -> None:
        """Raise InterferenceError unless there is a cell for every column."""
        if len(self.cells) != len(columns):
            raise self.error(
                f"expected {len(columns)} columns ({', '.join(columns)}), found {len(self.cells)}"
            )

    def name(self, column: int) -> str:
        """Return the application in a column.

        :raises exceptions.InterferenceError: where it is empty or cannot be one
        """
        text = self.cells[column]
        if not extra_spec_names.is_name(text):
            raise self.error(
                f"column {column + 1}: expected {extra_spec_names.EXPECTED}, {_found(text)}"
            )
        return text

    def number(self, column: int, expected: str, most: float) -> float:
        """Return the number in a column, above 0 and at most ``most``.

        :param expected: what an error says of that
        :raises exceptions.InterferenceError: where it is none, or outside of that
        """
        text = self.cells[column]
        number = decimals.number_in(text)
        if number is None or not 0 < number <= most:
            raise self.error(f"column {column + 1}: expected {expected}, {_found(text)}")
        return number


def csv_rows(text: str, file: str, number_columns: Sequence[int]) -> list[Row]:
    """Return the rows of a CSV text, without comments, blank lines and the header.

    A header is a first row that begins with ``app`` (application) and has words where all
    others have numbers: any other word there is taken for a mistake, not for a heading.

    :param number_columns: the columns, from 0, that hold numbers
    :raises exceptions.InterferenceError: naming file and line of bad quotes
    """
    error = exceptions.InterferenceError
    rows = [Row(file, line, cells) for line, cells in csv_lines(text, file, error)]
    return rows[1:] if rows and _is_header(rows[0], number_columns) else rows


def csv_lines(
    text: str, file: str, error: type[exceptions.HPCSchedError]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Return the lines of a CSV text with their cells, without comments and blank lines.

    :param error: what to raise
    :raises error: naming file and line of bad quotes
    """
    for number, line in enumerate(_LINE_BREAK.split(text), start=1):
        content = _COMMENT.sub("", line)
        if not content.strip():
            continue
        try:
            # A line at a time: names hold no line breaks, and an open quote ends with its line.
            [cells] = csv.reader([content], strict=True, skipinitialspace=True)
        except csv.Error as failure:
            raise error(f"{file}:{number}: not CSV: {failure}") from failure
        yield number, tuple(cell.strip() for cell in cells)


def yaml_rows(content: bytes, file: str) -> list[Row]:
    """Return the rows of a YAML list of lists; cells are taken as they are written.

    :raises exceptions.InterferenceError: naming file and line
    """
    error = exceptions.InterferenceError
    root = yaml_nodes.compose(content, file, error, _MAX_NESTING)
    return [] if root is None else [_yaml_row(item, file) for item in _items(root, file)]


def _yaml_row(node: yaml.Node, file: str) -> Row:
    cells: list[str] = []
    for item in _items(node, file):
        if not isinstance(item, yaml.ScalarNode):
            line, kind = yaml_nodes.line_of(item), yaml_nodes.kind_of(item)
            raise Row(file, line, ()).error(f"expected a name or a number, found {kind}")
        cells.append("" if yaml_nodes.is_null(item) else str(item.value).strip())
    return Row(file, yaml_nodes.line_of(node), tuple(cells))


def _items(node: yaml.Node, file: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        line, kind = yaml_nodes.line_of(node), yaml_nodes.kind_of(node)
        raise Row(file, line, ()).error(f"expected a list of lists, found {kind}")
    items: list[yaml.Node] = node.value
    return items


def _is_header(row: Row, number_columns: Sequence[int]) -> bool:
    cells = [row.cells[column] for column in number_columns if column < len(row.cells)]
    return (
        len(cells) == len(number_columns)
        and row.cells[0].casefold().startswith("app")
        and all(cell[:1].isalpha() and not _is_float(cell) for cell in cells)
    )


def _is_float(text: str) -> bool:
    """Tell whether it is meant for a number, nan and inf included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _found(text: str) -> str:
    # Enough to recognise it, however long it is.
    return f"found {text[:60]!r}" if text else "found nothing"
