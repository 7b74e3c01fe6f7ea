"""Output of a command that describes the fabric, within bounds of time and size."""

import os
import selectors
import shlex
import signal
import subprocess  # nosec B404
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hpc_sched import exceptions

_SHOWN = 200
_PART = 65536


def shown(command: Sequence[str]) -> str:
    """Return a command for error texts, truncated."""
    text = shlex.join(command)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def output_of(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    """Return the output of a command; after the timeout it is killed with its children.

    :param timeout: seconds
    :raises exceptions.TopologyError: where it cannot be started, fails, takes longer or prints more
    """
    name = shown(command)
    try:
        # No shell, and the command is nova.conf's: no part of it comes from a request.
        process = subprocess.Popen(  # nosec B603
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise exceptions.TopologyError(f"{name}: cannot be run: {why}") from error
    with process:
        try:
            deadline = time.monotonic() + timeout
            streams = _read(process, deadline, max_bytes)
            if streams is not None and len(streams.output) <= max_bytes:
                process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            streams = None  # it has closed its output and still runs
        finally:
            # Its children are in its process group.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    if streams is None:
        raise exceptions.TopologyError(f"{name}: no end within {timeout:g} s")
    if len(streams.output) > max_bytes:
        raise exceptions.TopologyError(f"{name}: prints more than {max_bytes} bytes")
    if process.returncode != 0:
        last = streams.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f": {last[0].strip()[:_SHOWN]}" if last else ""
        raise exceptions.TopologyError(f"{name}: exit code {process.returncode}{why}")
    return bytes(streams.output)


@dataclass
class _Streams:
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)  # its end


def _read(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> _Streams | None:
    """Return the output of a process, up to its end or the limit; None after the deadline."""
    streams = _Streams()
    with selectors.DefaultSelector() as selector:
        for stream, target in ((process.stdout, streams.output), (process.stderr, streams.errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, target)
        while selector.get_map() and len(streams.output) <= max_bytes:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in selector.select(left):
                part = os.read(key.fd, _PART)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
            del streams.errors[:-_PART]
    return streams
