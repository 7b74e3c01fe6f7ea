"""hpc-sched topology validate, check and diff."""

import argparse
from collections.abc import Iterator
from functools import partial

from hpc_sched import exceptions
from hpc_sched.cli.common import output, sources
from hpc_sched.cli.common.argument_types import argument, flag, repeated
from hpc_sched.cli.common.base_command import Table, TextLister
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import difference, lint
from hpc_sched.topology.links import ratio_text
from hpc_sched.topology.model import Topology

PROBLEM, INCOMPLETE, REMARK = "problem", "incomplete", "remark"
MERGED, OK, FAILED = "merged", "ok", "failed"
MISSING, ABSENT, DOUBLED = "missing", "absent", "doubled"
KINDS = (MISSING, ABSENT, DOUBLED, *lint.KINDS)
_IN_A_LINE = 20  # switches
MEMBERS = flag("--members", "name the switches that each merged one stands for")
# The exit codes of diff(1).
SAME, DIFFERENT, TROUBLE = 0, 1, 2


class TopologyValidate(TextLister):
    """Check that a topology can be used: print every problem and every remark, one a line."""

    EPILOG = """\
examples:

    hpc-sched topology validate
    hpc-sched topology validate topology.yaml
    hpc-sched topology validate --strict slurm:/etc/slurm/topology.conf ibnetdiscover.out
    ibnetdiscover | hpc-sched topology validate -

A problem would stop the start of a scheduler; of an incomplete description, which seems to be cut
off, its reload. A remark is legal, and may still be a mistake: what
was corrected while reading, islands, leaves of odd size, switches with few uplinks, unequal
oversubscription.

exit codes: 0 no problems (with --strict: nor remarks), 1 some were found, 2 wrong usage
"""

    ARGUMENTS = (
        argument("sources", sources.HELP, nargs="*", metavar="SOURCE"),
        flag("--strict", "remarks count as problems"),
        MEMBERS,
        sources.add_topology_arguments,
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, to read standard input twice."""
        super().check(args)
        self.refuse((args.sources.count("-") > 1, "SOURCE -: standard input can be read once only"))

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return the problems and remarks of each source."""
        args = parsed_args
        counted = {PROBLEM, INCOMPLETE} | ({REMARK} if args.strict else set())
        rows = []
        for source in args.sources or [None]:
            found = list(_findings(args, source))
            if failed := sum(kind in counted for kind, _ in found):
                # A problem ends the reading: there are no counts to report.
                found = [(kind, text) for kind, text in found if kind != OK]
                found.append((FAILED, plurals.text(failed, "problem")))
            rows += [(source or "nova.conf", kind, text) for kind, text in found]
        self.lines = [_line(row, len(args.sources) > 1) for row in rows]
        self.exit_code = int(any(kind == FAILED for _, kind, _ in rows))
        return ("Source", "Kind", "Text"), rows


def _findings(args: argparse.Namespace, source: str | None) -> Iterator[tuple[str, str]]:
    try:
        topology = sources.topology_of(args, source)
    except exceptions.HPCSchedError as error:
        for problem in getattr(error, "problems", ()) or (str(error),):
            yield PROBLEM, problem
        return
    yield from ((INCOMPLETE, text) for text in topology.incomplete)
    yield from ((REMARK, text) for text in topology.remarks)
    yield from ((REMARK, text) for _, text in lint.of(topology))
    for switch in topology.switches:
        names, what = switch.members, f"{topology.levels[switch.level - 1]} {switch.name}"
        parts = [names[start : start + _IN_A_LINE] for start in range(0, len(names), _IN_A_LINE)]
        number = [f"{len(names)} switches"] if names else []
        for text in map(hostlist.fold, parts) if args.members else number:
            yield MERGED, f"{what} stands for {text}"
    yield OK, summary(topology)


def summary(topology: Topology) -> str:
    """Return counts of a topology, and its usual uplinks and oversubscription if known."""
    ratios = lint.oversubscription(topology)
    usual = {
        "uplinks": {level: one.text for level, one in lint.usual_uplinks(topology).items()},
        "oversubscription": {level: ratio_text(ratio) for level, ratio in ratios.items()},
    }
    parts = [
        f"{what}: {', '.join(f'{level} {text}' for level, text in texts.items())}"
        for what, texts in usual.items()
        if texts
    ]
    return "; ".join([topology.summary(), *parts])


def _line(row: tuple[str, str, str], several: bool) -> str:
    """Return a line for people; a problem names its file itself."""
    source, kind, text = row
    if kind == PROBLEM:
        return text if not several or text.startswith(source) else f"{source}: {text}"
    return f"{source}: {kind}: {text}" if several else f"{kind}: {text}"


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
    {lint.UPLINKS}   switches with at most half of the median uplinks of a level (broken cables)
    {lint.LINKS}     switches with another oversubscription than most of their level

exit codes: 0 nothing was found, 1 something was, or topology or cloud cannot be read,
2 wrong usage
"""

    ARGUMENTS = (
        repeated(
            "--ignore",
            f"do not look for this (may be given several times): {', '.join(KINDS)}",
            metavar="KIND",
            choices=KINDS,
        ),
        *sources.SOURCE_ARGUMENTS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return the findings."""
        topology, uses = sources.topology_of_cloud(parsed_args)
        every = [*_hosts(uses), *lint.of(topology)]
        rows = [(kind, text) for kind, text in every if kind not in parsed_args.ignore]
        nodes = plurals.text(uses.hypervisors, "hypervisor")
        end = f"found {len(rows)}" if rows else "ok"
        last = f"{end}: {summary(topology)}; {nodes} in Nova"
        self.lines = [*(f"{kind}: {text}" for kind, text in rows), last]
        self.exit_code = int(bool(rows))
        return ("Kind", "Finding"), rows


def _hosts(uses: FabricUsage) -> Iterator[tuple[str, str]]:
    sides = (
        (MISSING, uses.unnamed, "in Nova, but not in the topology"),
        (ABSENT, uses.absent, "in the topology, but not in Nova"),
    )
    yield from (
        (kind, f"{plurals.text(len(hosts), 'host')} {where}: {hostlist.fold_cut(hosts)}")
        for kind, hosts, where in sides
        if hosts
    )
    yield from (
        (DOUBLED, f"host {host} of the topology is {len(nodes)} in Nova: {', '.join(nodes)}")
        for host, nodes in uses.doubled.items()
    )


# Attributes of a difference that are changes of names.
_CHANGES = (
    *("hosts", "switches", "renamed", "levels", "processors", "ids", "members", "links"),
    *("host_links", "oversubscription"),
)


class TopologyDiff(TextLister):
    """Show the differences between two topologies.

    Hosts and switches that were added, removed or moved, renamed switches, levels, processors,
    uplinks, links of hosts and oversubscription, and how many pairs of hosts are nearer or farther
    than before. The order of a description is no difference, nor are links and oversubscription
    that only one of the two states.
    """

    failed_code = TROUBLE

    EPILOG = """\
examples:

  Changes since a file was written; without B it is compared with the topology of nova.conf:

    hpc-sched topology diff topology.yaml
    hpc-sched topology diff old.yaml new.yaml

  The live fabric against the file that the scheduler reads:

    ibnetdiscover | hpc-sched topology diff topology.yaml -

exit codes, as those of diff(1): 0 the same, 1 different, 2 trouble or wrong usage
"""

    ARGUMENTS = (
        argument("old", f"the older one: {sources.SOURCE}", metavar="A"),
        argument(
            "new",
            "the newer one, likewise (default: the topology of nova.conf)",
            nargs="?",
            metavar="B",
        ),
        flag("--brief", "one line, as the scheduler logs it"),
        partial(sources.add_topology_arguments, source="B"),
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, to read standard input twice."""
        super().check(args)
        self.refuse(
            (
                args.old == args.new == "-",
                "A and B are both -: standard input can be read once only",
            )
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each change."""
        names = (parsed_args.old, parsed_args.new)
        pair = [sources.topology_of(parsed_args, name) for name in names]
        found = difference.between(*pair)
        if alone := ", ".join(_one_sided(difference.between(*pair, one_sided=True))):
            output.say(f"only one of the two states {alone}: no difference")
        self.lines = [found.summary()] if parsed_args.brief and found else found.sentences()
        self.exit_code = DIFFERENT if found else SAME
        return ("What", "Names", "Old", "New"), list(_rows(found))


def _one_sided(found: difference.Difference) -> Iterator[str]:
    """Yield what only one of two descriptions states of links, in words."""
    for what, noun, changes in (
        ("links", "switch", found.links),
        ("links", "host", found.host_links),
        ("oversubscription", "level", found.oversubscription),
    ):
        alone = [change for change in changes if change.old is None or change.new is None]
        if number := sum(len(change.names) for change in alone):
            yield f"{what} of {plurals.text(number, noun)}"


def _rows(found: difference.Difference) -> Iterator[tuple[str, str, str, str]]:
    for kind in _CHANGES:
        for change in getattr(found, kind):
            yield kind, hostlist.fold(change.names), change.old or "", change.new or ""
    for hops in found.hops:
        yield "hops", f"{hops.pairs} pairs of hosts", f"{hops.old}", f"{hops.new}"
