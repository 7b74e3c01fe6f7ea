"""hpc-sched group show."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from cliff.lister import Lister

from hpc_sched.cli.common import cloud_source, output
from hpc_sched.cli.group import leaf_picture
from hpc_sched.snapshot import group_placement, server_groups
from hpc_sched.snapshot.cloud import Cloud

_COLUMNS = ("Name", "ID", "Status", "Host", "Leaf", "Above")
_SUMMARY = (
    "Group",
    "ID",
    "Policy",
    "VMs",
    "Placed",
    "Hosts",
    "Leaves",
    "Hop-Byte",
    "Least possible",
)

_EPILOG = """\
examples:

  hpc-sched group show --cloud mycloud job17
  hpc-sched group show --snapshot state.json.gz job17 -f json
  hpc-sched group show --cloud mycloud job17 --summary -f value -c "Hop-Byte" -c "Least possible"

Hop-Byte adds up, over all pairs of VMs, the switches between them. The least possible is what
the same VMs would cost on the room that is free now and on their own, with the group's policy
and without other wishes. There is no Hop-Byte where VMs stand on several islands of the fabric.

exit codes: 0 shown, 1 failed, 2 wrong usage
"""


class GroupShow(Lister):
    """Show where the VMs of a server group are, what that costs, and a picture of its leaves.

    The picture and the numbers below it are part of the format table; with other formats the
    VMs, or with --summary the numbers, are all there is.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("group", metavar="ID_OR_NAME", help="server group")
        parser.add_argument(
            "--summary", action="store_true", help="one row with the numbers, in place of the VMs"
        )
        cloud_source.add_arguments(parser)
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return columns and rows."""
        found = cloud_source.cloud_of(parsed_args)
        shown = group_placement.of(found, found.group(parsed_args.group))
        for note in shown.notes:
            output.say(f"note: {note}")
        self._below = ""
        if parsed_args.summary:
            group = shown.group
            return _SUMMARY, [
                (
                    group.name,
                    group.uuid,
                    server_groups.policy_of(group),
                    len(shown.servers),
                    sum(shown.counts.values()),
                    len(shown.counts),
                    len(shown.leaves),
                    shown.hop_bytes,
                    shown.least,
                )
            ]
        if parsed_args.formatter == "table":
            self._below = leaf_picture.render(found, shown)
        return _COLUMNS, [
            (server.name, server.uuid, server.status, *_place(found, server.uuid))
            for server in shown.servers
        ]

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any
    ) -> int:
        """Print the rows, and what is below them."""
        if parsed_args.formatter == "table":
            data = cloud_source.printable_rows(data)
        super().produce_output(parsed_args, column_names, data)
        if self._below:
            self.app.stdout.write(f"\n{self._below}\n")
        return 0


def _place(found: Cloud, uuid: str) -> tuple[str | None, str | None, str | None]:
    """Return host, leaf and the switches above of a VM; None where it has no host."""
    host = found.host_of.get(uuid)
    if host is None:
        return None, None, None
    leaf, *above = found.topology.ancestors(host)
    return host, leaf, " ".join(above)
