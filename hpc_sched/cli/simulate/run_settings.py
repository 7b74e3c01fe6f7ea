"""The settings of all runs of one command: as plain values for programs, as texts for people."""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from hpc_sched import exceptions
from hpc_sched.cli.simulate import arguments, default_run, drawn_arguments
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.installed import QUEUES
from hpc_sched.sim.jobs.distributions import ZERO, Distribution, Mix
from hpc_sched.sim.jobs.job_sources import Synthetic, Workload
from hpc_sched.sim.measured.measured_window import ALL_OF_IT
from hpc_sched.sim.queues.queue_discipline import Queue, QueueOptions
from hpc_sched.sim.runtime import runtime_model
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.topology.compare import lint
from hpc_sched.topology.plurals import text as counted

# The fields of QueueOptions, and the options of the command that set them.
_QUEUE_OPTIONS = {"depth": "backfill_depth", "half_life": "fair_share_half_life"}

About = tuple[tuple[str, str], ...]  # heading and description

_OVERRUNS = {
    "run": "jobs run to their ends, also beyond their walltimes",
    "kill": "jobs are killed at their walltimes; those without one run to their ends",
}
_TRACE_MEMORY = {
    "none": "no memory",
    "per-processor": "the trace's memory, that of a processor",
    "total": "the trace's memory, that of a job",
}


def queue_options(args: argparse.Namespace, queue: Queue) -> QueueOptions:
    """Return the options of a discipline.

    :raises exceptions.SimulationError: for a half-life that the discipline does not read
    """
    found = {
        field: getattr(args, name)
        for field, name in _QUEUE_OPTIONS.items()
        if getattr(args, name) is not None
    }
    # The depth goes with any queue, so that a command can be repeated with another one.
    if "half_life" in found and "half_life" not in queue.options:
        names = [name for name in QUEUES.names() if "half_life" in QUEUES.load(name).options]
        raise exceptions.SimulationError(
            f"--fair-share-half-life does not go with --queue {queue.name}: expected one of "
            f"{', '.join(names)}"
        )
    return QueueOptions(**found)


def settings_of(
    args: argparse.Namespace, scenario: Scenario, runs: Sequence[Run], fabric: FatTree | None
) -> dict[str, Any]:
    """Return every option of the scenario with the value that applied, and the cluster's size.

    Plain values that JSON can hold; None for what is not limited, stated or known. An option has
    the name that argparse gives it: ``cores_per_vm``.

    :param fabric: the generated one, or None
    """
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser)
    options = vars(parser.parse_args([])).keys() - {"source_argument"}
    found: dict[str, Any] = {name: getattr(args, name) for name in sorted(options)}
    if isinstance(scenario.source, Synthetic):
        found |= {field.name: getattr(scenario.source, field.name) for field in fields(Synthetic)}
        # What jobs communicate is under the names of its options, as it is for a trace.
        del found["vcpus"], found["count"], found["communications"]
        found["synthetic"] = scenario.source.count
    model, cluster = scenario.model, scenario.cluster
    topology = cluster.topology
    if model is not None:
        names = (runtime_model.HOST, *topology.levels)
        found |= {
            "hop_factors": dict(zip(names, model.hop_factors, strict=False)),
            "speeds": dict(model.speeds),
            "interference": model.interference,
        }
    queue = QUEUES.load(scenario.queue)
    # None for an option that the discipline does not read.
    found |= {
        name: getattr(scenario.queue_options, field) if field in queue.options else None
        for field, name in _QUEUE_OPTIONS.items()
    }
    found |= {
        "use": default_run.use(args),
        "measure": None if scenario.measured == ALL_OF_IT else str(scenario.measured),
        "policy": list(dict.fromkeys(run.policy for run in runs)),
        "seeds": sorted({run.seed for run in runs}),
        "alpha": scenario.limits.alpha,
        "beta": scenario.limits.beta,
        "mdobp_classes": sorted(scenario.mdobp_classes),
        "fragmentation_price": str(scenario.rates),
        "bottleneck_tradeoff": None if scenario.tradeoff is None else float(scenario.tradeoff),
        "interference_tolerance": scenario.interference.tolerance,
        "processor_order": scenario.ranking.order,
        "processor_speeds": scenario.ranking.speeds,
        "generate": fabric,
        "oversubscription": _ratios(scenario, fabric),
        **_network(scenario),
        "hosts": len(topology.hosts),
        "leaves": len(topology.leaves),
        "levels": topology.levels,
        "total_vcpus": int(cluster.total[:, VCPUS].sum()),
        "total_memory_mb": int(cluster.total[:, MEMORY_MB].sum()),
    }
    del found["seed"]
    return {name: _plain(value) for name, value in sorted(found.items())}


def _network(scenario: Scenario) -> dict[str, Any]:
    """Return the options of the network with the values that applied."""
    source = scenario.source
    workload = source if isinstance(source, Synthetic) else source.workload
    found = workload.communications
    if scenario.network is None or found is None:
        return {}
    detail = {"network_detail": scenario.network.detail}
    if found.stated_by is not None:
        return detail
    return {"network": found.patterns, "communication": found.shares, **detail}


def _ratios(scenario: Scenario, fabric: FatTree | None) -> Mapping[str, float] | float | None:
    """Return the oversubscription by level, or that of a generated fabric without a network."""
    if scenario.network is not None:
        return scenario.network.ratios
    if fabric is None:
        topology = scenario.cluster.topology
        stated = {**topology.oversubscription, **lint.oversubscription(topology)}
        return {**scenario.links.oversubscription, **stated} or None
    return fabric.down_to_up


def _plain(value: object) -> object:
    match value:
        case Distribution():
            return value.text
        case Mix():
            return dict(value.shares)
        case FatTree():
            return asdict(value)
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if not math.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def about(scenario: Scenario, runs: Sequence[Run], fabric: FatTree | None, *texts: str) -> About:
    """Return the settings in words.

    :param texts: the jobs, the cluster, the queue and the runtimes
    """
    source, limits, measured = scenario.source, scenario.limits, scenario.measured
    jobs, cluster, queue, runtimes = texts
    workload = source if isinstance(source, Synthetic) else source.workload
    mix, end = workload.applications, f"each run is stopped at {scenario.until:g} s"
    return (
        ("Jobs", jobs),
        *((("Drawn", _drawn(source)),) if isinstance(source, Synthetic) else ()),
        ("VMs", _vms(workload)),
        ("Classes", _shares(workload.classes)),
        (
            "Cache scores",
            f"{workload.scores.text}; at most {limits.alpha:g} on a host (alpha), "
            f"{limits.beta:g} with class sync (beta)",
        ),
        ("Cluster", cluster),
        ("Oversubscription", _links(_ratios(scenario, fabric), fabric)),
        ("Constraints", _constraints(scenario)),
        ("Queue", queue),
        ("Runtimes", runtimes),
        ("Overruns", _OVERRUNS[scenario.overruns]),
        ("Failures", _failures(scenario)),
        ("Seeds", _seeds(scenario, runs)),
        *([] if mix is None else [("Applications", _shares(mix))]),
        *([("Measured", measured.sentence)] if measured != ALL_OF_IT else []),
        *([("End", end)] if math.isfinite(scenario.until) else []),
    )


def _shares(mix: Mix) -> str:
    return ", ".join(f"{name} {100 * share:g} %" for name, share in mix.shares)


def _drawn(source: Synthetic) -> str:
    return ", ".join(
        f"{name} {getattr(source, field).text}"
        for name, (field, _) in drawn_arguments.DRAWN.items()
    )


def _vms(workload: Workload | Synthetic) -> str:
    if isinstance(workload, Workload):
        cores = counted(workload.cores_per_vm, "core")
        return f"at most {cores} each, {_TRACE_MEMORY[workload.memory]}"
    memory = "no memory" if workload.memory_mb == ZERO else "drawn memory"
    return f"{counted(workload.vcpus, 'core')} each, {memory}"


def _links(ratios: Mapping[str, float] | float | None, fabric: FatTree | None) -> str:
    if fabric is not None and fabric.down_to_up is None:
        return "none: one switch"
    # Ports say nothing where --oversubscription states other ratios than they have.
    if isinstance(ratios, Mapping) and (
        fabric is None or set(ratios.values()) != {fabric.down_to_up}
    ):
        return ", ".join(f"{level} {ratio:g} : 1" for level, ratio in ratios.items())
    if fabric is None or fabric.down_to_up is None:
        return "unknown: the topology does not state it"
    return (
        f"{fabric.down_to_up:.3g} : 1, {fabric.down} ports down and {fabric.up} up on each "
        "switch below the roots"
    )


def _constraints(scenario: Scenario) -> str:
    found = [one.of_jobs(value) for one, value in scenario.constraints.items()]
    types = {"true": "one processor type", "prefer": "one processor type if it holds the job"}
    return ", ".join([*found, types.get(scenario.homogeneous, "any processor types")])


def _failures(scenario: Scenario) -> str:
    if scenario.mtbf is None:
        return "none"
    then = "starts again" if scenario.requeue else "is lost"
    return (
        f"each host every {scenario.mtbf:g} s, back after {scenario.repair:g} s, both on average; "
        f"a job that loses a host {then}"
    )


def _seeds(scenario: Scenario, runs: Sequence[Run]) -> str:
    seeds = sorted({run.seed for run in runs})
    found = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    policies = dict.fromkeys(run.policy for run in runs)
    drawing = [name for name in policies if scenario.draws(name)]
    if not drawing:
        return f"{found}; nothing is drawn, any other seed gives the same"
    if len(drawing) < len(policies):
        return f"{found} for {', '.join(drawing)}; the other policies draw nothing"
    return found
