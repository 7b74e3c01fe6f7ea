"""The topology of a command: a file, a snapshot, or what nova.conf names."""

import argparse
import sys

from hpc_sched import conf, exceptions, files
from hpc_sched.cli.common import nova_conf
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree, topology_driver
from hpc_sched.topology.readers.text_driver import MAX_BYTES, Text, TextDriver
from hpc_sched.topology.readers.yaml_file import YamlFileDriver

STDIN = "<stdin>"
SOURCE = (
    "file with a topology, - for standard input; its content shows which driver reads it, or name "
    "the driver first, as in slurm:/etc/slurm/topology.conf; aggregates:SNAPSHOT takes the host "
    "aggregates of a snapshot"
)
HELP = f"{SOURCE} (default: the topology of nova.conf)"
HELP_WITH_SNAPSHOT = f"{SOURCE} (default: that of the snapshot, else that of nova.conf)"
AGGREGATES = "aggregates"


def add_arguments(parser: argparse.ArgumentParser, source: str = "SOURCE") -> None:
    """Add the arguments that say how a source is read.

    :param source: what an error calls the argument that names the source
    """
    parser.set_defaults(source_argument=source)
    group = parser.add_argument_group("topology")
    nova_conf.add_arguments(group)
    group.add_argument(
        "--name-map",
        metavar="FILE",
        help="names that hosts have in Nova (default: topology_name_map of nova.conf, where the "
        "topology comes from there)",
    )
    group.add_argument(
        "--host-pattern",
        metavar="REGEX",
        help="host name in the description of an InfiniBand port (default: "
        "topology_host_pattern, likewise)",
    )
    group.add_argument(
        "--topology-name",
        metavar="NAME",
        help="tree of Slurm's topology.yaml (default: topology_name, likewise)",
    )


def fabric_of(args: argparse.Namespace, source: str | None, snapshot: Snapshot) -> Topology:
    """Return the topology of a source, else that of a snapshot, else that of nova.conf.

    :param args: parsed arguments, with those of :func:`add_arguments` and ``snapshot``
    :param source: as :data:`HELP` says
    :raises exceptions.HPCSchedError: as :func:`topology_of` does
    """
    if source is not None or snapshot.topology is None:
        return topology_of(args, source, snapshot)
    name = f"{args.snapshot or 'snapshot'}: topology"
    parsed: Topology = YamlFileDriver(path=name).parse(Text(snapshot.topology.encode(), name))
    return parsed


def topology_of(
    args: argparse.Namespace, source: str | None, snapshot: Snapshot | None = None
) -> Topology:
    """Return the topology of a source, or that of nova.conf if the source is None.

    Host aggregates come from a snapshot: commands do not read Nova's databases.

    :param args: parsed arguments, with those of :func:`add_arguments`
    :param source: as :data:`HELP` says
    :param snapshot: the cloud of nova.conf, if known
    :raises exceptions.TopologyError: where it cannot be read or is wrong
    :raises exceptions.ConfigError: where nova.conf cannot be read or names no topology
    """
    stated = {
        "name_map": args.name_map,
        "host_pattern": args.host_pattern,
        "tree": args.topology_name,
    }
    given = {name: value for name, value in stated.items() if value}
    if source is None:
        options = nova_conf.read(args, f"a topology with {args.source_argument}")
        configured, defaults = conf.topology_source(options)
        if configured != AGGREGATES:
            return topology_driver.load(configured, **(defaults | given))
        if snapshot is None:
            raise exceptions.ConfigError(
                f"nova.conf says topology_driver = {AGGREGATES}: expected the cloud whose host "
                f"aggregates are meant, --cloud or --snapshot, or {AGGREGATES}:SNAPSHOT as the "
                "topology"
            )
        return aggregate_tree.topology_of(snapshot.aggregates)
    named, path = _split(source)
    if named == AGGREGATES:
        return aggregate_tree.topology_of(snapshot_file.read(path).aggregates)
    if path == "-":
        content = files.read_stream(sys.stdin.buffer, STDIN, exceptions.TopologyError, MAX_BYTES)
    else:
        content = files.read_bytes(path, exceptions.TopologyError, MAX_BYTES)
    shown = STDIN if path == "-" else path
    name = named or topology_driver.driver_of(content, shown)
    driver = topology_driver.driver(name, path=path, **given)
    if not isinstance(driver, TextDriver):
        return driver.load()
    return driver.parse(driver.described(content, shown))


def _split(source: str) -> tuple[str | None, str]:
    """Return the driver that a source names, or None, and its path."""
    name, colon, path = source.partition(":")
    if colon and path and name in topology_driver.driver_names():
        return name, path
    return None, source
