"""The decision log as a file: newest records first, without reading more than is needed.

A line is a JSON object; the file may be large, and may have been rotated to FILE.1, FILE.2.gz
and so on, or be written to meanwhile.
"""

import gzip
import json
import math
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

from hpc_sched import exceptions, files

Decision = Mapping[str, Any]

_BLOCK = 1 << 16
# No decision is longer; what is would be another file.
_MAX_LINE = 1 << 22
_error = exceptions.SnapshotError


def newest(path: files.Path, count: int) -> tuple[Decision, ...]:
    """Return the newest records of a log, oldest first.

    :raises exceptions.SnapshotError: where the file cannot be read
    """
    return tuple(islice(_decisions(path, b"", count), count))[::-1]


def found_in(
    path: files.Path, needle: str, is_wanted: Callable[[Decision], bool], *, last: bool = False
) -> list[Decision]:
    """Return the records that are wanted, oldest first.

    Only lines with the needle are taken apart. Linear in the log; with ``last`` it ends at the
    newest one found.

    :param needle: what the line of every wanted record contains
    :raises exceptions.SnapshotError: where the file cannot be read
    """
    # What was typed may be no text; such bytes are in no record.
    sought = needle.encode(errors="surrogateescape")
    wanted = (found for found in _decisions(path, sought) if is_wanted(found))
    return list(islice(wanted, 1 if last else None))[::-1]


def _decisions(path: files.Path, needle: bytes, most: int | None = None) -> Iterator[Decision]:
    """Yield records, newest first, rotated files included; what is no record is left out.

    :param most: how many are wanted; of a packed file no more lines than that are kept
    """
    for line in _lines(os.fspath(path), needle, most):
        try:
            found = json.loads(line, parse_constant=_refused, parse_float=_finite)
        except (RecursionError, ValueError):
            continue  # the first half of a line that is just being written
        if isinstance(found, dict):
            yield found


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    """Return a number; what is infinite could not be written into a snapshot."""
    found = float(text)
    return found if math.isfinite(found) else _refused(text)


def _lines(path: str, needle: bytes, most: int | None) -> Iterator[bytes]:
    try:
        rotated = _rotated(path)
        # Between rotation and the next decision there is no other.
        for name in [path, *rotated] if os.path.exists(path) or not rotated else rotated:
            if name.endswith(".gz"):
                with gzip.open(name) as packed:
                    kept = deque((line for line in _forward(packed) if needle in line), most)
                yield from reversed(kept)
            else:
                with open(name, "rb") as stream:
                    yield from (line for line in _backward(stream) if needle in line)
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or failure
        raise _error(f"{path}: cannot be read: {why}") from failure


def _rotated(path: str) -> list[str]:
    """Return the older files of a log, newest first."""
    folder, name = os.path.split(path)
    numbered = re.compile(re.escape(name) + r"\.([0-9]{1,9})(?:\.gz)?")
    dated = re.compile(re.escape(name) + r"-([0-9]{8,14})(?:\.gz)?")
    found = []
    for entry in os.listdir(folder or "."):
        number, date = numbered.fullmatch(entry), dated.fullmatch(entry)
        if number is not None:
            found.append((int(number[1]), entry))
        elif date is not None:
            found.append((-int(date[1]), entry))
    return [os.path.join(folder, entry) for _, entry in sorted(found)]


def _forward(stream: Any) -> Iterator[bytes]:
    while line := stream.readline(_MAX_LINE):
        yield line


def _backward(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file from its end, without their line breaks."""
    stream.seek(0, os.SEEK_END)
    at = stream.tell()
    rest: list[bytes] = []  # the end of a line that begins further in front, last piece first
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        stream.seek(at)
        first, *lines = stream.read(size).split(b"\n")
        if lines:
            last = b"".join([lines.pop(), *reversed(rest)])
            yield from (line for line in (last, *reversed(lines)) if line)
            rest = []
        rest.append(first)
        # A line longer than any record is dropped piece by piece.
        if len(rest) * _BLOCK > _MAX_LINE:
            rest = []
    line = b"".join(reversed(rest))
    if line:
        yield line
