"""A tree from leaves and the distances between them.

The description of a fabric is a graph: parallel spines, leaves with several parents, and
sometimes no tree at all. The hops of a tree are an ultrametric; here the graph's distances become
the smallest ultrametric that is not below them. On a fat tree they are one already.

Sets of leaves are masks, bit i for leaf i: one machine operation handles 64 leaves.
"""

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import MAX_LEVELS, Details, first_free

NO_IDS: Mapping[str, str] = MappingProxyType({})

# A longer folded list of names is truncated in the name of a node.
MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Leaf:
    """Hosts connected to the same leaf switch, or to the same set of leaf switches."""

    switches: Sequence[str]
    hosts: Sequence[str]
    links: Links | None = None


@dataclass(frozen=True, slots=True)
class Upper:
    """A switch above the leaves."""

    name: str
    level: int
    below: int  # mask of the leaves below it
    links: Links | None = None


def build(
    leaves: Sequence[Leaf],
    near: Sequence[Sequence[int]],
    uppers: Iterable[Upper],
    remarks: Sequence[str] = (),
    incomplete: Sequence[str] = (),
    ids: Mapping[str, str] = NO_IDS,
    host_links: Mapping[str, Cables] | None = None,
) -> Topology:
    """Return the tree of leaves at given distances.

    On each level a cluster of leaves joins the first part, in the order of ``leaves``, all of
    which is near enough. No two parts of a level could be merged further: the ultrametric is
    minimal. For the distances of a tree the order is irrelevant. Switches above with the same
    leaves below are one node. Parts without a connection become islands. O(leaves**2) at worst,
    in steps of 64 leaves; linear on trees.

    :param near: ``near[d - 1][i]`` is the mask of the leaves with at most d switches on the
        path from a host below leaf i, itself included
    :param uppers: the switches above, which give the nodes of the tree their names
    :param incomplete: as ``Topology.from_tree`` takes it
    :param ids: switch name to its id
    :param host_links: as ``Topology.from_tree`` takes them
    :raises exceptions.TopologyError: for more than ``MAX_LEVELS`` levels
    """
    by_level = by_key((upper.level, upper) for upper in uppers)
    # Different leaves with a switch in common are 1 switch apart.
    apart = any(mask != 1 << i for i, mask in enumerate(near[-1]))
    highest = max([len(near) // 2 + 1, 2 if apart else 1, *by_level])
    if highest > MAX_LEVELS:
        raise exceptions.TopologyError(
            f"{highest} levels of switches, {MAX_LEVELS} at most: there is no tree to be seen"
        )
    builder = _Builder(leaves, ids)
    worst = _Rounding()
    for level in range(2, highest + 1):
        within = near[min(2 * level - 1, len(near)) - 1]
        parts = _merged([cluster.leaves for cluster in builder.clusters], within)
        for children in parts:
            if len(children) > 1:
                joined = [builder.clusters[i].leaves for i in children]
                worst = _worse(worst, 2 * level - 1, joined, near)
        builder.join(level, parts, by_level.get(level, []))
    found = list(remarks)
    if worst.hops > worst.switches:
        a, b = (name_of(leaves[i].switches) for i in worst.pair)
        found.append(
            "the fabric is no tree: distances are rounded up to one, at worst from "
            f"{worst.switches} to {worst.hops} switches, between {a} and {b}"
        )
    return Topology.from_tree(
        {cluster.name: cluster.below for cluster in builder.clusters},
        details=Details(members=builder.members, links=builder.links, ids=builder.ids),
        remarks=[*found, *_split(builder.clusters, leaves, near)],
        incomplete=incomplete,
        host_links=host_links,
    )


class _Rounding(NamedTuple):
    """Two leaves, their hops in the tree, and the switches between them in the graph."""

    hops: int = 0
    switches: int = 0
    pair: tuple[int, int] = (0, 0)


def _worse(
    worst: _Rounding, hops: int, joined: Sequence[int], near: Sequence[Sequence[int]]
) -> _Rounding:
    """Return the pair of leaves whose distance is rounded up most, of one and ``joined`` ones."""
    together = union(joined)
    # Only pairs with a larger difference than the worst so far.
    for switches in range(1, hops - (worst.hops - worst.switches)):
        within = near[min(switches, len(near)) - 1]
        for cluster in joined:
            others = together & ~cluster
            for leaf in bits(cluster):
                if met := within[leaf] & others:
                    return _Rounding(hops, switches, (leaf, next(bits(met))))
    return worst


def _split(
    islands: Sequence["_Cluster"], leaves: Sequence[Leaf], near: Sequence[Sequence[int]]
) -> Iterator[str]:
    """Yield a remark if leaves that reach each other, over several rails, are different islands."""
    for island in islands:
        for leaf in bits(island.leaves):
            if others := near[-1][leaf] & ~island.leaves:
                other = next(bits(others))
                switches = next(d for d, row in enumerate(near, 1) if row[leaf] >> other & 1)
                a, b = name_of(leaves[leaf].switches), name_of(leaves[other].switches)
                yield (
                    f"the fabric is no tree: {a} and {b} are {plurals.text(switches, 'switch')} "
                    "apart and on different islands, for not all that reach the one reach the other"
                )
                return


@dataclass(slots=True)
class _Cluster:
    leaves: int  # mask of those below one node of the tree
    name: str
    height: int
    below: Any  # as Topology.from_tree takes it


@dataclass
class _Builder:
    """The clusters of the highest level so far, and attributes of the nodes of all levels."""

    given: Sequence[Leaf]
    id_of: Mapping[str, str]
    clusters: list[_Cluster] = field(default_factory=list)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    links: dict[str, Links] = field(default_factory=dict)
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for i, leaf in enumerate(self.given):
            name = self._named(leaf.switches, leaf.links)
            self.clusters.append(_Cluster(1 << i, name, 1, list(leaf.hosts)))

    def join(self, level: int, parts: Sequence[Sequence[int]], uppers: Sequence[Upper]) -> None:
        """Merge clusters into the nodes of a level."""
        joined = []
        exact = by_key((upper.below, upper) for upper in uppers)
        # Their positions, by the first leaf below.
        by_first = by_key(
            ((upper.below & -upper.below).bit_length() - 1, i) for i, upper in enumerate(uppers)
        )
        for part in parts:
            children = [self.clusters[i] for i in part]
            leaves = union(child.leaves for child in children)
            same = exact.get(leaves, [])
            if len(children) == 1 and not same:
                joined.append(children[0])
                continue
            if not same:
                # No switch has exactly these leaves below: take those that connect some of them.
                within = sorted(i for leaf in bits(leaves) for i in by_first.get(leaf, ()))
                same = [
                    uppers[i]
                    for i in within
                    if not uppers[i].below & ~leaves
                    and all(uppers[i].below & ~child.leaves for child in children)
                ]
            unnamed = f"{name_of(self.given[next(bits(leaves))].switches)}-level{level}"
            known = [upper.links for upper in same if upper.links is not None]
            total = Links.total(known) if known else None
            if max(child.height for child in children) < level - 1:
                children = [self._padded(child, level - 1) for child in children]
            name = self._named([upper.name for upper in same] or [unnamed], total)
            below = {child.name: child.below for child in children}
            joined.append(_Cluster(leaves, name, level, below))
        self.clusters = joined

    def _padded(self, cluster: _Cluster, height: int) -> _Cluster:
        """Return a cluster below nodes that are no switches: what leaves it leaves them too."""
        links = self.links.get(cluster.name)
        through = links and Links(links.up, links.uplinks)
        for level in range(cluster.height + 1, height + 1):
            name = self._named([f"{cluster.name}-level{level}"], through)
            cluster = _Cluster(cluster.leaves, name, level, {cluster.name: cluster.below})
        return cluster

    def _named(self, switches: Sequence[str], links: Links | None) -> str:
        """Return a unique name of a new node, and keep its members, ids and links."""
        wanted = name_of(switches)
        numbered = (f"{wanted}#{count}" for count in itertools.count(2))
        name = first_free(itertools.chain([wanted], numbered), self.names)
        if len(switches) > 1:
            self.members[name] = tuple(sorted(switches))
        if ids := tuple(self.id_of[one] for one in sorted(switches) if one in self.id_of):
            self.ids[name] = ids
        if links is not None:
            self.links[name] = links
        return name


def name_of(switches: Sequence[str]) -> str:
    """Return the name of a node that is one switch or several."""
    if len(switches) == 1:
        return switches[0]
    folded = hostlist.fold(switches)
    return folded if len(folded) <= MAX_NAME else f"{min(switches)}+{len(switches) - 1}"


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of a mask, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def union(masks: Iterable[int]) -> int:
    """Return the union of masks."""
    return functools.reduce(operator.or_, masks, 0)


def _merged(clusters: Sequence[int], within: Sequence[int]) -> list[list[int]]:
    """Return the indices of clusters that join: each the first part all of which is near it."""
    parts: list[list[int]] = []
    members: list[int] = []  # per part: mask of its leaves
    common: list[int] = []  # per part: mask of the leaves that are near all of its members
    by_common: dict[int, int] = {}
    part_of: dict[int, int] = {}  # by leaf
    for i, cluster in enumerate(clusters):
        near_all = functools.reduce(operator.and_, (within[leaf] for leaf in bits(cluster)))
        # On a tree all members of a part are near the same leaves.
        tried = [by_common[near_all]] if near_all in by_common else []
        others: Iterable[int] = range(len(parts))
        neighbours = near_all & ~cluster
        if neighbours.bit_count() < len(parts):
            # A part fits only if all of it is near: only the parts of these leaves can.
            others = sorted({part_of[leaf] for leaf in bits(neighbours) if leaf in part_of})
        for part in itertools.chain(tried, others):
            if not cluster & ~common[part] and not members[part] & ~near_all:
                break
        else:
            part = len(parts)
            parts.append([])
            members.append(0)
            common.append(-1)
        parts[part].append(i)
        members[part] |= cluster
        common[part] &= near_all
        by_common[common[part]] = part
        part_of |= dict.fromkeys(bits(cluster), part)
    return parts
