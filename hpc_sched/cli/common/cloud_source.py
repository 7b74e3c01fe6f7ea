"""Where a command takes a cloud from: its state, its fabric and the options of nova.conf."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import conf, exceptions, terminal_text
from hpc_sched.cli.common import output, snapshot_source, topology_source
from hpc_sched.core.sharing import interference_file
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.topology import hostlist

# Folding many names without a pattern takes its time.
_MAX_LISTED = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which cloud is asked, and on which fabric."""
    snapshot_source.add_arguments(parser)
    topology_source.add_arguments(parser)
    parser.add_argument(
        "--topology",
        metavar="SOURCE",
        help=topology_source.HELP.replace("(default: ", "(default: what the snapshot holds, else "),
    )


def cloud_of(args: argparse.Namespace) -> Cloud:
    """Return the cloud that a command's arguments name; what is odd in it goes to stderr.

    :raises exceptions.HPCSchedError: where state, fabric or nova.conf cannot be read
    """
    snapshot = snapshot_source.snapshot_of(args)
    options: cfg.ConfigOpts | None = None
    if args.snapshot is None or args.config_file:
        options = configuration(args)
        if options is not None:
            snapshot = with_options(snapshot, options)
    found = Cloud.of(snapshot, topology_source.fabric_of(args, args.topology, snapshot))
    if found.unknown:
        output.say(f"note: {told_of(found.unknown)} not in the topology, each a leaf of its own")
    return found


def configuration(args: argparse.Namespace) -> cfg.ConfigOpts | None:
    """Return nova.conf, None where none is named and none can be found.

    :raises exceptions.ConfigError: where it cannot be read
    """
    if not args.config_file and not cfg.find_config_files(project="nova", prog="nova-scheduler"):
        return None
    return topology_source.configuration(args)


def with_options(snapshot: Snapshot, options: cfg.ConfigOpts) -> Snapshot:
    """Return a snapshot with what nova.conf says: our options, filters, weighers, the index.

    :raises exceptions.ConfigError: for an option with a value that cannot be used
    """
    # Nova's own, without Nova: their defaults do not matter where they do not name ours.
    options.register_opts(
        [cfg.ListOpt("enabled_filters", default=[]), cfg.ListOpt("weight_classes", default=[])],
        group="filter_scheduler",
    )
    try:
        ours = {opt.dest: getattr(options.hpc_sched, opt.dest) for opt in conf.OPTS}
        filters = tuple(options.filter_scheduler.enabled_filters)
        weighers = tuple(options.filter_scheduler.weight_classes)
    except (cfg.Error, ValueError) as error:
        raise exceptions.ConfigError(str(error)) from error
    interference: dict[str, dict[str, float]] = {}
    if ours["interference_file"]:
        try:
            index = interference_file.read_index(ours["interference_file"])
            for (one, other), speed in sorted(index.performance.items()):
                interference.setdefault(one, {})[other] = speed
        except exceptions.InterferenceError as error:
            output.say(f"note: the interference index is left out: {error}")
    return replace(
        snapshot, options=ours, filters=filters, weighers=weighers, interference=interference
    )


def told_of(hosts: tuple[str, ...]) -> str:
    """Return how many hosts there are and, folded, which."""
    shown = hostlist.fold(hosts[:_MAX_LISTED])
    more = f" and {len(hosts) - _MAX_LISTED} more" if len(hosts) > _MAX_LISTED else ""
    return f"{len(hosts)} host{'' if len(hosts) == 1 else 's'} ({shown}{more})"


def printable_rows(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return rows whose texts a terminal may show."""
    return [
        [terminal_text.text_of(cell) if isinstance(cell, str) else cell for cell in row]
        for row in rows
    ]
