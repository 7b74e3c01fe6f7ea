"""A topology as Slurm's topology.conf, which the driver ``slurm`` reads."""

import itertools
import re
from collections.abc import Mapping, Sequence

from hpc_sched import exceptions
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.slurm.switch_graph import check_name
from hpc_sched.topology.tree import first_free, level_names
from hpc_sched.topology.writers.yaml_writer import check_depth, comment

# Slurm refuses longer names of switches.
MAX_NAME = 64
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")


def text_of(topology: Topology) -> tuple[str, tuple[str, ...]]:
    """Return a file that describes a topology, and a warning for everything it cannot hold.

    Leaves come first, then level after level, each in the order of the description, which matters
    to Slurm. A switch whose name Slurm would refuse is renamed. Members of a switch are a comment.
    Linear in hosts and switches. TopologyError for a host's name or a depth that cannot be written.
    """
    check_depth(topology)
    names = _names_of(topology)
    children = (
        [names[topology.switches[child].name] for child in each] for each in topology.children()
    )
    below = [hosts or each for hosts, each in zip(topology.leaf_hosts(), children, strict=True)]
    lines = []
    by_level = sorted(enumerate(topology.switches), key=lambda each: (each[1].level, each[1].order))
    for s, switch in by_level:
        name = names[switch.name]
        if switch.members:
            lines.append(f"# {name} stands for {comment(hostlist.fold(switch.members))}")
        key = "Nodes" if switch.level == 1 else "Switches"
        try:
            lines.append(f"SwitchName={name} {key}={_listed(below[s])}")
        except ValueError as error:
            raise exceptions.TopologyError(
                f"leaf {switch.name!r}: host cannot be written: {error}"
            ) from error
    return "\n".join(lines) + "\n", tuple(_warnings(topology, names))


def _listed(names: Sequence[str]) -> str:
    # slurmctld before 23.11 ends at a name with text after its brackets.
    text = ",".join(hostlist.written(names, hostlist.fold_endings))
    for name in names:
        check_name(name)
        if '"' in name:
            raise ValueError(f"character '\"' in host name {name!r}")
    return text.replace("\\", "\\\\").replace("#", "\\#")


def _names_of(topology: Topology) -> dict[str, str]:
    given = [switch.name for switch in topology.switches]
    kept = {name for name in given if len(name) <= MAX_NAME and hostlist.PLAIN.match(name)}
    taken = set(kept)
    names = {name: name for name in given}
    for given_name in given:
        if given_name not in kept:
            stem = _OTHERS.sub("-", given_name).strip("-") or "switch"
            endings = itertools.chain([""], (f"-{count}" for count in itertools.count(2)))
            wanted = (stem[: MAX_NAME - len(ending)] + ending for ending in endings)
            names[given_name] = first_free(wanted, taken)
    return names


def _warnings(topology: Topology, names: Mapping[str, str]) -> list[str]:
    renamed = (
        f"switch {old!r} is called {new!r} in the file, for Slurm would not take its name"
        for old, new in names.items()
        if old != new
    )
    has_processors = topology.host_processors or any(one.processor for one in topology.switches)
    has_links = topology.host_links or any(one.links for one in topology.switches)
    left_out = (
        (
            topology.levels != level_names(topology.depth),
            f"names of levels are left out: {', '.join(topology.levels)}",
        ),
        (has_processors, "processor types are left out"),
        (topology.host_ids, "ids of hosts are left out"),
        (topology.oversubscription, "the oversubscription of levels is left out"),
        (has_links, "uplinks and links of hosts are left out"),
    )
    return [*renamed, *(text for is_given, text in left_out if is_given)]
