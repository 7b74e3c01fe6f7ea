"""The network that the arguments of hpc-sched simulate describe."""

import argparse
from collections.abc import Mapping
from dataclasses import replace

from hpc_sched import exceptions
from hpc_sched.cli.simulate import default_run
from hpc_sched.sim import named_values
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs import communication
from hpc_sched.sim.jobs.communication import Communications
from hpc_sched.sim.network.links import fat_tree, of_description
from hpc_sched.sim.network.neighbours.job_speeds import LINKS, JobNetwork
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.snapshot_model import Snapshot
from hpc_sched.topology.capacities import LinkDefaults, states_links, with_ratios
from hpc_sched.topology.compare import lint, uplinks
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.yaml_links import MOST_RATIO

RATIO_FORM = "LEVEL=RATIO,..."
# Of a host's link: 10 Gb/s in bytes/s, and s. Only what depends on latencies depends on the rate.
_HOST_RATE, _HOST_LATENCY = 1.25e9, 1e-6
# Options that say more of a network, by the name that argparse gives them.
_MORE = ("communication", "oversubscription", "network_detail")

_DETAILS = {
    "links": "a step takes as long as its slowest link",
    "steps": "shares are computed anew whenever a message of a step ends",
    "replay": "every message for itself",
}


def communications_of(args: argparse.Namespace) -> Communications | None:
    """Return how jobs communicate, or None if no argument says that they do.

    :raises exceptions.SimulationError: for arguments that do not go together, or a file that
        cannot be read
    """
    patterns = default_run.patterns(args)
    if patterns is None and args.network_file is None:
        for name in _MORE:
            if getattr(args, name) is not None:
                raise exceptions.SimulationError(
                    f"--{name.replace('_', '-')} is of a network: expected --network too"
                )
        return None
    if args.hop_factors is not None or args.calibrate is not None:
        raise exceptions.SimulationError(
            "--network computes what --hop-factors and --calibrate state: expected the one or the "
            "others"
        )
    if args.network_file is not None:
        if args.communication is not None:
            raise exceptions.SimulationError("--communication is in the file of --network-file")
        return communication.read_file(args.network_file)
    assert patterns is not None
    return Communications(patterns, default_run.shares(args))


def link_defaults(
    snapshot: Snapshot | None, topology: Topology, fabric: FatTree | None
) -> LinkDefaults:
    """Return what links have that the topology does not state: of the snapshot's options, or as
    the ports of a generated fabric have it.

    :param fabric: the generated one, or None
    """
    if snapshot is not None:
        links = nova_options.objective_options(snapshot).links
        ratios = links.oversubscription
        known = {level: ratios[level] for level in topology.levels if level in ratios}
        return replace(links, oversubscription=known)
    if fabric is None or fabric.down_to_up is None:
        return LinkDefaults()
    return LinkDefaults(dict.fromkeys(topology.levels[:-1] or topology.levels, fabric.down_to_up))


def job_network(
    args: argparse.Namespace,
    communications: Communications | None,
    topology: Topology,
    defaults: LinkDefaults,
) -> tuple[JobNetwork | None, tuple[str, ...]]:
    """Return the network, or None if jobs do not communicate, and notes.

    Of each level the ratio of the argument holds, else the uplinks or the ratio of the topology,
    else the default, else 1.

    :param defaults: see :func:`link_defaults`
    :raises exceptions.ConfigError: for an unknown level, or a ratio out of bounds
    """
    if communications is None:
        return None, ()
    below_roots = topology.levels[:-1] or topology.levels
    ratios = {
        **dict.fromkeys(below_roots, 1.0),
        **defaults.oversubscription,
        **topology.oversubscription,
    }
    given: Mapping[str, float] = {}
    if args.oversubscription is not None:
        given = named_values.numbers(
            *(args.oversubscription, "--oversubscription", topology.levels, RATIO_FORM),
            *(1 / MOST_RATIO, MOST_RATIO),
        )
        ratios |= given
    stated = with_ratios(topology, given)
    if states_links(stated):
        ratios |= {**lint.oversubscription(stated), **given}
        links = of_description(stated, defaults, usual_rate=_HOST_RATE, host_latency=_HOST_LATENCY)
    else:
        links = fat_tree(
            topology,
            host_rate=_HOST_RATE,
            oversubscription=[ratios.get(level, 1.0) for level in topology.levels],
            host_latency=_HOST_LATENCY,
        )
    found = JobNetwork(links, args.network_detail or LINKS, ratios)
    if args.network is None and args.network_file is None:
        assumed = f"--network {default_run.NETWORK}, {communications.shares.text} of the runtime"
        return found, (f"jobs communicate by {assumed}: an assumption",)
    # A single root has no uplinks that its ratio could be of.
    has_islands = sum(switch.parent < 0 for switch in topology.switches) > 1
    levels = topology.levels if has_islands else found.levels
    is_slim = any(ratios.get(level, 1.0) > 1 for level in levels)
    # The ratio of a level is that of most of its switches.
    is_slim = is_slim or any((ratio or 1.0) > 1 for ratio in uplinks.ratios(stated))
    return found, () if is_slim else (_EVEN,)


_EVEN = (
    "no level is oversubscribed, so that placements hardly change runtimes: --oversubscription, or "
    "the keys uplinks and oversubscription in a topology file, state the ratios"
)


def text_of(network: JobNetwork, communications: Communications) -> str:
    """Return the network and what jobs communicate in words."""
    ratios: Mapping[str, float] = network.ratios
    links = ", ".join(f"{level} {ratio:g} : 1" for level, ratio in ratios.items())
    if communications.stated_by is not None:
        jobs = f"as stated by {communications.stated_by}"
    else:
        mix = ", ".join(f"{name} {100 * part:g} %" for name, part in communications.patterns.shares)
        jobs = f"{mix}; {communications.shares.text} of the runtime"
    return f"{jobs}; oversubscribed {links}; {_DETAILS[network.detail]}"
