"""The options of nova.conf's section [hpc_sched]. Nothing registers at import."""

import math
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg, types

from hpc_sched import exceptions
from hpc_sched.configuration import topology_options
from hpc_sched.configuration.option_value import value_of
from hpc_sched.core.fragmentation import rates
from hpc_sched.core.logged.decision_summary import ACTIVE, SHADOW
from hpc_sched.core.plan.objective import TRADEOFF
from hpc_sched.core.processors import processor_speeds as speeds
from hpc_sched.topology.readers import driver_options

GROUP = cfg.OptGroup(
    "hpc_sched",
    title="Topology-aware placement of groups of HPC VMs",
    help="Options of the out-of-tree filters and weighers of hpc_sched, read by nova-scheduler.",
)

INTERFERENCE_TOLERANCE = 0.1

_OVERRIDE = "Aggregate metadata of the same name overrides it for the hosts of the aggregate."


class RatesType(types.ConfigType):
    """The rates of the fragmentation price, as a list of two numbers."""

    def __init__(self) -> None:
        super().__init__(type_name=rates.FORM)

    def __call__(self, value: Any) -> list[float]:
        """Return the rates of a text, or of a list as a snapshot has it."""
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return rates.read(text).as_list()

    def __repr__(self) -> str:
        return rates.FORM

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RatesType)

    def _formatter(self, value: Any) -> str:
        return str(rates.rates_of(*value))


class SpeedsType(types.ConfigType):
    """``TYPE=NUMBER,...`` as a mapping. oslo.config's Dict has nan, and no type with a colon."""

    def __init__(self) -> None:
        super().__init__(type_name=speeds.FORM)

    def __call__(self, value: Any) -> dict[str, float]:
        """Return the speeds of a text, or of a mapping, by name."""
        return speeds.checked(value) if isinstance(value, dict) else speeds.read(value)

    def __repr__(self) -> str:
        return speeds.FORM

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpeedsType)

    def _formatter(self, value: Any) -> str:
        return ",".join(f"{name}={number}" for name, number in value.items())


OPTS = [
    cfg.StrOpt(
        "mode",
        default=ACTIVE,
        choices=[
            (ACTIVE, "filters, weighers and gang claims place the VMs of groups"),
            (SHADOW, "Nova places all VMs as without hpc_sched, and each plan is logged"),
        ],
        help="Whether hpc_sched places VMs. With ``shadow`` its filters let all hosts pass, its "
        "weighers return no weights and nothing is claimed: every request gets what stock Nova "
        "gives it. For the first VM of each request the plan is made all the same, and "
        "``decision_log`` gets what would have been planned or refused, and where Nova has placed "
        "the VMs. ``hpc-sched report shadow`` compares the two.\n\n"
        "In this mode nova-scheduler starts even if topology, interference index or another option "
        "of this section is missing or wrong. Such an error is logged, and a topology is loaded "
        "once it is right.",
    ),
    *topology_options.OPTS,
    cfg.FloatOpt(
        "bunch_weight_multiplier",
        default=100000.0,
        help="Multiplier of BunchWeigher (Listing 1 of Dudina et al. 2013). Enable one topology "
        "weigher only.\n\n"
        "With the default, topology decides for groups before Nova's resource weighers, whose "
        "default multipliers add up to about 8, on up to 10,000 hosts; Nova's 1,000,000 for build "
        "failures and cross-cell moves still decides first. With H candidate hosts the weigher "
        "decides strictly if multiplier / (H - 1) exceeds the sum of the other multipliers; "
        f"smaller values weigh topology against them, 0 disables it. {_OVERRIDE}",
    ),
    cfg.FloatOpt(
        "hop_byte_weight_multiplier",
        default=100000.0,
        help="Multiplier of HopByteWeigher (the exact plan), the recommended topology weigher. "
        "Choose it like ``bunch_weight_multiplier``.",
    ),
    cfg.FloatOpt(
        "rack_capacity_weight_multiplier",
        default=100000.0,
        help="Multiplier of RackCapacityWeigher (the build plan of Gupta et al. 2012). Choose it "
        "like ``bunch_weight_multiplier``.",
    ),
    cfg.FloatOpt(
        "mdobp_weight_multiplier",
        default=180.0,
        help="Multiplier of MDOBPWeigher (multi-dimensional online bin packing, Gupta et al. "
        "2013), which chooses among the hosts of a leaf for groups of class ``sync``, and among "
        "all hosts for other VMs of the classes in ``mdobp_classes``.\n\n"
        "With the default it decides before Nova's resource weighers, whose default multipliers "
        "add up to about 8, and after the topology with its default of 100,000, on up to 500 "
        "leaves and 10,000 hosts. 0 disables it: the fewest hosts of a leaf are then filled. "
        f"{_OVERRIDE}",
    ),
    cfg.FloatOpt(
        "whole_leaf_weight_multiplier",
        default=0.0,
        help="Multiplier of WholeLeafWeigher, which places VMs without a group that are not HPC: "
        "first on broken leaf switches and pods, those that have VMs and the least room, so that "
        "whole ones stay free for groups; in a leaf on the fullest host. With the default of 0 it "
        "is off.\n\n"
        "Set it to 100000 to have it decide before Nova's resource weighers, which spread VMs, on "
        "up to 10,000 hosts; with 1 these undo most of it. VMs that must not share a host or a "
        "leaf need a server group with a policy: without one, the VMs of a request share hosts. "
        f"{_OVERRIDE}",
    ),
    cfg.ListOpt(
        "mdobp_classes",
        default=["sync", "async"],
        item_type=types.String(choices=["sync", "async", "none"]),
        help="Application classes that MDOBPWeigher places, separated by commas.\n\n"
        "* ``sync``: inside the leaves of the plan; if left out, the\n"
        "  fewest hosts of a leaf are filled\n"
        "* ``async``: on any host; if left out, by Nova's weighers\n"
        "* ``none``: not HPC, on any host; if left out, as without\n"
        "  hpc_sched\n\n"
        "Single VMs without a server group are placed too, on any host. Such a VM is of the class "
        "that its flavor names, else of class ``none``. Class ``extreme`` has dedicated hosts.\n\n"
        "Gupta et al. 2013 pack class ``none`` too. Nova's weighers, which spread such VMs, then "
        "hardly count, and each request reads the VMs on all hosts, as with "
        "HPCInterferenceFilter.",
    ),
    cfg.BoolOpt(
        "mdobp_disk",
        default=False,
        help="If true, MDOBPWeigher packs by disk too, not only by vcpus and memory. Enable it "
        "where VMs have their disks on the hosts and disk runs out first.",
    ),
    cfg.StrOpt(
        "rack_selection",
        default="largest",
        choices=[
            ("largest", "by capacity, largest rack first: the build plan as published"),
            ("best_fit", "by the capacity left over, least first"),
        ],
        help="Order in which RackCapacityWeigher takes racks, that is, leaf switches. ``largest`` "
        "breaks up a large rack for every small group; the paper names ``best_fit`` as future "
        "work.",
    ),
    cfg.StrOpt(
        "bunch_weight_scale",
        default="rank",
        choices=[
            ("rank", "dense rank of the hosts: all steps have the same size"),
            ("listing1", "the published number, the same for all hosts of a leaf"),
        ],
        help="Weight that BunchWeigher returns. Nova scales the weights of all hosts to 0..1: "
        "small steps of the published number then count less than other weighers, ranks do not.",
    ),
    cfg.StrOpt(
        "default_app_class",
        default="sync",
        choices=[
            ("extreme", "tightly coupled, on dedicated hosts: packed by leaf"),
            ("sync", "tightly coupled: packed by leaf, little interference"),
            ("async", "loosely coupled: consolidated, not placed by topology"),
            ("none", "not HPC: placed as without hpc_sched, see ``mdobp_classes``"),
        ],
        help="Application class of groups whose flavor has no extra spec ``hpc:app_class``.\n\n"
        "With the default every server group is packed under as few leaf switches as possible, "
        "even one that was created for availability. If there are such groups, give their flavors "
        "``hpc:app_class=none``, or set this option to ``none`` and give HPC flavors "
        "``hpc:app_class=sync``.",
    ),
    cfg.StrOpt(
        "default_homogeneous",
        default="prefer",
        choices=[
            ("true", "a group that no single processor type can hold is refused"),
            ("prefer", "one processor type as long as it can hold the group, else mixed"),
            ("false", "processor types are ignored"),
        ],
        help="Effect of HPCHomogeneityFilter on groups whose flavor has no extra spec "
        "``hpc:homogeneous``.\n\n"
        "The processor type of a host is the metadata ``hpc:processor`` of its aggregates, else "
        "the ``processor`` of the topology file, else vendor, model, sockets, cores, threads and "
        "features as its hypervisor reports them.",
    ),
    cfg.ListOpt(
        "processor_order",
        default=[],
        help="Processor types, best first, separated by commas. A group without members is placed "
        "on the first type that can hold it. Other types follow: those with a speed in "
        "``processor_speeds``, fastest first, then the rest, those with more cores per host first. "
        "A name without features holds for all types of that model. A name with features "
        "(``Intel Icelake 2x32x2 +avx512f``) that is not the exact name of a type holds for those "
        "of the model that have them all.",
    ),
    cfg.Opt(
        "processor_speeds",
        type=SpeedsType(),
        default={},
        help="Speed of processor types: ``TYPE=NUMBER``, separated by commas, as in ``Intel "
        "Icelake-Server 2x32x2=2600, Intel Broadwell 2x14x2=2400``. Any figure above 0 that is "
        "greater for the better type, in one unit for all of them: clock frequency (Gupta et al. "
        "2012), MIPS, or the result of a benchmark on one VM of each type. A group without members "
        "is placed on the fastest type that can hold it, unless ``processor_order`` names another "
        "one. Types without a speed follow those with one.\n\n"
        "Names hold as in ``processor_order``; of several names that hold for a type its own one "
        "counts, else the one with most features, of these the fastest. A name cannot contain a "
        "comma. nova-scheduler does not start if an entry is wrong.",
    ),
    cfg.BoolOpt(
        "implicit_groups",
        default=False,
        help="If true, the VMs of every request for several (min_count, max_count) without a "
        "server group are placed as a group. If false, only where their flavor names an "
        "``hpc:app_class`` other than ``none``.\n\n"
        "A group without a server group has no policy: its VMs share as few hosts as hold them. "
        "With true and ``default_app_class = sync`` that applies to any tenant's sixteen web "
        "servers.",
    ),
    cfg.StrOpt(
        "relax_moves",
        default="never",
        mutable=True,
        choices=[
            ("never", "the guarantees of a group hold on moves too"),
            ("named_host", "they do not hold for moves to a host that was named"),
            ("always", "they hold for new VMs only"),
        ],
        help="Moves (resize, migration, evacuation, unshelving) for which the guarantees of a "
        "group (``hpc:require``, ``hpc:max_leaves``, ``hpc:min_leaves``, ``hpc:segment``, "
        "``hpc:balance=true``, ``hpc:homogeneous=true``) become preferences. A move is then never "
        "refused because of them. Dedicated hosts and the limits of interference hold all the "
        "same, for they protect other VMs too.\n\n"
        "Whatever it is, the members on hosts that are down or disabled do not keep a VM from "
        "moving: the group is evacuated to where most of it can follow.",
    ),
    cfg.BoolOpt(
        "gather_groups",
        default=False,
        help="If true, the next VM of a group that is apart, created or moved, starts where the "
        "whole group can go: rolling replacement then brings the group together again. If false, "
        "it starts where it costs the least Hop-Byte next to the members.\n\n"
        "A group is apart if it is not under one switch of the level of ``hpc:prefer``, without it "
        "of the leaves, or cannot stay so with the new VM. Among the switches of that level that "
        "can hold the group, that of the most VMs is chosen, of equal ones that of the youngest "
        "member. The group has ``hpc:group_size`` VMs, without that the number before the new VM, "
        "which may replace one. If no switch can hold it, or the constraints permit none, the VM "
        "is placed as without the option: nothing is refused for it. No VM moves unless it is "
        "moved. HopByteWeigher follows the option, the other topology weighers do not.",
    ),
    cfg.Opt(
        "fragmentation_price",
        type=RatesType(),
        default=rates.DEFAULT.as_list(),
        mutable=True,
        help="What a plan pays, in addition to its Hop-Byte, for free slots that it leaves on leaf "
        "switches that it uses, and on switches of the level above: two numbers, or 0. With 0 "
        "each plan is best for its group alone, and prefers the emptiest switches: the next group "
        "finds no whole ones. With a price plans use broken leaves and pods, and groups have less "
        "Hop-Byte in the mean.\n\n"
        "A plan of n VMs that uses a switch pays n^2 times the number for the part of the switch "
        "that it leaves free, in hops: all its slots are those of the largest empty switch of the "
        "level. For a level that the group requires the number is 500 times as high, and 1000 at "
        "most. Where a host takes several VMs of a group, the second number is 0, and the first "
        "one 6 times as high in a full cloud, and lower by the fourth power of the share of slots "
        "in use; a group that fits on one empty host pays nothing. "
        "``hpc-sched explain`` shows what a plan costs above its own least. The price does not "
        "count for groups with an ``hpc:objective`` or with policy ``affinity``, nor for a policy "
        "on compute services of many nodes.",
    ),
    cfg.FloatOpt(
        "bottleneck_tradeoff",
        default=float(TRADEOFF),
        min=0,
        max=1e6,
        mutable=True,
        help="How much more harm a plan of ``hpc:objective=bottleneck`` may do to others than the "
        "plan of least Hop-Byte, as a part of what that one does. Harm is the sum over switches of "
        "what the group sends through the uplinks of each, by their capacity. With 0.3 it is at "
        "most 1.3 times that of the plan of least Hop-Byte; with 0 no more, and 1000000 is "
        "hardly a bound. A larger number lets such groups run faster on oversubscribed fabrics, "
        "and slows their neighbours more.",
    ),
    cfg.BoolOpt(
        "allow_user_hints",
        default=False,
        help="If true, scheduler hints count like extra specs of the same name; the flavor's extra "
        "specs take precedence. Users can then occupy whole hosts with small flavors "
        "(hpc:app_class=extreme) and evade the limits of cache scores.",
    ),
    cfg.FloatOpt(
        "cache_score_limit",
        default=100.0,
        min=0,
        help="Maximum sum of the cache scores of the VMs of a host, for HPCInterferenceFilter: "
        "alpha of Gupta et al. 2013. A score of 1 is 100,000 misses of the last-level cache per "
        "second; flavors state it as ``hpc:cache_score``, and ``hpc-sched characterise`` measures "
        f"it.\n\n{_OVERRIDE} The lowest value of several aggregates counts.",
    ),
    cfg.FloatOpt(
        "sync_cache_score_limit",
        default=60.0,
        min=0,
        help="The same for hosts that have, or would get, a VM of class ``sync``: beta of Gupta et "
        "al. 2013. Set it lower than ``cache_score_limit``: one slow VM delays all VMs of such an "
        f"application. {_OVERRIDE}",
    ),
    cfg.StrOpt(
        "interference_file",
        help="File with the interference index of HPCInterferenceFilter and MDOBPWeigher: the "
        "performance of applications that share a host, 1 being that alone on the host. CSV, or "
        "YAML if the name ends in .yaml or .yml. A row has two applications, the performance of "
        "the first with the second, and of the second with the first. ``hpc-sched characterise "
        "--timings`` writes it. Flavors name their application as ``hpc:app_name``.\n\n"
        "HPCInterferenceFilter keeps pairs apart of which one loses. MDOBPWeigher places VMs on "
        "hosts with applications of others with which one of the pair runs faster and none "
        "slower: inside the leaf, before it looks at free resources.\n\n"
        f"{driver_options.REPLACE}"
        "nova-scheduler does not start if it is missing, empty or wrong; later the last good "
        "index stays in use, and the log names the wrong line. A file without pairs needs a "
        "comment.",
    ),
    cfg.FloatOpt(
        "interference_tolerance",
        default=INTERFERENCE_TOLERANCE,
        min=0,
        max=1,
        help="Loss of performance from which two applications of the interference index do not "
        "share a host, if either of them loses that much. 0.1 is a tenth; with 0 every pair with "
        "a loss is kept apart. Smaller changes count as none, gains too: measured times scatter.",
    ),
    cfg.StrOpt(
        "pattern_directory",
        mutable=True,
        help="Directory with files NAME.csv, to which flavors refer as "
        "``hpc:pattern=matrix:NAME``: n rows of n numbers for a group of n VMs, what the VM of the "
        "row sends to that of the column, relative to each other. A file is at most 10 MB long and "
        "is read for each request that names it. If it is missing or wrong, or the group has "
        "another size, the group is planned as if all its VMs sent the same to all others. The "
        "digests of schedulers do not cover these files: they must be the same for all.",
    ),
    cfg.StrOpt(
        "unknown_instances",
        default="closed_for_extreme",
        mutable=True,
        choices=[
            ("closed_for_extreme", "only a new VM of class ``extreme`` keeps away from them"),
            ("closed", "no new VM gets a host with such VMs"),
            ("open", "they count as VMs of class ``none``"),
        ],
        help="Effect of running VMs whose application is not known, for HPCDedicatedHostFilter "
        "and HPCInterferenceFilter: a database does not answer, and they were created since it "
        "was read last. As long as that lasts, ``closed`` refuses VMs that have nothing to do "
        "with HPC, ``open`` lets VMs of others onto dedicated hosts. A move is never refused for "
        "it.",
    ),
    cfg.IntOpt(
        "in_flight_lookups",
        default=64,
        min=0,
        max=10000,
        help="Maximum number of VMs being built that are looked up in Placement per request, one "
        "call each: among the members of a group, and again among all VMs if their neighbours "
        "matter (HPCDedicatedHostFilter, HPCInterferenceFilter, class ``extreme``).\n\n"
        "VMs beyond the limit count as unplaced if they have no instance in a cell yet, else not "
        "at all. A new VM of class ``extreme`` is refused meanwhile, because exclusive hosts "
        "cannot be verified. 0 disables look-ups and these refusals.",
    ),
    cfg.IntOpt(
        "cell_timeout",
        default=5,
        min=1,
        max=600,
        help="Time limit of one read of a request from the databases of the cells, the API "
        "database or, for VMs being built, Placement, in seconds; all reads of a request may take "
        "twice as long together. The read of the VMs on all hosts, which many requests share, goes "
        "on as long as rows come or the process is busy, six times as long at most; a scheduler "
        "that has read nothing yet waits for it. A source that exceeds the limit is skipped with a "
        "warning and not read for a minute; the request is placed by what the scheduler has in "
        "memory.",
    ),
    cfg.ListOpt(
        "counting_filters",
        default=[],
        help="Filters of this site whose answer for a host may change as VMs of the same request "
        "are placed there: class names as in ``[filter_scheduler] enabled_filters``, separated by "
        "commas. A group is then planned with the number of VMs that they let a host take. Those "
        "of Nova (IoOpsFilter, NumInstancesFilter, their Aggregate forms, JsonFilter) and classes "
        "derived from them count without being named.\n\n"
        "They are asked about copies of the HostStates of the plan, with more VMs than are there: "
        "the attributes that Nova counts itself are raised (num_instances, num_io_ops, vcpus_used, "
        "free_ram_mb, free_disk_mb, with a server group also instances). A filter must answer by "
        "these and by the RequestSpec alone, and once it has refused a VM, refuse all further "
        "ones. Filters with run_filter_once_per_request are not asked.",
    ),
    cfg.FloatOpt(
        "planning_timeout",
        default=10.0,
        min=0,
        max=3600,
        mutable=True,
        help="Time limit of planning, in seconds, for all plans of a request together; 0: no "
        "limit. After it the request takes the best plan found so far. Such a plan keeps "
        "every guarantee, but others may cost less: one warning per request reports it, and the "
        "decision is recorded as not proven best. No group is refused because the time has passed. "
        "Under anti-affinity on compute services with many nodes, searches for leaves that hold "
        "the group, and for plans, are bounded in steps instead; a refusal without a proof says "
        "so.\n\n"
        "It is a last resort. Most plans on 10,000 hosts take less than 0.5 s of CPU time, and up "
        "to 5 s for large groups whose hpc:max_leaves or hpc:min_leaves excludes the best plan; "
        "ten times that on 100,000 hosts.",
    ),
    cfg.IntOpt(
        "follower_hold_time",
        default=300,
        min=0,
        max=86400,
        mutable=True,
        help="Seconds for which places are held for VMs that follow one of their group: when its "
        "hosts have died, or the group was shelved, they move one by one, by requests of their "
        "own. The first one goes where the rest can follow, and other groups leave their places. "
        "With each of them that moves, at least three quarters of the time are left. Choose it "
        "much longer than it takes until the next one is evacuated or unshelved; starting value: "
        "300. 0: nothing is held.\n\n"
        "The places are held in Placement, on a resource provider of hpc_sched, and for all "
        "schedulers with this option above 0. They do not bind Nova, nor VMs without a group. "
        "``hpc-sched check claims`` lists them.",
    ),
    cfg.BoolOpt(
        "gang_claims",
        default=True,
        mutable=True,
        help="Whether HPCGroupFilter claims all VMs of a request in one transaction of Placement "
        "before Nova claims the first. Plans of other schedulers that are made at the same moment "
        "then find the places taken and are made again, instead of splitting groups or "
        "refusing them.\n\n"
        "Claims are made only where Nova is certain to choose the claimed hosts: with "
        "HPCGroupFilter and HopByteWeigher enabled, hop_byte_weight_multiplier above 0 (also in "
        "metadata of aggregates), host_subset_size at 1 and shuffle_best_same_weighed_hosts "
        "false. Moves and class async are not claimed. What Nova does not use is released. Without "
        "claims HPCRackCapacityFilter keeps all hosts within the constraints of a group, so large "
        "requests take longer.\n\n"
        "Placement keeps its capacities under concurrent claims only if its own option "
        "[placement] allocation_conflict_retry_count is 1. With its default, 10, the hosts of a "
        "claim of several VMs are read after it where other requests are being placed, and the "
        "group is claimed again if they hold more than they have.",
    ),
    cfg.StrOpt(
        "decision_log",
        help="File to which one JSON object a line is appended for every group that is planned or "
        "refused: the candidates of each leaf, the hosts that filters removed, the plan with its "
        "cost, or the reason of the refusal and what would have fitted. By default none is "
        "written.\n\n"
        "Each line is one append to a newly opened file: several workers may share the file, and "
        "it may be rotated at any time. If it cannot be written, lines are lost: one warning "
        "reports it, an INFO line its end. A pipe is never waited for.",
    ),
    cfg.StrOpt(
        "metrics_address",
        sample_default="127.0.0.1:18774",
        help="Address at which nova-scheduler serves metrics for Prometheus: HOST:PORT, or "
        "[IPv6]:PORT. By default there are none. One of the workers serves those of all; when it "
        "ends, another one does. There is neither encryption nor a password: bind to localhost, "
        "or to a network of the operator's own.\n\n"
        "Needs the Python package prometheus_client. What is wrong with the address, the port or "
        "``metrics_directory`` is one ERROR in the log: then there are no metrics, and requests "
        "are served all the same.",
    ),
    cfg.StrOpt(
        "metrics_directory",
        sample_default="$state_path/hpc_sched-metrics",
        help="Directory in which the workers of a nova-scheduler share their metrics, in a folder "
        "with the name of ``metrics_address``. Both are created, and earlier metrics there are "
        "removed at the start. By default hpc_sched-metrics in Nova's ``state_path``. On eventlet "
        "requests wait for writing: it must be on a local disk or, better, in memory, as below "
        "/run.",
    ),
    cfg.BoolOpt(
        "metrics_project",
        default=False,
        help="If true, there is a second metric of decisions, hpc_sched_project_decisions_total, "
        "with the id of the project as a label. Nothing else in the metrics names a tenant. Each "
        "worker shows at most 200 projects, and counts the others as one.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the section's options; may be called again."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def is_shadow(conf: cfg.ConfigOpts) -> bool:
    """True if hpc_sched only logs what it would do; raises ValueError for an invalid mode."""
    return bool(conf.hpc_sched.mode == SHADOW)


def recorded_mode(conf: cfg.ConfigOpts) -> str:
    """Return SHADOW, or an empty string if hpc_sched places VMs or the mode is invalid."""
    try:
        return SHADOW if is_shadow(conf) else ""
    except ValueError:
        return ""


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ValueError for a wrong option, which oslo.config would find at its first use only."""
    for error in errors(conf):
        raise error


def errors(conf: cfg.ConfigOpts) -> Iterator[ValueError]:
    """Yield the errors in the options, one for each wrong option."""
    for opt in OPTS:
        try:
            check_value(opt, value_of(conf, opt.dest))
        except ValueError as error:
            yield error
    try:
        topology_options.check_patterns(conf)
    except ValueError as error:
        yield error
    except cfg.Error:
        pass  # has been yielded above


def number(conf: cfg.ConfigOpts, name: str) -> float:
    """Return an option that is a number; its default if it is invalid."""
    return float(usable(conf, name))


def text(conf: cfg.ConfigOpts, name: str) -> str | None:
    """Return an option that is a text, or None; its default if it is invalid."""
    value = usable(conf, name)
    return None if value is None else str(value)


def flag(conf: cfg.ConfigOpts, name: str) -> bool:
    """True if an option is true, or set; its default if it is invalid."""
    return bool(usable(conf, name))


def processor_speeds(conf: cfg.ConfigOpts) -> dict[str, float]:
    """Return the speeds of processor types; none if an entry is invalid."""
    return dict(usable(conf, "processor_speeds"))


def fragmentation_rates(conf: cfg.ConfigOpts) -> rates.FragmentationRates:
    """Return the rates of the fragmentation price; the default if they are invalid."""
    return rates.rates_of(*usable(conf, "fragmentation_price"))


def uplink_oversubscription(conf: cfg.ConfigOpts) -> dict[str, float]:
    """Return the ratios that hold where a topology states none, by level; none if invalid."""
    return dict(usable(conf, "uplink_oversubscription"))


def usable(conf: cfg.ConfigOpts, name: str) -> Any:
    """Return the value of an option; its default if a reloaded nova.conf has an invalid one.

    It is read where an error would end the request. The reload logs the fault.
    """
    opt = next(opt for opt in OPTS if opt.dest == name)
    try:
        value = conf.hpc_sched[name]
        check_value(opt, value)
    except (ValueError, cfg.Error):
        return opt.default
    return value


def check_value(opt: cfg.Opt, value: Any) -> None:
    """Raise ConfigError for numbers that only oslo.config accepts: empty, ``nan`` and ``inf``."""
    if value is None and opt.default is not None:
        raise exceptions.ConfigError(f"[hpc_sched] {opt.dest} has no value")
    numbers = value.values() if isinstance(value, dict) else (value,)
    if not all(math.isfinite(number) for number in numbers if isinstance(number, float)):
        raise exceptions.ConfigError(f"[hpc_sched] {opt.dest} = {value}: expected a finite number")


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the options for oslo.config's sample generator (entry point oslo.config.opts)."""
    return [(GROUP, [*OPTS, *topology_options.of_other_packages()])]
