"""hpc-sched topology diff."""

import argparse
from collections.abc import Iterator

from hpc_sched import exceptions
from hpc_sched.cli.common import output, topology_source
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.topology import hostlist
from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.difference import Difference

# As diff(1) does, for scripts that know it.
SAME, DIFFERENT, TROUBLE = 0, 1, 2

_EPILOG = """\
examples:

  What has changed since a file was written; without B it is compared with what nova.conf names:

    hpc-sched topology diff topology.yaml
    hpc-sched topology diff old.yaml new.yaml

  The live fabric against the file that the scheduler reads:

    ibnetdiscover | hpc-sched topology diff topology.yaml -

exit codes, as those of diff(1): 0 the same, 1 different, 2 trouble or wrong usage
"""


class TopologyDiff(TextLister):
    """Tell what differs between two fabrics, or a fabric at two times.

    Hosts and switches that came, went or hang elsewhere, switches with another name, levels,
    processors and links, and how many pairs of hosts are nearer or farther than before. The
    order of a description is no difference.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("old", metavar="A", help=f"the older one: {topology_source.HELP}")
        parser.add_argument(
            "new",
            nargs="?",
            metavar="B",
            help="the newer one, likewise (default: what [hpc_sched] of nova.conf says)",
        )
        parser.add_argument(
            "--brief", action="store_true", help="one line, as the scheduler logs it"
        )
        topology_source.add_arguments(parser)
        return parser

    def get_epilog(self) -> str:
        """Return the examples and the exit codes."""
        return _EPILOG

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the command's exit code."""
        try:
            return super().run(parsed_args)
        except exceptions.HPCSchedError as error:
            for problem in getattr(error, "problems", ()) or (str(error),):
                output.say(problem)
            return TROUBLE

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return a sentence for each change."""
        if args.old == args.new == "-":
            self.parser.error("A and B are both -: standard input can be read once only")
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
    for what in ("hosts", "switches"):
        for change in getattr(found, what):
            yield what, hostlist.fold(change.names), change.old or "", change.new or ""
    for before, after in found.renamed:
        yield "renamed", after, before, after
    for what in ("levels", "processors", "members", "links"):
        for change in getattr(found, what):
            yield what, hostlist.fold(change.names), change.old or "", change.new or ""
    for hops in found.hops:
        yield "hops", f"{hops.pairs} pairs of hosts", f"{hops.old}", f"{hops.new}"
