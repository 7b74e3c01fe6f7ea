"""Hosts of the cloud that the description of the fabric does not name."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpc_sched.topology.tree import Switch, level_names, read_only


class Extended(NamedTuple):
    """The parts of a topology that change with the hosts, as the topology has them."""

    switches: tuple[Switch, ...]
    levels: tuple[str, ...]
    groups: NDArray[np.int64]  # shape (depth, hosts)


def extended(before: Extended, names: Sequence[str]) -> Extended:
    """Return the parts with more hosts, each a leaf of its own directly below the root.

    Every one is an island where there are several islands. O(hosts * depth).

    :param names: of hosts that the topology does not have, sorted
    """
    switches, levels, groups = list(before.switches), before.levels, before.groups
    taken = {switch.name for switch in switches}
    roots = [s for s, switch in enumerate(switches) if switch.parent < 0]
    root = roots[0] if len(roots) == 1 else -1
    if root >= 0 and switches[root].level == 1:
        # One leaf is the whole fabric: a new root connects it with the new leaves.
        switches[root] = replace(switches[root], parent=len(switches))
        root = len(switches)
        switches.append(Switch(_free_name("root", taken), 2, -1))
        taken.add(switches[root].name)
        groups = np.vstack([groups, np.full((1, groups.shape[1]), root)])
        levels = level_names(2, levels)
    first = len(switches)
    for name in names:
        leaf = _free_name(name, taken)
        taken.add(leaf)
        switches.append(Switch(leaf, 1, root))
    columns = np.tile(np.arange(first, len(switches)), (groups.shape[0], 1))
    if root >= 0:
        columns[switches[root].level - 1 :] = root
    return Extended(tuple(switches), levels, read_only(np.hstack([groups, columns])))


def _free_name(wanted: str, taken: Container[str]) -> str:
    """Return the wanted switch name, with quotes appended until no other switch has it."""
    while wanted in taken:
        wanted += "'"
    return wanted
