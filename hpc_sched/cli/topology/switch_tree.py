"""A topology as a tree of switches for the screen, and as rows for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hpc_sched.cli.common import output
from hpc_sched.snapshot.host_usage import FabricUsage, Totals
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import uplinks
from hpc_sched.topology.links import Cables, ratio_text
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Switch

# Above this number the processor types are counted, not named.
_MAX_PROCESSORS = 2

UNICODE = ("├─ ", "└─ ", "│  ", "   ")
ASCII = ("|- ", "`- ", "|  ", "   ")


@dataclass(frozen=True, slots=True)
class ShownSwitch:
    """A switch, and what its line or row has."""

    switch: Switch
    level: str
    above: tuple[str, ...]  # names, from the top
    hosts: tuple[str, ...]
    leaves: int
    lowest: bool  # nothing below it is shown
    processors: str  # of its hosts; empty if unknown, or if switches below it are shown
    uplinks: Cables | None  # None at a root, and where none are stated
    ratio: float | None  # oversubscription, where it is known
    last: tuple[bool, ...]  # for each level on the way down: True if it is the last one there


def switches_of(
    topology: Topology, tops: Sequence[str] | None, depth: int | None, level: int
) -> list[ShownSwitch]:
    """Return the switches from ``tops``, or from all roots, each before those below it.

    At most ``depth`` levels, and none below ``level``. UnknownHostError for an unknown switch.
    """

    def path(name: str) -> list[str]:
        return [topology.switches[s].name for s in topology.upwards(topology.switch_index(name))]

    leaves = Counter(name for leaf in topology.leaves for name in path(leaf))
    cables, ratios = uplinks.of(topology), uplinks.ratios(topology)

    def walk(name: str, above: tuple[str, ...], last: tuple[bool, ...]) -> Iterator[ShownSwitch]:
        index = topology.switch_index(name)
        switch = topology.switches[index]
        lowest = switch.level <= level or (depth is not None and len(last) + 1 >= depth)
        hosts = topology.hosts_of(name)
        processors = _processors(topology, hosts) if lowest else ""
        level_name = topology.levels[switch.level - 1]
        yield ShownSwitch(
            *(switch, level_name, above, hosts, leaves[name], lowest, processors),
            *(cables[index], ratios[index], last),
        )
        if not lowest:
            children = topology.children_of(name)
            for child in children:
                yield from walk(child, (*above, name), (*last, child == children[-1]))

    return [
        shown
        for top in (topology.roots if tops is None else tops)
        for shown in walk(top, tuple(reversed(path(top)[1:])), ())
    ]


def lines_of(
    shown: Sequence[ShownSwitch],
    usage: FabricUsage | None,
    branches: Sequence[str],
    members: bool = False,
) -> list[str]:
    """Return the switches as a tree with heading, branches as in UNICODE or ASCII, and columns.

    :param members: whether the switches that a merged one stands for are named
    """
    names = ["hosts", *(("vms", "vcpus", "free", "off") if usage else ())]
    optional = {
        "uplinks": [node.uplinks.text if node.uplinks else "" for node in shown],
        "ratio": ["" if node.ratio is None else ratio_text(node.ratio) for node in shown],
        "processor": [node.processors for node in shown],
    }
    optional = {title: column for title, column in optional.items() if any(column)}
    table = [("switch", "level", *names, *optional, "below")]
    for node, *more in zip(shown, *optional.values(), strict=True):
        numbers = [str(len(node.hosts)), *(_numbers(usage.totals(node.hosts)) if usage else ())]
        name = _branch(node, branches) + node.switch.name
        table.append((name, node.level, *numbers, *more, _below(node, members)))
    return output.aligned(table, range(2, 2 + len(names)))


# Column to the attribute of Totals.
_USAGE_COLUMNS = {
    "VMs": "vms",
    "VCPUs used": "vcpus_used",
    "VCPUs": "vcpus",
    "Free hosts": "free",
    "Disabled": "disabled",
    "Down": "down",
    "Not in Nova": "absent",
}


def rows(
    shown: Sequence[ShownSwitch], usage: FabricUsage | None
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return names of columns, and a row for each of the lowest shown switches."""
    table = [_row(node, usage) for node in shown if node.lowest]
    return tuple(table[0]), [tuple(row.values()) for row in table]


def _row(node: ShownSwitch, usage: FabricUsage | None) -> dict[str, Any]:
    totals = usage.totals(node.hosts) if usage else None
    return {
        "Switch": node.switch.name,
        "Level": node.level,
        "Above": "/".join(node.above),
        "Hosts": len(node.hosts),
        "Names": hostlist.fold(node.hosts),
        "Processor": node.processors,
        "Stands for": hostlist.fold(node.switch.members),
        "Uplinks": str(node.uplinks) if node.uplinks else "",
        "Uplinks Gb/s": node.uplinks.rate if node.uplinks else None,
        "Oversubscription": node.ratio,
        **{column: getattr(totals, name) for column, name in _USAGE_COLUMNS.items() if totals},
    }


def _branch(node: ShownSwitch, branches: Sequence[str]) -> str:
    if not node.last:
        return ""
    between, end, through, empty = branches
    above = "".join(empty if last else through for last in node.last[:-1])
    return above + (end if node.last[-1] else between)


def _numbers(totals: Totals) -> list[str]:
    vcpus = f"{totals.vcpus_used:g}/{totals.vcpus:g}" if totals.vcpus else "-"
    return [str(totals.vms), vcpus, str(totals.free), str(totals.off)]


def _processors(topology: Topology, hosts: Sequence[str]) -> str:
    found = {topology.processor_of(host) or "" for host in hosts}
    if found == {""}:
        return ""
    types = sorted(type_ or "unknown" for type_ in found)
    return ", ".join(types) if len(types) <= _MAX_PROCESSORS else f"{len(types)} types"


def _below(node: ShownSwitch, members: bool) -> str:
    leaves = "" if node.switch.level == 1 else plurals.text(node.leaves, "leaf")
    names = hostlist.fold_cut(node.hosts) if node.lowest else ""
    text = ": ".join(part for part in (leaves, names) if part)
    switches = hostlist.fold_cut(node.switch.members) if members else ""
    return f"{text} ({switches})" if switches else text
