"""A fabric, and the state of the cloud that runs on it where a command asks for it."""

import argparse

from hpc_sched.cli import sources, state
from hpc_sched.snapshot import occupancy
from hpc_sched.snapshot.occupancy import Occupancy
from hpc_sched.topology.model import Topology

HELP = sources.HELP.replace("(default: ", "(default: what the snapshot holds, else ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, and the arguments that say how it is read and which cloud is asked."""
    parser.add_argument("source", nargs="?", metavar="SOURCE", help=HELP)
    sources.add_arguments(parser)
    state.add_arguments(parser)


def fabric_of(args: argparse.Namespace) -> tuple[Topology, Occupancy | None]:
    """Return the fabric, and what runs on it where a cloud or a snapshot is named.

    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    if args.cloud is None and args.snapshot is None:
        return sources.topology_of(args, args.source), None
    return cloud_of(args)


def cloud_of(args: argparse.Namespace) -> tuple[Topology, Occupancy]:
    """Return the fabric and what runs on it; the cloud is that of OS_CLOUD where none is named.

    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    snapshot = state.snapshot_of(args)
    topology = sources.fabric_of(args, args.source, snapshot)
    return topology, occupancy.of(topology, snapshot)
