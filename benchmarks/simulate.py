"""How long a simulation takes, and how much memory.

    python benchmarks/simulate.py jobs.swf.gz
    python benchmarks/simulate.py jobs.swf.gz --policy all --limit 2000
    python benchmarks/simulate.py jobs.swf.gz --limit 2000 --hosts 256 --vcpus 1 --load 1e6 \
        --queue easy --queue fair-share --queue conservative

One row a queue and policy, each in a process of its own: jobs, events, seconds of CPU time, jobs
per second, the most jobs that waited at a sample, and the process's largest resident memory. Three
levels, 20 hosts a leaf and 25 leaves a pod; jobs arrive --load times as fast as in the trace, so
that the larger fabric is not empty. With the load of the last example all jobs arrive at once, and
nearly all of them wait.
"""

import argparse
import resource
import time
from itertools import product
from multiprocessing import get_context

from record_worker import prepared

from hpc_sched.sim.installed import POLICIES, QUEUES

COLUMNS = "{:<15} {:<20} {:>8} {:>9} {:>8} {:>7} {:>8} {:>8} {:>6} {:>10}"
HEADINGS = ("queue", "policy", "jobs", "events", "CPU s", "jobs/s", "ms a job", "waiting", "vcpus")


def measured(args: argparse.Namespace, queue: str, policy: str) -> tuple[object, ...]:
    """Return the row of a queue and a policy."""
    sizes = {"hosts": args.hosts, "vcpus": args.vcpus, "load": args.load, "jobs": args.limit}
    simulation = prepared(trace=args.trace, queue=queue, policy=policy, **sizes)
    began = time.process_time()
    simulation.run()
    simulation.conclude()
    seconds = time.process_time() - began
    used, _ = simulation.measures.integrals.utilisation
    return (
        queue,
        policy,
        f"{simulation.submitted:,}",
        f"{simulation.events:,}",
        f"{seconds:.1f}",
        f"{simulation.submitted / seconds:,.0f}",
        f"{1e3 * seconds / simulation.submitted:.2f}",
        f"{max(simulation.measures.series.waiting):,}",
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
    parser.add_argument("--queue", choices=QUEUES.names(), action="append", help="default fcfs")
    parser.add_argument(
        "--policy", action="append", help="default exact-plan; all for every one installed"
    )
    args = parser.parse_args()
    names = args.policy or ["exact-plan"]
    names = POLICIES.names() if "all" in names else names
    print(COLUMNS.format(*HEADINGS, "MB at most"), flush=True)
    for queue, name in product(args.queue or ["fcfs"], names):
        with get_context("spawn").Pool(1) as pool:
            print(COLUMNS.format(*pool.apply(measured, (args, queue, name))), flush=True)


if __name__ == "__main__":
    main()
