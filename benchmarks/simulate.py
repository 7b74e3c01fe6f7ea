"""How long a simulation takes, and how much memory.

    python benchmarks/simulate.py jobs.swf.gz
    python benchmarks/simulate.py jobs.swf.gz --policy all --limit 2000

One row a policy, each in a process of its own: jobs, events, seconds, events per second and the
process's largest resident memory. Three levels, 20 hosts a leaf and 25 leaves a pod; jobs arrive
--load times as fast as in the trace, so that the larger fabric is not empty.
"""

import argparse
import resource
import time
from multiprocessing import get_context

from plan_shapes import fabric_of

from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.installed import POLICIES, QUEUES
from hpc_sched.sim.jobs.job_sources import TraceJobs, Workload
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.sim.simulation import Simulation

COLUMNS = "{:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9}"


def measured(args: argparse.Namespace, policy: str) -> tuple[object, ...]:
    """Return the row of a policy."""
    scenario = Scenario(
        cluster=uniform(fabric_of(args.hosts), HostType(args.vcpus, 1)),
        source=TraceJobs(args.trace, Workload(load=args.load), args.limit),
        queue=args.queue,
    )
    run = Run(policy, 1)
    simulation = Simulation(
        scenario.input(run.policy, run.seed),
        scenario.discipline(),
        scenario.source.jobs(run.seed),
    )
    began = time.perf_counter()
    simulation.run()
    simulation.conclude()
    seconds = time.perf_counter() - began
    used, _ = simulation.measures.utilisation
    return (
        policy,
        f"{simulation.submitted:,}",
        f"{simulation.events:,}",
        f"{seconds:.1f}",
        f"{simulation.events / seconds:.0f}",
        f"{1e3 * seconds / simulation.submitted:.2f}",
        f"{used:.0%}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    )


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description="Time and memory of simulations.")
    parser.add_argument("trace", help="in the Standard Workload Format, gzipped or not")
    parser.add_argument("--limit", type=int, help="the first N jobs (default: all)")
    parser.add_argument("--hosts", type=int, default=10_000, help="default 10000")
    parser.add_argument("--vcpus", type=int, default=4, help="of a host (default 4)")
    parser.add_argument("--load", type=float, default=100.0, help="default 100")
    parser.add_argument("--queue", choices=QUEUES.names(), default="fcfs", help="default fcfs")
    parser.add_argument(
        "--policy", action="append", help="default exact-plan; all for every one installed"
    )
    args = parser.parse_args()
    names = args.policy or ["exact-plan"]
    names = POLICIES.names() if "all" in names else names
    print(
        COLUMNS.format(
            "policy", "jobs", "events", "seconds", "events/s", "ms a job", "vcpus", "MB at most"
        ),
        flush=True,
    )
    for name in names:
        with get_context("spawn").Pool(1) as pool:
            print(COLUMNS.format(*pool.apply(measured, (args, name))), flush=True)


if __name__ == "__main__":
    main()
