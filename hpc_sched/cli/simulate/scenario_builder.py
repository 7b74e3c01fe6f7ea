"""The scenario and the runs that the arguments of hpc-sched simulate describe."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, cast

from hpc_sched import exceptions
from hpc_sched.cli.common import sources
from hpc_sched.cli.simulate import (
    default_run,
    job_source,
    network_setting,
    place_limits,
    run_settings,
)
from hpc_sched.cli.simulate.arguments import ALL
from hpc_sched.cli.simulate.sharing_rules import SharingRules
from hpc_sched.core.constraints import Constraints, level_of
from hpc_sched.core.constraints.parts.segment_level import SegmentLevel
from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.core.fragmentation import rates as fragmentation_rates
from hpc_sched.core.fragmentation.rates import FragmentationRates
from hpc_sched.core.objectives.stated_objective import tradeoff_of
from hpc_sched.core.plan.objective import TRADEOFF
from hpc_sched.core.processors.processor_ranking import UNRANKED, ProcessorRanking
from hpc_sched.sim.cluster import snapshot_cluster
from hpc_sched.sim.cluster.cluster import Cluster, host_types, uniform
from hpc_sched.sim.installed import POLICIES, QUEUES
from hpc_sched.sim.preference import place_preference
from hpc_sched.sim.runtime import calibration, runtime_model
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.snapshot.source import snapshot_file
from hpc_sched.topology import hostlist
from hpc_sched.topology.plurals import text as counted


@dataclass(frozen=True, slots=True)
class RequestedRuns:
    """The runs of one command."""

    scenario: Scenario
    runs: tuple[Run, ...]
    about: run_settings.About
    settings: dict[str, Any]  # for programs
    notes: tuple[str, ...]  # what was left out, a sentence each


def requested_runs(args: argparse.Namespace) -> RequestedRuns:
    """Return the runs of the arguments; read trace, topology and snapshot.

    :raises exceptions.HPCSchedError: naming what cannot be read, or what was expected
    """
    each = (POLICIES.names() if n == ALL else [n] for n in args.policy or default_run.POLICIES)
    names = list(dict.fromkeys(chain.from_iterable(each)))
    for name in names:
        POLICIES.load(name)
    queue = QUEUES.load(args.queue)
    queue_options = run_settings.queue_options(args, queue)
    snapshot = None if args.snapshot is None else snapshot_file.read(args.snapshot)
    cluster, fabric, notes = _cluster(args, snapshot)
    communications = network_setting.communications_of(args)
    source, jobs, description, more = job_source.jobs_of(args, cluster, communications)
    model, model_notes = _model(args, cluster)
    generated = default_run.fabric(args)
    links = network_setting.link_defaults(snapshot, cluster.topology, generated)
    network, network_notes = network_setting.job_network(
        args, communications, cluster.topology, links
    )
    ranking = _ranking(args, snapshot, model)
    sharing = SharingRules.of(args, snapshot)
    if sharing.index.performance:
        model = replace(model or runtime_model.RuntimeModel(), index=sharing.index)
    stated = Constraints(
        **{one.name: getattr(args, one.name) for one in CONSTRAINTS if one.simulate_help}
    )
    for level in (stated.bounds.level, stated.values.get(SegmentLevel.name)):
        level_of(cluster.topology, None if level is None else str(level))
    for sentence in stated.contradictions.values():
        raise exceptions.RequestError(sentence)
    alike = ("queue", "homogeneous", "mtbf", "repair", "requeue", "overruns", "until")
    scenario = Scenario(
        cluster=cluster,
        source=source,
        queue_options=queue_options,
        limits=sharing.limits,
        interference=sharing.interference,
        mdobp_classes=sharing.mdobp_classes,
        constraints=place_limits.kept(args, stated),
        preferred=place_preference.preferred(stated, cluster.topology),
        ranking=ranking,
        model=model,
        network=network,
        rates=_rates(args, snapshot),
        tradeoff=_tradeoff(args, snapshot),
        links=links,
        prices=args.price,
        vm=(args.cores_per_vm, 0),
        measured=default_run.measured(args, jobs),
        jobs=jobs,
        folder=args.output,
        events=args.events,
        **{name: getattr(args, name) for name in alike},
    )
    seeds = range(args.seed, args.seed + args.seeds)
    runs, run_notes = _runs(scenario, names, seeds, args.wait_for_place or (None,))
    unchanged = (
        "as the trace has them" if network is None else "by places and neighbours, see Network"
    )
    runtimes = unchanged if model is None else _description(model, cluster)
    ranked = scenario.homogeneous != "false" and ranking != UNRANKED
    classes = (name for name, _ in args.classes.shares)
    price_notes = () if args.price is None else args.price.notes(classes)
    return RequestedRuns(
        scenario=scenario,
        runs=runs,
        about=(
            *run_settings.about(
                *(scenario, runs, generated, description, fabric),
                *(queue.text(queue_options), runtimes),
            ),
            *(
                []
                if network is None or communications is None
                else [("Network", network_setting.text_of(network, communications))]
            ),
            *sharing.about,
            *([("Processor types", _ranking_text(ranking))] if ranked else []),
            *([] if args.price is None else [("Prices of a core-hour", str(args.price))]),
            *place_limits.about(args),
        ),
        settings=run_settings.settings_of(args, scenario, runs, generated),
        notes=(
            *notes,
            *more,
            *model_notes,
            *network_notes,
            *sharing.notes,
            *price_notes,
            *run_notes,
        ),
    )


def _runs(
    scenario: Scenario,
    names: Sequence[str],
    seeds: Sequence[int],
    limits: Sequence[float | None],
) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return a run for each policy, limit and seed, and a note.

    One for all seeds where nothing is drawn.
    """
    drawing = [name for name in names if scenario.draws(name)]
    runs = tuple(
        Run(name, seed, limit, is_one_of_limits=len(limits) > 1)
        for name in names
        for limit in limits
        for seed in (seeds if name in drawing else seeds[:1])
    )
    if len(seeds) < 2 or len(drawing) == len(names):
        return runs, ()
    what = f"only {', '.join(drawing)} draws" if drawing else "nothing is drawn"
    whose = " of the others" if drawing else ""
    return runs, (f"{what}: one run stands for all {len(seeds)} seeds{whose}",)


def _cluster(
    args: argparse.Namespace, snapshot: Snapshot | None
) -> tuple[Cluster, str, tuple[str, ...]]:
    """Return the cluster, its description, and notes on what was left out of it."""
    if snapshot is not None:
        if args.generate is not None or args.host:
            raise exceptions.SimulationError(
                "--snapshot has the hosts: neither --generate nor --host goes with it"
            )
        found = Cloud.of(snapshot, sources.fabric_of(args, args.topology, snapshot))
        cluster, notes = snapshot_cluster.cluster_of(found)
        notes = (*notes, *sources.unknown_hosts(found))
        return cluster, f"{_size(cluster)}, as on {snapshot.taken}", notes
    generated = default_run.fabric(args)
    topology = generated.topology() if generated else sources.topology_of(args, args.topology)
    cluster = uniform(topology, *host_types(args.host, "--host"))
    return cluster, _size(cluster), ()


def _size(cluster: Cluster) -> str:
    topology = cluster.topology
    hosts = f" ({hostlist.fold(topology.hosts)})" if len(topology.hosts) < 3 else ""
    vcpus, memory_mb = cluster.total.sum(axis=0).tolist()
    return (
        f"{counted(len(topology.hosts), 'host')}{hosts} under "
        f"{counted(len(topology.leaves), 'leaf switch')}, {topology.depth} levels, "
        f"{vcpus:,} vcpus, {memory_mb // 1024:,} GB"
    )


def _model(
    args: argparse.Namespace, cluster: Cluster
) -> tuple[runtime_model.RuntimeModel | None, tuple[str, ...]]:
    """Return the model of runtimes, or None if placements change none, and notes."""
    levels = cluster.topology.levels
    factors: dict[str, Any] = {}
    if args.hop_factors is not None:
        factors["hop_factors"] = runtime_model.hop_factors(
            args.hop_factors, "--hop-factors", levels
        )
    if args.speeds is not None:
        factors["speeds"] = runtime_model.relative_speeds(args.speeds, "--speeds", cluster)
    if args.interference is not None:
        factors["interference"] = args.interference
    if args.calibrate is None:
        return (runtime_model.RuntimeModel(**factors) if factors else None), ()
    if factors:
        raise exceptions.SimulationError(
            "--calibrate measures what --hop-factors, --speeds and --interference state: "
            "expected the one or the others"
        )
    found = calibration.read(args.calibrate, levels)
    return found.model(levels), (
        f"the model of {args.calibrate} is off the measured times by {found.residual:.1f} %",
        *found.notes,
    )


def _rates(args: argparse.Namespace, snapshot: Snapshot | None) -> FragmentationRates:
    """Return the rates of the fragmentation price: the argument's, else the snapshot's."""
    if args.fragmentation_price is not None:
        return cast(FragmentationRates, args.fragmentation_price)
    if snapshot is None:
        return fragmentation_rates.DEFAULT
    return nova_options.fragmentation_rates(snapshot)


def _tradeoff(args: argparse.Namespace, snapshot: Snapshot | None) -> Fraction:
    """Return the bound on the harm of plans by bottleneck: the argument's, else the snapshot's."""
    if args.bottleneck_tradeoff is not None:
        return tradeoff_of(args.bottleneck_tradeoff)
    if snapshot is None:
        return TRADEOFF
    return tradeoff_of(nova_options.option(snapshot, "bottleneck_tradeoff"))


def _ranking(
    args: argparse.Namespace, snapshot: Snapshot | None, model: runtime_model.RuntimeModel | None
) -> ProcessorRanking:
    """Return the order and speeds of the arguments; those of the snapshot for what they omit."""
    found = UNRANKED if snapshot is None else nova_options.ranking(snapshot)
    if args.processor_order is not None:
        found = replace(found, order=args.processor_order)
    if model is not None and (args.speeds, args.calibrate) != (None, None):
        found = replace(found, speeds=model.speeds)
    return found


def _ranking_text(ranking: ProcessorRanking) -> str:
    fastest_first = sorted(ranking.speeds.items(), key=lambda item: (-item[1], item[0]))
    speeds = ", ".join(f"{name} {speed:g}" for name, speed in fastest_first)
    by_speed = [f"by speed ({speeds})"] if speeds else []
    return ", then ".join([*ranking.order, *by_speed, "by cores per host"])


def _description(model: runtime_model.RuntimeModel, cluster: Cluster) -> str:
    names = (runtime_model.HOST, *cluster.topology.levels)
    per_score = f"x {model.interference:g} per cache score of neighbours"
    parts = (
        *(f"{name} x {factor:g}" for name, factor in zip(names, model.hop_factors, strict=False)),
        *(f"{name} at speed {speed:g}" for name, speed in sorted(model.speeds.items())),
        per_score if model.interference != 1 else "",
        "by the interference index" if model.index.performance else "",
    )
    return ", ".join(filter(None, parts))
