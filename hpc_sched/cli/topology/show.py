"""hpc-sched topology show."""

import argparse

from hpc_sched import exceptions
from hpc_sched.cli.common import cloud_source, output
from hpc_sched.cli.common.argument_types import add_number
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.cli.topology import switch_tree
from hpc_sched.topology import plurals
from hpc_sched.topology.model import Topology


class TopologyShow(TextLister):
    """Show a topology: its switches as a tree, with folded host names.

    With another --format than text: a row for each of the lowest switches that are shown.
    """

    EPILOG = """\
examples:

  The topology of nova.conf, and that of a file:

    hpc-sched topology show
    hpc-sched topology show /etc/slurm/topology.conf

  The output of a command, one pod of it, and nothing below the level pod:

    ibnetdiscover | hpc-sched topology show -
    hpc-sched topology show topology.yaml --switch pod1
    hpc-sched topology show topology.yaml --level pod

  With its use: VMs, vcpus used of all, hosts without VMs, and hosts that take none (disabled, down
  or unknown to Nova):

    hpc-sched topology show --cloud mycloud

  A row for each leaf, or each switch below which nothing is shown, for programs:

    hpc-sched topology show topology.yaml -f json
    hpc-sched topology show topology.yaml -f value -c Switch -c Hosts

exit codes: 0 done, 1 the topology or the cloud cannot be read or has no such switch, 2 wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument("--switch", metavar="NAME", help="this switch and all below it")
        cut = parser.add_mutually_exclusive_group()
        add_number(cut, "--depth", "N levels of switches from the top")
        cut.add_argument(
            "--level", metavar="NAME", help="nothing below this level, such as leaf or pod"
        )
        cloud_source.add_source_arguments(parser)

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return the tree, and the rows of its lowest switches."""
        topology, uses = cloud_source.topology_of_source(args)
        cut = switch_tree.Cut(args.switch, args.depth, _level(topology, args.level))
        shown = switch_tree.nodes(topology, cut)
        if topology.remarks:
            output.say(
                f"{plurals.text(len(topology.remarks), 'remark')} on this topology: see hpc-sched "
                "topology validate"
            )
        if uses and uses.unnamed:
            output.say(
                f"{plurals.text(len(uses.unnamed), 'hypervisor')} not in this topology: see "
                "hpc-sched topology check"
            )
        drawn = "".join(switch_tree.UNICODE)
        lines = switch_tree.UNICODE if output.takes(drawn, self.app.stdout) else switch_tree.ASCII
        text = switch_tree.text_of(topology, shown, uses, lines)
        return Answer(text, *switch_tree.rows(topology, shown, uses))


def _level(topology: Topology, name: str | None) -> int:
    if name is None:
        return 1
    if name not in topology.levels:
        raise exceptions.TopologyError(
            f"--level {name}: expected one of {', '.join(topology.levels)}"
        )
    return topology.levels.index(name) + 1
