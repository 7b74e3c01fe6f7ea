"""How fast this checkout is against another commit, row by row: the record of what was gained.

    python benchmarks/record.py --against HEAD~1
    python benchmarks/record.py --against v1.0 --rows plans queues --pairs 11 --json record.json
    python benchmarks/record.py --against HEAD~1 --rows trace --jobs 100000 --traces ~/swf

Each row is measured in pairs, one run of this checkout and one of the commit, each in a process of
its own, the order reversed from pair to pair. ``this`` and ``other`` are medians of CPU time;
``ratio`` is the median of the ratios of the pairs, below 1 where this checkout is faster, and
``95 %`` where the true one is as far as these pairs tell.

Groups of rows (--rows):

``plans``    planner.plan from dicts by host name, the best of some runs; MB is the most that one
             more run has allocated. Three levels, 20 hosts a leaf, 25 leaves a pod; ``0-4`` more
             VMs fit on each host.
``trace``    the first --jobs jobs of METACENTRUM-2009-2.swf.gz on 10,000 hosts of 4 vcpus, exact
             plan, first come first served, 100 times as fast as in the trace.
``queues``   jobs of the same trace on 256 hosts, of which 1,860 wait, by queue.
``kth``      KTH-SP2-1996-2.1-cln.swf.gz on 100 hosts, one vcpu each, exact plan and first fit.
``shared``   a VM that is not HPC where hosts are shared, 10,000 hosts, one VM on each: CPU time
             relative to stock Nova in the same process (benchmarks/choice.py). Takes ten minutes.

The commit is checked out in a worktree that is removed afterwards; a path of another checkout is
taken as it is. Its hpc_sched is measured by the scripts of this checkout. Traces are those of the
Parallel Workloads Archive, in the folder --traces; rows without their trace are left out. Progress
goes to standard error.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from record_report import Compared, table
from record_rows import GROUPS, Row, rows_of

TREE = Path(__file__).resolve().parent.parent
WORKER = TREE / "benchmarks" / "record_worker.py"


def main() -> int:
    """Measure and print; return the exit code."""
    arguments = _parser().parse_args()
    with _checkout(arguments.against) as other:
        found: list[Compared] = []
        for row in rows_of(arguments.rows, arguments.traces, arguments.jobs):
            if row.trace is not None and not row.trace.exists():
                _say(f"{row.name}: left out, {row.trace} does not exist")
                continue
            found.append(_compared(row, other, arguments.pairs))
            print(table(found[-1:], with_head=len(found) == 1), flush=True)
    if arguments.json:
        report = [each.as_dict() for each in found]
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _compared(row: Row, other: Path, pairs: int) -> Compared:
    compared = Compared(row.name, row.unit)
    for pair in range(pairs):
        sides = [(TREE, compared.this), (other, compared.other)]
        for tree, results in sides if pair % 2 else reversed(sides):
            _say(f"{row.name}: pair {pair + 1} of {pairs}, {tree}")
            results.append(_measured(row, tree))
    return compared


def _measured(row: Row, tree: Path) -> dict[str, float]:
    """Return what a process has measured that imports hpc_sched of a checkout."""
    others = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(tree), *([others] if others else [])])
    done = subprocess.run(
        [sys.executable, str(WORKER), json.dumps({"tree": str(tree), **row.task})],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


@contextmanager
def _checkout(against: str) -> Iterator[Path]:
    """Yield the folder of a commit, or of a checkout."""
    if (Path(against) / "hpc_sched").is_dir():
        yield Path(against).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "other"
        git = ("git", "-C", str(TREE), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), against], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--against", required=True, metavar="COMMIT", help="what git names a commit, or a path"
    )
    default: Any = [name for name in GROUPS if name != "shared"]
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=list(GROUPS),
        default=default,
        help=f"groups of rows (default: {' '.join(default)})",
    )
    parser.add_argument("--pairs", type=int, default=6, help="of each row (default 6)")
    parser.add_argument("--jobs", type=int, default=2000, help="of the trace's row (default 2000)")
    parser.add_argument(
        "--traces", type=Path, default=Path(), metavar="FOLDER", help="default: this folder"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
