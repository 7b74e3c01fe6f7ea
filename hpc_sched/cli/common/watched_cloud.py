"""A cloud that a command reads again and again."""

import argparse
import os
from collections.abc import Callable

from hpc_sched import exceptions
from hpc_sched.cli.common import nova_conf, output, sources
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.snapshot.source import connection, live, snapshot_file
from hpc_sched.topology.model import Topology


class WatchedCloud:
    """The cloud of a command's arguments; :meth:`read` returns its state at the moment.

    It is connected once, so that endpoints and the token are kept. The fabric is that of the first
    reading, unless a snapshot with another one has replaced the file. A file that has not changed
    is not read.
    """

    def __init__(self, args: argparse.Namespace, progress: Callable[[str], None]) -> None:
        """Read nothing yet.

        :param progress: is called with a few words on the current call
        """
        self._args, self._progress = args, progress
        self._apis: tuple[connection.Api, connection.Api] | None = None
        self._fabric: Topology | None = None
        self._described: str | None = None  # the fabric in the snapshot, if it is the source
        self._version: tuple[int, ...] | None = None  # of the file that was read
        self._cloud: Cloud | None = None  # of that file

    def read(self) -> Cloud:
        """Return the cloud; the same object if the file is the same.

        :raises exceptions.ReadingError: for a failure that the next reading may not meet
        :raises exceptions.HPCSchedError: for any other one
        """
        if self._args.snapshot is None:
            if self._apis is None:
                self._apis = connection.connect(self._args.cloud)
            return self._of(live.read(self._apis, self._progress))
        version = _version(self._args.snapshot)
        if self._cloud is None or version is None or version != self._version:
            self._cloud, self._version = self._of(self._of_file()), version
        return self._cloud

    def _of_file(self) -> Snapshot:
        try:
            return snapshot_file.read(self._args.snapshot)
        except exceptions.SnapshotError as failure:
            if self._cloud is None:
                raise
            # It was read before: its next version may be readable.
            raise exceptions.ReadingError(str(failure)) from failure

    def _of(self, state: Snapshot) -> Cloud:
        output.note(*state.notes)
        args = self._args
        snapshot = nova_conf.configured(args, state, has_devices=True)
        described = snapshot.topology if args.topology is None else None
        if self._fabric is None or described != self._described:
            self._fabric = sources.fabric_of(args, args.topology, snapshot)
            self._described = described
        return sources.on_fabric(snapshot, self._fabric)


def _version(path: str) -> tuple[int, ...] | None:
    """Return what differs if a file is replaced or written to; None if that is not known."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
