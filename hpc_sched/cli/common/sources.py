"""What a command reads: a topology, and a cloud from its APIs or a snapshot, with its nova.conf."""

import argparse
import dataclasses
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import closing

from hpc_sched import exceptions, files
from hpc_sched.cli.common import nova_conf, output
from hpc_sched.cli.common.argument_types import LEVEL_AND_KEY, Argument, argument, exclusive, titled
from hpc_sched.configuration import topology_options
from hpc_sched.snapshot import host_usage
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.snapshot.source import live, snapshot_file
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree, driver_options, topology_driver
from hpc_sched.topology.readers.compression import decompressed
from hpc_sched.topology.readers.text_driver import MAX_BYTES, Text, TextDriver
from hpc_sched.topology.readers.yaml_file import YamlFileDriver

# Folding many names that follow no pattern is slow.
_MAX_LISTED = 200
# Shorter reads are not reported where standard error is no terminal.
_QUIET_SECONDS = 10.0
STDIN = "<stdin>"
SOURCE = (
    "file with a topology, - for standard input; its content shows which driver reads it, or name "
    "the driver first, as in slurm:/etc/slurm/topology.conf; aggregates:SNAPSHOT takes the host "
    "aggregates of a snapshot, ironic:cloud=NAME asks the bare-metal service of a cloud in "
    "clouds.yaml"
)
HELP = f"{SOURCE} (default: the topology of nova.conf)"
HELP_WITH_SNAPSHOT = f"{SOURCE} (default: that of the snapshot, else that of nova.conf)"
AGGREGATES = "aggregates"
# Options of drivers that have an argument: those of how a source is read.
_OPTIONS = [key for key in driver_options.OPTIONS if key not in (*driver_options.SOURCE, "cloud")]


# Where the state of a cloud comes from.
_STATE = (
    argument(
        "--cloud",
        "cloud in clouds.yaml (default: OS_CLOUD, or the OS_* variables)",
        metavar="NAME",
    ),
    argument(
        "--snapshot",
        "read a file of hpc-sched snapshot save in place of the cloud",
        metavar="FILE",
    ),
)
# How a source is read.
_READING: tuple[Argument, ...] = (
    nova_conf.add_arguments,
    argument(
        "--name-map",
        "names that hosts have in Nova (default: topology_name_map of nova.conf, where the "
        "topology comes from there)",
        metavar="FILE",
    ),
    argument(
        "--host-pattern",
        "host name in the description of an InfiniBand port (default: "
        "topology_host_pattern, likewise)",
        metavar="REGEX",
    ),
    argument(
        "--topology-name",
        "tree of Slurm's topology.yaml (default: topology_name, likewise)",
        dest="tree",
        metavar="NAME",
    ),
    *(
        argument(
            f"--{name}-pattern",
            f"{what} (default: topology_{name}_pattern, likewise)",
            metavar="REGEX",
        )
        for name, what in (
            ("port", "ports that count, for lldp and ironic"),
            ("switch", "switches that count, by name or id, for lldp and ironic"),
        )
    ),
    *(
        argument(
            f"--{name}-key",
            f"{what}; once for each level, lowest first (default: topology_{name}_key, likewise)",
            metavar="LEVEL=KEY",
            action="append",
            type=LEVEL_AND_KEY,
        )
        for name, what in (
            ("aggregate", "metadata of host aggregates that names the switches of a level"),
            ("node", "label, trait or property of nodes that does, for kubernetes and ironic"),
        )
    ),
)


def add_topology_arguments(parser: argparse._ActionsContainer, source: str = "SOURCE") -> None:
    """Add the arguments that say how a source is read.

    :param source: what an error calls the argument that names the source
    """
    parser.set_defaults(source_argument=source)
    titled("topology", *_READING)(parser)


def fabric_of(args: argparse.Namespace, source: str | None, snapshot: Snapshot | None) -> Topology:
    """Return the topology of a source, else the snapshot, else nova.conf; see ``topology_of``."""
    if source is not None or snapshot is None or snapshot.topology is None:
        return topology_of(args, source, snapshot)
    name = f"{args.snapshot or 'snapshot'}: topology"
    return YamlFileDriver(path=name).parse(Text(snapshot.topology.encode(), name))


def topology_of(
    args: argparse.Namespace, source: str | None, snapshot: Snapshot | None = None
) -> Topology:
    """Return the topology of a source, see :data:`HELP`, or of nova.conf if that is None.

    Host aggregates come from a snapshot: commands do not read Nova's databases. TopologyError
    where it cannot be read or is wrong, ConfigError where nova.conf is or names none.
    """
    given = {
        key: dict(value) if isinstance(value, list) else value
        for key in _OPTIONS
        if (value := getattr(args, key))
    }
    if source is None:
        options = nova_conf.read(args, f"a topology with {args.source_argument}")
        configured, defaults = topology_options.source(options)
        if configured != AGGREGATES:
            return topology_driver.load(configured, **(defaults | given))
        if snapshot is None:
            raise exceptions.ConfigError(
                f"nova.conf says topology_driver = {AGGREGATES}: expected the cloud whose host "
                f"aggregates are meant, --cloud or --snapshot, or {AGGREGATES}:SNAPSHOT as the "
                "topology"
            )
        return aggregate_tree.topology_of(
            snapshot.aggregates, (defaults | given).get("aggregate_key")
        )
    named, path = topology_driver.driver_and_path(source)
    if named == AGGREGATES:
        return aggregate_tree.topology_of(
            snapshot_file.read(path).aggregates, given.get("aggregate_key")
        )
    if named and path.startswith("cloud="):
        return topology_driver.load(named, cloud=path.removeprefix("cloud="), **given)
    if os.path.isdir(path):  # which lldp reads
        return topology_driver.load(named or "lldp", path=path, **given)
    content, shown = content_of(path, exceptions.TopologyError, MAX_BYTES)
    content = decompressed(content, shown, MAX_BYTES)
    driver = topology_driver.driver(
        named or topology_driver.driver_of(content, shown), path=path, **given
    )
    if not isinstance(driver, TextDriver):
        return driver.load()
    return driver.parse(driver.described(content, shown))


def content_of(path: str, error: files.Error, most: int) -> tuple[bytes, str]:
    """Return the content of a file, or of standard input for ``-``, and its name in errors."""
    if path == "-":
        return files.read_stream(sys.stdin.buffer, STDIN, error, most), STDIN
    return files.read_bytes(path, error, most), path


def is_standard_input(source: str | None) -> bool:
    """True if a source is standard input, which can be read once."""
    named, path = topology_driver.driver_and_path(source or "")
    return path == "-" and named != AGGREGATES


def add_state_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the arguments that name the cloud."""
    # A command may come with its connection, see HPCSchedCommand.cloud.
    has_cloud = parser.get_default("cloud") is not None
    titled("cloud", exclusive(*_STATE[has_cloud:]))(parser)


# What names the cloud and its topology.
ARGUMENTS: tuple[Argument, ...] = (
    add_state_arguments,
    functools.partial(add_topology_arguments, source="--topology"),
    argument("--topology", HELP_WITH_SNAPSHOT, metavar="SOURCE"),
)
# A topology, and what names the cloud on it.
SOURCE_ARGUMENTS: tuple[Argument, ...] = (
    argument("source", HELP_WITH_SNAPSHOT, nargs="?", metavar="SOURCE"),
    add_topology_arguments,
    add_state_arguments,
)


def snapshot_of(args: argparse.Namespace) -> Snapshot:
    """Return the state of the cloud or raise SnapshotError; report progress and notes on stderr."""
    if args.snapshot is not None:
        found = snapshot_file.read(args.snapshot)
    else:
        with closing(output.StatusLine(sys.stderr, _QUIET_SECONDS)) as line:
            found = live.take(args.cloud, lambda text: line.show(f"reading {text}"))
    output.note(*found.notes)
    return found


def cloud_of(args: argparse.Namespace) -> Cloud:
    """Return the cloud with topology and options or raise HPCSchedError; report unknown hosts."""
    return cloud_on(args, args.topology)


def cloud_on(args: argparse.Namespace, source: str | None) -> Cloud:
    """Return the cloud with options on a topology, as :func:`cloud_of`; see ``fabric_of``."""
    snapshot = nova_conf.configured(args, snapshot_of(args), has_devices=True)
    return on_fabric(snapshot, fabric_of(args, source, snapshot))


def on_fabric(snapshot: Snapshot, fabric: Topology) -> Cloud:
    """Return the cloud of a snapshot with the options of nova.conf; report unknown hosts."""
    found = Cloud.of(snapshot, fabric)
    output.note(*unknown_hosts(found))
    return dataclasses.replace(found, fittings=nova_conf.fitting_of)


def cloud_without_fabric(args: argparse.Namespace) -> Cloud:
    """Return the cloud with options, all its hosts under one switch; or raise HPCSchedError."""
    snapshot = nova_conf.configured(args, snapshot_of(args), has_devices=False)
    if not (hosts := sorted({node.nodename for node in snapshot.hypervisors})):
        raise exceptions.SnapshotError(f"{args.snapshot or 'the cloud'}: there is no hypervisor")
    return Cloud.of(snapshot, Topology.from_tree({"cloud": hosts}))


def unknown_hosts(cloud: Cloud) -> Iterator[str]:
    """Yield a sentence about the hosts that the topology does not name, if there are any."""
    if cloud.unknown:
        number = plurals.text(len(cloud.unknown), "host")
        shown = hostlist.first(cloud.unknown, _MAX_LISTED)
        yield f"{number} ({shown}) not in the topology, each a leaf of its own"


def topology_of_source(args: argparse.Namespace) -> tuple[Topology, host_usage.FabricUsage | None]:
    """Return the topology and what runs on it in a named cloud, or None; raise HPCSchedError."""
    if args.cloud is None and args.snapshot is None:
        return topology_of(args, args.source), None
    return topology_of_cloud(args)


def topology_of_cloud(args: argparse.Namespace) -> tuple[Topology, host_usage.FabricUsage]:
    """Return the topology and what runs on it, by default on OS_CLOUD; or raise HPCSchedError."""
    snapshot = snapshot_of(args)
    topology = fabric_of(args, args.source, snapshot)
    return topology, host_usage.of(topology, snapshot)
