"""The interference index as a file: performance of applications that share a host (Gupta2013).

CSV, one pair of applications a row, 1.0 being the performance alone on the host::

    # application, application, the first with the second, the second with the first
    WRF, LU, 0.87, 0.98
    WRF, WRF, 0.91, 0.91

or, in a file called .yaml or .yml, a list of such rows::

    - [WRF, LU, 0.87, 0.98]
"""

import json
import math
import os
from collections.abc import Iterable

from hpc_sched import decimals, exceptions, files, table_file
from hpc_sched.core import extra_spec_names
from hpc_sched.core.sharing.cache_interference import InterferenceIndex

# Noise can make a shared host a little faster than a dedicated one, not ten times.
MAX_PERFORMANCE = 10.0

_COLUMNS = (
    "application",
    "application",
    "performance of the first beside the second",
    "performance of the second beside the first",
)
_EXPECTED = f"a performance above 0 and at most {decimals.text_of(MAX_PERFORMANCE)} (1 = alone)"


def read_index(path: files.Path) -> InterferenceIndex:
    """Return the index of a file; linear in its length.

    A pair may occur more than once with the same numbers. A file with only comments or a header
    is an empty index; a file of no bytes is an error, because another process may be writing it.

    :raises exceptions.InterferenceError: naming file, line and what was expected
    """
    name = os.fspath(path)
    content = files.read_bytes(name, exceptions.InterferenceError, table_file.MAX_BYTES)
    if not content:
        raise exceptions.InterferenceError(
            f"{name}: expected rows of {len(_COLUMNS)} columns, or a comment where there are "
            "none yet, found an empty file"
        )
    text = files.decode(content, name, exceptions.InterferenceError)
    found: Iterable[table_file.TableRow] = (
        table_file.yaml_rows(text.encode(), name)
        if _is_yaml(name)
        else table_file.csv_rows(text, name, number_columns=(2, 3))
    )
    performance: dict[tuple[str, str], float] = {}
    first: dict[tuple[str, str], table_file.TableRow] = {}
    for row in found:
        row.check_width(_COLUMNS)
        one, other = (row.text(column, *extra_spec_names.NAME) for column in (0, 1))
        for pair, column in (((one, other), 2), ((other, one), 3)):
            speed = row.number(column, _EXPECTED, MAX_PERFORMANCE)
            before = performance.setdefault(pair, speed)
            seen = first.setdefault(pair, row)
            if before != speed:
                where = "in the same row" if seen is row else f"on line {seen.line}"
                raise row.error(
                    f"expected one performance of {pair[0]} beside {pair[1]}, "
                    f"found {decimals.text_of(speed)} and, {where}, {decimals.text_of(before)}"
                )
    return InterferenceIndex(performance)


def write_index(path: files.Path, index: InterferenceIndex) -> None:
    """Write an index for :func:`read_index`, pairs sorted by their names.

    :raises exceptions.InterferenceError: for an index that the format cannot express, or naming a
        file that cannot be written; the old file then remains
    """
    name = os.fspath(path)
    lines = []
    for one, other in sorted({(min(pair), max(pair)) for pair in index.performance}):
        speeds = [_speed(index, name, one, other), _speed(index, name, other, one)]
        numbers = [decimals.text_of(speed) for speed in speeds]
        if _is_yaml(name):
            # Quoted: YAML readers parse an application named NO as false.
            lines.append(f"- [{', '.join([json.dumps(one), json.dumps(other), *numbers])}]")
        else:
            lines.append(",".join([one, other, *numbers]))
    header = ("# " + ", ".join(_COLUMNS)) if _is_yaml(name) else ",".join(_COLUMNS)
    content = "".join(f"{line}\n" for line in [header, *lines])
    files.write_atomically(name, content.encode(), exceptions.InterferenceError)


def _is_yaml(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in (".yaml", ".yml")


def _speed(index: InterferenceIndex, file: str, one: str, other: str) -> float:
    """Return the performance of one application with the other, if the format can express it."""
    for name in (one, other):
        if not extra_spec_names.is_name(name):
            raise exceptions.InterferenceError(
                f"{file}: expected {extra_spec_names.EXPECTED}, found {name[:60]!r}"
            )
    speed = index.performance.get((one, other))
    if speed is None or not math.isfinite(speed) or not 0 < speed <= MAX_PERFORMANCE:
        found = "nothing" if speed is None else speed
        raise exceptions.InterferenceError(
            f"{file}: {one} beside {other}: expected {_EXPECTED}, found {found}"
        )
    return speed
