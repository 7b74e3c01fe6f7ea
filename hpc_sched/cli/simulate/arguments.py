"""The arguments of hpc-sched simulate."""

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from hpc_sched.cli.common import sources
from hpc_sched.cli.common.argument_types import (
    ONE_OR_MORE,
    ZERO_OR_MORE,
    above_zero,
    add_number,
    at_least_zero,
    parsed_by,
)
from hpc_sched.sim.cluster import fat_tree
from hpc_sched.sim.cluster.cluster import DEFAULT_HOST, HOST_FORM
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.policies import registry
from hpc_sched.sim.queue_disciplines import DEPTH
from hpc_sched.sim.scenario import QUEUES

ALL = "all"
# The default comparison: stock Nova, Dudina2013, the exact plan.
POLICIES = ("nova-default", "dudina2013", "exact-plan")
SYNTHETIC_JOBS = 1000
FABRIC = "levels=3,radix=16,oversubscription=1,hosts=256"
# Options of drawn jobs: the field of Synthetic that each sets, and its help.
DRAWN = {
    "interarrival": ("interarrivals", "seconds between two arrivals (default: exponential:15)"),
    "size": ("sizes", "VMs of a job (default: choice:4:8:16:32:64:128)"),
    "runtime": ("runtimes", "seconds that a job takes (default: lognormal:600:1.5)"),
    "walltime": ("walltimes", "requested walltime, in runtimes (default: constant:2)"),
    "vm-memory": ("memory_mb", "MB of a VM (default: constant:0)"),
}
_HOST = f"vcpus={DEFAULT_HOST.vcpus},memory={DEFAULT_HOST.memory_mb}"
_HELP = {
    "trace": "job trace in the Standard Workload Format, gzipped or not (default: "
    f"{SYNTHETIC_JOBS} drawn jobs, see --synthetic)",
    "--limit": "the first N usable rows",
    "--partition": "rows of this partition (field 16); may be given several times",
    "--load": "jobs arrive X times as fast as in the trace",
    "--memory": "meaning of the trace's used memory: that of a processor, as the format says, or "
    "of the whole job, as in some traces; none: VMs need no memory (default)",
    "--cores-per-vm": "processors of a job that share a VM",
    "--synthetic": f"draw N jobs in place of a trace (default without TRACE: {SYNTHETIC_JOBS})",
    **{f"--{name}": what for name, (_field, what) in DRAWN.items()},
    "--classes": "application classes and their shares, as in "
    "sync=0.5,async=0.3,extreme=0.1,none=0.1 (default: sync=1)",
    "--scores": "cache score of each VM (default: constant:0)",
    "--topology": f"{sources.SOURCE} (default: with --snapshot that of the snapshot, else that "
    "of nova.conf; without it a generated fat tree)",
    "--generate": f"a fat tree of equal switches, as in {fat_tree.FORM}",
    "--host": "size of the hosts; with :HOSTS, a folded list, of those only; may be given several "
    "times",
    "--snapshot": "start from a file of hpc-sched snapshot save: its hosts with what is free "
    "there, and its topology if it has one; the VMs of the snapshot stay",
    "--mtbf": "hosts fail: mean time between two failures of one host (default: never)",
    "--repair": "mean time until a failed host is back",
    "--no-requeue": "drop a job that loses a host (default: it starts again, first in the queue)",
    "--queue": "first come, first served, or EASY backfilling (default: fcfs)",
    "--backfill-depth": "waiting jobs that backfilling looks at",
    "--seeds": "number of runs of each policy, with the seeds from --seed on",
    "--seed": "the first seed",
    "--until": "stop each run at this time",
    "--homogeneous": "whether policies that know processor types place a job on one of them "
    "(default: prefer)",
    "--processor-order": "processor types, best first (default: those with most vcpus a host)",
    "--require": "every job under one switch of a level",
    "--max-leaves": "every job under at most N leaves",
    "--alpha": "limit of the cache score on a host, for policies that limit interference (default: "
    "that of the snapshot, else 100)",
    "--beta": "the same on hosts with a VM of class sync (default: likewise, else 60)",
    "--hop-factors": "factor of a job's runtime for each level on which two of its VMs meet, "
    "averaged over pairs of VMs, as in host=1,leaf=1,pod=1.1,core=1.25",
    "--speeds": "speed of processor types; the slowest one of a job counts",
    "--interference": "factor per unit of cache score of a job's neighbours, as in 1.002",
    "--calibrate": "take these three from measured times: CSV with the columns job, seconds, "
    "level, and optionally processor and neighbour_score",
}

_Value = TypeVar("_Value")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all arguments that describe the scenario."""
    _add(parser, "trace", nargs="?", metavar="TRACE")
    trace = parser.add_argument_group("jobs of a trace")
    _number(trace, "--limit")
    _add(trace, "--partition", type=ZERO_OR_MORE, action="append", default=[], metavar="N")
    _number(trace, "--load", above_zero, "X", default=1.0)
    _add(trace, "--memory", choices=("none", "per-processor", "total"), default="none")
    _number(trace, "--cores-per-vm", default=1)
    drawn = parser.add_argument_group(
        "drawn jobs",
        "Distributions: constant:X, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA, "
        "choice:X:Y=WEIGHT:...",
    )
    _number(drawn, "--synthetic")
    for name, (field, _help) in DRAWN.items():
        _add(drawn, f"--{name}", dest=field, type=_drawn(name), metavar="DIST")
    both = parser.add_argument_group("drawn for jobs of either kind")
    mix = _stated("--classes", distributions.read_mix)
    _add(both, "--classes", type=mix, default=distributions.ALL_SYNC, metavar="MIX")
    score = _drawn("scores")
    _add(both, "--scores", type=score, default=distributions.ZERO, metavar="DIST")
    cluster = parser.add_argument_group(
        "cluster", f"By default a generated fat tree: {FABRIC}, {_HOST}."
    )
    fabric = cluster.add_mutually_exclusive_group()
    _add(fabric, "--topology", metavar="SOURCE")
    _add(fabric, "--generate", type=_stated("--generate", fat_tree.read), metavar="FABRIC")
    _add(cluster, "--host", action="append", default=[], metavar=HOST_FORM)
    _add(cluster, "--snapshot", metavar="FILE")
    _number(cluster, "--mtbf", above_zero, "SECONDS")
    _number(cluster, "--repair", above_zero, "SECONDS", default=3600.0)
    _add(cluster, "--no-requeue", action="store_true")
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help=f"one of {', '.join(registry.names())}, or {ALL}; may be given several times "
        f"(default: {', '.join(POLICIES)})",
    )
    _add(rules, "--queue", choices=QUEUES, default="fcfs")
    _number(rules, "--backfill-depth", default=DEPTH)
    _number(rules, "--seeds", default=1)
    _number(rules, "--seed", ZERO_OR_MORE, default=1)
    _number(rules, "--until", above_zero, "SECONDS")
    _add(rules, "--homogeneous", choices=("true", "prefer", "false"), default="prefer")
    types = {"type": lambda text: tuple(text.split(",")), "default": ()}
    _add(rules, "--processor-order", metavar="TYPE,...", **types)
    _add(rules, "--require", metavar="LEVEL")
    _number(rules, "--max-leaves")
    _number(rules, "--alpha", at_least_zero, "SCORE")
    _number(rules, "--beta", at_least_zero, "SCORE")
    runtimes = parser.add_argument_group(
        "runtimes", "By default a placement does not change the runtimes of the trace."
    )
    _add(runtimes, "--hop-factors", metavar="LEVEL=X,...")
    _add(runtimes, "--speeds", metavar="TYPE=X,...")
    _number(runtimes, "--interference", above_zero, "X")
    _add(runtimes, "--calibrate", metavar="FILE")
    sources.add_topology_arguments(parser, "--topology")


def _add(group: argparse._ActionsContainer, name: str, **settings: Any) -> None:
    group.add_argument(name, help=_HELP[name], **settings)


def _number(
    group: argparse._ActionsContainer,
    name: str,
    type_: Callable[[str], float] = ONE_OR_MORE,
    metavar: str = "N",
    default: float | None = None,
) -> None:
    add_number(group, name, _HELP[name], type_, metavar, default)


def _drawn(name: str) -> Callable[[str], distributions.Distribution]:
    return _stated(f"--{name}", lambda text, what: distributions.read(text, what, at_least=0))


def _stated(name: str, read: Callable[[str, str], _Value]) -> Callable[[str], _Value]:
    """Return the type of an argument that a function of text and name reads."""
    return parsed_by(lambda text: read(text, name), prefix=f"{name}: ")
