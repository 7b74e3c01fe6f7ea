"""Timings of applications as a CSV file, from which the interference index follows.

A run a row; repeated runs are welcome, their median counts::

    # application, the neighbour it shared its host with, seconds
    WRF, , 312.4
    WRF, -, 310.9
    WRF, LU, 358.7
    LU, -, 120.2
    LU, WRF, 122.8
"""

from hpc_sched import exceptions, files
from hpc_sched.core import rows
from hpc_sched.core.measurement import Run

# Longer than any measurement; what is beyond is a slip.
MAX_SECONDS = 1e9

_COLUMNS = ("application", "neighbour, empty or - for a dedicated run", "seconds")
_DEDICATED = ("", "-")


def timings_of(content: bytes, name: str) -> list[Run]:
    """Return the runs of a file, in its order; linear in its length.

    :param name: what errors call the file
    :raises exceptions.InterferenceError: naming file, line and what was expected
    """
    text = files.decode(content, name, exceptions.InterferenceError)
    return [_run(row) for row in rows.csv_rows(text, name, number_columns=(2,))]


def _run(row: rows.Row) -> Run:
    row.check_width(_COLUMNS)
    return Run(
        application=row.name(0),
        neighbour=None if row.cells[1] in _DEDICATED else row.name(1),
        seconds=row.number(2, "a number of seconds above 0", MAX_SECONDS),
    )
