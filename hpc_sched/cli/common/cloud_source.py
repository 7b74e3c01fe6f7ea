"""The cloud of a command: its state from its APIs or a snapshot, its topology, its nova.conf."""

import argparse
import sys
import time

from hpc_sched.cli.common import nova_conf, output, topology_source
from hpc_sched.snapshot import host_usage
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import live, snapshot_file
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology

# Folding many names that follow no pattern is slow.
_MAX_LISTED = 200
# Shorter reads are not reported where standard error is no terminal.
_QUIET_SECONDS = 10.0


def add_state_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the cloud."""
    group = parser.add_argument_group("cloud").add_mutually_exclusive_group()
    group.add_argument(
        "--cloud",
        metavar="NAME",
        help="cloud in clouds.yaml (default: OS_CLOUD, or the OS_* variables)",
    )
    group.add_argument(
        "--snapshot",
        metavar="FILE",
        help="read a file of hpc-sched snapshot save in place of the cloud",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the cloud and its topology."""
    add_state_arguments(parser)
    topology_source.add_arguments(parser, "--topology")
    parser.add_argument("--topology", metavar="SOURCE", help=topology_source.HELP_WITH_SNAPSHOT)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, and the arguments that name the cloud on it."""
    parser.add_argument(
        "source", nargs="?", metavar="SOURCE", help=topology_source.HELP_WITH_SNAPSHOT
    )
    topology_source.add_arguments(parser)
    add_state_arguments(parser)


def snapshot_of(args: argparse.Namespace) -> Snapshot:
    """Return the state of the cloud; report progress and notes on standard error.

    :param args: parsed arguments, with those of :func:`add_state_arguments`
    :raises exceptions.SnapshotError: where it cannot be read
    """
    if args.snapshot is not None:
        found = snapshot_file.read(args.snapshot)
    else:
        line = output.StatusLine(sys.stderr)
        shown = time.monotonic()

        def progress(text: str) -> None:
            nonlocal shown
            if line.in_place:
                line.show(text)
            elif time.monotonic() - shown > _QUIET_SECONDS:
                shown = time.monotonic()
                line.show(f"reading {text}")

        try:
            found = live.take(args.cloud, progress)
        finally:
            line.end()
    for note in found.notes:
        output.say(f"note: {note}")
    return found


def cloud_of(args: argparse.Namespace) -> Cloud:
    """Return the cloud with its topology and options; report unknown hosts on standard error.

    :param args: parsed arguments, with those of :func:`add_arguments`
    :raises exceptions.HPCSchedError: where state, topology or nova.conf cannot be read
    """
    snapshot = snapshot_of(args)
    if args.snapshot is None or nova_conf.is_named(args):
        options = nova_conf.read_if_any(args)
        if options is not None:
            snapshot = nova_conf.with_options(snapshot, options)
    found = Cloud.of(snapshot, topology_source.fabric_of(args, args.topology, snapshot))
    if found.unknown:
        output.say(f"note: {unknown_hosts(found)}")
    return found


def unknown_hosts(cloud: Cloud) -> str:
    """Return a sentence about the hosts that the topology does not name."""
    hosts = cloud.unknown
    shown = hostlist.fold(hosts[:_MAX_LISTED])
    more = f" and {len(hosts) - _MAX_LISTED} more" if len(hosts) > _MAX_LISTED else ""
    number = plurals.text(len(hosts), "host")
    return f"{number} ({shown}{more}) not in the topology, each a leaf of its own"


def topology_of_source(args: argparse.Namespace) -> tuple[Topology, FabricUsage | None]:
    """Return the topology, and what runs on it if a cloud or a snapshot is named.

    :param args: parsed arguments, with those of :func:`add_source_arguments`
    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    if args.cloud is None and args.snapshot is None:
        return topology_source.topology_of(args, args.source), None
    return topology_of_cloud(args)


def topology_of_cloud(args: argparse.Namespace) -> tuple[Topology, FabricUsage]:
    """Return the topology and what runs on it; without a named cloud that of OS_CLOUD.

    :param args: parsed arguments, with those of :func:`add_source_arguments`
    :raises exceptions.HPCSchedError: where one of them cannot be read
    """
    snapshot = snapshot_of(args)
    topology = topology_source.fabric_of(args, args.source, snapshot)
    return topology, host_usage.of(topology, snapshot)
