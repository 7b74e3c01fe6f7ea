"""How long the exact planner takes for a group on a fabric of thousands of hosts.

    python benchmarks/plan.py
    python benchmarks/plan.py --hosts 100000 --fabric single-flat --wish 1% --runs 5
    python benchmarks/plan.py --limit-ms 500 --limit-mb 200     # exits 1 where a row takes more

One row for each shape. ``solve`` is planner.solve on a Problem that was built beforehand, ``plan``
is planner.plan, which also makes the Problem of dicts by host name: the best and the median of
the runs, in ms of the process's CPU time. ``MB`` is the most that one more run of solve has
allocated at a time. ``leaves`` are those of the whole group, with its members; ``not proven``
is a plan within a bound on leaves of which a fixed number of steps did not show that it is best.

Fabrics: ``three`` levels of 20 hosts a leaf and 25 leaves a pod; ``one-leaf`` of all hosts; leaves
of a single host below one switch (``single-flat``) or below 100 pods (``single-pods``); ``five``
levels of 20 hosts a leaf, 5 switches below each other one; ``two`` levels of 20 hosts a leaf.
``free`` is how many more VMs a host takes: a number, or the least and the greatest that are drawn.
Members are on no leaf, or on a ``tenth`` of them, one VM each; ``VMs`` are new ones. Constraints:
one pod where a pod is below the root, and a bound of 1, 5 or 50 % fewer new leaves than without
it, at least one fewer; with ``--wish segment=16`` and the like a group in parts, with ``balance`` a
balanced one, with ``price`` the fragmentation price as delivered. The same seed gives the same
room.

Each shape is measured in processes of their own: one that takes too long or too much memory is
given up, and the next one follows. A bound needs the plan without it; where that was given up,
the bounds are left out. All shapes take hours; progress goes to standard error.
"""

import argparse
import itertools
import json
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from plan_measure import PLANNED, Limits, Measured, import_all, measured
from plan_shapes import (
    COUNTS,
    FABRICS,
    FREE,
    MEMBERS,
    PARTS,
    PRICE,
    WISHES,
    Scene,
    Shape,
    bounds,
    fabric_of,
    require_pod,
    scene_of,
)

import hpc_sched
from hpc_sched.topology import Topology

# The number of hosts that the limits on the command line are for.
LIMIT_HOSTS = 10_000
COLUMNS = "{:<11} {:>7} {:<7} {:<7} {:>5} {:<17} {:>9} {:>9} {:>9} {:>9} {:>8} {:<9} {}"
TITLES = (
    *("fabric", "hosts", "free", "members", "VMs", "constraint"),
    *("solve", "median", "plan", "median", "MB", "leaves", ""),
)


@dataclass(frozen=True)
class Row:
    """One measured shape."""

    shape: Shape
    wish: str
    constraints: dict[str, Any]
    measured: Measured

    def exceeds(self, milliseconds: float | None, megabytes: float | None) -> str:
        """Return which limit is exceeded, or "". Limits are for ``LIMIT_HOSTS`` or fewer hosts."""
        found, scale = self.measured, max(self.shape.hosts / LIMIT_HOSTS, 1.0)
        if milliseconds is not None and _exceeds(_best(found.solve_ms), milliseconds * scale):
            return f"more than {milliseconds * scale:g} ms"
        if megabytes is not None and _exceeds(found.peak_mb, megabytes * scale):
            return f"more than {megabytes * scale:g} MB"
        return ""

    def cells(self) -> Iterator[str]:
        """Yield the columns of the table."""
        shape, found = self.shape, self.measured
        yield from (shape.fabric, f"{shape.hosts}", shape.free, shape.members, f"{shape.count}")
        yield " ".join(f"{name}={value}" for name, value in self.constraints.items()) or "none"
        for times in (found.solve_ms, found.plan_ms):
            yield _shown(_best(times))
            yield _shown(statistics.median(times) if times else None)
        yield _shown(found.peak_mb)
        yield f"{found.leaves}" if found.answer == PLANNED else found.answer
        yield "not proven" if found.is_proven is False else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row with all its runs."""
        return {
            **asdict(self.shape),
            "wish": self.wish,
            "require": self.constraints.get("require"),
            "max_leaves": self.constraints.get("max_leaves"),
            "parts": self.constraints.get("parts"),
            **asdict(self.measured),
        }


def _best(times: Sequence[float]) -> float | None:
    return min(times, default=None)


def _exceeds(number: float | None, limit: float) -> bool:
    # What was given up has no number.
    return number is None or number > limit


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f}"


def rows_of(
    topology: Topology, shape: Shape, wishes: Sequence[str], arguments: argparse.Namespace
) -> Iterator[Row]:
    """Yield the row of each constraint of a shape, the plan without constraints first."""
    scene = scene_of(topology, shape, arguments.seed)
    limits = Limits(arguments.give_up, arguments.memory)

    def row(wish: str, constraints: dict[str, Any]) -> Row:
        asked: Scene = replace(scene, constraints=constraints)
        shown = constraints or "no constraint"
        print(f"{time.strftime('%H:%M:%S')} {shape} {shown}", file=sys.stderr, flush=True)
        return Row(shape, wish, constraints, measured(asked, arguments.runs, limits))

    new_leaves: int | None = None
    if "none" in wishes:
        free = row("none", {})
        yield free
        new_leaves = free.measured.new_leaves
    elif any(wish.endswith("%") for wish in wishes):
        new_leaves = measured(scene, 0, limits, with_memory=False).new_leaves
    if "pod" in wishes and (pod := require_pod(topology)):
        yield row("pod", pod)
    for wish in wishes:
        if wish in PARTS:
            yield row(wish, {"parts": wish})
        if wish == PRICE:
            yield row(wish, {PRICE: True})
    if new_leaves is not None:
        for wish, bound in bounds(wishes, len(scene.member_leaves), new_leaves):
            yield row(wish, bound)


def main() -> int:
    """Measure and print; return the exit code."""
    arguments = _parser().parse_args()
    import_all()
    print(COLUMNS.format(*TITLES).rstrip(), flush=True)
    rows: list[Row] = []
    late: list[str] = []
    for hosts, fabric in itertools.product(
        arguments.hosts or [LIMIT_HOSTS], arguments.fabric or FABRICS
    ):
        topology = fabric_of(hosts, fabric)
        for free, members, count in itertools.product(
            arguments.free or FREE, arguments.members or MEMBERS, arguments.count or COUNTS
        ):
            shape = Shape(hosts, fabric, free, members, count)
            for row in rows_of(topology, shape, arguments.wish or WISHES, arguments):
                rows.append(row)
                line = COLUMNS.format(*row.cells()).rstrip()
                print(line, flush=True)
                if exceeded := row.exceeds(arguments.limit_ms, arguments.limit_mb):
                    late.append(f"{exceeded}: {line}")
            # After each shape: a run of hours may be interrupted.
            if arguments.json:
                report = json.dumps(_report(arguments, rows), indent=1)
                arguments.json.write_text(f"{report}\n")
    for line in late:
        print(line, file=sys.stderr)
    return 1 if late else 0


def _report(arguments: argparse.Namespace, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "versions": {
            "hpc_sched": hpc_sched.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "seed": arguments.seed,
        "runs": arguments.runs,
        "give_up_seconds": arguments.give_up,
        "memory_gb": arguments.memory,
        "rows": [row.as_dict() for row in rows],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])

    def shapes(name: str, default: Sequence[Any], **options: Any) -> None:
        shown = " ".join(map(str, default)).replace("%", "%%")
        parser.add_argument(
            name, action="append", help=f"may be repeated (default {shown})", **options
        )

    shapes("--hosts", [LIMIT_HOSTS], type=int, metavar="N")
    shapes("--fabric", list(FABRICS), choices=list(FABRICS))
    shapes("--free", FREE, metavar="N or LOW-HIGH")
    shapes("--members", MEMBERS, choices=MEMBERS)
    shapes("--count", COUNTS, type=int, metavar="VMS")
    shapes("--wish", WISHES, choices=(*WISHES, *PARTS, PRICE))
    parser.add_argument("--runs", type=int, default=3, help="runs of a row (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the room on hosts (default 1)")
    parser.add_argument(
        "--give-up", type=float, default=60.0, metavar="SECONDS", help="of one run (default 60)"
    )
    parser.add_argument(
        "--memory", type=float, default=8.0, metavar="GB", help="of a process (default 8)"
    )
    about = f"of solve on {LIMIT_HOSTS:,} hosts, more in proportion; exit code 1 if it is exceeded"
    parser.add_argument("--limit-ms", type=float, metavar="MS", help=f"best run {about}")
    parser.add_argument("--limit-mb", type=float, metavar="MB", help=f"peak memory {about}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
