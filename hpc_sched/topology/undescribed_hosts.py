"""Hosts of the cloud that the description of the fabric does not name."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hpc_sched.topology.tree import Switch, level_names, name_rank, read_only

if TYPE_CHECKING:
    from hpc_sched.topology.model import Topology


def added(topology: "Topology", names: Sequence[str]) -> "Topology":
    """Return a topology with more hosts, each a leaf of its own directly below the root.

    Every one is an island where there are several islands. O(hosts * depth).

    :param names: of hosts that the topology does not have, sorted
    """
    switches = list(topology.switches)
    taken = {switch.name: s for s, switch in enumerate(switches)}
    groups = topology.groups
    levels = topology.levels
    roots = [s for s, switch in enumerate(switches) if switch.parent < 0]
    root = roots[0] if len(roots) == 1 else -1
    if root >= 0 and switches[root].level == 1:
        # One leaf is the whole fabric: a new root connects it with the new leaves.
        switches[root] = replace(switches[root], parent=len(switches))
        root = len(switches)
        switches.append(Switch(_free_name("root", taken), 2, -1))
        taken[switches[root].name] = root
        groups = np.vstack([groups, np.full((1, groups.shape[1]), root)])
        levels = level_names(2, levels)
    first = len(switches)
    for name in names:
        leaf = _free_name(name, taken)
        taken[leaf] = len(switches)
        switches.append(Switch(leaf, 1, root))
    columns = np.tile(np.arange(first, len(switches)), (groups.shape[0], 1))
    if root >= 0:
        columns[switches[root].level - 1 :] = root
    hosts = (*topology.hosts, *names)
    return replace(
        topology,
        hosts=hosts,
        switches=tuple(switches),
        levels=levels,
        groups=read_only(np.hstack([groups, columns])),
        name_rank=name_rank(hosts),
        _host_index={host: i for i, host in enumerate(hosts)},
        _switch_index=taken,
    )


def _free_name(wanted: str, taken: Container[str]) -> str:
    """Return the wanted switch name, with quotes appended until no other switch has it."""
    while wanted in taken:
        wanted += "'"
    return wanted
