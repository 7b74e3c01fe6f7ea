"""What ranks send each other as a CSV file: n rows of n numbers, a row sends to the columns.

::

    # four ranks; only what the numbers are relative to each other counts
    0, 10, 0, 1
    10, 0, 1, 0
    0, 1, 0, 10
    1, 0, 10, 0
"""

import numpy as np

from hpc_sched import decimals, exceptions, files, table_file
from hpc_sched.core.arrays import Reals

# Numbers of 8 digits for 1,024 ranks.
MAX_BYTES = 10_000_000
MOST = 1e100  # of a number; beyond it, sums might not be finite
_EXPECTED = f"a number from 0 to {MOST:g}"


def content_of(path: files.Path) -> bytes:
    """Return the bytes of a matrix's file.

    :raises exceptions.RequestError: if it is longer than ``MAX_BYTES`` or cannot be read
    """
    return files.read_bytes(path, exceptions.RequestError, MAX_BYTES)


def matrix_in(content: bytes, name: str, ranks: int) -> Reals:
    """Return the matrix in the content of a file. Shape (ranks, ranks). Linear in its length.

    Blank lines and what follows a ``#`` count nothing.

    :param name: of the file, in errors
    :raises exceptions.RequestError: naming file, line, column and what was expected
    """
    error = exceptions.RequestError
    text = files.decode(content, name, error)
    found = np.zeros((ranks, ranks))
    rows = 0
    for line, cells in table_file.csv_lines(text, name, error):
        if rows == ranks:
            raise error(f"{name}:{line}: expected {ranks} rows, one a rank, found more")
        if len(cells) != ranks:
            raise error(f"{name}:{line}: expected {ranks} columns, one a rank, found {len(cells)}")
        numbers = [decimals.number_in(cell) for cell in cells]
        for column, number in enumerate(numbers):
            if number is None or not 0 <= number <= MOST:
                cell = cells[column]
                what = f"{cell[:60]!r}" if cell else "nothing"
                raise error(
                    f"{name}:{line}: column {column + 1}: expected {_EXPECTED}, found {what}"
                )
        found[rows] = numbers
        rows += 1
    if rows < ranks:
        raise error(f"{name}: expected {ranks} rows, one a rank, found {rows}")
    return found
