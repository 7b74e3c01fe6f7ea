"""What the network costs the simulator: seconds of CPU time, and memory.

    python benchmarks/network.py
    python benchmarks/network.py jobs.swf.gz

The first rows are drawn jobs of 1 to 128 VMs with mixed patterns on 1,024 hosts, a VM a host, with
leaves of 16 hosts at 4 : 1 and a load of 0.8; then those of a trace as benchmarks/simulate.py has
it. Each row runs in a process of its own.
"""

import argparse
import math
import resource
import time
from multiprocessing import get_context

from record_worker import prepared

from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs.communication import Communications, read_patterns
from hpc_sched.sim.jobs.distributions import read
from hpc_sched.sim.jobs.job_sources import Synthetic
from hpc_sched.sim.network.links import fat_tree
from hpc_sched.sim.network.neighbours.job_speeds import DETAILS, JobNetwork
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.sim.simulation import Simulation
from hpc_sched.topology.model import Topology

COLUMNS = "{:<24} {:<14} {:<8} {:>8} {:>8} {:>7} {:>6} {:>11}"
HEADINGS = ("jobs", "policy", "network", "number", "CPU s", "factor", "use", "MB at most")
MIX = "ring=1,doubling=1,alltoall=1,halo2=1,halo3=1,bt=1,broadcast=1,none=1"
COMMUNICATIONS = Communications(read_patterns(MIX, "MIX"), read("choice:0.1:0.3:0.5"))
RATIO, LOAD = 4.0, 0.8
SIZES = "choice:1:2:4:8:16:32:64:128"
RUNTIMES = "exponential:600"


def network_of(topology: Topology, detail: str | None) -> JobNetwork | None:
    """Return the network of a fabric, oversubscribed at its leaves; None without a detail."""
    if detail is None:
        return None
    links = fat_tree(topology, host_rate=1.25e9, oversubscription=(RATIO, 1.0), host_latency=1e-6)
    return JobNetwork(links, detail)


def drawn(number: int, policy: str, detail: str | None) -> Simulation:
    """Return the simulation of drawn jobs."""
    topology = FatTree(levels=3, radix=32, hosts=1024).topology()
    mean = 600 * (2**8 - 1) / 8 / 1024 / LOAD
    source = Synthetic(
        number,
        interarrivals=read(f"exponential:{mean:g}"),
        sizes=read(SIZES),
        runtimes=read(RUNTIMES),
        communications=COMMUNICATIONS,
    )
    scenario = Scenario(
        cluster=uniform(topology, HostType(1, 0)),
        source=source,
        network=network_of(topology, detail),
    )
    run = Run(policy, 1)
    return Simulation(
        scenario.input(run.policy, run.seed), scenario.discipline(), source.jobs(run.seed)
    )


def row(kind: str, policy: str, detail: str | None, number: int | None, trace: str) -> str:
    """Return one row of the table."""
    if kind == "drawn":
        assert number is not None
        simulation = drawn(number, policy, detail)
    else:
        simulation = prepared(
            *(trace, "fcfs", policy, 10_000, 4, 100.0, number),
            communications=COMMUNICATIONS,
            network=lambda topology: network_of(topology, detail),
        )
    began = time.process_time()
    simulation.run()
    simulation.conclude()
    seconds = time.process_time() - began
    measures = simulation.measures
    factors = measures.jobs.factors
    return COLUMNS.format(
        *(kind, policy, detail or "none", f"{simulation.submitted:,}", f"{seconds:.1f}"),
        *(f"{math.fsum(factors) / len(factors):.3f}", f"{measures.integrals.utilisation[0]:.0%}"),
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description="Cost of the network in simulations.")
    parser.add_argument("trace", nargs="?", help="in the Standard Workload Format, gzipped or not")
    parser.add_argument("--limit", type=int, help="the first N jobs of the trace (default: all)")
    parser.add_argument("--jobs", type=int, default=20_000, help="drawn jobs (default 20000)")
    parser.add_argument("--steps", type=int, default=2_000, help="the same for steps (2000)")
    parser.add_argument("--policy", default="exact-plan", help="default exact-plan")
    args = parser.parse_args()
    links, steps, _ = DETAILS
    rows: list[tuple[str, str | None, int | None]] = [
        ("drawn", None, args.jobs),
        ("drawn", links, args.jobs),
        ("drawn", steps, args.steps),
    ]
    if args.trace is not None:
        rows += [("trace", None, args.limit), ("trace", links, args.limit)]
    print(COLUMNS.format(*HEADINGS), flush=True)
    for kind, detail, number in rows:
        with get_context("spawn").Pool(1) as pool:
            print(pool.apply(row, (kind, args.policy, detail, number, args.trace)), flush=True)


if __name__ == "__main__":
    main()
