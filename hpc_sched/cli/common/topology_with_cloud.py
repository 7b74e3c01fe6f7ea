"""A fabric, and the state of the cloud that runs on it where a command asks for it."""

import argparse

from hpc_sched.cli.common import snapshot_source, topology_source
from hpc_sched.snapshot import host_usage
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.topology.model import Topology

HELP = topology_source.HELP.replace("(default: ", "(default: what the snapshot holds, else ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, and the arguments that say how it is read and which cloud is asked."""
    parser.add_argument("source", nargs="?", metavar="SOURCE", help=HELP)
    topology_source.add_arguments(parser)
    snapshot_source.add_arguments(parser)


def fabric_of(args: argparse.Namespace) -> tuple[Topology, FabricUsage | None]:
    """Return the fabric, and what runs on it where a cloud or a snapshot is named.

    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    if args.cloud is None and args.snapshot is None:
        return topology_source.topology_of(args, args.source), None
    return cloud_of(args)


def cloud_of(args: argparse.Namespace) -> tuple[Topology, FabricUsage]:
    """Return the fabric and what runs on it; the cloud is that of OS_CLOUD where none is named.

    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    snapshot = snapshot_source.snapshot_of(args)
    topology = topology_source.fabric_of(args, args.source, snapshot)
    return topology, host_usage.of(topology, snapshot)
