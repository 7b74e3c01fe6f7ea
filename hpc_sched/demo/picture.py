"""The result of the demo, for a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from hpc_sched import terminal_text
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import leaf_rows

LEGEND = "1 first request   2 growth   x other tenants   . free"


def render(topology: Topology, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the leaves with the group's VMs, the runs side by side, and the costs below."""
    names = list(results)
    titles = {leaf: leaf_rows.title_of(topology, leaf) for leaf in topology.leaves}
    label = max(len("  least possible"), *map(len, titles.values())) + 2
    rows_of = {
        name: {leaf: _cells(topology, leaf, results[name]) for leaf in topology.leaves}
        for name in names
    }
    longest = (len(row) for rows in rows_of.values() for row in rows.values())
    width = max(17, *longest, *map(len, names))

    def row(title: str, texts: Iterable[str]) -> str:
        """Return a line: a title and a text for each run."""
        return title.ljust(label) + "".join(text.ljust(width + 3) for text in texts)

    lines = [row("", names)]
    lines += [row(titles[leaf], [rows_of[name][leaf] for name in names]) for leaf in titles]
    lines += ["", " " * label + LEGEND, ""]
    rows = len(results[names[0]]["steps"])
    for number in range(rows):
        steps = [results[name]["steps"][number] for name in names]
        count = max(step["count"] for step in steps)
        lines.append(f"{'placed' if not number else 'grown'} to {count} VMs")
        for title, text in (
            ("Hop-Byte cost", lambda step: terminal_text.hop_bytes(step["hop_bytes"])),
            ("least possible", lambda step: terminal_text.hop_bytes(step["least"])),
            ("leaves used", lambda step: str(len(set(map(topology.leaf_of, step["hosts"]))))),
            ("time", lambda step: f"{step['seconds']} s"),
        ):
            lines.append(row(f"  {title}", map(text, steps)))
        if any(step["failed"] for step in steps):
            lines.append(row("  in error", [str(step["failed"]) for step in steps]))
    return "\n".join(line.rstrip() for line in lines)


def _cells(topology: Topology, leaf: str, result: Mapping[str, Any]) -> str:
    first = result["steps"][0]["hosts"]
    last = result["steps"][-1]["hosts"]
    busy = set(result["busy"])

    def cell(host: str) -> str:
        if host in first:
            return "1"
        if host in last:
            return "2"
        return "x" if host in busy else "."

    return leaf_rows.row_of(topology, leaf, cell)
