"""hpc-sched group show."""

import argparse

from hpc_sched import terminal_text
from hpc_sched.cli.common import output, sources
from hpc_sched.cli.common.argument_types import argument, flag, number
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.cli.group import mpi_files
from hpc_sched.core.extra_spec_names import BOTTLENECK, ISOLATED
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.groups import live_migration, server_groups
from hpc_sched.snapshot.isolated_groups import objective_of
from hpc_sched.snapshot.snapshot_model import Group
from hpc_sched.topology import plurals
from hpc_sched.topology.switch_names import leaf_title

_COLUMNS = ("Name", "ID", "Status", "Host", "Leaf", "Above")
_LEGEND = "1-9 + VMs of the group   x VMs of others   . none   ! takes no VMs   ? not in Nova"
# Above this number only leaves with VMs of the group have a row: more would fill several screens.
_MAX_LEAVES = 48


class GroupShow(HPCSchedLister):
    """Show where the VMs of a server group are, what that costs, and a picture of its leaves.

    VMs are in the order of the fabric. The picture and the numbers below it are part of the format
    table; other formats have the VMs, or with --summary the numbers, alone. The formats hostfile,
    machinefile and rankfile start the processes of an MPI program in that order.
    """

    EPILOG = """\
examples:

  hpc-sched group show --cloud mycloud job17
  hpc-sched group show --snapshot state.json.gz job17 -f json
  hpc-sched group show --cloud mycloud job17 --summary -f value -c "Hop-Byte" -c "Least possible"
  hpc-sched group show --cloud mycloud job17 -f hostfile > hosts
  hpc-sched group show --cloud mycloud job17 -f rankfile --slots 2 > ranks

The order of the fabric is depth first, switches and hosts by natural order of their names. Formats
for MPI: hostfile (Open MPI: mpirun --hostfile hosts --map-by slot), machinefile (MPICH and Intel
MPI: mpiexec -f hosts), rankfile (Open MPI; binds each process to cores of its own). They name VMs
as the group does, leave out those without a host, and start one process for each VCPU.

Hop-Byte is the sum, over all pairs of VMs, of the switches between them. The least possible is
what the same VMs would cost on the resources that are free now and their own, under the group's
policy alone. There is no Hop-Byte for VMs on several islands of the fabric.

A group is apart if it is not under one switch of the level of hpc:prefer, without that of
hpc:require, without both under one leaf. The best move is then the live migration of one VM that
brings it under one, or else lowers Hop-Byte most. It keeps capacity, constraints and the policy,
and uses no host that is down or disabled. Whether Nova can migrate the VM there is not checked.
A group by hpc:objective=bottleneck is spread on purpose, and has no best move.

exit codes: 0 shown, 1 failed, 2 wrong usage
"""

    ARGUMENTS = (
        argument("group", "server group", metavar="ID_OR_NAME"),
        flag("--summary", "one row with the numbers, in place of the VMs"),
        number("--slots", "processes on each VM, in formats for MPI (default: its VCPUs)"),
        *sources.ARGUMENTS,
    )

    texts = tuple(mpi_files.KINDS)

    def check(self, args: argparse.Namespace) -> None:
        """Refuse options that a format does not have."""
        super().check(args)
        is_for_mpi = args.formatter in self.texts
        self.refuse(
            (is_for_mpi and args.summary, f"--summary has no format {args.formatter}"),
            (
                args.slots is not None and not is_for_mpi,
                f"--slots needs a format for MPI: -f {', '.join(self.texts)}",
            ),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return columns and rows."""
        found = sources.cloud_of(parsed_args)
        group = found.group(parsed_args.group)
        if parsed_args.formatter in self.texts:
            self._write_for_mpi(found, group, parsed_args)
            return (), []
        shown = server_groups.placement_of(found, group)
        best = live_migration.of(found, shown.group)
        output.note(*shown.notes)
        if parsed_args.summary:
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
                **_summary(best),
            }
            return tuple(summary), [tuple(summary.values())]
        self.below = [*_picture(found, shown), *_objective(found, shown), *_best_move(found, best)]
        rows: list[tuple[str | None, ...]] = []
        for server in shown.servers:
            host = found.host_of.get(server.uuid)
            leaf, *above = (None,) if host is None else found.topology.ancestors(host)
            switches = None if host is None else " ".join(above)
            rows.append((server.name, server.uuid, server.status, host, leaf, switches))
        return _COLUMNS, rows

    def _write_for_mpi(self, cloud: Cloud, group: Group, args: argparse.Namespace) -> None:
        """Set the lines of a file for MPI; note the VMs on which no process can start."""
        placed = server_groups.placed_of(cloud, group)
        servers = server_groups.in_fabric_order(cloud, placed)
        self.lines = mpi_files.lines(args.formatter, servers, args.slots)
        if left_out := len(cloud.members_of(group)) - len(placed):
            output.note(f"{plurals.text(left_out, 'VM')} without a host left out")
        for server in servers:
            if server.status != "ACTIVE":
                output.note(f"VM {server.name} is {server.status}")


def _summary(best: live_migration.GroupMove | None) -> dict[str, object]:
    """Return the columns on the best move; None where there is none."""
    move, server = (best.move, best.server) if best is not None else (None, None)
    return {
        "Move": server and server.name,
        "Move ID": server and server.uuid,
        "Move From": move and move.source,
        "Move To": move and move.target,
        "Hop-Byte Then": move and move.hop_bytes,
    }


def _objective(cloud: Cloud, placed: server_groups.GroupPlacement) -> list[str]:
    """Return the line on what the places are best by, if that is not the least Hop-Byte."""
    flavors = {id(server.flavor): server.flavor for server in placed.servers}
    stated = {objective_of(cloud, flavor) for flavor in flavors.values()}
    texts = {
        BOTTLENECK: "bottleneck: spread so that its busiest link carries less",
        ISOLATED: "isolated: no uplinks that other isolated groups use",
    }
    return [f"objective        {text}" for name, text in texts.items() if name in stated]


def _best_move(cloud: Cloud, best: live_migration.GroupMove | None) -> list[str]:
    """Return the line on the best move; none for a group that is not apart."""
    if best is None:
        return []
    if best.server is None or best.move is None:
        return ["best move        none: no live migration of one VM lowers the cost"]
    move, topology = best.move, cloud.topology
    text = f"best move        {best.server.name} from {move.source} to {move.target}"
    text += f" in {leaf_title(topology, topology.leaf_of(move.target))}"
    text += f": Hop-Byte {terminal_text.hop_bytes(move.hop_bytes)}"
    return [text + (f", all under one {best.level}" if move.is_together else "")]


def _picture(cloud: Cloud, placed: server_groups.GroupPlacement) -> list[str]:
    topology = cloud.topology
    every = len(topology.leaves) <= _MAX_LEAVES
    shown = [leaf for leaf in topology.leaves if every or leaf in placed.leaves]
    titles = [leaf_title(topology, leaf) for leaf in shown]
    width = max(map(len, titles), default=0) + 2
    lines = [
        title.ljust(width)
        + " ".join(_cell(cloud, placed, host) for host in topology.hosts_of(leaf))
        for leaf, title in zip(shown, titles, strict=True)
    ]
    if others := len(topology.leaves) - len(shown):
        lines.append(f"and {plurals.text(others, 'leaf switch')} without VMs of the group")
    return [
        "",
        *map(str.rstrip, lines),
        "",
        " " * width + _LEGEND,
        "",
        f"VMs placed       {sum(placed.counts.values())} of {len(placed.servers)}",
        f"hosts used       {len(placed.counts)}",
        f"leaves used      {len(placed.leaves)}",
        f"Hop-Byte cost    {terminal_text.hop_bytes(placed.hop_bytes)}",
        f"least possible   {terminal_text.hop_bytes(placed.least)}",
    ]


def _cell(cloud: Cloud, placed: server_groups.GroupPlacement, host: str) -> str:
    if own := placed.counts.get(host, 0):
        return str(own) if own < 10 else "+"
    if not (nodes := cloud.hosts.get(host, ())):
        return "?"
    if not any(cloud.takes_vms(node) for node in nodes):
        return "!"
    return "x" if cloud.servers_on.get(host) else "."
