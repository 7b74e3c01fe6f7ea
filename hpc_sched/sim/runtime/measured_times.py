"""Measured times of jobs on known placements as a CSV file, for ``calibration``.

The header names the columns, in any order; processor and neighbour_score may be left out::

    # one job on several placements, with its neighbours' cache score
    job,seconds,level,processor,neighbour_score
    WRF-64, 312.4, leaf, gold, 0
    WRF-64, 350.1, core, gold, 0
    WRF-64, 380.0, leaf, silver, 12.5
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc_sched import decimals, exceptions, files, table_file

# Longer than any measurement, and more cache misses than any memory serves.
MAX_SECONDS = 1e9
MAX_SCORE = 1e6
MAX_BYTES = 10_000_000
MAX_ROWS = 20_000
# Required and optional columns.
NEEDED = ("job", "seconds", "level")
OPTIONAL = ("processor", "neighbour_score")

_HEADER = f"a header of {', '.join(NEEDED)} and, where measured, {', '.join(OPTIONAL)}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a job."""

    job: str
    seconds: float
    level: str  # the highest one that a pair of its VMs meets on
    processor: str | None = None  # None without such a column
    score: float | None = None  # neighbours' cache score; None without such a column


def read(path: files.Path, levels: Sequence[str]) -> list[Measured]:
    """Return the runs of a file, in its order. Linear in its length.

    :param levels: valid names in the column ``level``
    :raises exceptions.CalibrationError: naming file, line and what was expected
    """
    error = exceptions.CalibrationError
    name = os.fspath(path)
    text = files.decode(files.read_bytes(path, error, MAX_BYTES), name, error)
    header: tuple[str, ...] | None = None
    runs: list[Measured] = []
    for line, cells in table_file.csv_lines(text, name, error):
        where = f"{name}:{line}"
        if header is None:
            header = _header(cells, where)
        elif len(cells) != len(header):
            raise error(
                f"{where}: expected {len(header)} columns ({', '.join(header)}), found {len(cells)}"
            )
        else:
            runs.append(_run(dict(zip(header, cells, strict=True)), where, levels))
        if len(runs) > MAX_ROWS:
            raise error(f"{where}: expected at most {MAX_ROWS} rows, found more")
    if not runs:
        raise error(f"{name}: expected {_HEADER}, and rows below it; found no row")
    return runs


def _header(cells: tuple[str, ...], where: str) -> tuple[str, ...]:
    known = {*NEEDED, *OPTIONAL}
    if not set(NEEDED) <= set(cells) <= known or len(set(cells)) != len(cells):
        raise exceptions.CalibrationError(
            f"{where}: expected {_HEADER}, found {', '.join(cells)[:80]!r}"
        )
    return cells


def _run(cells: Mapping[str, str], where: str, levels: Sequence[str]) -> Measured:
    if not cells["job"]:
        raise _unexpected(where, "job", "a name", "")
    seconds = decimals.number_in(cells["seconds"])
    if seconds is None or not 0 < seconds <= MAX_SECONDS:
        expected = f"a number above 0 and at most {MAX_SECONDS:g}"
        raise _unexpected(where, "seconds", expected, cells["seconds"])
    if cells["level"] not in levels:
        raise _unexpected(where, "level", f"one of {', '.join(levels)}", cells["level"])
    if cells.get("processor") == "":
        raise _unexpected(where, "processor", "a processor type", "")
    return Measured(
        cells["job"], seconds, cells["level"], cells.get("processor"), _score(cells, where)
    )


def _score(cells: Mapping[str, str], where: str) -> float | None:
    text = cells.get("neighbour_score")
    if text is None:
        return None
    score = decimals.number_in(text)
    if score is None or not 0 <= score <= MAX_SCORE:
        raise _unexpected(where, "neighbour_score", f"a number from 0 to {MAX_SCORE:g}", text)
    return score


def _unexpected(where: str, column: str, expected: str, found: str) -> exceptions.CalibrationError:
    what = repr(found[:80]) if found else "nothing"
    return exceptions.CalibrationError(f"{where}: {column}: expected {expected}, found {what}")
