"""hpc-sched snapshot."""

import argparse

from cliff.command import Command
from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.cli.common import cloud_source, output, snapshot_source, topology_source
from hpc_sched.snapshot.decisions import log_reader
from hpc_sched.snapshot.model import Snapshot
from hpc_sched.snapshot.source import anonymous, live, snapshot_file
from hpc_sched.topology import plurals
from hpc_sched.topology.writers import yaml_writer

DECISIONS = 1000

_EPILOG = """\
examples:

  hpc-sched snapshot save --cloud mycloud state.json.gz
  hpc-sched fits --snapshot state.json.gz --flavor hpc.large --count 64
  hpc-sched explain --snapshot state.json.gz 2b4ab4ae-3b44-4a3c-9d3f-36c1c4a1b0e1

The file holds hosts and what they have, the servers, groups, flavors and host aggregates of all
projects, the fabric, [hpc_sched] of nova.conf and the newest records of the decision log.

exit codes: 0 saved, 1 failed, 2 wrong usage
"""


class SnapshotSave(Command):
    """Save the state of a cloud as one file.

    Other commands answer from it with --snapshot, elsewhere and later; a bug report carries it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument(
            "file", metavar="FILE", help="file to write; compressed where it ends in .gz"
        )
        parser.add_argument(
            "--no-names",
            action="store_true",
            help="replace the names of servers, server groups and projects; hosts, host "
            "aggregates, flavors and uuids stay",
        )
        parser.add_argument(
            "--decisions",
            type=int,
            default=DECISIONS,
            metavar="N",
            help=f"how many of the newest records of the decision log (default: {DECISIONS})",
        )
        cloud_source.add_arguments(parser)
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Save the file; return the exit code."""
        found = snapshot_source.snapshot_of(parsed_args)
        count = max(parsed_args.decisions, 0)
        options = cloud_source.configuration(parsed_args)
        if options is not None:
            found = cloud_source.with_options(found, options)
            found = replace(found, decisions=_decisions(options, count))
        else:
            # Those of a snapshot that is saved anew.
            found = replace(found, decisions=found.decisions[-count:] if count else ())
            if not found.options:
                output.say("note: no nova.conf here: saved without its options and decision log")
        found = replace(found, topology=_topology(parsed_args, options, found))
        if parsed_args.no_names:
            found = anonymous.without_names(found)
        snapshot_file.write(parsed_args.file, found)
        output.say(
            f"{parsed_args.file}: {plurals.text(len(found.hypervisors), 'host')}, "
            f"{plurals.text(len(found.servers), 'server')}, "
            f"{plurals.text(len(found.groups), 'server group')}, "
            f"{plurals.text(len(found.decisions), 'decision')}, "
            f"{'with' if found.topology else 'without'} the fabric"
        )
        return 0


def _decisions(options: cfg.ConfigOpts, count: int) -> tuple[live.Json, ...]:
    path = options.hpc_sched.decision_log
    if not path or not count:
        return ()
    try:
        return log_reader.newest(path, count)
    except exceptions.SnapshotError as error:
        output.say(f"note: saved without decisions: {error}")
        return ()


def _topology(
    args: argparse.Namespace, options: cfg.ConfigOpts | None, found: Snapshot
) -> str | None:
    """Return the fabric as a file of driver yaml; one that is named must be readable."""
    if args.topology is not None:
        return yaml_writer.text_of(topology_source.topology_of(args, args.topology, found))
    if options is None:
        return found.topology
    try:
        return yaml_writer.text_of(topology_source.topology_of(args, None, found))
    except exceptions.TopologyError as error:
        output.say(f"note: saved without the fabric of nova.conf: {error}")
        return found.topology
