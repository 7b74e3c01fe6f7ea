"""Nested switches read into the parts of a Topology."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions

if TYPE_CHECKING:
    # Few descriptions have links: the module is loaded by what reads, writes or compares them.
    from hpc_sched.topology.links import Links

# No fabric is deeper; recursion over levels is bounded by it.
MAX_LEVELS = 32
DEFAULT_LEVEL_NAMES = ("leaf", "pod", "core")
# The root of the hosts that a description of several islands does not name.
UNNAMED = "unnamed"

# A leaf maps to its hosts, any other switch to the switches below it.
Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: its name, its level (leaf = 1) and the index of the switch above it.

    One node may merge several switches of the fabric, :attr:`members`: the spines of a fat tree,
    or the leaf switches to which the same hosts are connected by several rails.
    """

    name: str
    level: int
    parent: int  # index in Topology.switches, -1 at a root
    processor: str | None = None  # processor type of the hosts below, where it is known
    members: tuple[str, ...] = ()  # the merged switches, where there are several
    links: Links | None = None  # where the description states them
    ids: tuple[str, ...] = ()  # GUIDs, MAC addresses or other ids of the switches in this node
    order: int = 0  # place in the description, where that differs from the order of the tree


@dataclass(frozen=True, slots=True)
class Details:
    """Optional attributes of switches, each by the switch's name."""

    processors: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: Mapping[str, Links] = field(default_factory=dict)
    ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order: Mapping[str, int] = field(default_factory=dict)


def by_name(tree: Tree) -> dict[str, Any]:
    """Return the switches of a nested tree by name: hosts of a leaf, switches below others."""
    found = dict(tree)
    for below in tree.values():
        if isinstance(below, dict):
            found |= by_name(below)
    return found


def first_free(names: Iterable[str], taken: set[str]) -> str:
    """Return the first name that is not taken, which it is then."""
    found = next(name for name in names if name not in taken)
    taken.add(found)
    return found


def unique(name: str, taken: set[str]) -> str:
    """Return a name with quotes after it until it is not taken, which it is then."""
    return first_free((name + "'" * count for count in itertools.count()), taken)


def level_names(depth: int, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Return ``depth`` names of levels, bottom up: the given ones, then the defaults."""
    names = list(given[:depth])
    for number in range(len(names) + 1, depth + 1):
        name = dict(enumerate(DEFAULT_LEVEL_NAMES, 1)).get(number, f"level{number}")
        while name in names:
            name, number = f"level{number}", number + 1
        names.append(name)
    return tuple(names)


def read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an array, made read-only."""
    array.setflags(write=False)
    return array


def name_rank(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the rank of each name in their sorted order. Shape (names,)."""
    return read_only(np.argsort(sorted(range(len(names)), key=names.__getitem__)))


class TreeReader:
    """Collects the switches and hosts of a nested tree, depth first."""

    def __init__(
        self, tree: Tree, heights: Mapping[str, int] | None = None, depth: int = 0
    ) -> None:
        """Read a tree; raises as :meth:`Topology.from_tree` does.

        :param depth: the least depth
        """
        self.parents: dict[str, int] = {}  # switch to the index of the one above, -1 for none
        self.heights: list[int] = []
        self.host_leaf: dict[str, int] = {}  # host to the index of its leaf
        if not isinstance(tree, Mapping) or not tree:
            raise exceptions.TopologyError("the topology names no switch")
        for name, below in tree.items():
            self._add(name, below, -1)
        if heights:
            self._raise_to(heights)
        self.depth = max(*self.heights, depth)

    def levels(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the levels, bottom up; raises as ``from_tree`` does."""
        if given and len(given) != self.depth:
            raise exceptions.TopologyError(
                f"levels: {len(given)} names ({', '.join(given)}) for a tree of depth {self.depth}"
            )
        if len(set(given)) != len(given):
            raise exceptions.TopologyError(f"levels: a name stands twice in {', '.join(given)}")
        return level_names(self.depth, given)

    def switches(self, details: Details) -> tuple[Switch, ...]:
        """Return the switches, depth first."""
        return tuple(
            Switch(
                name,
                level,
                above,
                details.processors.get(name),
                details.members.get(name, ()),
                details.links.get(name),
                details.ids.get(name, ()),
                details.order.get(name, 0),
            )
            for (name, above), level in zip(self.parents.items(), self.heights, strict=True)
        )

    def groups(self) -> NDArray[np.int64]:
        """Return the highest switch of a level or lower above each host. Shape (depth, hosts)."""
        parents, heights = np.array([*self.parents.values()]), np.array(self.heights)
        rows = [np.array([*self.host_leaf.values()])]
        for level in range(2, self.depth + 1):
            above = parents[rows[-1]]
            rows.append(np.where((above >= 0) & (heights[above] <= level), above, rows[-1]))
        return read_only(np.stack(rows))

    def _raise_to(self, heights: Mapping[str, int]) -> None:
        """Set the levels of some switches."""
        if unknown := [name for name in heights if name not in self.parents]:
            raise exceptions.TopologyError(f"switch {unknown[0]!r} has a level, but no place")
        self.heights = [
            heights.get(name, height)
            for name, height in zip(self.parents, self.heights, strict=True)
        ]
        for (name, above), height in zip(self.parents.items(), self.heights, strict=True):
            if height < 1 or (above >= 0 and height >= self.heights[above]):
                raise exceptions.TopologyError(
                    f"switch {name!r} on level {height}: expected less than the switch above it has"
                )

    def _add(self, name: str, below: Any, parent: int) -> int:
        """Add a switch and all below it; return its level."""
        if name in self.parents:
            raise exceptions.TopologyError(f"switch {name!r} stands twice")
        index = len(self.parents)
        self.parents[name] = parent
        self.heights.append(1)
        if isinstance(below, Mapping):
            if not below:
                raise exceptions.TopologyError(f"switch {name!r} has nothing below it")
            self.heights[index] += max(self._add(child, below[child], index) for child in below)
            return self.heights[index]
        if isinstance(below, str) or not isinstance(below, Iterable):
            raise exceptions.TopologyError(
                f"switch {name!r}: expected switches or a list of hosts, found {below!r}"
            )
        hosts = list(below)
        if not hosts:
            raise exceptions.TopologyError(f"leaf {name!r} has no hosts")
        for host in hosts:
            if host in self.host_leaf:
                other = list(self.parents)[self.host_leaf[host]]
                raise exceptions.TopologyError(
                    f"host {host!r} is under leaf {other!r} and leaf {name!r}"
                )
            self.host_leaf[host] = index
        return 1


@dataclass(frozen=True, slots=True)
class Grown:
    """The parts of a topology that more hosts change."""

    switches: tuple[Switch, ...]
    groups: NDArray[np.int64]
    levels: tuple[str, ...]
    unnamed_root: int  # see Topology


def with_leaves(given: Grown, hosts: Sequence[str]) -> Grown:
    """Return the parts with more hosts, see :meth:`Topology.including`."""
    switches, groups, levels = list(given.switches), given.groups, given.levels
    taken = {switch.name for switch in switches}

    def add(wanted: str, level: int, parent: int) -> int:
        """Add a switch with a unique name; return its index."""
        switches.append(Switch(unique(wanted, taken), level, parent))
        return len(switches) - 1

    roots = [s for s, switch in enumerate(switches) if switch.parent < 0]
    root, unnamed_root = roots[0], given.unnamed_root
    if len(groups) == 1:
        # The fabric has only leaves: a root above the new ones is on a level of its own.
        levels = level_names(2, levels)
        groups = np.vstack([groups, groups])
    depth = len(groups)
    if len(roots) > 1:
        if unnamed_root < 0:
            # On the highest level, far above its leaves: the greatest distance is between them.
            unnamed_root = add(UNNAMED, depth, -1)
        root = unnamed_root
    elif switches[root].level == 1:
        # One leaf is the whole fabric: a new root connects it with the new leaves.
        leaf, root = root, add("root", depth, -1)
        switches[leaf] = replace(switches[leaf], parent=root)
        groups[-1] = root
    first = len(switches)
    for host in hosts:
        add(host, 1, root)
    columns = np.tile(np.arange(first, len(switches)), (depth, 1))
    columns[switches[root].level - 1 :] = root
    return Grown(tuple(switches), read_only(np.hstack([groups, columns])), levels, unnamed_root)
