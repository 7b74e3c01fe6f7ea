"""hpc-sched topology diff."""

import argparse
from collections.abc import Iterator

from hpc_sched import exceptions
from hpc_sched.cli.common import output, topology_source
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.topology import hostlist
from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.difference import Difference

# The exit codes of diff(1).
SAME, DIFFERENT, TROUBLE = 0, 1, 2


class TopologyDiff(TextLister):
    """Show the differences between two topologies.

    Hosts and switches that were added, removed or moved, renamed switches, levels, processors
    and links, and how many pairs of hosts are nearer or farther than before. The order of a
    description is no difference.
    """

    EPILOG = """\
examples:

  Changes since a file was written; without B it is compared with the topology of nova.conf:

    hpc-sched topology diff topology.yaml
    hpc-sched topology diff old.yaml new.yaml

  The live fabric against the file that the scheduler reads:

    ibnetdiscover | hpc-sched topology diff topology.yaml -

exit codes, as those of diff(1): 0 the same, 1 different, 2 trouble or wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument("old", metavar="A", help=f"the older one: {topology_source.SOURCE}")
        parser.add_argument(
            "new",
            nargs="?",
            metavar="B",
            help="the newer one, likewise (default: the topology of nova.conf)",
        )
        parser.add_argument(
            "--brief", action="store_true", help="one line, as the scheduler logs it"
        )
        topology_source.add_arguments(parser, "B")

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return the exit code."""
        try:
            return super().run(parsed_args)
        except exceptions.HPCSchedError as error:
            for problem in getattr(error, "problems", ()) or (str(error),):
                output.say(problem)
            return TROUBLE

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, to read standard input twice."""
        super().check(args)
        if args.old == args.new == "-":
            self.parser.error("A and B are both -: standard input can be read once only")

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return a sentence for each change."""
        old = topology_source.topology_of(args, args.old)
        found = difference.between(old, topology_source.topology_of(args, args.new))
        lines = [found.summary()] if args.brief and found else found.sentences()
        return Answer(
            "".join(f"{line}\n" for line in lines),
            ("What", "Names", "Old", "New"),
            list(_rows(found)),
            DIFFERENT if found else SAME,
        )


def _rows(found: Difference) -> Iterator[tuple[str, str, str, str]]:
    yield from _changes(found, "hosts", "switches")
    for before, after in found.renamed:
        yield "renamed", after, before, after
    yield from _changes(found, "levels", "processors", "members", "links")
    for hops in found.hops:
        yield "hops", f"{hops.pairs} pairs of hosts", f"{hops.old}", f"{hops.new}"


def _changes(found: Difference, *kinds: str) -> Iterator[tuple[str, str, str, str]]:
    for kind in kinds:
        for change in getattr(found, kind):
            yield kind, hostlist.fold(change.names), change.old or "", change.new or ""
