"""The output of a command that describes the fabric."""

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
    """Return a command as errors call it."""
    text = shlex.join(command)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def output_of(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    """Return what a command prints; it and its children are killed when it takes too long.

    :param timeout: seconds
    :raises exceptions.TopologyError: where it cannot be started, fails, takes longer or prints more
    """
    name = shown(command)
    try:
        # No shell, and what nova.conf names: nothing of it comes from a request.
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
            said = _read(process, deadline, max_bytes)
            if said is not None and len(said.output) <= max_bytes:
                process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            said = None  # it has closed its output and goes on
        finally:
            # Its children are in its group; itself is waited for only below.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    if said is None:
        raise exceptions.TopologyError(f"{name}: no end within {timeout:g} s")
    if len(said.output) > max_bytes:
        raise exceptions.TopologyError(f"{name}: prints more than {max_bytes} bytes")
    if process.returncode != 0:
        last = said.talk.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f": {last[0].strip()[:_SHOWN]}" if last else ""
        raise exceptions.TopologyError(f"{name}: exit code {process.returncode}{why}")
    return bytes(said.output)


@dataclass
class _Said:
    output: bytearray = field(default_factory=bytearray)
    talk: bytearray = field(default_factory=bytearray)  # the end of it


def _read(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> _Said | None:
    """Return what a process says until it ends or has printed too much; None where time ran out."""
    said = _Said()
    with selectors.DefaultSelector() as selector:
        for stream, target in ((process.stdout, said.output), (process.stderr, said.talk)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, target)
        while selector.get_map() and len(said.output) <= max_bytes:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in selector.select(left):
                part = os.read(key.fd, _PART)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
            del said.talk[:-_PART]
    return said
