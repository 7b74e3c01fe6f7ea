"""The largest groups that fit where single VMs come and go, by the weighers that place these.

    python benchmarks/whole_leaves.py
    python benchmarks/whole_leaves.py --sizes mixed --use 0.75 --seeds 20 --multiplier 1

VMs without a group arrive at the fabric of benchmarks/churn_cloud.py, 8 x 16 x 18 hosts, of eight
slots each, stay for a while, and leave. They are placed by stock Nova's default weighers, as the
policy ``nova-default`` of the simulator has them, and by these with WholeLeafWeigher. Arrivals and
lifetimes are the same on both sides. The use is so too, unless VMs are refused, which find no host
with room: ``use`` has both. Equal weights go by an order of hosts that each seed draws, as Nova has
them in the order of a set. After five mean lifetimes the cloud is looked at ten times, a fifth of a
mean lifetime apart.

Each row is the largest group that fits under one switch of a level, in VMs of one slot or of a
whole host, in the mean of the looks and seeds. ``ratio`` is that of the two means, with its 95 %
interval by Fieller's theorem for paired seeds; none if stock Nova leaves room for hardly any.

Progress goes to standard error.
"""

import argparse
import heapq
import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import churn_cloud
import numpy as np
from churn_report import student_t

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.fragmentation.fill_order import FillOrder
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.sim.policies import nova_default
from hpc_sched.topology import Topology

SLOTS = 8  # of a host
# Slots of a VM to how often it is so large.
SIZES = {"one slot": {1: 1.0}, "mixed": {1: 0.5, 2: 0.3, 4: 0.2}}
LIFETIMES = {"exponential": 0.0, "lognormal": 1.0}  # to sigma of the logarithm
WARM_UP, LOOKS, PAUSE = 5.0, 10, 0.2  # in mean lifetimes
COLUMNS = "{:<8}  {:<11} {:>4}  {:>14}  {:<4}  {:<4} {:>8} {:>8} {:>6}  {:>14}"
TITLES = ("sizes", "lifetimes", "load", "use", "VM", "in a", "with", "stock", "ratio", "95 %")
LEVELS = ("leaf", "pod")

# By kind of VM and level: the mean over the looks of a run.
Gangs = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Task:
    """A run: one workload, placed by one side."""

    sizes: str
    lifetimes: str
    use: float  # offered load
    seed: int
    multiplier: float  # of WholeLeafWeigher; 0: stock Nova


@dataclass(frozen=True)
class Outcome:
    """What a run has found."""

    use: float
    refused: int
    gangs: Gangs


class Hosts:
    """The hosts and what is free on them."""

    def __init__(self, topology: Topology, seed: int, multiplier: float) -> None:
        self.topology, self._multiplier = topology, multiplier
        self.free = np.full(len(topology.hosts), SLOTS, dtype=np.int64)
        self._every = np.arange(len(self.free))
        self._order = np.random.default_rng(seed).permutation(self._every)
        self._fill: dict[int, FillOrder] = {}  # by slots of a VM

    def place(self, size: int) -> int | None:
        """Return the host that takes a VM, or None."""
        hosts = self._order[self.free[self._order] >= size]
        if not len(hosts):
            return None
        free = self.free[hosts]
        # Processors and memory are in proportion.
        weights = 2 * nova_default.shares(free.astype(np.float64))
        if self._multiplier:
            # Full hosts have no room, and add nothing.
            keys = self._fill_order(size).keys(self.free // size, self.free < SLOTS)
            weights += self._multiplier * _ranked(keys[hosts])
        best = int(hosts[np.argmax(weights)])
        self.free[best] -= size
        return best

    def _fill_order(self, size: int) -> FillOrder:
        if size not in self._fill:
            slots = np.full_like(self.free, SLOTS // size)
            self._fill[size] = FillOrder.of(self.topology, self._every, slots)
        return self._fill[size]

    def gangs(self) -> Gangs:
        """Return the largest group by kind of VM and level."""
        found: Gangs = {}
        for kind, size in (("slot", 1), ("host", SLOTS)):
            room = self.free // size
            problem = Problem(self.topology, room, 0 * room, 1, TieOrder(self.topology, ""))
            for number, level in enumerate(LEVELS, 1):
                gang = largest_gang(problem, number)
                found[kind, level] = gang.vms if gang is not None else 0
        return found


def _ranked(keys: Array) -> Reals:
    """Return dense ranks as Nova scales them: 1 for the smallest key, 0 for the greatest."""
    return nova_default.spans(np.unique(-keys, return_inverse=True)[1].astype(np.float64))


def run(task: Task) -> Outcome:
    """Return the outcome of a run."""
    hosts = Hosts(churn_cloud.fabric(), task.seed, task.multiplier)
    looks = [WARM_UP + PAUSE * number for number in range(1, LOOKS + 1)]
    ends: list[tuple[float, int, int, int]] = []
    found: list[Gangs] = []
    uses: list[float] = []
    refused = 0
    for number, (now, size, lifetime) in enumerate(_arrivals(task, len(hosts.free), looks[-1])):
        while len(found) < LOOKS and looks[len(found)] <= now:
            _leave(hosts, ends, looks[len(found)])
            uses.append(1 - float(hosts.free.mean()) / SLOTS)
            found.append(hosts.gangs())
        _leave(hosts, ends, now)
        if (host := hosts.place(size)) is None:
            refused += 1
        else:
            heapq.heappush(ends, (now + lifetime, number, host, size))
    gangs = {key: statistics.fmean(one[key] for one in found) for key in found[0]}
    return Outcome(statistics.fmean(uses), refused, gangs)


def _leave(hosts: Hosts, ends: list[tuple[float, int, int, int]], now: float) -> None:
    while ends and ends[0][0] <= now:
        _, _, host, size = heapq.heappop(ends)
        hosts.free[host] += size


def _arrivals(task: Task, hosts: int, until: float) -> Iterator[tuple[float, int, float]]:
    """Yield time, size and lifetime of each VM up to the first one after the end."""
    dice = np.random.default_rng([task.seed, round(100 * task.use), len(task.lifetimes)])
    sizes = SIZES[task.sizes]
    mean = sum(size * share for size, share in sizes.items())
    gap, sigma = mean / (task.use * hosts * SLOTS), LIFETIMES[task.lifetimes]
    now = 0.0
    while now <= until:
        now += float(dice.exponential(gap))
        lasts = dice.lognormal(-sigma * sigma / 2, sigma) if sigma else dice.exponential(1.0)
        yield now, int(dice.choice([*sizes], p=[*sizes.values()])), float(lasts)


def ratio(this: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of two paired means, and its 95 % interval by Fieller's theorem."""
    n, t = len(this), student_t(len(this) - 1)
    a, b = statistics.fmean(this), statistics.fmean(other)
    if b == 0:
        return math.inf, math.inf, math.inf
    (aa, ab), (_, bb) = np.cov(this, other) / n
    square = b * b - t * t * bb
    root = (a * b - t * t * ab) ** 2 - square * (a * a - t * t * aa)
    if square <= 0 or root < 0:
        return a / b, 0.0, math.inf
    middle = a * b - t * t * ab
    return a / b, (middle - math.sqrt(root)) / square, (middle + math.sqrt(root)) / square


def main() -> int:
    """Run all workloads and print; return the exit code."""
    arguments = _parser().parse_args()
    began = time.monotonic()
    print(COLUMNS.format(*TITLES))
    workloads = itertools.product(
        arguments.sizes or SIZES, arguments.lifetimes or LIFETIMES, arguments.use
    )
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for workload in workloads:
            sides = [
                list(pool.map(run, [Task(*workload, seed, multiplier) for seed in seeds]))
                for multiplier in (arguments.multiplier, 0.0)
            ]
            for row in _rows(workload, *sides):
                print(COLUMNS.format(*row), flush=True)
            refused = "/".join(str(sum(one.refused for one in side)) for side in sides)
            print(f"{workload}: {refused} VMs refused", file=sys.stderr)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def _rows(
    workload: tuple[str, str, float], this: list[Outcome], stock: list[Outcome]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a workload, a cell for each column."""
    uses = "/".join(f"{statistics.fmean(one.use for one in side):.3f}" for side in (this, stock))
    for kind, level in this[0].gangs:
        sides = [[one.gangs[kind, level] for one in side] for side in (this, stock)]
        means = [f"{statistics.fmean(side):.1f}" for side in sides]
        found, low, high = ratio(*sides)
        interval = f"{low:.2f} to {high:.2f}"
        shown = (f"{found:.2f}", interval) if math.isfinite(high) else ("-", "-")
        yield (*workload, uses, kind, level, *means, *shown)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, choices in (("--sizes", SIZES), ("--lifetimes", LIFETIMES)):
        repeated = "may be repeated (default: all)"
        parser.add_argument(name, action="append", choices=list(choices), help=repeated)
    parser.add_argument(
        "--use", type=float, nargs="+", default=[0.5, 0.75, 0.9], help="offered load"
    )
    parser.add_argument("--seeds", type=int, default=10, help="of a workload (default 10)")
    parser.add_argument("--first-seed", type=int, default=1, help="(default 1)")
    parser.add_argument(
        "--multiplier", type=float, default=100000.0, help="of WholeLeafWeigher (default 100000)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: CPUs)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
