"""How long Nova's scheduler takes to choose hosts with the plugin, against stock Nova.

    python benchmarks/choice.py
    python benchmarks/choice.py --hosts 10000 --counts 1 16 --json choice.json
    python benchmarks/choice.py --skip-above 60        # leaves out what takes stock Nova minutes
    python benchmarks/choice.py --hosts 2000 --sides plugin plans
    python benchmarks/choice.py --check                # exits 1 where a target is not met

Each row is a request of N VMs on H hosts, measured as CPU time of the whole of
SchedulerManager._schedule: stock Nova, the plugin as etc/nova.conf.sample enables it, BunchWeigher
without any filter of ours, and the plugin with what hosts shared by applications need, all in
turn in one process (A B C A B C). ``ratio`` is the median of the ratios to stock Nova's run of
the same turn, ``95 %`` where the true one is as far as these turns tell. Queries are those of one
request, peak memory is that of a process that serves some requests with one side alone. What is
measured is described in benchmarks/choice_cloud.py.

A table of all sizes takes hours, nearly all of it stock Nova's; progress goes to standard error.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from choice_report import GROUP, PACKED, Row, fit, missed, table, unmeasured

SIZES, COUNTS = (1_000, 5_000, 10_000), (1, 16, 64, 256)


def main() -> int:
    """Measure and print; return the exit code."""
    arguments = _parser().parse_args()
    if arguments.worker:
        # Nova is imported here alone: one process for each size, for its databases are global.
        import choice_worker

        task = json.loads(arguments.worker)
        with tempfile.TemporaryDirectory() as folder:
            choice_worker.work(Path(folder), **task)
        return 0
    rows: list[Row] = []
    for hosts in arguments.hosts:
        asked = {
            "counts": arguments.counts,
            "sides": arguments.sides,
            "pairs": arguments.pairs,
            "near_pairs": max(arguments.near_pairs, arguments.pairs),
            "skip_above": arguments.skip_above,
            "policy": arguments.policy,
        }
        rows += [Row(**found) for found in _worker(hosts=hosts, seed=arguments.seed, **asked)]
        for side in ("stock", *arguments.sides):
            rows += [Row(**found) for found in _worker(hosts=hosts, memory_of=side)]
    print(table(rows))
    print()
    print("\n".join(fit(rows)))
    if arguments.json:
        arguments.json.write_text(json.dumps([row.as_dict() for row in rows], indent=1) + "\n")
    late, unknown = missed(rows), unmeasured(rows) if arguments.check else []
    for line in late:
        print(f"missed: {line}")
    for line in unknown:
        print(f"not measured: {line}")
    return 1 if arguments.check and (late or unknown) else 0


def _worker(**task: Any) -> list[dict[str, Any]]:
    """Return the rows that a process of its own has measured."""
    command = [sys.executable, __file__, "--worker", json.dumps(task)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _numbers(parser: argparse.ArgumentParser, name: str, default: Sequence[int]) -> None:
    shown = " ".join(map(str, default))
    parser.add_argument(
        name, type=int, nargs="+", default=list(default), help=f"default {shown}", metavar="N"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    _numbers(parser, "--hosts", SIZES)
    _numbers(parser, "--counts", COUNTS)
    parser.add_argument(
        "--sides",
        nargs="+",
        choices=(
            "plugin",
            "plans",
            "metrics",
            "bunch",
            "caps",
            "caps-reached",
            "uncounted",
            "sharing",
            "packing",
            "shadow",
            "shadow-sharing",
            "whole-leaves",
        ),
        default=["plugin", "bunch", "sharing"],
        help="what is compared with stock Nova (default: all but plans, the plugin without "
        "gang claims, metrics, the plugin with metrics on, caps, with the filters of Nova that "
        "count VMs, caps-reached, where they pass few, uncounted, where plans ignore them, "
        "packing, where MDOBP packs single VMs that are not HPC too, whole-leaves, where "
        "WholeLeafWeigher places these, and those in shadow mode)",
    )
    parser.add_argument(
        "--policy",
        default=GROUP,
        choices=(GROUP, PACKED),
        help=f"of the groups (default {GROUP}: one VM a host, so no filter is asked for more)",
    )
    parser.add_argument("--pairs", type=int, default=3, help="turns of a row (default 3)")
    parser.add_argument(
        "--near-pairs",
        type=int,
        default=25,
        help="turns of a request of one VM, which is short and has targets near 1 (default 25)",
    )
    parser.add_argument(
        "--skip-above",
        type=float,
        metavar="SECONDS",
        help="leave out stock Nova, and what costs as much, where one run would take longer; "
        "the others are measured without a ratio",
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is on the hosts (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit 1 where a target is missed or has not been measured",
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
