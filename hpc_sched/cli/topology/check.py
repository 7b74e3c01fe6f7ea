"""hpc-sched topology check."""

import argparse
from collections.abc import Iterator

from hpc_sched.cli.common import topology_with_cloud
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.cli.topology.validate import summary
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import lint

MISSING, ABSENT, DOUBLED = "missing", "absent", "doubled"
KINDS = (MISSING, ABSENT, DOUBLED, *lint.KINDS)

_EPILOG = f"""\
examples:

    hpc-sched topology check --cloud mycloud
    hpc-sched topology check topology.yaml --snapshot cloud.json.gz
    hpc-sched topology check topology.yaml --ignore {lint.SIZE} --ignore {lint.SINGLE}

what is looked for:

    {MISSING}   hosts in Nova that the topology does not name: each counts as a leaf of its own
    {ABSENT}    hosts in the topology that Nova does not know
    {DOUBLED}   hosts in the topology that are several hypervisors in Nova
    {lint.ISLANDS}   parts of the fabric without a link between them
    {lint.LEVELS}    switches directly below one that is more than a level higher
    {lint.SINGLE}    leaves with one host beside larger ones
    {lint.SIZE}      leaves with more or fewer hosts than most
    {lint.LINKS}     switches oversubscribed otherwise than most of their level

exit codes: 0 nothing was found, 1 something was, or topology or cloud cannot be read,
2 wrong usage
"""


class TopologyCheck(TextLister):
    """Compare a topology with the hosts that Nova has, and look for what is odd in it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--ignore",
            metavar="KIND",
            choices=KINDS,
            action="append",
            default=[],
            help="do not look for this (may be given several times): " + ", ".join(KINDS),
        )
        topology_with_cloud.add_arguments(parser)
        return parser

    def get_epilog(self) -> str:
        """Return the examples and the exit codes."""
        return _EPILOG

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return what was found."""
        topology, uses = topology_with_cloud.cloud_of(args)
        every = [
            *_hosts(uses),
            *((finding.kind, finding.sentence) for finding in lint.of(topology)),
        ]
        rows = [(kind, text) for kind, text in every if kind not in args.ignore]
        nodes = plurals.text(uses.hypervisors, "hypervisor")
        end = f"found {len(rows)}" if rows else "ok"
        lines = [
            *(f"{kind}: {text}" for kind, text in rows),
            f"{end}: {summary(topology)}; {nodes} in Nova",
        ]
        text = "".join(f"{line}\n" for line in lines)
        return Answer(text, ("Kind", "Finding"), rows, int(bool(rows)))


def _hosts(uses: FabricUsage) -> Iterator[tuple[str, str]]:
    if uses.unnamed:
        yield (
            MISSING,
            f"{plurals.text(len(uses.unnamed), 'host')} in Nova, but not in the topology: "
            f"{hostlist.fold(uses.unnamed)}",
        )
    if uses.absent:
        yield (
            ABSENT,
            f"{plurals.text(len(uses.absent), 'host')} in the topology, but not in Nova: "
            f"{hostlist.fold(uses.absent)}",
        )
    for host, nodes in uses.doubled.items():
        yield DOUBLED, f"host {host} of the topology is {len(nodes)} in Nova: {', '.join(nodes)}"
