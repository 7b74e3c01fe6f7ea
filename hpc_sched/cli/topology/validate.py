"""hpc-sched topology validate."""

import argparse
from collections.abc import Iterator

from hpc_sched import exceptions
from hpc_sched.cli.common import topology_source
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import lint
from hpc_sched.topology.model import Topology

PROBLEM, REMARK, MERGED, OK, FAILED = "problem", "remark", "merged", "ok", "failed"


class TopologyValidate(TextLister):
    """Check that a topology can be used: print every problem and every remark, one a line."""

    EPILOG = """\
examples:

    hpc-sched topology validate
    hpc-sched topology validate topology.yaml
    hpc-sched topology validate --strict slurm:/etc/slurm/topology.conf ibnetdiscover.out
    ibnetdiscover | hpc-sched topology validate -

A problem would stop the start of a scheduler. A remark is legal, and may still be a mistake: what
was corrected while reading, islands, leaves of odd size, unequal oversubscription.

exit codes: 0 no problems (with --strict: nor remarks), 1 some were found, 2 wrong usage
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        parser.add_argument("sources", nargs="*", metavar="SOURCE", help=topology_source.HELP)
        parser.add_argument("--strict", action="store_true", help="remarks count as problems")
        topology_source.add_arguments(parser)

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, to read standard input twice."""
        super().check(args)
        if args.sources.count("-") > 1:
            self.parser.error("SOURCE -: standard input can be read once only")

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return the problems and remarks of each source."""
        counted = {PROBLEM, REMARK} if args.strict else {PROBLEM}
        rows = []
        for source in args.sources or [None]:
            name = source or "nova.conf"
            found = list(_findings(args, source))
            failed = sum(kind in counted for kind, _ in found)
            if failed:
                # A problem ends the reading: there are no counts to report.
                found = [(kind, text) for kind, text in found if kind != OK]
                found.append((FAILED, plurals.text(failed, "problem")))
            rows += [(name, kind, text) for kind, text in found]
        several = len(args.sources) > 1
        lines = [_line(row, several) for row in rows]
        code = int(any(kind == FAILED for _, kind, _ in rows))
        return Answer(
            "".join(f"{line}\n" for line in lines), ("Source", "Kind", "Text"), rows, code
        )


def _findings(args: argparse.Namespace, source: str | None) -> Iterator[tuple[str, str]]:
    """Yield kind and sentence of each problem and remark of a source."""
    try:
        topology = topology_source.topology_of(args, source)
    except exceptions.HPCSchedError as error:
        for problem in getattr(error, "problems", ()) or (str(error),):
            yield PROBLEM, problem
        return
    for remark in topology.remarks:
        yield REMARK, remark
    for finding in lint.of(topology):
        yield REMARK, finding.sentence
    for switch in topology.switches:
        if switch.members:
            yield (
                MERGED,
                f"{topology.levels[switch.level - 1]} {switch.name} stands for "
                f"{len(switch.members)} switches: {hostlist.fold(switch.members)}",
            )
    yield OK, summary(topology)


def summary(topology: Topology) -> str:
    """Return a topology's counts, and its oversubscription if links are known."""
    text = topology.summary()
    usual = lint.oversubscription(topology)
    if not usual:
        return text
    ratios = ", ".join(f"{level} {lint.ratio_text(ratio)}" for level, ratio in usual.items())
    return f"{text}; oversubscription: {ratios}"


def _line(row: tuple[str, str, str], several: bool) -> str:
    """Return a line for people; a problem names its file itself."""
    source, kind, text = row
    if kind == PROBLEM:
        return text if not several or text.startswith(source) else f"{source}: {text}"
    return f"{source}: {kind}: {text}" if several else f"{kind}: {text}"
