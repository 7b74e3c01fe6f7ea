"""One run of a row of benchmarks/record.py, with the hpc_sched of any checkout; prints JSON.

It calls what checkouts of a year ago have too: planner.plan, Scenario and Simulation.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = 5  # of a plan, of which the best counts


def plan(hosts: int, most: int, count: int) -> dict[str, float]:
    """Return CPU seconds of the best plan, and the most MB of another one."""
    from plan_shapes import fabric_of

    from hpc_sched.core.plan.planner import plan as planned

    topology = fabric_of(hosts)
    draw = random.Random(1)
    capacity = {host: draw.randint(0, most) for host in topology.hosts}

    def run() -> object:
        return planned(topology=topology, capacity=capacity, members={}, count=count, group_id="g")

    took = min(_seconds(run) for _ in range(RUNS))
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    return {"took": took, "megabytes": peak / 1e6}


def prepared(
    trace: str,
    queue: str,
    policy: str,
    hosts: int,
    vcpus: int,
    load: float,
    jobs: int | None,
    network: Callable[[Any], Any] | None = None,
    **workload: Any,
) -> Any:
    """Return the Simulation of the first jobs of a trace on hosts of some vcpus.

    :param network: returns the network of a topology; for checkouts that have one
    """
    from plan_shapes import fabric_of

    from hpc_sched.sim.cluster.cluster import HostType, uniform
    from hpc_sched.sim.jobs.job_sources import TraceJobs, Workload
    from hpc_sched.sim.scenario import Run, Scenario
    from hpc_sched.sim.simulation import Simulation

    topology = fabric_of(hosts)
    scenario = Scenario(
        cluster=uniform(topology, HostType(vcpus, 1)),
        source=TraceJobs(trace, Workload(load=load, **workload), jobs),
        queue=queue,
        **({} if network is None else {"network": network(topology)}),
    )
    run = Run(policy, 1)
    return Simulation(
        scenario.input(run.policy, run.seed),
        scenario.discipline(),
        scenario.source.jobs(run.seed),
    )


def simulation(**task: Any) -> dict[str, float]:
    """Return CPU seconds of a simulation, see :func:`prepared`, and its number of jobs."""
    simulated = prepared(**task)
    took = _seconds(simulated.run)
    simulated.conclude()
    return {"took": took, "number": simulated.submitted}


def shared(tree: str) -> dict[str, float]:
    """Return the CPU time of a request relative to stock Nova's in the same process."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "choice.json"
        script = Path(tree) / "benchmarks" / "choice.py"
        sizes = ("--hosts", "10000", "--counts", "1", "--sides", "sharing", "--near-pairs", "5")
        command = [sys.executable, str(script), *sizes, "--json", str(report)]
        subprocess.run(command, stdout=sys.stderr, check=True)
        [row] = [
            row
            for row in json.loads(report.read_text())
            if (row["side"], row["kind"], row["count"]) == ("sharing", "none", 1)
        ]
    return {"took": row["ratio"]}


def _seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def main(tree: str, kind: str, **task: Any) -> None:
    """Print what a row has measured."""
    import hpc_sched

    imported = Path(hpc_sched.__file__).resolve().parent.parent
    if imported != Path(tree):
        raise RuntimeError(f"hpc_sched is imported from {imported}, expected {tree}")
    if kind == "shared":
        task["tree"] = tree
    print(json.dumps({"plan": plan, "simulation": simulation, "shared": shared}[kind](**task)))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
