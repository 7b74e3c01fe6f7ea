"""The decision log as a file, read from its end.

Each line is a JSON object. The file may be large, rotated to FILE.1, FILE.2.gz or FILE-20260131,
and still be written to.
"""

import gzip
import json
import math
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, get_type_hints

import msgspec

from hpc_sched import exceptions, files
from hpc_sched.core.decision_entry import DecisionEntry

# As JSON has it: fields of newer releases pass through to a snapshot and to explain --json.
Record = Mapping[str, Any]

_TYPES = get_type_hints(DecisionEntry)
_REQUIRED: Mapping[str, str | None] = {
    "time": "",
    "request_id": None,
    "instance": None,
    "group": None,
    "decision": "",
}
_BLOCK = 1 << 16
# Longer lines are no records.
_MAX_LINE = 1 << 22
_error = exceptions.SnapshotError


def newest(path: files.Path, count: int) -> tuple[Record, ...]:
    """Return the newest records of a log, oldest first.

    :raises exceptions.SnapshotError: if the file cannot be read
    """
    return tuple(islice(_records(path, b"", count), count))[::-1]


def found_in(
    path: files.Path, needle: str, is_wanted: Callable[[DecisionEntry], bool], *, last: bool = False
) -> list[Record]:
    """Return the records whose entries are wanted, oldest first.

    Only lines that contain the needle are parsed. Linear in the log; with ``last`` reading ends
    at the newest record found.

    :param needle: text that the line of every wanted record contains
    :raises exceptions.SnapshotError: if the file cannot be read
    """
    # An argument of the command line need not be valid text; no record contains such bytes.
    sought = needle.encode(errors="surrogateescape")
    wanted = (record for record in _records(path, sought) if is_wanted(entry_of(record)))
    return list(islice(wanted, 1 if last else None))[::-1]


def entry_of(record: Record) -> DecisionEntry:
    """Return a record's fields; those that are absent or of another type have their default.

    Never raises for what JSON can hold: the record may be of an older or newer release, or be
    damaged.
    """
    found: dict[str, Any] = dict(_REQUIRED)
    for name in _TYPES.keys() & record.keys():
        # UnicodeError for a lone surrogate; SystemError, before msgspec 0.22, for an integer that
        # is too large for a float.
        with suppress(msgspec.ValidationError, UnicodeError, SystemError):
            found[name] = msgspec.convert(record[name], _TYPES[name])
    return DecisionEntry(**found)


def _records(path: files.Path, needle: bytes, most: int | None = None) -> Iterator[Record]:
    """Yield records, newest first, rotated files included; other lines are skipped.

    :param most: number of records wanted; at most that many lines of a compressed file are kept
    """
    for line in _lines(os.fspath(path), needle, most):
        try:
            found = json.loads(line, parse_constant=_refused, parse_float=_finite)
        except (RecursionError, ValueError):
            continue  # the first half of a line that is being written
        if isinstance(found, dict):
            yield found


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    """Return a finite number: a snapshot cannot hold others."""
    found = float(text)
    return found if math.isfinite(found) else _refused(text)


def _lines(path: str, needle: bytes, most: int | None) -> Iterator[bytes]:
    try:
        rotated = _rotated(path)
        # Between rotation and the next decision only older files exist.
        for name in [path, *rotated] if os.path.exists(path) or not rotated else rotated:
            if name.endswith(".gz"):
                with gzip.open(name) as packed:
                    lines = iter(partial(packed.readline, _MAX_LINE), b"")
                    kept = deque((line for line in lines if needle in line), most)
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


def _backward(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, last first, without line breaks and empty lines."""
    stream.seek(0, os.SEEK_END)
    at = stream.tell()
    rest: list[bytes] = []  # pieces of the line that begins in an earlier block, last first
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
        # Drop the pieces of a line that is longer than any record.
        if len(rest) * _BLOCK > _MAX_LINE:
            rest = []
    line = b"".join(reversed(rest))
    if line:
        yield line
