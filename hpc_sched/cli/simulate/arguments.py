"""The arguments of hpc-sched simulate."""

import argparse
import math

from hpc_sched.cli.common import sources
from hpc_sched.cli.common.argument_types import (
    PRICE,
    ZERO_OR_MORE,
    Argument,
    above_zero,
    argument,
    at_least_zero,
    exclusive,
    number,
    parsed_by,
    repeated,
    share,
    titled,
)
from hpc_sched.cli.common.constraint_arguments import constraint_argument
from hpc_sched.cli.simulate import (
    default_run,
    drawn_arguments,
    network_arguments,
    place_limits,
)
from hpc_sched.cli.simulate.drawn_arguments import stated
from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.core.fragmentation import rates as fragmentation_rates
from hpc_sched.core.processors import processor_speeds
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.sim.cluster import fat_tree
from hpc_sched.sim.cluster.cluster import DEFAULT_HOST, HOST_FORM
from hpc_sched.sim.installed import POLICIES, QUEUES
from hpc_sched.sim.measured import measured_window
from hpc_sched.sim.queues.queue_discipline import DEPTH, HALF_LIFE
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS

ALL = "all"


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """Add all arguments that describe the scenario."""
    for add in (
        argument(
            "trace",
            "job trace in the Standard Workload Format, gzipped or not (default: "
            f"{default_run.SYNTHETIC_JOBS} drawn jobs, see --synthetic)",
            nargs="?",
            metavar="TRACE",
        ),
        titled("jobs of a trace", *_TRACE),
        titled("drawn jobs", *drawn_arguments.DRAWN_JOBS, about=drawn_arguments.DISTRIBUTIONS),
        titled("drawn for jobs of either kind", *drawn_arguments.APPLICATIONS),
        titled(
            "cluster",
            *_CLUSTER,
            about="By default a generated fat tree, with "
            f"vcpus={DEFAULT_HOST.vcpus},memory={DEFAULT_HOST.memory_mb}:\n"
            f"{default_run.FABRIC_OF_DRAWN_JOBS} for drawn jobs,\n"
            f"{default_run.FABRIC_OF_A_TRACE} for a trace.",
        ),
        titled("rules", *_runs(), *_RULES),
        titled(
            "runtimes",
            *_RUNTIMES,
            about="By default a placement does not change the runtimes of the trace.",
        ),
        titled("network", *network_arguments.NETWORK, about=network_arguments.ABOUT),
        titled("cost", PRICE),
    ):
        add(parser)
    sources.add_topology_arguments(parser, "--topology")


def _runs() -> tuple[Argument, ...]:
    # A function: the names of policies and queues are those that are installed when it is called.
    # fmt: off
    return (
        repeated("--policy",
            f"one of {', '.join(POLICIES.names())}, or {ALL}; may be given several times "
            f"(default: {', '.join(default_run.POLICIES)}); the others are compared with the first",
            metavar="NAME"),
        argument("--queue", f"one of {', '.join(QUEUES.names())} (default: fcfs)",
            metavar="NAME", default="fcfs"),
    )
    # fmt: on


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def _classes(text: str) -> frozenset[str]:
    found = frozenset(_names(text))
    if unknown := sorted(found.difference(mdobp_classes.CHOICES)):
        raise argparse.ArgumentTypeError(
            f"expected some of {', '.join(mdobp_classes.CHOICES)}, found {unknown[0]!r}"
        )
    return found


# An option and its help are one paragraph.
# fmt: off
_TRACE: tuple[Argument, ...] = (
    number("--limit", "the first N usable rows"),
    repeated("--partition", "rows of this partition (field 16); may be given several times",
        type=ZERO_OR_MORE, metavar="N"),
    number("--load", "jobs arrive X times as fast as in the trace", above_zero, "X", 1.0),
    argument("--memory",
        "meaning of the trace's used memory: that of a processor, as the format says, or of the "
        "whole job, as in some traces; none: VMs need no memory (default)",
        choices=("none", "per-processor", "total"), default="none"),
    number("--cores-per-vm", "processors of a job that share a VM", default=1),
)
_CLUSTER: tuple[Argument, ...] = (
    exclusive(
        argument("--topology",
            f"{sources.SOURCE} (default: with --snapshot that of the snapshot, else that of "
            "nova.conf; without it a generated fat tree)", metavar="SOURCE"),
        argument("--generate", f"a fat tree of equal switches, as in {fat_tree.FORM}",
            type=stated("--generate", fat_tree.read), metavar="FABRIC"),
    ),
    repeated("--host",
        "size of the hosts; with :HOSTS, a folded list, of those only; may be given several times",
        metavar=HOST_FORM),
    argument("--snapshot",
        "start from a file of hpc-sched snapshot save: its hosts with what is free there, and its "
        "topology if it has one; the VMs of the snapshot stay", metavar="FILE"),
    number("--mtbf", "hosts fail: mean time between two failures of one host (default: never)",
        above_zero, "SECONDS"),
    number("--repair", "mean time until a failed host is back", above_zero, "SECONDS", 3600.0),
    argument("--no-requeue",
        "drop a job that loses a host (default: it starts again, first in the queue)",
        dest="requeue", action="store_false"),
)
_RULES: tuple[Argument, ...] = (
    number("--backfill-depth",
        "waiting jobs that backfilling considers behind the first one, for queues that backfill "
        f"(default: {DEPTH})", ZERO_OR_MORE),
    number("--fair-share-half-life",
        "time in which a user's usage loses half of its weight, for the queue fair-share "
        f"(default: {HALF_LIFE:.0f}, a week)", above_zero, "SECONDS"),
    argument("--overruns",
        "what happens to jobs that are longer than their requested walltimes, also by the factors "
        "below: they run to their ends, or are killed (default: run)",
        choices=("run", "kill"), default="run"),
    number("--seeds",
        "number of runs of each policy, with the seeds from --seed on, but one run where nothing "
        f"is drawn; {LEAST_SEEDS} and more give confidence intervals", default=1),
    number("--seed", "the first seed", ZERO_OR_MORE, default=1),
    argument("--until", "stop each run at this time",
        type=above_zero, metavar="SECONDS", default=math.inf),
    argument("--measure",
        "measure a part of each run: times in s, or percentages of the jobs, of which either may "
        "be left out, as in 3600, or 20%%,90%%, without the first 20 %% and the last 10 %% of the "
        "jobs. Use, makespan and core-hours are of this time; all other numbers of the jobs "
        "submitted in it, whenever they end (default: the whole run, as with a lone comma; of at "
        f"least {default_run.FEWEST_MEASURED} drawn jobs with --use, without --until, "
        f"{default_run.MEASURE.replace('%', '%%')})",
        type=stated("--measure", measured_window.read), metavar="FROM,UNTIL"),
    argument("--homogeneous",
        "whether policies that know processor types place a job on one of them (default: prefer)",
        choices=("true", "prefer", "false"), default="prefer"),
    argument("--processor-order",
        "processor types, best first; the others follow by --speeds, then by cores per host "
        "(default: that of the snapshot)", type=_names, metavar="TYPE,..."),
    *(constraint_argument(one, one.simulate_help) for one in CONSTRAINTS if one.simulate_help),
    argument("--wait-for-place",
        "a job that could only start on hosts that break --prefer, or --max-leaves, waits up to "
        "this time for others, and then takes the best place there is; --max-leaves is a "
        "preference then. With several limits, as in 0,300,1800, each policy runs with each of "
        "them (default: --prefer never delays a job, and --max-leaves is always kept)",
        type=place_limits.read, metavar="SECONDS,..."),
    number("--alpha",
        "limit of the cache score on a host, for policies that limit interference "
        "(default: that of the snapshot, else 100)", at_least_zero, "SCORE"),
    number("--beta", "the same on hosts with a VM of class sync (default: likewise, else 60)",
        at_least_zero, "SCORE"),
    number("--bottleneck-tradeoff",
        "how much more harm plans of policy bottleneck may do to others than those of least "
        "Hop-Byte, as a part of theirs (default: that of the snapshot, else 0.3)",
        at_least_zero, "X"),
    argument("--fragmentation-price",
        "what plans of policy exact-plan pay for free slots that they break up, on leaves and on "
        f"pods, as the option fragmentation_price; 0 for none (default: that of the snapshot, else "
        f"{fragmentation_rates.DEFAULT})",
        type=parsed_by(fragmentation_rates.read), metavar=fragmentation_rates.FORM),
    argument("--mdobp-classes",
        f"classes that MDOBP places in policy gupta2013, of {', '.join(mdobp_classes.CHOICES)} "
        f"(default: those of the snapshot, else {','.join(mdobp_classes.DEFAULT)})",
        type=_classes, metavar="CLASS,..."),
    argument("--interference-file",
        "interference index: policy gupta2013 keeps bad company apart and places applications on "
        "hosts with those that they gain from, and runtimes of all policies change by it "
        "(default: that of the snapshot)", metavar="FILE"),
    number("--interference-tolerance",
        "change of performance from which a pair of the index counts in policy gupta2013 "
        "(default: that of the snapshot, else 0.1)", share, "X"),
)
_RUNTIMES: tuple[Argument, ...] = (
    argument("--hop-factors",
        "factor of a job's runtime for each level on which two of its VMs meet, averaged over "
        "pairs of VMs, as in host=1,leaf=1,pod=1.1,core=1.25", metavar="LEVEL=X,..."),
    argument("--speeds",
        "speed of processor types, as in gold=3000,silver=2130: policies take the fastest first, "
        "and a job is as slow as its slowest one; runtimes are those of the fastest, or of hosts "
        "without a speed, which have 1 (default: the snapshot's speeds, for the order only)",
        type=parsed_by(processor_speeds.read), metavar=processor_speeds.FORM),
    number("--interference", "factor per unit of cache score of a job's neighbours, as in 1.002",
        above_zero, "X"),
    argument("--calibrate",
        "take these three from measured times: CSV with the columns job, seconds, level, and "
        "optionally processor and neighbour_score", metavar="FILE"),
)
# fmt: on
