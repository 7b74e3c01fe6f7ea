"""Descriptions that are one text: of a file, or the output of a command."""

import abc
import hashlib
import os
import shlex
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from hpc_sched import exceptions, files
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_command
from hpc_sched.topology.readers import name_map as name_map_
from hpc_sched.topology.readers.topology_driver import TopologyDriver

# A fabric of 100,000 links takes some 10 MB.
MAX_BYTES = 256 * 1024 * 1024
DEFAULT_TIMEOUT = 30.0


class Text(NamedTuple):
    """A description, and what errors call it."""

    content: bytes
    name: str
    name_map: bytes | None = None  # the file that gives hosts other names


class TextDriver(TopologyDriver):
    """Reads a text from a file or a command."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        command: str | Sequence[str] = (),
        timeout: float = DEFAULT_TIMEOUT,
        name_map: str | os.PathLike[str] | None = None,
    ) -> None:
        """Take one of a file and a command.

        :param path: the file
        :param command: program and arguments, or one text as a shell would split it; what it
            prints is the description
        :param timeout: seconds that the command may take
        :param name_map: a file of names that hosts have elsewhere, see ``topology.name_map``
        :raises exceptions.TopologyError: where there is neither a file nor a command, or both
        """
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
        """Return the fabric as the text describes it now.

        :raises exceptions.TopologyError: where the text cannot be read or is wrong
        """
        return self.parse(self.read())

    def read(self) -> Text:
        """Return the text as it is now.

        :raises exceptions.TopologyError: naming the file or command, and why
        """
        if self.path is not None:
            content = files.read_bytes(self.path, exceptions.TopologyError, MAX_BYTES)
            return self.described(content, self.path)
        content = driver_command.output_of(self.command, self.timeout, MAX_BYTES)
        return self.described(content, driver_command.shown(self.command))

    def described(self, content: bytes, name: str) -> Text:
        """Return a text that was read already, with the name map as it is now.

        :param name: what errors call the text
        :raises exceptions.TopologyError: where the name map cannot be read
        """
        if self.name_map is None:
            return Text(content, name)
        names = files.read_bytes(self.name_map, exceptions.TopologyError, MAX_BYTES)
        return Text(content, name, names)

    def mark(self, description: Text) -> Hashable:
        """Return a digest of a text: of megabytes only that is kept."""
        parts = (description.content, description.name.encode(), description.name_map or b"")
        return tuple(hashlib.blake2b(part).digest() for part in parts)

    def parse(self, description: Text) -> Topology:
        """Return the fabric of a text.

        :raises exceptions.TopologyError: naming file, line and what was expected
        """
        names: Mapping[str, str] = {}
        if description.name_map is not None:
            names = name_map_.read(description.name_map, self.name_map or "the name map")
        fabric = self.parse_text(description.content, description.name, names)
        try:
            return fabric.renamed(names)
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(f"{self.name_map}: {error}") from error

    @abc.abstractmethod
    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the fabric of a text, its hosts called as the text calls them.

        :param name: what errors call the text
        :param names: the name map, for texts that name hosts by something else
        :raises exceptions.TopologyError: naming line and what was expected
        """
