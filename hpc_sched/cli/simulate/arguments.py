"""The arguments of hpc-sched simulate."""

import argparse
from collections.abc import Callable
from typing import TypeVar

from hpc_sched.cli.common import topology_source
from hpc_sched.cli.common.argument_types import (
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
    "interarrival": (
        "interarrivals",
        "seconds between two arrivals (default: exponential:15)",
    ),
    "size": ("sizes", "VMs of a job (default: choice:4:8:16:32:64:128)"),
    "runtime": ("runtimes", "seconds that a job takes (default: lognormal:600:1.5)"),
    "walltime": ("walltimes", "requested walltime, in runtimes (default: constant:2)"),
    "vm-memory": ("memory_mb", "MB of a VM (default: constant:0)"),
}
_HOST = f"vcpus={DEFAULT_HOST.vcpus},memory={DEFAULT_HOST.memory_mb}"

_Value = TypeVar("_Value")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all arguments that describe the scenario."""
    parser.add_argument(
        "trace",
        nargs="?",
        metavar="TRACE",
        help="job trace in the Standard Workload Format, gzipped or not (default: "
        f"{SYNTHETIC_JOBS} drawn jobs, see --synthetic)",
    )
    _add_trace(parser)
    _add_cluster(parser)
    _add_rules(parser)
    _add_runtimes(parser)
    topology_source.add_arguments(parser, "--topology")


def _add_trace(parser: argparse.ArgumentParser) -> None:
    trace = parser.add_argument_group("jobs of a trace")
    add_number(trace, "--limit", "the first N usable rows")
    trace.add_argument(
        "--partition",
        type=ZERO_OR_MORE,
        action="append",
        default=[],
        metavar="N",
        help="rows of this partition (field 16); may be given several times",
    )
    what = "jobs arrive X times as fast as in the trace"
    add_number(trace, "--load", what, above_zero, "X", default=1.0)
    trace.add_argument(
        "--memory",
        choices=("none", "per-processor", "total"),
        default="none",
        help="meaning of the trace's used memory: that of a processor, as the format says, or of "
        "the whole job, as in some traces; none: VMs need no memory (default)",
    )
    add_number(trace, "--cores-per-vm", "processors of a job that share a VM", default=1)
    drawn = parser.add_argument_group(
        "drawn jobs",
        "Distributions: constant:X, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA, "
        "choice:X:Y=WEIGHT:...",
    )
    what = f"draw N jobs in place of a trace (default without TRACE: {SYNTHETIC_JOBS})"
    add_number(drawn, "--synthetic", what)
    for name, (field, what) in DRAWN.items():
        drawn.add_argument(f"--{name}", dest=field, type=_drawn(name), metavar="DIST", help=what)
    both = parser.add_argument_group("drawn for jobs of either kind")
    both.add_argument(
        "--classes",
        type=_stated("--classes", distributions.read_mix),
        default=distributions.ALL_SYNC,
        metavar="MIX",
        help="application classes and their shares, as in sync=0.5,async=0.3,extreme=0.1,none=0.1 "
        "(default: sync=1)",
    )
    both.add_argument(
        "--scores",
        type=_drawn("scores"),
        default=distributions.ZERO,
        metavar="DIST",
        help="cache score of each VM (default: constant:0)",
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    cluster = parser.add_argument_group(
        "cluster", f"By default a generated fat tree: {FABRIC}, {_HOST}."
    )
    fabric = cluster.add_mutually_exclusive_group()
    fabric.add_argument(
        "--topology",
        metavar="SOURCE",
        help=f"{topology_source.SOURCE} (default: with --snapshot that of the snapshot, else that "
        "of nova.conf; without it a generated fat tree)",
    )
    fabric.add_argument(
        "--generate",
        type=_stated("--generate", fat_tree.read),
        metavar="FABRIC",
        help=f"a fat tree of equal switches, as in {fat_tree.FORM}",
    )
    cluster.add_argument(
        "--host",
        action="append",
        default=[],
        metavar=HOST_FORM,
        help="size of the hosts; with :HOSTS, a folded list, of those only; may be given several "
        "times",
    )
    cluster.add_argument(
        "--snapshot",
        metavar="FILE",
        help="start from a file of hpc-sched snapshot save: its hosts with what is free there, and "
        "its topology if it has one; the VMs of the snapshot stay",
    )
    what = "hosts fail: mean time between two failures of one host (default: never)"
    add_number(cluster, "--mtbf", what, above_zero, "SECONDS")
    what = "mean time until a failed host is back"
    add_number(cluster, "--repair", what, above_zero, "SECONDS", default=3600.0)
    cluster.add_argument(
        "--no-requeue",
        action="store_true",
        help="drop a job that loses a host (default: it starts again, first in the queue)",
    )


def _add_rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help=f"one of {', '.join(registry.names())}, or {ALL}; may be given several times "
        f"(default: {', '.join(POLICIES)})",
    )
    rules.add_argument(
        "--queue",
        choices=QUEUES,
        default="fcfs",
        help="first come, first served, or EASY backfilling (default: fcfs)",
    )
    add_number(rules, "--backfill-depth", "waiting jobs that backfilling looks at", default=DEPTH)
    what = "number of runs of each policy, with the seeds from --seed on"
    add_number(rules, "--seeds", what, default=1)
    add_number(rules, "--seed", "the first seed", ZERO_OR_MORE, default=1)
    add_number(rules, "--until", "stop each run at this time", above_zero, "SECONDS")
    rules.add_argument(
        "--homogeneous",
        choices=("true", "prefer", "false"),
        default="prefer",
        help="whether policies that know processor types place a job on one of them "
        "(default: prefer)",
    )
    rules.add_argument(
        "--processor-order",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="TYPE,...",
        help="processor types, best first (default: those with most vcpus a host)",
    )
    rules.add_argument("--require", metavar="LEVEL", help="every job under one switch of a level")
    add_number(rules, "--max-leaves", "every job under at most N leaves")
    what = (
        "limit of the cache score on a host, for policies that limit interference (default: that "
        "of the snapshot, else 100)"
    )
    add_number(rules, "--alpha", what, at_least_zero, "SCORE")
    what = "the same on hosts with a VM of class sync (default: likewise, else 60)"
    add_number(rules, "--beta", what, at_least_zero, "SCORE")


def _add_runtimes(parser: argparse.ArgumentParser) -> None:
    runtimes = parser.add_argument_group(
        "runtimes", "By default a placement does not change the runtimes of the trace."
    )
    runtimes.add_argument(
        "--hop-factors",
        metavar="LEVEL=X,...",
        help="factor of a job's runtime for each level on which two of its VMs meet, averaged over "
        "pairs of VMs, as in host=1,leaf=1,pod=1.1,core=1.25",
    )
    runtimes.add_argument(
        "--speeds",
        metavar="TYPE=X,...",
        help="speed of processor types; the slowest one of a job counts",
    )
    what = "factor per unit of cache score of a job's neighbours, as in 1.002"
    add_number(runtimes, "--interference", what, above_zero, "X")
    runtimes.add_argument(
        "--calibrate",
        metavar="FILE",
        help="take these three from measured times: CSV with the columns job, seconds, level, and "
        "optionally processor and neighbour_score",
    )


def _drawn(name: str) -> Callable[[str], distributions.Distribution]:
    return _stated(f"--{name}", lambda text, what: distributions.read(text, what, at_least=0))


def _stated(name: str, read: Callable[[str, str], _Value]) -> Callable[[str], _Value]:
    """Return the type of an argument that a function of text and name reads."""
    return parsed_by(lambda text: read(text, name), prefix=f"{name}: ")
