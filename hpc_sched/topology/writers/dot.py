"""A fabric as a Graphviz graph: one node per switch, a leaf's hosts folded into its label."""

import re
from collections.abc import Iterator

from hpc_sched.topology import hostlist
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology

# Long labels widen the whole picture; the tooltip has all hosts.
MAX_LABEL = 60

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def text_of(topology: Topology) -> str:
    """Return a fabric in the DOT language. Linear but for the folding of names.

    Switches of one level are in one row; an edge is labelled with the uplinks, number and rate,
    where they are known.
    """
    return "\n".join(["graph topology {", *(f"  {line}" for line in _lines(topology)), "}", ""])


def _lines(topology: Topology) -> Iterator[str]:
    yield 'node [shape=box, style=filled, fillcolor="#e8eef2", fontname="monospace"];'
    yield 'edge [color="#888888", fontname="monospace", fontsize=10];'
    below = topology.leaf_hosts()
    levels = by_key((switch.level, i) for i, switch in enumerate(topology.switches))
    for i, switch in enumerate(topology.switches):
        label, tooltip = [switch.name], [f"{switch.name} ({topology.levels[switch.level - 1]})"]
        if switch.members:
            tooltip.append(f"stands for {hostlist.fold(switch.members)}")
        if switch.level == 1:
            names = hostlist.fold(below[i])
            shown = names if len(names) <= MAX_LABEL else f"{names[: MAX_LABEL - 1]}{_ELLIPSIS}"
            label.append(f"{len(below[i])}: {shown}")
            tooltip.append(names)
        fill = ', fillcolor="#fafafa"' if switch.level == 1 else ""
        yield f"s{i} [label={_quoted(label)}, tooltip={_quoted(tooltip)}{fill}];"
    for level in sorted(levels, reverse=True):
        yield "{ rank=same; " + " ".join(f"s{i};" for i in levels[level]) + " }"
    for i, switch in enumerate(topology.switches):
        if switch.parent >= 0:
            uplinks = switch.links.uplinks if switch.links else None
            carried = f" [label={_quoted([uplinks.text])}]" if uplinks and uplinks.number else ""
            yield f"s{switch.parent} -- s{i}{carried};"


def _quoted(lines: list[str]) -> str:
    escaped = [
        _CONTROL.sub("\N{REPLACEMENT CHARACTER}", line).replace("\\", "\\\\").replace('"', '\\"')
        for line in lines
    ]
    return '"' + "\\n".join(escaped) + '"'
