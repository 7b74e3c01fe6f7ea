"""How long the exact planner takes for a group on a fabric of thousands of hosts.

    python benchmarks/plan.py
    python benchmarks/plan.py --runs 20 --growth 10000 20000

Three levels, 20 hosts a leaf and 25 leaves a pod. Two times stand in each row, the best and the
median of the runs in ms: ``solve`` is core.planner.solve on a Problem that was built beforehand,
``plan`` is core.planner.plan, which also makes the Problem of dicts by host name. The same seed
gives the same occupancy.
"""

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpc_sched.core.plan import planner
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology import Topology

HOSTS_A_LEAF = 20
LEAVES_A_POD = 25

# How many more VMs a host takes.
OCCUPANCY: dict[str, Callable[[random.Random], int]] = {
    "empty, 1 VM a host": lambda draw: 1,
    "empty, 8 VMs a host": lambda draw: 8,
    "0 or 1 VM a host": lambda draw: draw.randint(0, 1),
    "0 to 4 VMs a host": lambda draw: draw.randint(0, 4),
    "0 to 8 VMs a host": lambda draw: draw.randint(0, 8),
}
# The median and the best are of this many runs unless --runs says otherwise.
RUNS = 7
COLUMNS = "{:<22} {:<22} {:<18} {:>9} {:>9} {:>9} {:>9}"


@dataclass(frozen=True)
class Scene:
    """A fabric with what is free on it, and what a group asks for."""

    topology: Topology
    capacity: dict[str, int]
    count: int
    constraints: dict[str, Any] = field(default_factory=dict)

    def problem(self) -> Problem:
        """Return the values that solve works on."""
        return Problem.from_counts(
            topology=self.topology,
            capacity=self.capacity,
            members={},
            awaiting=self.count,
            group_id="benchmark",
        )

    def solve(self, problem: Problem) -> Plan | Rejection:
        """Answer from a problem that was built beforehand."""
        return planner.solve(problem, self.count, **self.constraints)

    def plan(self) -> Plan | Rejection:
        """Answer from dicts by host name."""
        return planner.plan(
            topology=self.topology,
            capacity=self.capacity,
            members={},
            count=self.count,
            group_id="benchmark",
            **self.constraints,
        )


def fabric_of(hosts: int) -> Topology:
    """Return three levels with some number of hosts."""
    pods = -(-hosts // (HOSTS_A_LEAF * LEAVES_A_POD))
    return Topology.from_tree(
        {
            "core": {
                f"pod{p:03}": {
                    f"leaf{p:03}-{n:02}": [f"n{p:03}-{n:02}-{h:02}" for h in range(HOSTS_A_LEAF)]
                    for n in range(LEAVES_A_POD)
                }
                for p in range(pods)
            }
        }
    )


def free_on(topology: Topology, occupancy: str, seed: int) -> dict[str, int]:
    """Return how many more VMs each host takes."""
    draw = random.Random(f"{seed} {occupancy}")
    return {host: OCCUPANCY[occupancy](draw) for host in topology.hosts}


def milliseconds(call: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the best and the median time of a call."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times), statistics.median(times)


def told(answer: Plan | Rejection) -> str:
    """Return an answer in a few words."""
    if isinstance(answer, Plan):
        return f"{len(answer.leaves)} leaves"
    return f"refused, {answer.best.vms if answer.best else 0} fit"


def measured(scene: Scene, runs: int) -> tuple[str, list[float]]:
    """Return the answer, and best and median of solve and of plan."""
    problem = scene.problem()
    answer = scene.solve(problem)
    solve = milliseconds(lambda: scene.solve(problem), runs)
    plan = milliseconds(scene.plan, runs)
    return told(answer), [*solve, *plan]


def wishes_for(scene: Scene) -> dict[str, dict[str, Any]]:
    """Return what a group may ask for: a pod, and as many, fewer and far too few leaves."""
    asked: dict[str, dict[str, Any]] = {"no wishes": {}, "require=pod": {"require": "pod"}}
    answer = scene.plan()
    if isinstance(answer, Plan):
        used = len(answer.leaves)
        for bound in (used, used - 1, used * 3 // 4):
            if bound:
                asked[f"max_leaves={bound}"] = {"max_leaves": bound}
    return asked


def by_occupancy(hosts: int, count: int, seed: int, runs: int) -> None:
    """Print a row for every occupancy and wish."""
    topology = fabric_of(hosts)
    print(f"{count} VMs on {len(topology.hosts)} hosts in {len(topology.leaves)} leaves; ms")
    print(
        COLUMNS.format("free", "wishes", "answer", *("solve", "median", "plan", "median")),
        flush=True,
    )
    for occupancy in OCCUPANCY:
        bare = Scene(topology, free_on(topology, occupancy, seed), count)
        for name, constraints in wishes_for(bare).items():
            scene = Scene(topology, bare.capacity, count, constraints)
            answer, times = measured(scene, runs)
            shown = (f"{number:.1f}" for number in times)
            print(COLUMNS.format(occupancy, name, answer, *shown), flush=True)


def by_size(sizes: Sequence[int], count: int, seed: int, runs: int) -> None:
    """Print a row for every number of hosts, with ms per 10,000 hosts."""
    print(f"\n{count} VMs, growing fabrics; ms, and ms per 10,000 hosts of the best runs")
    print(COLUMNS.format("free", "hosts", "answer", *("solve", "/ 10,000", "plan", "/ 10,000")))
    for occupancy in ("0 or 1 VM a host", "0 to 4 VMs a host"):
        for hosts in sizes:
            topology = fabric_of(hosts)
            scene = Scene(topology, free_on(topology, occupancy, seed), count)
            answer, (solve, _, plan, _) = measured(scene, runs)
            per = 1e4 / len(topology.hosts)
            shown = (f"{number:.1f}" for number in (solve, solve * per, plan, plan * per))
            print(COLUMNS.format(occupancy, f"{len(topology.hosts):,}", answer, *shown), flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(
        description="Times of the exact planner (core.planner), in milliseconds."
    )
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a row (default {RUNS})")
    parser.add_argument("--hosts", type=int, default=10_000, help="default 10000")
    parser.add_argument("--count", type=int, default=512, help="VMs in the group (default 512)")
    parser.add_argument("--seed", type=int, default=1, help="of the occupancy (default 1)")
    parser.add_argument(
        "--growth",
        type=int,
        nargs="*",
        default=[10_000, 20_000, 50_000, 100_000],
        metavar="HOSTS",
        help="sizes of the growing fabrics (default 10000 20000 50000 100000)",
    )
    arguments = parser.parse_args()
    by_occupancy(arguments.hosts, arguments.count, arguments.seed, arguments.runs)
    if arguments.growth:
        by_size(arguments.growth, arguments.count, arguments.seed, arguments.runs)


if __name__ == "__main__":
    main()
