"""A tree from statements: these hosts are below that switch on that level, according to a source.

Sources are host aggregates and labels of nodes. A source need not state all levels, nor all of the
hosts below a switch.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hpc_sched.topology import hostlist
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.tree import (
    DEFAULT_LEVEL_NAMES,
    MAX_LEVELS,
    Details,
    Tree,
    first_free,
    level_names,
    unique,
)

LEAF = DEFAULT_LEVEL_NAMES[0]
# A level of this name is the highest one: nothing connects its switches.
ISLAND = "island"
ROOT = "fabric"

# Level (0 for leaves) and name of a switch; a host without a leaf switch is on level -1.
_Node = tuple[int, str]
_ALONE = -1


class _Statement(NamedTuple):
    switch: str  # above a host, on some level
    source: str  # of the statement, in errors


@dataclass
class LevelTree:
    """Collects statements, and makes a topology of them.

    Without ``levels``, ``leaf`` is the lowest level and ``island`` the highest. Of the others, a
    level is above another if one of its switches has hosts of several switches of the other; else
    the one with more switches is lower. A switch has one name on its level, and one switch above.

    With ``levels``, bottom up, nothing is inferred, and a name need be unique below the switch
    above only, as rack 1 of each row is: two sources that have one name below two switches mean
    two switches, ``a/1`` and ``b/1``. That is a remark. One source with both is an error.
    """

    problems: Problems
    levels: Sequence[str] = ()
    hosts: set[str] = field(default_factory=set)  # any of which no level is stated, too
    _stated: dict[str, dict[str, _Statement]] = field(default_factory=dict)  # level, host

    def add(self, level: str, switch: str, hosts: Iterable[str], source: str) -> None:
        """Add a statement; note a problem for a host that is below another switch of the level."""
        new = _Statement(switch, source)
        by_host = self._stated.setdefault(level, {})
        for host in hosts:
            self.hosts.add(host)
            self._compare(by_host.setdefault(host, new), new, f"host {host!r}", level)

    def require(self, stated: Mapping[str, str], option: str) -> None:
        """Note a problem for each level on which nothing was stated.

        :param stated: level to what would state it, such as "node has label x"
        :param option: of nova.conf, that names what states a level
        """
        for level, what in stated.items():
            if level not in self._stated:
                self.problems.note(
                    None,
                    f"no {what} ([hpc_sched] {option}, level {level}): set it, or leave the level "
                    "out",
                )

    def topology(
        self,
        without_leaf: str,
        host_ids: Mapping[str, str] | None = None,
        incomplete: Sequence[str] = (),
        leaf_details: Details | None = None,
    ) -> Topology:
        """Return the topology. Linear in statements, and for given levels in their number.

        A host without a leaf is a leaf of its own. Above several switches of the highest level
        there is one more, unless that level is called ``island``.

        :param without_leaf: what such hosts are, in the remark that lists them
        :param host_ids: as ``Topology.from_tree`` takes them, like ``incomplete``
        :param leaf_details: members and ids of leaves, by the names that are stated
        :raises exceptions.TopologyError: with every host or switch that is in two places
        """
        levels = list(self.levels) or self._inferred_levels()
        if len(levels) > MAX_LEVELS:
            listed = f"{len(levels)} levels ({', '.join(levels)})"
            raise self.problems.error(None, f"{listed}, {MAX_LEVELS} at most")
        # Names that sources have below different switches are made unique, highest level first.
        # The nearest level above is read first: names above are unique then.
        for number in reversed(range(len(self.levels) - 1)):
            for above in self.levels[number + 1 :]:
                self._split(self.levels[number], above)
        leaves = self._stated.get(levels[0], {})
        hosts = sorted(self.hosts)
        leaf_of = {
            host: (0, leaves[host].switch) if host in leaves else (_ALONE, host) for host in hosts
        }
        parents = self._parents(levels, leaf_of)
        self.problems.stop()
        if alone := [host for host in hosts if host not in leaves]:
            listed = hostlist.first(alone)
            self.problems.remark(None, f"{without_leaf} are leaves of their own: {listed}")
        tree, level_names_, name_of = _tree(leaf_of, parents, levels)
        given = leaf_details or Details()
        leaf_names = {node[1]: name_of[node] for node in set(leaf_of.values()) if not node[0]}
        details = Details(
            members=_renamed(given.members, leaf_names), ids=_renamed(given.ids, leaf_names)
        )
        return Topology.from_tree(
            tree,
            level_names_,
            details=details,
            remarks=self.problems.remarks,
            incomplete=incomplete,
            host_ids=host_ids,
        )

    def _inferred_levels(self) -> list[str]:
        count = {
            level: len({statement.switch for statement in by_host.values()})
            for level, by_host in self._stated.items()
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
        others = self._stated[other]
        seen: dict[str, str] = {}
        return any(
            seen.setdefault(statement.switch, others[host].switch) != others[host].switch
            for host, statement in self._stated[level].items()
            if host in others
        )

    def _split(self, level: str, above: str) -> None:
        """Rename the switches of a level that are below several switches of one above."""
        by_host, higher = self._stated.get(level, {}), self._stated.get(above, {})
        parents: dict[str, dict[str, set[str]]] = {}  # switch, source
        for host, (switch, source) in by_host.items():
            found = parents.setdefault(switch, {}).setdefault(source, set())
            found |= {higher[host].switch} if host in higher else set()
        taken = set(parents)
        new: dict[_Statement, _Statement] = {}
        for switch, sources in sorted(parents.items()):
            stated = sorted(set().union(*sources.values()))
            if len(stated) < 2 or any(len(each) > 1 for each in sources.values()):
                continue
            names = {parent: unique(f"{parent}/{switch}", taken) for parent in stated}
            for source, found in sources.items():
                for parent in found:
                    new[_Statement(switch, source)] = _Statement(names[parent], source)
            places = " and ".join(f"under {above} {parent!r}" for parent in stated[:3])
            named = ", ".join(repr(names[parent]) for parent in stated[:3])
            rest = "" if all(sources.values()) else f"; without {above}: {switch!r}"
            self.problems.remark(
                None,
                f"{level} {switch!r} is {places}: read as {len(stated)} switches, {named}{rest}",
            )
        if new:
            self._stated[level] = {host: new.get(old, old) for host, old in by_host.items()}

    def _parents(
        self, levels: Sequence[str], leaf_of: Mapping[str, _Node]
    ) -> dict[_Node, _Node | None]:
        """Return the switch above each leaf and switch, None above the highest."""
        at = dict(leaf_of)  # the highest switch above each host so far
        parents: dict[_Node, _Node | None] = dict.fromkeys(at.values())
        for number, level in enumerate(levels[1:], 1):
            stated: dict[_Node, _Statement] = {}
            for host, statement in sorted(self._stated.get(level, {}).items()):
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
            places = (f"under {level} {s!r} ({source})" for s, source in (old, new))
            self.problems.note(None, f"{what} is {' and '.join(places)}")


def _renamed(
    details: Mapping[str, tuple[str, ...]], names: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    return {names[name]: found for name, found in details.items() if name in names}


def _tree(
    leaf_of: Mapping[str, _Node],
    parents: Mapping[_Node, _Node | None],
    levels: Sequence[str],
) -> tuple[Tree, Sequence[str], Mapping[_Node, str]]:
    """Return nested switches, the names of their levels, and the name of each switch."""
    hosts = by_key((leaf, host) for host, leaf in leaf_of.items())
    children = by_key((parents[node], node) for node in sorted(parents))
    taken: set[str] = set()

    def free(name: str, level: int) -> str:
        before = f"{levels[max(level, 0)]} "
        return first_free((before * count + name for count in itertools.count()), taken)

    def below(node: _Node) -> tuple[Any, int]:
        """Return what is below a switch, and the switch's level."""
        if node in hosts:
            return hosts[node], 0
        tree: dict[str, Any] = {}
        parts = [(child, *below(child)) for child in children[node]]
        missing = max(level for _, _, level in parts) < node[0] - 1
        for child, part, level in parts:
            name = names[child]
            while missing and level < node[0] - 1:
                level += 1
                part, name = {name: part}, free(f"{child[1]}-{levels[level]}", level)
            tree[name] = part
        return tree, node[0]

    names = {node: free(node[1], node[0]) for node in sorted(parents)}
    tree = {names[node]: below(node)[0] for node in children[None]}
    if len(tree) > 1 and levels[-1] != ISLAND:
        tree = {free(ROOT, 0): tree}
        levels = level_names(len(levels) + 1, levels)
    return tree, levels, names
