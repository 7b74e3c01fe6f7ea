"""Lines of a trace file, one at a time: a trace may be compressed, huge or damaged."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator

from hpc_sched import exceptions, files

# A row of 18 fields takes some 120 characters. What is longer is no row, and must not be held.
MAX_LINE = 10_000

_GZIP = b"\x1f\x8b"


def numbered_lines(path: files.Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a file with their numbers, from 1; in constant memory.

    What is compressed with gzip is known by its content. Bytes that are not UTF-8 are replaced,
    and of a line that is longer than ``MAX_LINE`` come the first ``MAX_LINE + 1`` characters.

    :raises exceptions.TraceError: naming the file that cannot be read and the line reached
    """
    number = 0
    try:
        with open(path, "rb") as plain, _text(plain) as stream:
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                yield number, line
                while len(line) > MAX_LINE and not line.endswith("\n"):
                    line = stream.readline(MAX_LINE + 1)
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        why = getattr(failure, "strerror", None) or str(failure)
        where, when = (f":{number}", " after this line") if number else ("", "")
        raise exceptions.TraceError(
            f"{os.fspath(path)}{where}: cannot be read{when}: {why}"
        ) from failure


def _text(plain: io.BufferedReader) -> io.TextIOWrapper:
    is_compressed = plain.peek(len(_GZIP)).startswith(_GZIP)
    content = gzip.GzipFile(fileobj=plain) if is_compressed else plain
    return io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace")
