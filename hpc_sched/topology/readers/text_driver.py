"""Base of drivers that parse one text: a file, or the output of a command."""

import abc
import hashlib
import os
import selectors
import shlex
import signal
import subprocess  # nosec B404
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from hpc_sched import exceptions, files
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import name_map as name_map_
from hpc_sched.topology.readers.topology_driver import TopologyDriver

# A fabric of 100,000 links takes some 10 MB.
MAX_BYTES = 256 * 1024 * 1024
_SHOWN = 200
_PART = 65536


class Text(NamedTuple):
    """A description, and its name in errors."""

    content: bytes
    name: str
    name_map: bytes | None = None  # content of the name map


class TextDriver(TopologyDriver):
    """Reads a text from a file or else a command; a subclass has :meth:`parse_text`.

    The command is program and arguments, or one text that is split as by a shell, with a timeout
    in seconds. ``name_map`` is a file of other names of hosts, see ``readers.name_map``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        command: str | Sequence[str] = (),
        timeout: float = 30.0,
        name_map: str | os.PathLike[str] | None = None,
    ) -> None:
        if bool(path) == bool(command):
            found = "both" if path else "neither"
            raise exceptions.TopologyError(
                "expected a file ([hpc_sched] topology_file) or a command (topology_command), "
                f"found {found}"
            )
        self.path = os.fspath(path) if path else None
        self.command = tuple(shlex.split(command) if isinstance(command, str) else command)
        self.timeout = timeout
        self.name_map = os.fspath(name_map) if name_map else None

    def load(self) -> Topology:
        """Read and parse the text."""
        return self.parse(self.read())

    def read(self) -> Text:
        """Return the current text; errors name the file or command, and why."""
        if self.path is None:
            content = output_of(self.command, self.timeout, MAX_BYTES)
            return self.described(content, shown(self.command))
        content = files.read_bytes(self.path, exceptions.TopologyError, MAX_BYTES)
        return self.described(content, self.path)

    def described(self, content: bytes, name: str) -> Text:
        """Return a text that was read already, and the current name map; or raise TopologyError."""
        if self.name_map is None:
            return Text(content, name)
        names = files.read_bytes(self.name_map, exceptions.TopologyError, MAX_BYTES)
        return Text(content, name, names)

    def mark(self, description: Text) -> Hashable:
        """Return digests of a text, which are kept in place of megabytes."""
        parts = (description.content, description.name.encode(), description.name_map or b"")
        return tuple(hashlib.blake2b(part).digest() for part in parts)

    def parse(self, description: Text) -> Topology:
        """Return the topology of a text; errors name file, line and what was expected."""
        content, name, name_map = description
        names = name_map_.read(name_map, self.name_map or "the name map") if name_map else {}
        fabric = self.parse_text(content, name, names)
        try:
            return fabric.renamed(names)
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(f"{self.name_map}: {error}") from error

    @abc.abstractmethod
    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a text called ``name``, with the host names of the text.

        ``names`` is the name map, for texts with GUIDs. TopologyError names line and expectation.
        """


def shown(command: Sequence[str]) -> str:
    """Return a command for error texts, truncated."""
    text = shlex.join(command)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def output_of(command: Sequence[str], timeout: float, max_bytes: int) -> bytes:
    """Return what a command prints, or TopologyError; after timeout, s, kill it with children."""
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
            if streams is not None and len(streams[0]) <= max_bytes:
                process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            streams = None  # it has closed its output and still runs
        finally:
            # Its children are in its process group.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    if streams is None:
        raise exceptions.TopologyError(f"{name}: no end within {timeout:g} s")
    output, errors = streams
    if len(output) > max_bytes:
        raise exceptions.TopologyError(f"{name}: prints more than {max_bytes} bytes")
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f": {last[0].strip()[:_SHOWN]}" if last else ""
        raise exceptions.TopologyError(f"{name}: exit code {process.returncode}{why}")
    return bytes(output)


def _read(
    process: subprocess.Popen[bytes], deadline: float, max_bytes: int
) -> tuple[bytearray, bytearray] | None:
    """Return output, up to its end or limit, and the end of the errors; None after the deadline."""
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, target in ((process.stdout, output), (process.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, target)
        while selector.get_map() and len(output) <= max_bytes:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in selector.select(left):
                part = os.read(key.fd, _PART)
                if not part:
                    selector.unregister(key.fileobj)
                key.data.extend(part)
            del errors[:-_PART]
    return output, errors
