"""What groups that come and go cost and leave free: the exact plan relative to other policies.

    python benchmarks/groups_over_time.py --seeds 20 --seed 201 --jobs 2 --keep FOLDER
    python benchmarks/groups_over_time.py --fabric 8x16x18 --sizes heavy --use 0.75 --seeds 10

Nine workloads, each by ``hpc-sched simulate`` on the same jobs for all policies: 1,200 jobs, of
which the first 200 are not measured, FCFS, runtimes lognormal:600:1. The first table has what the
exact plan has more or less than each other policy: the mean over the seeds in percent, with half
the width of the 95 % interval. least-hops are plans without a fragmentation price. Hop-Byte and
leaves are over the least, the largest group that fits below a pod is over time, waits are in s.
The second has the jobs that a cloud without a queue refuses (queue refuse) if each must be below
one pod. ``--keep`` writes the runs, and reads those that are there.
"""

import argparse
import itertools
import json
import math
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from churn_report import student_t

# min(256, max(2, floor(2 * Pareto(0.9)))): beyond k as often as (2 / k) ** 0.9.
_BEYOND = [(2 / vms) ** 0.9 for vms in range(2, 257)] + [0.0]
_SHARES = [one - other for one, other in itertools.pairwise(_BEYOND)]
SIZES = {
    "heavy": ":".join(["choice", *(f"{2 + i}={share:.9f}" for i, share in enumerate(_SHARES))]),
    "uniform": "uniform:1.5:100.5",
    "powers": "choice:4:8:16:32:64:128",
}
USES = ("0.75", "0.9", "1.3")  # the last is more than the cluster holds: it is saturated
# Pods, leaves of a pod, hosts of a leaf; vcpus of a host, of which a VM takes one.
FABRICS = {"8x16x18": (8, 16, 18, 1), "4x8x8": (4, 8, 8, 16)}
OURS, BASE, PEER = "exact-plan", "least-hops", "kueue-best-fit"
POLICIES = {
    "8x16x18": (OURS, BASE, PEER, "slurm-tree", "dudina2013"),
    "4x8x8": (OURS, BASE, PEER),
}
_ROW = "{:<8} {:<8} {:<5} {:<15} {:>15} {:>15} {:>15} {:>13}"


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fabric", nargs="+", choices=FABRICS, default=list(FABRICS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--use", nargs="+", default=list(USES))
    parser.add_argument("--policy", nargs="+", help="exact-plan and others, default: by fabric")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=201, help="the first one, default: 201")
    parser.add_argument("--synthetic", type=int, default=1200, help="jobs of a run, default: 1200")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--keep", type=Path, default=Path("groups-over-time"))
    parser.add_argument("--price", help="fragmentation_price, default: that of the option")
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    runs = Runs(args)
    print(_ROW.format("fabric", "sizes", "use", "relative to", *TITLES))
    for fabric in args.fabric:
        for sizes in args.sizes:
            for use in args.use:
                found = runs.of(fabric, sizes, use)
                for policy in [name for name in found if name != OURS]:
                    cells = (cell(found[OURS], found[policy]) for cell in CELLS)
                    print(_ROW.format(fabric, sizes, use, policy, *cells), flush=True)
    print("\nrefused of 1,000 jobs below one pod each, queue refuse, uniform 0.9")
    for fabric in args.fabric:
        found = runs.of(fabric, "uniform", "0.9", "--queue", "refuse", "--require", "pod")
        for policy in found:
            refused = [run["refused"] for run in found[policy]]
            other = [run["refused"] for run in found[PEER]]
            less = [one - two for one, two in zip(refused, other, strict=True)]
            mean = f"{statistics.fmean(refused):.1f}"
            print(f"{fabric:<8} {policy:<15} {mean:>7}, less Kueue's {_interval(less)}")
    return 0


class Runs:
    """The runs of ``hpc-sched simulate``, made or kept."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args

    def of(self, fabric: str, sizes: str, use: str, *more: str) -> dict[str, list[dict[str, Any]]]:
        """Return the runs of one workload by policy, in the order of the seeds."""
        args = self._args
        path = args.keep / f"{'-'.join((fabric, sizes, use, *more)).replace('--', '')}.json"
        if not path.exists():
            topology = args.keep / f"{fabric}.yaml"
            topology.write_text(_topology(*FABRICS[fabric][:3]), encoding="utf-8")
            command = [
                *("hpc-sched", "simulate", "--topology", str(topology)),
                *("--host", f"vcpus={FABRICS[fabric][3]}", "--synthetic", str(args.synthetic)),
                *("--size", SIZES[sizes], "--use", use, "--runtime", "lognormal:600:1"),
                *("--measure", "16.67%,99%", "--seed", str(args.seed), "--seeds", str(args.seeds)),
                *("--jobs", str(args.jobs), "--each-run", "--format", "json", *more),
                *(() if args.price is None else ("--fragmentation-price", args.price)),
                *(f"--policy={policy}" for policy in args.policy or POLICIES[fabric]),
            ]
            print(shlex.join(command), file=sys.stderr)
            command[0] = str(Path(sys.executable).with_name("hpc-sched"))
            made = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
            path.write_text(made.stdout, encoding="utf-8")
        found: dict[str, list[dict[str, Any]]] = {}
        for run in json.loads(path.read_text(encoding="utf-8")):
            found.setdefault(run["policy"], []).append(run)
        return found


def _topology(pods: int, leaves: int, hosts: int) -> str:
    lines = ["levels: [leaf, pod, core]", "switches:", "- name: core", "  switches:"]
    for pod in range(pods):
        lines += [f"  - name: pod{pod:02}", "    switches:"]
        for leaf in range(leaves):
            first = (pod * leaves + leaf) * hosts
            lines.append(f"    - name: pod{pod:02}-leaf{leaf:02}")
            lines.append(f"      hosts: n[{first:05}-{first + hosts - 1:05}]")
    return "\n".join([*lines, ""])


def _interval(differences: Sequence[float]) -> str:
    """Return a mean and half the width of its 95 % interval."""
    mean, number = statistics.fmean(differences), len(differences)
    if number < 2:
        return f"{mean:+.2f}"
    half = student_t(number - 1) * statistics.stdev(differences) / math.sqrt(number)
    return f"{mean:+.2f} +-{half:.2f}"


def _percent(measure: str) -> Callable[[Sequence[Any], Sequence[Any]], str]:
    def cell(runs: Sequence[Any], base: Sequence[Any]) -> str:
        pairs = zip(runs, base, strict=True)
        return _interval([100 * (one[measure] / two[measure] - 1) for one, two in pairs])

    return cell


def _seconds(runs: Sequence[Any], base: Sequence[Any]) -> str:
    return _interval([a["wait_mean"] - b["wait_mean"] for a, b in zip(runs, base, strict=True)])


TITLES = ("Hop-Byte, %", "leaves, %", "largest pod, %", "wait, s")
CELLS = (_percent("hop_byte_ratio"), _percent("leaf_ratio"), _percent("largest_gang"), _seconds)


if __name__ == "__main__":
    sys.exit(main())
