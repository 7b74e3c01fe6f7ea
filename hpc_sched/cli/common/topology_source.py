"""Where a command takes its topology from: a file, or what nova.conf says."""

import argparse
import sys
from pathlib import Path

from oslo_config import cfg

from hpc_sched import conf, exceptions, files, masking
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree, detection, topology_driver
from hpc_sched.topology.readers.text_driver import MAX_BYTES, Text, TextDriver
from hpc_sched.topology.readers.yaml_file import YamlFileDriver

STDIN = "<stdin>"
HELP = (
    "file with a topology, - for standard input; which driver reads it is seen from its content, "
    "or stands before it, as in slurm:/etc/slurm/topology.conf; aggregates:SNAPSHOT is what the "
    "host aggregates in a snapshot say (default: what [hpc_sched] of nova.conf says)"
)
AGGREGATES = "aggregates"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a source is read."""
    group = parser.add_argument_group("topology")
    group.add_argument(
        "--config-file",
        metavar="FILE",
        action="append",
        help="nova.conf to read [hpc_sched] from; may be given several times (default: where "
        "Nova's services look)",
    )
    group.add_argument(
        "--name-map",
        metavar="FILE",
        help="names that hosts have in Nova (default: topology_name_map of nova.conf, where the "
        "topology comes from there)",
    )
    group.add_argument(
        "--host-pattern",
        metavar="REGEX",
        help="host name in the description of an InfiniBand port (default: likewise)",
    )
    group.add_argument(
        "--topology-name",
        metavar="NAME",
        help="tree of Slurm's topology.yaml (default: likewise)",
    )


def fabric_of(args: argparse.Namespace, source: str | None, snapshot: Snapshot) -> Topology:
    """Return the fabric of a source, or where there is none that of a snapshot, or of nova.conf.

    :param args: parsed arguments, with those of :func:`add_arguments` and of ``state``
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
    """Return the fabric of a source, or where there is none that of nova.conf.

    Host aggregates are taken from a snapshot: commands do not read Nova's databases.

    :param args: parsed arguments, with those of :func:`add_arguments`
    :param source: as :data:`HELP` says
    :param snapshot: the cloud that nova.conf is about, where it is known
    :raises exceptions.TopologyError: where it cannot be read or is wrong
    :raises exceptions.ConfigError: where nova.conf cannot be read or names no topology
    """
    given = {
        name: value
        for name, value in (
            ("name_map", args.name_map),
            ("host_pattern", args.host_pattern),
            ("tree", args.topology_name),
        )
        if value
    }
    if source is None:
        configured, options = conf.topology_source(configuration(args))
        if configured == AGGREGATES:
            return aggregate_tree.topology_of(_known(snapshot).aggregates)
        return topology_driver.load(configured, **(options | given))
    said, path = _split(source)
    if said == AGGREGATES:
        return aggregate_tree.topology_of(snapshot_file.read(path).aggregates)
    if path == "-":
        content = files.read_stream(sys.stdin.buffer, STDIN, exceptions.TopologyError, MAX_BYTES)
    else:
        content = files.read_bytes(path, exceptions.TopologyError, MAX_BYTES)
    shown = STDIN if path == "-" else path
    name = said or detection.driver_of(content, shown)
    driver = topology_driver.driver(name, path=path, **given)
    if not isinstance(driver, TextDriver):
        return driver.load()
    return driver.parse(driver.described(content, shown))


def configuration(args: argparse.Namespace) -> cfg.ConfigOpts:
    """Return nova.conf as far as it is about us.

    :raises exceptions.ConfigError: where there is none, or it cannot be read
    """
    found = cfg.ConfigOpts()
    conf.register_opts(found)
    paths = args.config_file or cfg.find_config_files(project="nova", prog="nova-scheduler")
    if not paths:
        raise exceptions.ConfigError(
            "there is no nova.conf where Nova's services look: name a topology, or a nova.conf "
            "with --config-file"
        )
    try:
        found(args=[], project="nova", default_config_files=[str(Path(path)) for path in paths])
    except cfg.Error as error:
        raise exceptions.ConfigError(masking.masked(str(error))) from error
    return found


def _known(snapshot: Snapshot | None) -> Snapshot:
    if snapshot is None:
        raise exceptions.ConfigError(
            f"nova.conf says topology_driver = {AGGREGATES}: expected the cloud whose host "
            f"aggregates are meant, --cloud or --snapshot, or {AGGREGATES}:SNAPSHOT as the topology"
        )
    return snapshot


def _split(source: str) -> tuple[str | None, str]:
    """Return the driver that stands before a path, None where none does, and the path."""
    name, colon, path = source.partition(":")
    if colon and path and name in topology_driver.driver_names():
        return name, path
    return None, source
