"""What two planners cost in Hop-Byte where groups come and go, on the same arrivals.

    python benchmarks/churn.py --against ../other-checkout
    python benchmarks/churn.py --against-salt other         # the noise: the same planner twice
    python benchmarks/churn.py --against ../other-checkout --load 0.9 --seeds 20 --json churn.json

Each group is planned by hpc_sched.core.plan.planner.plan of this checkout, and of the other one,
each in processes of its own. The fabric is in benchmarks/churn_cloud.py, sizes and lifetimes are
in benchmarks/churn_workload.py. Which groups start and end, and when, is the same on both sides:
they differ in places alone.

Two rows for each workload. ``Hop-Byte`` is the mean cost of a group, to which large groups add
most; ``normalised`` is the mean of each group's cost over its least cost on the empty fabric.
``difference`` is the mean over the seeds of this checkout's mean less the other's, in percent of
the other's: below 0 this one is better. The 95 % confidence interval is Student's t for paired
seeds, and the difference is significant if 0 is outside; in 20 rows one is so by chance.

Progress goes to standard error.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from churn_report import COLUMNS, TITLES, Comparison, compared
from churn_workload import LOADS, SIZES, Task

TREE = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run all workloads and print; return the exit code."""
    arguments = _parser().parse_args()
    if arguments.worker:
        _work(**json.loads(arguments.worker))
        return 0
    began = time.monotonic()
    rows: list[Comparison] = []
    plans_ms: list[tuple[float, float]] = []
    print(COLUMNS.format(*TITLES), flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {
            (sizes, load): [
                [
                    pool.submit(_outcome, tree, Task(sizes, load, seed, salt, *length))
                    for tree, salt in (
                        (TREE, arguments.salt),
                        (arguments.against.resolve(), arguments.against_salt),
                    )
                ]
                for seed in range(1, arguments.seeds + 1)
            ]
            for sizes, load in itertools.product(arguments.sizes or SIZES, arguments.load or LOADS)
            for length in [(arguments.warm_up, arguments.groups)]
        }
        try:
            for (sizes, load), by_seed in runs.items():
                outcomes = [(this.result(), other.result()) for this, other in by_seed]
                plans_ms += [(this["plan_ms"], other["plan_ms"]) for this, other in outcomes]
                for row in compared(sizes, load, outcomes):
                    rows.append(row)
                    print(COLUMNS.format(*row.cells()), flush=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    this_ms, other_ms = (statistics.fmean(side) for side in zip(*plans_ms, strict=True))
    _say(f"{time.monotonic() - began:.0f} s; ms a plan: {this_ms:.1f}, other {other_ms:.1f}")
    if arguments.json:
        report = _report(arguments, rows, (this_ms, other_ms))
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _report(
    arguments: argparse.Namespace, rows: Sequence[Comparison], plan_ms: tuple[float, float]
) -> dict[str, Any]:
    settings = ("seeds", "warm_up", "groups", "salt", "against_salt")
    return {
        "versions": {"numpy": np.__version__, "python": platform.python_version()},
        **{name: getattr(arguments, name) for name in settings},
        "plan_ms": plan_ms,
        "rows": [row.as_dict() for row in rows],
    }


def _outcome(tree: Path, task: Task) -> dict[str, Any]:
    """Return the outcome of a task in a process that imports hpc_sched of a checkout."""
    others = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(tree), *([others] if others else [])])
    found = subprocess.run(
        [sys.executable, __file__, "--worker", json.dumps({"tree": str(tree), **asdict(task)})],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    _say(f"{task.sizes}, load {task.load}, seed {task.seed}: {tree.name} {task.salt}")
    outcome: dict[str, Any] = json.loads(found.stdout)
    return outcome


def _work(tree: str, **task: Any) -> None:
    """Print the outcome of a task as JSON."""
    # Imports hpc_sched, in a process for each side.
    import churn_cloud

    import hpc_sched

    imported = Path(hpc_sched.__file__).resolve().parent.parent
    if imported != Path(tree):
        raise RuntimeError(f"hpc_sched is imported from {imported}, expected {tree}")
    print(json.dumps(asdict(churn_cloud.run(Task(**task)))))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--against", type=Path, default=TREE, metavar="PATH", help="other checkout (default: this)"
    )
    parser.add_argument("--salt", default="", help="of this checkout's group ids (default: none)")
    parser.add_argument("--against-salt", default="", metavar="SALT", help="of the other side's")
    repeated = "may be repeated (default: all)"
    parser.add_argument("--sizes", action="append", choices=list(SIZES), help=repeated)
    parser.add_argument("--load", action="append", choices=list(LOADS), help=repeated)
    parser.add_argument("--seeds", type=int, default=10, help="of a workload (default 10)")
    parser.add_argument(
        "--warm-up",
        type=float,
        default=3.0,
        metavar="LIFETIMES",
        help="that are not counted (default 3)",
    )
    parser.add_argument(
        "--groups", type=int, default=1000, help="that are counted after these (default 1000)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: CPUs)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON")
    parser.add_argument("--worker", metavar="TASK", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
