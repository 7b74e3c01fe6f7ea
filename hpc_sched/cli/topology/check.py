"""hpc-sched topology check."""

import argparse
from collections.abc import Iterator

from hpc_sched.cli.common import cloud_source
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.cli.topology.validate import summary
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import lint

MISSING, ABSENT, DOUBLED = "missing", "absent", "doubled"
KINDS = (MISSING, ABSENT, DOUBLED, *lint.KINDS)


class TopologyCheck(TextLister):
    """Compare a topology with the hosts of Nova, and report what is unusual in it."""

    EPILOG = f"""\
examples:

    hpc-sched topology check --cloud mycloud
    hpc-sched topology check topology.yaml --snapshot cloud.json.gz
    hpc-sched topology check topology.yaml --ignore {lint.SIZE} --ignore {lint.SINGLE}

kinds of findings:

    {MISSING}   hosts in Nova that the topology does not name: each counts as a leaf of its own
    {ABSENT}    hosts in the topology that Nova does not know
    {DOUBLED}   hosts in the topology that are several hypervisors in Nova
    {lint.ISLANDS}   parts of the fabric without a link between them
    {lint.LEVELS}    switches directly below one that is more than a level higher
    {lint.SINGLE}    leaves with one host where others have more
    {lint.SIZE}      leaves with more or fewer hosts than most
    {lint.LINKS}     switches with another oversubscription than most of their level

exit codes: 0 nothing was found, 1 something was, or topology or cloud cannot be read,
2 wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument(
            "--ignore",
            metavar="KIND",
            choices=KINDS,
            action="append",
            default=[],
            help="do not look for this (may be given several times): " + ", ".join(KINDS),
        )
        cloud_source.add_source_arguments(parser)

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return the findings."""
        topology, uses = cloud_source.topology_of_cloud(args)
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
    for kind, hosts, where in (
        (MISSING, uses.unnamed, "in Nova, but not in the topology"),
        (ABSENT, uses.absent, "in the topology, but not in Nova"),
    ):
        if hosts:
            yield kind, f"{plurals.text(len(hosts), 'host')} {where}: {hostlist.fold(hosts)}"
    for host, nodes in uses.doubled.items():
        yield DOUBLED, f"host {host} of the topology is {len(nodes)} in Nova: {', '.join(nodes)}"
