"""The output of a command that describes the fabric."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from hpc_sched import exceptions

_SHOWN = 200
_POLL = 0.05


def shown(command: Sequence[str]) -> str:
    """Return a command as errors call it."""
    text = shlex.join(command)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def output_of(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    """Return what a command prints; it and its children are killed when it takes too long.

    Its output goes to a file and not to memory, so that one that never stops costs no more than
    ``max_bytes`` and a moment's writing.

    :param timeout: seconds
    :raises exceptions.TopologyError: where it cannot be started, fails, takes longer or prints more
    """
    name = shown(command)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as talk:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=talk,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise exceptions.TopologyError(f"{name}: cannot be run: {why}") from error
        try:
            code = _wait(process, timeout, output.fileno(), max_bytes)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code is None:
            raise exceptions.TopologyError(f"{name}: no end within {timeout:g} s")
        size = os.fstat(output.fileno()).st_size
        if size > max_bytes:
            raise exceptions.TopologyError(
                f"{name}: expected at most {max_bytes} bytes, found more"
            )
        if code != 0:
            raise exceptions.TopologyError(f"{name}: exit code {code}{_last_line(talk.fileno())}")
        output.seek(0)
        return output.read()


def _wait(
    process: subprocess.Popen[bytes], timeout: float, output: int, max_bytes: int
) -> int | None:
    """Return the exit code; None where time ran out, 0 where it has printed too much."""
    left = timeout
    while True:
        try:
            return process.wait(min(_POLL, max(left, 0)))
        except subprocess.TimeoutExpired:
            left -= _POLL
        if os.fstat(output).st_size > max_bytes:
            return 0
        if left <= 0:
            return None


def _last_line(talk: int) -> str:
    """Return what a command said last, for an error."""
    size = os.fstat(talk).st_size
    tail = os.pread(talk, 4096, max(size - 4096, 0)).decode("utf-8", "replace").strip()
    return f": {tail.splitlines()[-1].strip()[:_SHOWN]}" if tail else ""
