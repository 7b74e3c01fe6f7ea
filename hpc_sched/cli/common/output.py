"""Output of a command: data on standard output or in a file, messages on standard error."""

import contextlib
import io
import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TextIO

from hpc_sched import exceptions, files, terminal_text

# Exit code that a shell reports after a closed pipe: 128 + SIGPIPE.
CLOSED_PIPE = 141
_MAX_STATUS = 200
# The notes that are not written again; None: all are written.
_noted: ContextVar[set[str] | None] = ContextVar("_noted", default=None)
_CLEAR_LINE = "\r\x1b[K"


def escape_unencodable(stream: TextIO) -> None:
    """Escape from now on the letters that a stream's encoding lacks: names may hold them."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def discard_errors_if_closed() -> None:
    """Discard what is written to standard error if it is closed.

    Else print() would write it to standard output.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", errors="backslashreplace")  # noqa: SIM115 - stays open


def flush(stream: TextIO) -> int:
    """Write what is left to a stream; return 0, or the exit code if it cannot be written."""
    try:
        stream.flush()
    except OSError as error:
        # The interpreter would write the rest at its end, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            return CLOSED_PIPE
        print(f"standard output: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def write_utf8(text: str, stream: TextIO) -> None:
    """Write the content of a file to a stream as UTF-8, whatever the stream's encoding."""
    if (binary := getattr(stream, "buffer", None)) is None:
        stream.write(text)
    else:
        stream.flush()
        binary.write(text.encode())


def save(text: str, path: str) -> None:
    """Write text as UTF-8 into a file, whole or not at all; HPCSchedError names the file."""
    files.write_atomically(path, text.encode(), exceptions.HPCSchedError)


def aligned(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Return rows as lines with aligned columns, to the right for the columns of ``right``."""
    formats = [
        f"{'>' if i in right else '<'}{max(map(len, column))}"
        for i, column in enumerate(zip(*rows, strict=True))
    ]
    return ["  ".join(map(format, row, formats)).rstrip() for row in rows]


def cell(value: Any, formatter: str) -> Any:
    """Return the cell of a value: rounded in a table, empty for None but in JSON and YAML."""
    if isinstance(value, float) and formatter == "table":
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "" if value is None and formatter in ("table", "csv", "value") else value


def say(text: str) -> None:
    """Write a line to standard error; escape what a terminal would obey."""
    print(terminal_text.text_of(text), file=sys.stderr)


def note(*texts: str) -> None:
    """Write each text as a note to standard error."""
    noted = _noted.get()
    for text in texts:
        if noted is None:
            say(f"note: {text}")
        elif text not in noted:
            noted.add(text)
            say(f"note: {text}")


@contextlib.contextmanager
def each_note_once() -> Iterator[None]:
    """Write no note twice in this block: it reads the same things again and again."""
    before = _noted.set(set())
    try:
        yield
    finally:
        _noted.reset(before)


class StatusLine:
    """One line of a terminal that each text overwrites; elsewhere every text is a line.

    :param pause: seconds before and between such lines, in which texts are dropped
    """

    def __init__(self, stream: TextIO, pause: float = 0) -> None:
        self._stream, self._pause, self._shown = stream, pause, time.monotonic()
        self.in_place = stream.isatty()

    def show(self, text: str) -> None:
        """Write a text in place of the last one."""
        if self.in_place:
            self._write(f"{_CLEAR_LINE}{text}"[:_MAX_STATUS])
        elif time.monotonic() - self._shown >= self._pause:
            self._write(f"{text}\n")
            self._shown = time.monotonic()

    def close(self) -> None:
        """Clear the line."""
        if self.in_place:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
