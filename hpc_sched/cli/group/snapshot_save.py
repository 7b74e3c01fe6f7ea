"""hpc-sched snapshot save."""

import argparse

from msgspec.structs import replace
from oslo_config import cfg

from hpc_sched import exceptions
from hpc_sched.cli.common import nova_conf, output, sources
from hpc_sched.cli.common.argument_types import ZERO_OR_MORE, argument, flag, number
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.configuration import config_files
from hpc_sched.configuration.option_value import value_of
from hpc_sched.snapshot.log import logged_decisions
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.snapshot.source import live, snapshot_file
from hpc_sched.topology import plurals
from hpc_sched.topology.writers import yaml_writer

DECISIONS = 1000


class SnapshotSave(HPCSchedCommand):
    """Save the state of a cloud as one file.

    Other commands read it with --snapshot, elsewhere and later; attach it to a bug report.
    """

    EPILOG = """\
examples:

  hpc-sched snapshot save --cloud mycloud state.json.gz
  hpc-sched fits --snapshot state.json.gz --flavor hpc.large --count 64
  hpc-sched explain --snapshot state.json.gz 2b4ab4ae-3b44-4a3c-9d3f-36c1c4a1b0e1

The file holds hosts and their resource providers, the servers, groups, flavors and host
aggregates of all projects, the topology, [hpc_sched] and the PCI aliases of nova.conf, and the
newest records of the decision log. Where the scheduler's nova.conf is missing, give a copy of it
with --config-file, or the topology with --topology. NUMA cells and PCI devices are read from
Nova's databases, where nova.conf names them and Nova is installed.

exit codes: 0 saved, 1 failed, 2 wrong usage
"""

    ARGUMENTS = (
        argument("file", "file to write; compressed where it ends in .gz", metavar="FILE"),
        flag(
            "--no-names",
            "replace the names of servers, server groups and projects; hosts, host "
            "aggregates, flavors and uuids stay",
        ),
        number(
            "--decisions",
            "number of newest records of the decision log to keep",
            ZERO_OR_MORE,
            default=DECISIONS,
        ),
        *sources.ARGUMENTS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Save the file; return the exit code."""
        found = sources.snapshot_of(parsed_args)
        count = parsed_args.decisions
        options = nova_conf.read_if_any(parsed_args)
        if options is not None:
            found = nova_conf.with_configuration(parsed_args, found, options)
            found = replace(found, decisions=_decisions(options, count))
        else:
            # The records of the snapshot that is the source.
            found = replace(found, decisions=found.decisions[-count:] if count else ())
            if not found.options:
                output.note(
                    "no nova.conf here: saved without its options and decision log (looked "
                    f"for {config_files.PLACES}; name a copy of the scheduler's with "
                    "--config-file)"
                )
        found = replace(found, topology=_topology(parsed_args, options, found))
        if found.topology is None:
            output.note(
                "the snapshot has no topology: commands that read it will need --topology "
                "(topology show, check and convert: SOURCE)"
            )
        if parsed_args.no_names:
            found = snapshot_file.without_names(found)
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
    path = value_of(options, "decision_log")
    if not (path and count):
        return ()
    try:
        found = logged_decisions.newest(path, count)
    except exceptions.SnapshotError as error:
        output.note(f"saved without decisions: {error}")
        return ()
    output.note(*found.notes(path))
    return found.records


def _topology(
    args: argparse.Namespace, options: cfg.ConfigOpts | None, found: Snapshot
) -> str | None:
    """Return the topology as a file of driver yaml, or None; raise if --topology is wrong."""
    if args.topology is None and options is None:
        return found.topology
    try:
        return yaml_writer.text_of(sources.topology_of(args, args.topology, found))
    except exceptions.TopologyError as error:
        if args.topology is not None:
            raise
        output.note(f"saved without the fabric of nova.conf: {error}")
        return found.topology
