"""hpc-sched group show."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from hpc_sched import terminal_text
from hpc_sched.cli.common import cloud_source, output
from hpc_sched.cli.common.base_command import HPCSchedLister
from hpc_sched.snapshot import group_placement, server_groups
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology import plurals
from hpc_sched.topology.writers import leaf_rows

_COLUMNS = ("Name", "ID", "Status", "Host", "Leaf", "Above")
_LEGEND = "1-9 + VMs of the group   x VMs of others   . none   ! takes no VMs   ? not in Nova"
# Above this number only leaves with VMs of the group have a row: more would fill several screens.
_MAX_LEAVES = 48


class GroupShow(HPCSchedLister):
    """Show where the VMs of a server group are, what that costs, and a picture of its leaves.

    The picture and the numbers below it are part of the format table; other formats have the VMs,
    or with --summary the numbers, alone.
    """

    EPILOG = """\
examples:

  hpc-sched group show --cloud mycloud job17
  hpc-sched group show --snapshot state.json.gz job17 -f json
  hpc-sched group show --cloud mycloud job17 --summary -f value -c "Hop-Byte" -c "Least possible"

Hop-Byte is the sum, over all pairs of VMs, of the switches between them. The least possible is
what the same VMs would cost on the resources that are free now and their own, under the group's
policy alone. There is no Hop-Byte for VMs on several islands of the fabric.

exit codes: 0 shown, 1 failed, 2 wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument("group", metavar="ID_OR_NAME", help="server group")
        parser.add_argument(
            "--summary", action="store_true", help="one row with the numbers, in place of the VMs"
        )
        cloud_source.add_arguments(parser)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return columns and rows."""
        found = cloud_source.cloud_of(parsed_args)
        shown = group_placement.of(found, found.group(parsed_args.group))
        for note in shown.notes:
            output.say(f"note: {note}")
        if parsed_args.summary:
            group = shown.group
            summary = {
                "Group": group.name,
                "ID": group.uuid,
                "Policy": server_groups.policy_of(group),
                "VMs": len(shown.servers),
                "Placed": sum(shown.counts.values()),
                "Hosts": len(shown.counts),
                "Leaves": len(shown.leaves),
                "Hop-Byte": shown.hop_bytes,
                "Least possible": shown.least,
            }
            return tuple(summary), [tuple(summary.values())]
        self.below = _picture(found, shown)
        return _COLUMNS, [
            (server.name, server.uuid, server.status, *_place(found, server.uuid))
            for server in shown.servers
        ]


def _place(found: Cloud, uuid: str) -> tuple[str | None, str | None, str | None]:
    """Return host, leaf and the switches above of a VM; None where it has no host."""
    host = found.host_of.get(uuid)
    if host is None:
        return None, None, None
    leaf, *above = found.topology.ancestors(host)
    return host, leaf, " ".join(above)


def _picture(cloud: Cloud, placed: group_placement.GroupPlacement) -> list[str]:
    """Return lines with the leaves, the VMs on their hosts, and the costs."""
    topology = cloud.topology
    shown = list(topology.leaves)
    if len(shown) > _MAX_LEAVES:
        shown = [leaf for leaf in shown if leaf in placed.leaves]
    titles = {leaf: leaf_rows.title_of(topology, leaf) for leaf in shown}
    width = max((len(title) for title in titles.values()), default=0) + 2
    lines = [
        titles[leaf].ljust(width)
        + leaf_rows.row_of(topology, leaf, lambda host: _cell(cloud, placed, host))
        for leaf in shown
    ]
    others = len(topology.leaves) - len(shown)
    if others:
        lines.append(f"and {plurals.text(others, 'leaf switch')} without VMs of the group")
    number = sum(placed.counts.values())
    return [
        "",
        *(line.rstrip() for line in lines),
        "",
        " " * width + _LEGEND,
        "",
        f"VMs placed       {number} of {len(placed.servers)}",
        f"hosts used       {len(placed.counts)}",
        f"leaves used      {len(placed.leaves)}",
        f"Hop-Byte cost    {terminal_text.hop_bytes(placed.hop_bytes)}",
        f"least possible   {terminal_text.hop_bytes(placed.least)}",
    ]


def _cell(cloud: Cloud, placed: group_placement.GroupPlacement, host: str) -> str:
    own = placed.counts.get(host, 0)
    if own:
        return str(own) if own < 10 else "+"
    nodes = cloud.hosts.get(host, ())
    if not nodes:
        return "?"
    if not any(cloud.takes_vms(node) for node in nodes):
        return "!"
    return "x" if cloud.servers_on.get(host) else "."
