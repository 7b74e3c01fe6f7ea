"""Where a command takes the state of a cloud from: its APIs, or a snapshot."""

import argparse
import sys
import time

from hpc_sched.cli.common import output
from hpc_sched.cli.common.progress_line import StatusLine
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import live, snapshot_file

# What takes less needs no talk where nobody watches.
_QUIET_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which cloud is asked."""
    group = parser.add_argument_group("cloud").add_mutually_exclusive_group()
    group.add_argument(
        "--cloud",
        metavar="NAME",
        help="cloud in clouds.yaml (default: OS_CLOUD, or the OS_* variables)",
    )
    group.add_argument(
        "--snapshot",
        metavar="FILE",
        help="ask what hpc-sched snapshot save has written, in place of the cloud",
    )


def snapshot_of(args: argparse.Namespace) -> Snapshot:
    """Return the state that a command's arguments name; progress goes to standard error.

    :param args: parsed arguments, with those of :func:`add_arguments`
    :raises exceptions.SnapshotError: where it cannot be read
    """
    if args.snapshot is not None:
        found = snapshot_file.read(args.snapshot)
    else:
        progress = _Progress()
        try:
            found = live.take(args.cloud, progress.show)
        finally:
            progress.line.end()
    for note in found.notes:
        output.say(f"note: {note}")
    return found


class _Progress:
    """What is being read, on one line of a terminal; elsewhere a line where it takes long."""

    def __init__(self) -> None:
        self.line = StatusLine(sys.stderr)
        self.told = time.monotonic()

    def show(self, text: str) -> None:
        if self.line.in_place:
            self.line.show(text)
        elif time.monotonic() - self.told > _QUIET_SECONDS:
            self.told = time.monotonic()
            self.line.show(f"reading {text}")
