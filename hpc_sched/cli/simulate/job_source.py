"""The jobs that the arguments of hpc-sched simulate describe: of a trace, or drawn."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from hpc_sched import exceptions
from hpc_sched.cli.simulate import default_run
from hpc_sched.cli.simulate.drawn_arguments import DRAWN
from hpc_sched.sim.cluster.cluster import Cluster
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.jobs import offered_load
from hpc_sched.sim.jobs.communication import Communications
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs, Workload
from hpc_sched.topology.plurals import text as counted


def jobs_of(
    args: argparse.Namespace, cluster: Cluster, communications: Communications | None
) -> tuple[TraceJobs | Synthetic, int, str, tuple[str, ...]]:
    """Return the jobs, their number, their description, and notes on what was left out.

    :param communications: None: jobs do not communicate
    :raises exceptions.HPCSchedError: for a trace that cannot be read, arguments that do not go
        with the kind of jobs, or drawn jobs that are no load
    """
    if args.trace is None:
        return _drawn(args, cluster, communications)
    return _of_a_trace(args, communications)


def _of_a_trace(
    args: argparse.Namespace, communications: Communications | None
) -> tuple[TraceJobs, int, str, tuple[str, ...]]:
    drawn = {name: getattr(args, field) for name, (field, _help) in DRAWN.items()}
    for name, value in {"synthetic": args.synthetic, "use": args.use, **drawn}.items():
        if value is not None:
            raise exceptions.SimulationError(
                f"--{name} is for drawn jobs: it does not go with a trace"
            )
    stated: dict[str, Any] = {
        each.name: getattr(args, each.name, communications) for each in fields(Workload)
    }
    workload = Workload(**stated)
    trace = TraceJobs(args.trace, workload, args.limit, tuple(args.partition))
    rows = trace.statistics()
    left_out = tuple(f"left out of {args.trace}: {text}" for text in rows.sentences())
    load = f", {args.load:g} times as fast" if args.load != 1 else ""
    description = f"{counted(rows.usable, 'job')} of {Path(args.trace).name}{load}"
    return trace, rows.usable, description, left_out


def _drawn(
    args: argparse.Namespace, cluster: Cluster, communications: Communications | None
) -> tuple[Synthetic, int, str, tuple[str, ...]]:
    if args.limit is not None or args.partition or args.load != 1 or args.memory != "none":
        raise exceptions.SimulationError(
            "--limit, --partition, --load and --memory are for a trace: name one"
        )
    count = args.synthetic or default_run.SYNTHETIC_JOBS
    stated = {field: getattr(args, field) for field, _help in DRAWN.values()}
    found = Synthetic(
        count,
        vcpus=args.cores_per_vm,
        classes=args.classes,
        scores=args.scores,
        applications=args.applications,
        communications=communications,
        **{field: value for field, value in stated.items() if value is not None},
    )
    use, description = default_run.use(args), f"{counted(count, 'job')}, drawn"
    if use is None:
        return found, count, description, ()
    vm = found.vcpus, round(found.memory_mb.mean)
    found = offered_load.arriving(found, use, ClusterState(cluster).room(*vm).total)
    load = f"offered load {100 * use:g} % of the VMs that the cluster holds"
    return found, count, f"{description}, {load}", ()
