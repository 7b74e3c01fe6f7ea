"""The tables of benchmarks/README.rst from the rows that benchmarks/plan.py --json has written.

    python benchmarks/plan_tables.py plans.json

Best runs of ``solve``, in ms of CPU time, by fabric and free VMs of a host: without a constraint
and without members by number of VMs; and with a bound on leaves, the longest of all such plans.
Then the longest and the largest of all rows, and those whose plan is not proven best.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plan_shapes import FABRICS, FREE

Row = Mapping[str, Any]
NAMES = {
    "three": "three levels, 20 hosts a leaf",
    "five": "five levels, 20 hosts a leaf",
    "two": "two levels, 20 hosts a leaf",
    "single-flat": "leaves of one host, one switch",
    "single-pods": "leaves of one host, 100 pods",
    "one-leaf": "one leaf",
}
WIDTHS = (30, *(10 for _ in FREE))


def main() -> None:
    """Print the tables of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="that plan.py --json has written")
    rows = [row for row in json.loads(parser.parse_args().file.read_text())["rows"] if planned(row)]
    free = [row for row in rows if row["wish"] == "none"]
    bounded = [row for row in rows if row["max_leaves"] is not None]
    for count in sorted({row["count"] for row in rows}):
        print(f"\n{count:,} VMs:\n")
        print(table(row for row in free if row["count"] == count and row["members"] == "none"))
        with_members = [row for row in free if row["count"] == count and row["members"] != "none"]
        if with_members:
            print(f"\nWith members at most {milliseconds(max(with_members, key=best))} ms")
    if bounded:
        print("\nWith a bound on leaves, the longest:\n")
        print(table(bounded))
    print(f"\nLongest row: {milliseconds(max(rows, key=best))} ms")
    print(f"Most memory: {max(row['peak_mb'] for row in rows):.0f} MB")
    unproven = [row for row in bounded if not row["is_proven"]]
    print(f"Not proven: {len(unproven)} of {len(bounded)} plans with a bound on leaves")
    for row in unproven:
        shape = ", ".join(str(row[name]) for name in ("fabric", "free", "members"))
        print(f"  {shape}: {row['count']:,} VMs on at most {row['max_leaves']:,} leaves")


def planned(row: Row) -> bool:
    """True for a row with a plan that was measured."""
    return row["answer"] == "planned" and bool(row["solve_ms"])


def best(row: Row) -> float:
    """Return the CPU time of the best run, ms."""
    return float(min(row["solve_ms"]))


def milliseconds(row: Row) -> str:
    """Return the CPU time of the best run as text."""
    return f"{best(row):.0f}" if best(row) >= 10 else f"{best(row):.1f}"


def table(rows: Iterable[Row]) -> str:
    """Return the longest of the best runs by fabric and free VMs as a table of reStructuredText."""
    cells: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        cells[row["fabric"], row["free"]].append(row)
    fabrics = [name for name in FABRICS if any(fabric == name for fabric, _ in cells)]
    head = ["fabric", *(f"{free} free" if free.isdigit() else free for free in FREE)]
    lines = [head]
    for fabric in fabrics:
        found = (cells.get((fabric, free)) for free in FREE)
        of_fabric = [milliseconds(max(each, key=best)) if each else "" for each in found]
        lines.append([NAMES[fabric], *of_fabric])
    rule = "  ".join("=" * width for width in WIDTHS)
    body = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, WIDTHS, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([rule, body[0], rule, *body[1:], rule])


if __name__ == "__main__":
    main()
