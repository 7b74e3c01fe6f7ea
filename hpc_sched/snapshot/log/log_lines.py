"""The lines of a decision log.

The file may be large, rotated to FILE.1, FILE.2.gz or FILE-20260131, and still be written to.
"""

import gzip
import os
import re
import stat
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import BinaryIO

from hpc_sched import exceptions

_BLOCK = 1 << 16
# Longer lines are no records.
MAX_LINE = 1 << 22
# Of all lines that are kept of a compressed file: a decision among 10,000 hosts has 30 to 55 kB.
MAX_BYTES = 500_000_000


def newest_first(
    path: str, needles: Sequence[bytes], most: int | None, *, with_compressed: bool = True
) -> Iterator[bytes]:
    """Yield the lines of a log and its rotated files that contain one of some needles.

    :param most: number of lines of a compressed file; None: all
    :raises exceptions.SnapshotError: if a file cannot be read
    """

    def having(lines: Iterator[bytes]) -> Iterator[bytes]:
        return (line for line in lines if any(needle in line for needle in needles))

    for name in _files(path, with_compressed=with_compressed):
        with _named_errors(name), _opened(name) as stream:
            if _is_compressed(name):
                yield from reversed(_last(having(_lines(stream)), most))
            else:
                yield from having(_backward(stream))


def oldest_first(path: str, seen: set[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the lines of a log and its rotated files; raise SnapshotError if one cannot be read.

    :param seen: device and number of the files that have been read, which are left out; added to
    """
    for name in reversed(_files(path)):
        with _named_errors(name):
            found = os.stat(name)
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                with _opened(name) as stream:
                    yield from _lines(stream)


def lines_of(name: str, stream: BinaryIO | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, or of a stream with this name; SnapshotError if unreadable."""
    with _named_errors(name), _opened(name) if stream is None else nullcontext(stream) as found:
        yield from _lines(found)


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Raise what prevents reading as a SnapshotError."""
    try:
        yield
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or failure
        raise exceptions.SnapshotError(f"{name}: cannot be read: {why}") from failure


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Open a file, which is unpacked if its name says so."""
    # Not blocking: a pipe would wait for its next writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("expected a regular file")
        if _is_compressed(path):
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield file


def _is_compressed(path: str) -> bool:
    return path.endswith(".gz")


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    return iter(partial(stream.readline, MAX_LINE), b"")


def _last(lines: Iterable[bytes], most: int | None) -> deque[bytes]:
    """Return the last lines, or all; ValueError where they have more than ``MAX_BYTES`` bytes."""
    kept: deque[bytes] = deque()
    size = 0
    for line in lines:
        kept.append(line)
        size += len(line)
        if most is not None and len(kept) > most:
            size -= len(kept.popleft())
        if size > MAX_BYTES:
            raise ValueError(f"expected at most {MAX_BYTES} bytes of records, found more")
    return kept


def _files(path: str, *, with_compressed: bool = True) -> list[str]:
    """Return a log and its rotated files, newest first."""
    folder, name = os.path.split(path)
    older = re.compile(re.escape(name) + r"(?:\.([0-9]{1,9})|-([0-9]{8,14}))(?:\.gz)?")
    with _named_errors(path):
        matches = filter(None, map(older.fullmatch, os.listdir(folder or ".")))
    found = sorted((int(m[1]) if m[1] else -int(m[2]), m[0]) for m in matches)
    rotated = [
        os.path.join(folder, entry)
        for _, entry in found
        if with_compressed or not _is_compressed(entry)
    ]
    # Between rotation and the next decision only older files exist.
    return [path, *rotated] if os.path.exists(path) or not rotated else rotated


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
        if len(rest) * _BLOCK > MAX_LINE:
            rest = []
    line = b"".join(reversed(rest))
    if line:
        yield line
