"""A tree from host aggregates whose metadata name the switches above their hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hpc_sched import exceptions
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import MAX_PROBLEMS
from hpc_sched.topology.tree import DEFAULT_LEVEL_NAMES, MAX_LEVELS, level_names

PREFIX = "hpc:"
LEAF = DEFAULT_LEVEL_NAMES[0]
# A level of this name is the highest one: nothing connects its switches.
ISLAND = "island"
ROOT = "fabric"
# What else metadata and flavors say under the same prefix.
NOT_LEVELS = frozenset(
    {
        "app_class",
        "app_name",
        "cache_score",
        "group_size",
        "homogeneous",
        "max_leaves",
        "prefer",
        "processor",
        "require",
    }
)


class Aggregate(Protocol):
    """A host aggregate, wherever it was read."""

    @property
    def name(self) -> str:
        """Its name, for errors."""

    @property
    def hosts(self) -> Sequence[str]:
        """The service hosts in it."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Its metadata."""


def topology_of(aggregates: Iterable[Aggregate]) -> Topology:
    """Return the fabric that aggregates describe; linear in their hosts.

    ``hpc:leaf`` names the leaf switch of an aggregate's hosts, ``hpc:pod`` or any other name the
    switch above it on that level; an aggregate may say one of them or several. ``leaf`` is the
    lowest level. Of the others a level is above another where one of its switches has hosts of
    several switches of the other; else the one with more switches is lower. A host with a switch
    above but no leaf is a leaf of its own. Above several switches of the highest level there is one
    more, unless that level is called ``island``.

    :raises exceptions.TopologyError: where no aggregate names a leaf or another level, or they
        contradict each other: with every host or switch that is in two places
    """
    reader = _Reader()
    for aggregate in sorted(aggregates, key=lambda one: one.name):
        reader.take(aggregate)
    return reader.topology()


# A switch by level, 0 for leaves, and name; a host that is its own leaf stands on level -1.
_Node = tuple[int, str]
_ALONE = -1


@dataclass(frozen=True, slots=True)
class _Saying:
    """What an aggregate says of a host: its switch on some level."""

    switch: str
    aggregate: str


@dataclass
class _Reader:
    """What the aggregates say."""

    said: dict[str, dict[str, _Saying]] = field(default_factory=dict)  # level, host
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def take(self, aggregate: Aggregate) -> None:
        """Note what one aggregate says of its hosts."""
        for key in sorted(aggregate.metadata):
            level = key.removeprefix(PREFIX)
            switch = str(aggregate.metadata[key]).strip()
            if level == key or level in NOT_LEVELS or not aggregate.hosts:
                continue
            if not level or not switch:
                missing = "the name of a switch" if level else "the name of a level"
                self._problem(f"aggregate {aggregate.name!r}: {key}: expected {missing}")
                continue
            saying = _Saying(switch, aggregate.name)
            sayings = self.said.setdefault(level, {})
            for host in sorted(aggregate.hosts):
                self._agree(sayings.setdefault(host, saying), saying, f"host {host!r}", level)

    def topology(self) -> Topology:
        """Return the tree of what was said."""
        levels = self._levels()
        if not self.said and not self.problems:
            raise exceptions.TopologyError(
                f"no host aggregate with hosts has metadata {PREFIX}{LEAF}: set it, or choose "
                "another topology_driver"
            )
        if len(levels) > MAX_LEVELS:
            self._problem(f"{len(levels)} levels ({', '.join(levels)}), {MAX_LEVELS} at most")
        leaf_of = self._leaves()
        parents = self._parents(levels, leaf_of)
        if self.problems:
            raise exceptions.TopologyError(*self.problems)
        return _tree(leaf_of, parents, levels, self.remarks)

    def _levels(self) -> list[str]:
        """Return the levels, lowest first; that of the leaves is always there."""
        count = {
            level: len({saying.switch for saying in sayings.values()})
            for level, sayings in self.said.items()
        }

        def key(level: str) -> tuple[int, int, str]:
            return -count[level], (*DEFAULT_LEVEL_NAMES, level).index(level), level

        rest = sorted(count.keys() - {LEAF, ISLAND}, key=key)
        order = [LEAF]
        top = [ISLAND] if ISLAND in count else []
        if len(rest) > MAX_LEVELS:
            return [*order, *rest, *top]
        above = {(a, b) for a in rest for b in rest if self._holds_several(a, b)}
        while rest:
            # Levels that are above each other contradict themselves, which is told of their hosts.
            free = (a for a in rest if all((a, b) not in above for b in rest))
            lowest = next(free, rest[0])
            rest.remove(lowest)
            order.append(lowest)
        return [*order, *top]

    def _holds_several(self, level: str, other: str) -> bool:
        """Tell whether a switch of a level has hosts of several switches of another one."""
        others = self.said[other]
        seen: dict[str, str] = {}
        return any(
            seen.setdefault(saying.switch, others[host].switch) != others[host].switch
            for host, saying in self.said[level].items()
            if host in others
        )

    def _leaves(self) -> dict[str, _Node]:
        """Return the leaf of each host: what was said, or itself."""
        sayings = self.said.get(LEAF, {})
        hosts = sorted({host for level in self.said.values() for host in level})
        alone = [host for host in hosts if host not in sayings]
        if alone:
            self.remarks.append(
                f"hosts in no aggregate with {PREFIX}{LEAF} are leaves of their own: "
                f"{hostlist.fold(alone)}"
            )
        return {
            host: (0, sayings[host].switch) if host in sayings else (_ALONE, host) for host in hosts
        }

    def _parents(
        self, levels: Sequence[str], leaf_of: Mapping[str, _Node]
    ) -> dict[_Node, _Node | None]:
        """Return the switch above each leaf and switch, None above the highest."""
        at = dict(leaf_of)  # the highest switch above each host so far
        parents: dict[_Node, _Node | None] = dict.fromkeys(at.values())
        for number, level in enumerate(levels[1:], 1):
            why: dict[_Node, _Saying] = {}
            for host, saying in sorted(self.said[level].items()):
                level_below, name = at[host]
                what = f"{levels[level_below]} {name!r}" if level_below >= 0 else f"host {name!r}"
                self._agree(why.setdefault(at[host], saying), saying, what, level)
            for node, saying in why.items():
                parents[node] = (number, saying.switch)
                parents.setdefault((number, saying.switch), None)
            at = {host: parents[node] or node for host, node in at.items()}
        return parents

    def _agree(self, old: _Saying, new: _Saying, what: str, level: str) -> None:
        """Note a contradiction, if there is one."""
        if old.switch != new.switch:
            self._problem(
                f"{what} is under {level} {old.switch!r} (aggregate {old.aggregate!r}) and "
                f"under {level} {new.switch!r} (aggregate {new.aggregate!r})"
            )

    def _problem(self, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)


def _tree(
    leaf_of: Mapping[str, _Node],
    parents: Mapping[_Node, _Node | None],
    levels: Sequence[str],
    remarks: Sequence[str],
) -> Topology:
    """Return the topology of who is below whom; every switch is on the level that it was said."""
    hosts: dict[_Node, list[str]] = {}
    for host, leaf in leaf_of.items():
        hosts.setdefault(leaf, []).append(host)
    children: dict[_Node | None, list[_Node]] = {}
    for node in sorted(parents):
        children.setdefault(parents[node], []).append(node)
    taken: set[str] = set()

    def free(name: str, level: int) -> str:
        while name in taken:
            name = f"{levels[max(level, 0)]} {name}"
        taken.add(name)
        return name

    def below(node: _Node) -> tuple[Any, int]:
        """Return what is below a switch, and the switch's level."""
        if node in hosts:
            return hosts[node], 0
        tree: dict[str, Any] = {}
        parts = [(child, *below(child)) for child in children[node]]
        missing = max(level for _, _, level in parts) < node[0] - 1
        for child, part, level in parts:
            while missing and level < node[0] - 1:
                level += 1
                part = {free(f"{child[1]}-{levels[level]}", level): part}
            tree[names[child]] = part
        return tree, node[0]

    names = {node: free(node[1], node[0]) for node in sorted(parents)}
    tree = {names[node]: below(node)[0] for node in children[None]}
    known = list(levels)
    if len(tree) > 1 and levels[-1] != ISLAND:
        tree = {free(ROOT, 0): tree}
        known = list(level_names(len(levels) + 1, levels))
    return Topology.from_tree(tree, levels=known, remarks=remarks)
