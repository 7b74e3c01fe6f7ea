"""The decision log as a file: newest records first, without reading more than is needed.

A line is a JSON object; the file may be large, and may have been rotated to FILE.1, FILE.2.gz
and so on, or be written to meanwhile.
"""

import gzip
import json
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
    return tuple(islice(_decisions(path, b""), count))[::-1]


def found_in(
    path: files.Path, needle: str, is_wanted: Callable[[Decision], bool], *, last: bool = False
) -> list[Decision]:
    """Return the records that are wanted, oldest first.

    Only lines with the needle are taken apart. Linear in the log; with ``last`` it ends at the
    newest one found.

    :param needle: what the line of every wanted record contains
    :raises exceptions.SnapshotError: where the file cannot be read
    """
    wanted = (found for found in _decisions(path, needle.encode()) if is_wanted(found))
    return list(islice(wanted, 1 if last else None))[::-1]


def _decisions(path: files.Path, needle: bytes) -> Iterator[Decision]:
    """Yield records, newest first, rotated files included; what is no record is left out."""
    for line in _lines(os.fspath(path), needle):
        try:
            found = json.loads(line)
        except (RecursionError, ValueError):
            continue  # the first half of a line that is just being written
        if isinstance(found, dict):
            yield found


def _lines(path: str, needle: bytes) -> Iterator[bytes]:
    try:
        for name in [path, *_rotated(path)]:
            if name.endswith(".gz"):
                with gzip.open(name) as packed:
                    kept = deque(line for line in _forward(packed) if needle in line)
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
    rest = b""
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        stream.seek(at)
        first, *lines = (stream.read(size) + rest).split(b"\n")
        yield from (line for line in reversed(lines) if line)
        # A line longer than any record is dropped piece by piece.
        rest = first if len(first) <= _MAX_LINE else b""
    if rest:
        yield rest
