"""Base of drivers that parse one text: a file, or the output of a command."""

import abc
import hashlib
import os
import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from hpc_sched import exceptions, files
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options
from hpc_sched.topology.readers.compression import decompressed
from hpc_sched.topology.readers.reader_errors import Problems, shown_command
from hpc_sched.topology.readers.topology_driver import TopologyDriver

# A fabric of 100,000 links takes some 10 MB.
MAX_BYTES = 256 * 1024 * 1024
MAX_LINES = 10_000_000


def _read(path: str) -> bytes:
    return files.read_bytes(path, exceptions.TopologyError, MAX_BYTES)


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

    options = driver_options.of_text()

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        command: str | Sequence[str] = (),
        timeout: float = 30.0,
        name_map: str | os.PathLike[str] | None = None,
    ) -> None:
        if bool(path) == bool(command):
            raise exceptions.TopologyError(
                "expected a file ([hpc_sched] topology_file) or a command (topology_command), "
                f"found {'both' if path else 'neither'}"
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
            # Loaded with the option: most topologies are files.
            from hpc_sched.topology.readers.command_output import output_of

            content = output_of(self.command, self.timeout, MAX_BYTES)
            return self.described(content, shown_command(self.command))
        return self.described(_read(self.path), self.path)

    def described(self, content: bytes, name: str) -> Text:
        """Return a text that was read already, and the current name map; or raise TopologyError.

        Compressed texts are decompressed.
        """
        content = decompressed(content, name, MAX_BYTES)
        return Text(content, name, None if self.name_map is None else _read(self.name_map))

    def mark(self, description: Text) -> Hashable:
        """Return digests of a text, which are kept in place of megabytes."""
        parts = (description.content, description.name.encode(), description.name_map or b"")
        return tuple(hashlib.blake2b(part).digest() for part in parts)

    def parse(self, description: Text) -> Topology:
        """Return the topology of a text; errors name file, line and what was expected."""
        content, name, name_map = description
        where = self.name_map or "the name map"
        for part, called in ((content, name), (name_map or b"", where)):
            lines = part.count(b"\n")
            Problems(called).check_number(lines, MAX_LINES, "lines", found=lines)
        if not name_map:
            return self.parse_text(content, name, {})
        # Loaded with the option.
        from hpc_sched.topology.readers import name_map as name_map_

        names = name_map_.NameMap(name_map, where)
        fabric = self.parse_text(content, name, names)
        try:
            renamed = fabric.renamed(names)
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(f"{self.name_map}: {error}") from error
        return replace(renamed, remarks=(*renamed.remarks, *names.remarks()))

    @abc.abstractmethod
    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a text called ``name``, with the host names of the text.

        ``names`` is the name map, for texts with GUIDs. TopologyError names line and expectation.
        """
