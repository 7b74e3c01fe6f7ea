"""How far plans for a pattern are above the least bottleneck, found by brute force.

    python benchmarks/pattern_gap.py
    python benchmarks/pattern_gap.py --trees 300
    python benchmarks/pattern_gap.py --large

Drawn fabrics of 2 to 4 levels with uneven leaves and uplinks, groups of 2 to 9 VMs with and without
members, constraints and bounds on the harm. For each pattern: the bottleneck of the plan of least
Hop-Byte and that of the search which starts from it alone, over the least of all numbers of VMs on
all hosts, as a mean; the highest of the latter; how many are above the least; CPU time of a search.

--large: 64 and 512 VMs on 10,000 hosts with 0 or 1 free, 20 pods of 25 leaves, leaves at 8 : 1. The
search starts from the plan of least Hop-Byte and from plans that take at most 1 to 8 VMs a leaf.
The bottleneck is that over the plan of least Hop-Byte, and so is the harm, bounded by 0.3 or not.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import UNBOUND
from hpc_sched.core.plan.bottleneck.ranks.rank_crossings import crossings, rank_hosts
from hpc_sched.core.plan.bottleneck.ranks.rank_search import best_by_pattern
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.problem import Problem, host_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.traffic import rank_bytes
from hpc_sched.core.traffic.patterns import PATTERNS
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.model import Topology
from tests.unit import pattern_oracle

COLUMNS = "{:<10} {:>6} {:>9} {:>9} {:>8} {:>6} {:>9}"
LARGE_COLUMNS = "{:>5} {:<9} {:>6} {:>11} {:>8} {:>7}"
HEADINGS = ("pattern", "trees", "hops plan", "search", "highest", "above", "CPU ms")


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description="Plans for patterns against brute force.")
    parser.add_argument("--trees", type=int, default=3000, help="default 3000", metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="of the first (default 0)", metavar="N")
    parser.add_argument("--large", action="store_true", help="groups on 10,000 hosts instead")
    args = parser.parse_args()
    if args.large:
        large()
        return
    rows: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    seeds = range(args.seed, args.seed + args.trees)
    for seed in seeds:
        case = pattern_oracle.drawn(seed)
        least = pattern_oracle.least_bottleneck(case)
        began = time.process_time()
        found = best_by_pattern(*case.arguments())
        seconds = time.process_time() - began
        by_hops, by_search = (
            float(pattern_oracle.bottleneck(case, plan) / least) if least else 1.0
            for plan in (case.hops_plan, found)
        )
        for name in (case.name, "all"):
            rows[name].append((by_hops, by_search, seconds))
    print(COLUMNS.format(*HEADINGS))
    for name in sorted(rows, key=lambda each: (each == "all", each)):
        by_hops, by_search, all_seconds = zip(*rows[name], strict=True)
        number = len(by_search)
        print(
            COLUMNS.format(
                *(name, number, f"{sum(by_hops) / number:.3f}", f"{sum(by_search) / number:.3f}"),
                *(f"{max(by_search):.2f}", sum(each > 1 for each in by_search)),
                f"{1e3 * sum(all_seconds) / number:.1f}",
            )
        )


def large() -> None:
    """Print the table of groups on a large fabric."""
    pods: dict[str, dict[str, list[str]]] = {f"p{p:02}": {} for p in range(20)}
    for pod, below in pods.items():
        below |= {f"{pod}l{n:02}": [f"{pod}l{n:02}h{h:02}" for h in range(20)] for n in range(25)}
    topology = Topology.from_tree({"core": pods})
    dice = random.Random(1)
    room = {host: dice.randint(0, 1) for host in topology.hosts}
    uplinks = {1: 250, 2: 6_250, 3: 0}
    links = Capacities(
        np.array([uplinks[switch.level] for switch in topology.switches]),
        np.full(len(topology.hosts), 100),
    )
    order = pattern_oracle.fabric_order(topology)
    print(LARGE_COLUMNS.format("VMs", "pattern", "bound", "bottleneck", "harm", "CPU s"))
    for vms in (64, 512):
        starts = [each for most in (20, 1, 2, 4, 8) for each in within(topology, room, most, vms)]
        problem = Problem.from_counts(topology=topology, capacity=room, members={}, awaiting=vms)
        for name in ("ring", "doubling", "alltoall", "halo2", "halo3"):
            traffic = rank_bytes.of_steps(vms, PATTERNS[name](vms))
            for bound in (Fraction(3, 10), None):
                began = time.process_time()
                found = best_by_pattern(problem, links, order, traffic, starts, UNBOUND, bound)
                seconds = time.process_time() - began
                by_hops, here = (
                    crossings(topology, traffic, rank_hosts(problem.members, planned, order))
                    for planned in (starts[0], found)
                )
                bottleneck = here.bottleneck(links) / by_hops.bottleneck(links)
                harm = here.harm(links) / by_hops.harm(links)
                print(
                    LARGE_COLUMNS.format(
                        *(vms, name, str(bound), f"{float(bottleneck):.3f}", f"{float(harm):.3f}"),
                        f"{seconds:.3f}",
                    )
                )


def within(topology: Topology, room: dict[str, int], most: int, vms: int) -> list[Array]:
    """Return the plan of least Hop-Byte of at most some VMs a leaf, or nothing without one."""
    capacity: dict[str, int] = {}
    for leaf in topology.leaves:
        left = most
        for host in topology.hosts_of(leaf):
            capacity[host] = min(room[host], left)
            left -= capacity[host]
    found = plan(topology=topology, capacity=capacity, members={}, count=vms)
    return [host_counts(topology, found.hosts)] if isinstance(found, Plan) else []


if __name__ == "__main__":
    main()
