"""A tree from host aggregates whose metadata name the switches above their hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from hpc_sched import exceptions
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.tree import DEFAULT_LEVEL_NAMES, MAX_LEVELS, level_names

PREFIX = "hpc:"
LEAF = DEFAULT_LEVEL_NAMES[0]
# A level of this name is the highest one: nothing connects its switches.
ISLAND = "island"
ROOT = "fabric"
# Other keys of metadata and flavors with the same prefix.
NOT_LEVELS = frozenset(("app_class", "app_name", "cache_score", "group_size", "homogeneous"))
NOT_LEVELS |= {"max_leaves", "prefer", "processor", "require"}


class _HostAggregate(Protocol):
    """A host aggregate of Nova's database or of a snapshot; its hosts are service hosts."""

    @property
    def name(self) -> str: ...
    @property
    def hosts(self) -> Sequence[str]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def topology_of(aggregates: Iterable[_HostAggregate]) -> Topology:
    """Return the topology that aggregates describe; linear in their hosts.

    ``hpc:leaf`` names the leaf switch of an aggregate's hosts, ``hpc:pod`` or any other name the
    switch above it on that level; an aggregate may name one of them or several. ``leaf`` is the
    lowest level. Of the others a level is above another where one of its switches has hosts of
    several switches of the other; else the one with more switches is lower. A host with a switch
    above but no leaf is a leaf of its own. Above several switches of the highest level there is one
    more, unless that level is called ``island``.

    :raises exceptions.TopologyError: where no aggregate names a leaf or another level, or they
        contradict each other: with every host or switch that is in two places
    """
    reader = _Statements()
    for aggregate in sorted(aggregates, key=lambda one: one.name):
        reader.read(aggregate)
    return reader.topology()


# Level (0 for leaves) and name of a switch; a host without a leaf switch is on level -1.
_Node = tuple[int, str]
_ALONE = -1


class _Statement(NamedTuple):
    switch: str  # above a host, on some level
    aggregate: str  # that names it


@dataclass
class _Statements:
    stated: dict[str, dict[str, _Statement]] = field(default_factory=dict)  # level, host
    problems: Problems = field(default_factory=Problems)

    def read(self, aggregate: _HostAggregate) -> None:
        for key in sorted(aggregate.metadata):
            level = key.removeprefix(PREFIX)
            switch = str(aggregate.metadata[key]).strip()
            if level == key or level in NOT_LEVELS or not aggregate.hosts:
                continue
            if not level or not switch:
                missing = "the name of a switch" if level else "the name of a level"
                self.problems.note(None, f"aggregate {aggregate.name!r}: {key}: expected {missing}")
                continue
            new = _Statement(switch, aggregate.name)
            by_host = self.stated.setdefault(level, {})
            for host in sorted(aggregate.hosts):
                self._compare(by_host.setdefault(host, new), new, f"host {host!r}", level)

    def topology(self) -> Topology:
        if not self.stated:
            self.problems.stop()
            raise exceptions.TopologyError(
                f"no host aggregate with hosts has metadata {PREFIX}{LEAF}: set it, or choose "
                "another topology_driver"
            )
        levels = self._levels()
        if len(levels) > MAX_LEVELS:
            listed = f"{len(levels)} levels ({', '.join(levels)})"
            self.problems.note(None, f"{listed}, {MAX_LEVELS} at most")
        leaves = self.stated.get(LEAF, {})
        hosts = sorted(set().union(*self.stated.values()))
        leaf_of = {
            host: (0, leaves[host].switch) if host in leaves else (_ALONE, host) for host in hosts
        }
        parents = self._parents(levels, leaf_of)
        self.problems.stop()
        alone = hostlist.fold(host for host in hosts if host not in leaves)
        remark = f"hosts in no aggregate with {PREFIX}{LEAF} are leaves of their own: {alone}"
        return _tree(leaf_of, parents, levels, [remark] if alone else [])

    def _levels(self) -> list[str]:
        count = {
            level: len({statement.switch for statement in by_host.values()})
            for level, by_host in self.stated.items()
        }

        def key(level: str) -> tuple[int, int, str]:
            return -count[level], (*DEFAULT_LEVEL_NAMES, level).index(level), level

        rest = sorted(count.keys() - {LEAF, ISLAND}, key=key)
        top = [ISLAND] if ISLAND in count else []
        if len(rest) > MAX_LEVELS:
            return [LEAF, *rest, *top]
        order = [LEAF]
        above = {(a, b) for a in rest for b in rest if self._holds_several(a, b)}
        while rest:
            # Levels that are above each other contradict each other; their hosts are reported.
            free = (a for a in rest if all((a, b) not in above for b in rest))
            order.append(next(free, rest[0]))
            rest.remove(order[-1])
        return [*order, *top]

    def _holds_several(self, level: str, other: str) -> bool:
        """True if a switch of a level has hosts of several switches of another level."""
        others = self.stated[other]
        seen: dict[str, str] = {}
        return any(
            seen.setdefault(statement.switch, others[host].switch) != others[host].switch
            for host, statement in self.stated[level].items()
            if host in others
        )

    def _parents(
        self, levels: Sequence[str], leaf_of: Mapping[str, _Node]
    ) -> dict[_Node, _Node | None]:
        """Return the switch above each leaf and switch, None above the highest."""
        at = dict(leaf_of)  # the highest switch above each host so far
        parents: dict[_Node, _Node | None] = dict.fromkeys(at.values())
        for number, level in enumerate(levels[1:], 1):
            stated: dict[_Node, _Statement] = {}
            for host, statement in sorted(self.stated[level].items()):
                level_below, name = at[host]
                what = f"{levels[level_below]} {name!r}" if level_below >= 0 else f"host {name!r}"
                self._compare(stated.setdefault(at[host], statement), statement, what, level)
            for node, statement in stated.items():
                parents[node] = (number, statement.switch)
                parents.setdefault((number, statement.switch), None)
            at = {host: parents[node] or node for host, node in at.items()}
        return parents

    def _compare(self, old: _Statement, new: _Statement, what: str, level: str) -> None:
        if old.switch != new.switch:
            places = (f"under {level} {s!r} (aggregate {by!r})" for s, by in (old, new))
            self.problems.note(None, f"{what} is {' and '.join(places)}")


def _tree(
    leaf_of: Mapping[str, _Node],
    parents: Mapping[_Node, _Node | None],
    levels: Sequence[str],
    remarks: Sequence[str],
) -> Topology:
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
    if len(tree) > 1 and levels[-1] != ISLAND:
        tree = {free(ROOT, 0): tree}
        levels = level_names(len(levels) + 1, levels)
    return Topology.from_tree(tree, levels=levels, remarks=remarks)
