"""The options of nova.conf's section [hpc_sched]. Nothing registers at import."""

import math
import re
from typing import Any

from oslo_config import cfg

from hpc_sched import exceptions

GROUP = cfg.OptGroup(
    "hpc_sched",
    title="Topology-aware placement of groups of HPC VMs",
    help="Options of the out-of-tree filters and weighers of hpc_sched, read by nova-scheduler.",
)

INTERFERENCE_TOLERANCE = 0.1
TOPOLOGY_RELOAD_INTERVAL = 60

OPTS = [
    cfg.StrOpt(
        "topology_driver",
        default="yaml",
        mutable=True,
        help="""
Where the fabric's description comes from: the name of a driver in
the stevedore group hpc_sched.topology.

* ``yaml``: a file of nested switches, see
  etc/topology.yaml.sample
* ``slurm``: Slurm's topology.conf or topology.yaml
* ``ibnetdiscover``: what ibnetdiscover prints, saved or run
* ``aggregates``: host aggregates with metadata ``hpc:leaf``,
  ``hpc:pod`` and further levels; needs neither a file nor a
  command
""",
    ),
    cfg.StrOpt(
        "topology_file",
        mutable=True,
        help="""
The file that describes the fabric, for drivers that read one;
start from etc/topology.yaml.sample. nova-scheduler does not start
when it is missing or wrong.

The file is read again when it changes; replace it as a whole, by
mv, so that no half of it is read. One that becomes missing or
wrong changes nothing: the last good fabric stays in use and the
log names the line that is wrong. ``hpc-sched topology validate``
tells beforehand.
""",
    ),
    cfg.ListOpt(
        "topology_command",
        default=[],
        mutable=True,
        help="""
A command in place of ``topology_file``, program and arguments
separated by commas: what it prints is the description. It is run
without a shell, as the user of nova-scheduler, at start and every
``topology_reload_interval``. Example: sudo,ibnetdiscover
""",
    ),
    cfg.FloatOpt(
        "topology_command_timeout",
        default=30.0,
        min=0.1,
        max=3600,
        mutable=True,
        help="""
Seconds after which ``topology_command`` is killed; the last good
fabric then stays in use.
""",
    ),
    cfg.IntOpt(
        "topology_reload_interval",
        default=TOPOLOGY_RELOAD_INTERVAL,
        min=0,
        max=86400,
        mutable=True,
        help="""
Seconds between two looks at whether the description has changed.
A change is taken over in the background, as a whole: requests
that are being scheduled keep the fabric that they began with. 0
looks only on SIGHUP.
""",
    ),
    cfg.StrOpt(
        "topology_name_map",
        mutable=True,
        help="""
A file that gives hosts of the description the names that Nova has
for them: a line has a name, or the GUID of a host channel
adapter, and the nodename (on bare metal the node's UUID). The
node name map of OpenSM and infiniband-diags is such a file and
names switches too. Not used by ``aggregates``.
""",
    ),
    cfg.StrOpt(
        "topology_name",
        mutable=True,
        help="""
For ``slurm``: which tree of a topology.yaml is read, by its name
there. By default the first topology with
``cluster_default: true``, or the only tree of the file.
""",
    ),
    cfg.StrOpt(
        "topology_host_pattern",
        mutable=True,
        help=r"""
For ``ibnetdiscover``: a regular expression for the descriptions
of host channel adapters; what its first group matches, or all of
it without a group, is the host's name, and an adapter that it
does not match belongs to no host. By default a description is a
host name and the adapter's, as in "node0001 HCA-1" and "node0001
mlx5_0", or a host name alone. Example: ^(\S+) mlx5_[0-3]$
""",
    ),
    cfg.FloatOpt(
        "bunch_weight_multiplier",
        default=100000.0,
        help="""
Multiplier of BunchWeigher (Listing 1 of Dudina et al. 2013).

The default lets topology decide for groups before Nova's resource
weighers, whose default multipliers add up to about 8, on up to
10,000 hosts, and stays below Nova's 1,000,000 for build failures
and cross-cell moves. With H hosts to choose from, the weigher
decides strictly where multiplier / (H - 1) is more than the sum
of the other multipliers; smaller values make topology one
preference among others, 0 switches it off. Aggregate metadata of
the same name overrides it for the hosts of the aggregate.
""",
    ),
    cfg.FloatOpt(
        "hop_byte_weight_multiplier",
        default=100000.0,
        help="""
Multiplier of HopByteWeigher, the recommended one (the exact plan).
The same rules hold as for ``bunch_weight_multiplier``; enable one of
the topology weighers.
""",
    ),
    cfg.FloatOpt(
        "rack_capacity_weight_multiplier",
        default=100000.0,
        help="""
Multiplier of RackCapacityWeigher (the build plan of Gupta et al. 2012).
The same rules hold as for ``bunch_weight_multiplier``; enable one of
the topology weighers.
""",
    ),
    cfg.FloatOpt(
        "mdobp_weight_multiplier",
        default=180.0,
        help="""
Multiplier of MDOBPWeigher (multi-dimensional online bin packing, Gupta
et al. 2013), which chooses among the hosts of a leaf for groups of class
``sync``, and among all hosts for class ``async``.

The default decides before Nova's resource weighers, whose default
multipliers add up to about 8, and after the topology with its default
of 100,000 on up to 500 leaves and 10,000 hosts. 0 switches it off: the
fewest hosts of a leaf are then filled. Aggregate metadata of the same
name overrides it for the hosts of the aggregate.
""",
    ),
    cfg.BoolOpt(
        "mdobp_disk",
        default=False,
        help="""
Whether MDOBPWeigher packs by disk beside vcpus and memory. Turn it on
where VMs have their disks on the hosts and disk is what runs out.
""",
    ),
    cfg.StrOpt(
        "rack_selection",
        default="largest",
        choices=[
            ("largest", "racks by capacity, largest first: the build plan as published"),
            ("best_fit", "the rack or racks with the least capacity left over come first"),
        ],
        help="""
In which order RackCapacityWeigher takes the racks, that is, the leaf
switches. ``largest`` breaks up a large rack for every small group;
``best_fit`` is the remedy that the paper names as future work.
""",
    ),
    cfg.StrOpt(
        "bunch_weight_scale",
        default="rank",
        choices=[
            ("rank", "the dense rank of the hosts: every step is equally large"),
            ("listing1", "the published number, the same for all hosts of a leaf"),
        ],
        help="""
What BunchWeigher hands to Nova. Nova maps the weights of all
hosts to 0..1; the raw number's small steps then drown in other
weighers, ranks keep them apart.
""",
    ),
    cfg.StrOpt(
        "default_app_class",
        default="sync",
        choices=[
            ("extreme", "tightly coupled, on dedicated hosts: packed by leaf"),
            ("sync", "tightly coupled: packed by leaf, little interference"),
            ("async", "loosely coupled: consolidated, not placed by topology"),
            ("none", "not HPC: placed as if hpc_sched were not there"),
        ],
        help="""
The application class of groups whose flavor says nothing (extra
spec ``hpc:app_class``).

As delivered every server group is packed under as few leaf
switches as possible, including groups that were made for
availability. Where such groups exist, give their flavors
``hpc:app_class=none``, or set this option to ``none`` and let HPC
flavors speak up with ``hpc:app_class=sync``.
""",
    ),
    cfg.StrOpt(
        "default_homogeneous",
        default="prefer",
        choices=[
            ("true", "a group that no single processor type can hold is refused"),
            ("prefer", "one processor type where it holds the group, else mixed"),
            ("false", "processor types do not matter"),
        ],
        help="""
What HPCHomogeneityFilter does with groups whose flavor says nothing
(extra spec ``hpc:homogeneous``).

The type of a host is the metadata ``hpc:processor`` of its aggregates,
else the ``processor`` of the topology file, else what its hypervisor
tells of vendor, model, sockets, cores, threads and features.
""",
    ),
    cfg.ListOpt(
        "processor_order",
        default=[],
        help="""
Processor types, best first, separated by commas: a group without
members goes to the first type that can hold it. Types that are not
named follow, those with more cores a host first.
""",
    ),
    cfg.BoolOpt(
        "implicit_groups",
        default=True,
        help="""
Whether the VMs of one request (min_count, max_count) without a
server group are treated as a group.
""",
    ),
    cfg.BoolOpt(
        "allow_user_hints",
        default=False,
        help="""
Whether scheduler hints count beside the flavor's extra specs of
the same name. The flavor is the operator's word and wins; hints
are the user's, who can then take whole hosts with small flavors
(hpc:app_class=extreme) and get out of the limits of cache scores.
""",
    ),
    cfg.FloatOpt(
        "cache_score_limit",
        default=100.0,
        min=0,
        help="""
The most cache score that the VMs of a host may have together for
HPCInterferenceFilter to let another one in: alpha of Gupta et al. 2013. 1
is 100,000 misses of the last-level cache a second; flavors state it as
``hpc:cache_score``, and ``hpc-sched characterise`` measures it.

Aggregate metadata of the same name overrides it for the hosts of the
aggregate, the lowest value where there are several.
""",
    ),
    cfg.FloatOpt(
        "sync_cache_score_limit",
        default=60.0,
        min=0,
        help="""
The same for hosts that have, or are to get, a VM of class ``sync``: beta
of Gupta et al. 2013. Less than ``cache_score_limit``, for one VM that is
slowed down makes all VMs of such an application wait. Aggregate metadata
of the same name overrides it.
""",
    ),
    cfg.StrOpt(
        "interference_file",
        help="""
The interference index of HPCInterferenceFilter: how fast applications run
beside each other on one host, 1 being the speed alone. CSV, or YAML where
the name ends in .yaml or .yml; a row is an application, another one, the
performance of the first beside the second and of the second beside the
first. ``hpc-sched characterise --timings`` writes it. Applications are
those that flavors name in ``hpc:app_name``.

The file is read again when it changes; replace it as a whole, by mv, so
that no half of it is read. One that is missing, empty or wrong stops the
start of nova-scheduler; later the last good one stays in use and the log
names the line that is wrong. Where there are no pairs yet write a comment.
""",
    ),
    cfg.FloatOpt(
        "interference_tolerance",
        default=INTERFERENCE_TOLERANCE,
        min=0,
        max=1,
        help="""
From which loss of performance on, of either of the two, a pair of
applications of the interference index is not put on one host: 0.1 is a
tenth. With 0 every pair that loses anything is kept apart.
""",
    ),
    cfg.IntOpt(
        "in_flight_lookups",
        default=64,
        min=0,
        max=10000,
        help="""
How many VMs of a group, of those being built right now, are looked
up in Placement per request, one call each, and how many of all VMs
where their neighbours matter (HPCDedicatedHostFilter,
HPCInterferenceFilter, class ``extreme``). Of the VMs beyond it,
those that have no instance in a cell yet count as if they had no
place, the others not at all; a new VM of class ``extreme`` is refused
meanwhile, for nobody knows where it would be alone. 0 looks none up and
refuses nothing.
""",
    ),
    cfg.IntOpt(
        "cell_timeout",
        default=5,
        min=1,
        max=600,
        help="""
Seconds that a request waits at most for what it reads at a time in
the cells' databases, in the API database or, of VMs on their way, in
Placement; for all that it reads together it waits twice as long at
most. What has not answered by then is left out with a warning and
left alone for a minute, and the choice falls back to what the
scheduler knows by itself.
""",
    ),
    cfg.StrOpt(
        "decision_log",
        help="""
A file that gets one JSON object a line for every group that is
planned or refused:
the candidates of each leaf, what removed hosts, the plan with its
cost, or why there is none and what would have fitted. None is
written by default.

Every line is one append to the file, opened anew: several workers
may share it, and it may be rotated at any time. Where it cannot be
written lines are lost: one warning says so, a line on INFO when it
is over, and nothing else changes. A pipe is not waited for.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the section's options; may be called again."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def topology_source(conf: cfg.ConfigOpts) -> tuple[str, dict[str, Any]]:
    """Return the name of the topology driver and the options that are set for it."""
    ours = conf.hpc_sched
    options: dict[str, Any] = {
        "path": ours.topology_file,
        "command": ours.topology_command,
        "timeout": ours.topology_command_timeout if ours.topology_command else None,
        "name_map": ours.topology_name_map,
        "host_pattern": ours.topology_host_pattern,
        "tree": ours.topology_name,
    }
    return ours.topology_driver, {name: value for name, value in options.items() if value}


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option of the section once, so that a wrong value stops the start.

    oslo.config judges a value of a file when it is first used, which may be hours later.

    :raises ValueError: naming the option, its value and what was expected
    """
    for opt in OPTS:
        value = getattr(conf.hpc_sched, opt.dest)
        if isinstance(value, float) and not math.isfinite(value):
            raise exceptions.ConfigError(
                f"[hpc_sched] {opt.dest} = {value}: expected a finite number"
            )
    pattern = conf.hpc_sched.topology_host_pattern
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise exceptions.ConfigError(
            f"[hpc_sched] topology_host_pattern = {pattern}: not a regular expression: {error}"
        ) from error


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator (entry point oslo.config.opts)."""
    return [(GROUP, OPTS)]
