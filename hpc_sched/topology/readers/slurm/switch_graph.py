"""Switches that list the nodes or the switches below them: what Slurm's files mean.

A switch may be listed by several others, as the leaves of a fat tree are by all its spines, or by
none. Its level is one more than the highest of those that it lists, and two hosts meet on the
lowest level on which one switch has both below.

topology_of     the entry: what is wrong is told, the rest becomes a tree
  _Graph          switches by name, with what they list
  _levels         how high each list reaches
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm import name_lists, nearest_leaves
from hpc_sched.topology.tree import MAX_LEVELS

MAX_SHOWN = 12  # switches of a cycle that an error names


@dataclass(frozen=True, slots=True)
class SwitchLine:
    """A switch as a text describes it, lists still folded."""

    name: str
    line: int
    nodes: str | None = None
    switches: str | None = None
    # Slurm prints the nodes of a switch above leaves too: all those that it reaches.
    reaches: bool = False

    def says_the_same(self, other: "SwitchLine") -> bool:
        """Tell whether two lines differ in nothing but their place."""
        return (self.name, self.nodes, self.switches) == (other.name, other.nodes, other.switches)


def topology_of(lines: Sequence[SwitchLine], problems: Problems) -> Topology:
    """Return the fabric of switches in the order in which a text has them.

    Linear in the names that the lines list, each list counted once, but for fabrics that are no
    trees, see :func:`hierarchy.build`.

    :param problems: of the text so far; more are added
    :raises exceptions.TopologyError: with every problem
    """
    graph = _Graph(problems)
    graph.read(lines)
    order = ordered(graph.lists, graph.list_of, lambda chain: _note_cycle(graph, chain))
    problems.stop()
    levels = _levels(graph, order)
    problems.stop()
    return _built(graph, order, levels)


@dataclass
class _Graph:
    """Switches by name. What they list is kept by its text, for the spines of a fat tree all
    list the same."""

    problems: Problems
    defined: dict[str, SwitchLine] = field(default_factory=dict)
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # to their nodes
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)  # text to switches
    unfolding: name_lists.Unfolding = field(default_factory=name_lists.Unfolding)

    def read(self, lines: Sequence[SwitchLine]) -> None:
        """Take in the lines, and note all that can be seen without knowing levels."""
        for line in lines:
            self._define(line)
        owner: dict[str, str] = {}
        missing: dict[str, tuple[str, ...]] = {}
        for line in self.defined.values():
            if line.switches is not None:
                self._list_switches(line, missing)
            elif line.nodes is not None:
                self._list_nodes(line, owner)

    def _define(self, line: SwitchLine) -> None:
        try:
            name_lists.check(line.name)
        except ValueError as error:
            self.problems.note(line.line, f"switch {line.name!r}: {error}")
            return
        if "[" in line.name:
            self.problems.remark(
                line.line, f"switch {line.name!r}: a switch's own name is not unfolded"
            )
        first = self.defined.setdefault(line.name, line)
        if first is line:
            return
        if first.says_the_same(line):
            self.problems.remark(
                line.line, f"switch {line.name!r} stands on line {first.line} already, the same"
            )
        else:
            self.problems.note(
                line.line, f"switch {line.name!r} stands twice, first on line {first.line}"
            )

    def names_of(self, line: SwitchLine, text: str, what: str) -> tuple[str, ...]:
        """Return the names of a list; none where it is wrong."""
        try:
            found = self.unfolding.names_of(text)
        except name_lists.TooManyNames as error:
            raise self.problems.error(line.line, f"switch {line.name!r}: {error}") from error
        except ValueError as error:
            self.problems.note(line.line, f"switch {line.name!r}: {error}")
            return ()
        if found.twice:
            self.problems.remark(
                line.line,
                f"switch {line.name!r}: {what} {_first_of(found.twice)} stands twice in the list",
            )
        if not found.names:
            self.problems.note(
                line.line, f"switch {line.name!r}: expected names of {what}s, found none"
            )
        return found.names

    def _list_nodes(self, line: SwitchLine, owner: dict[str, str]) -> None:
        nodes = self.names_of(line, line.nodes or "", "node")
        shared: dict[str, list[str]] = {}
        for node in nodes:
            other = owner.setdefault(node, line.name)
            if other != line.name:
                shared.setdefault(other, []).append(node)
        for other, common in shared.items():
            self.problems.note(
                line.line,
                f"node {_first_of(common)} is under switch {other!r} (line "
                f"{self.defined[other].line}) and switch {line.name!r}",
            )
        self.leaves[line.name] = nodes

    def _list_switches(self, line: SwitchLine, missing: dict[str, tuple[str, ...]]) -> None:
        text = line.switches or ""
        names = self.names_of(line, text, "switch")
        if text not in missing:
            self.lists[text] = tuple(name for name in names if name in self.defined)
            missing[text] = tuple(name for name in names if name not in self.defined)
        if missing[text]:
            self.problems.note(
                line.line,
                f"switch {line.name!r} lists switch {_first_of(missing[text])}, which no line "
                "defines",
            )

    def list_of(self, switch: str) -> str | None:
        """Return the text of the switches that a switch lists; None for leaves."""
        return self.defined[switch].switches


def _first_of(names: Sequence[str]) -> str:
    more = len(names) - 1
    return f"{names[0]!r}" + (f" (and {more} more)" if more else "")


def _note_cycle(graph: _Graph, chain: Sequence[str]) -> None:
    """Note switches of which each lists the next, and the last the first."""
    # It is told from the switch that the text has first.
    first = chain.index(min(chain, key=lambda switch: graph.defined[switch].line))
    chain = [*chain[first:], *chain[:first]]
    shown = chain if len(chain) <= MAX_SHOWN else [*chain[: MAX_SHOWN - 1], "..."]
    graph.problems.note(
        graph.defined[chain[0]].line,
        f"cycle: switch {chain[0]!r} is below itself ({' > '.join([*shown, chain[0]])})",
    )


def _levels(graph: _Graph, order: Sequence[str]) -> dict[str, int]:
    """Return the level of the switches that have a list, by list; 0 where no node is below."""
    levels: dict[str, int] = {}
    for text in order:
        below = [level_of(graph, levels, switch) for switch in graph.lists[text]]
        levels[text] = 1 + max(below) if any(below) else 0
    highest = max(levels.values(), default=1)
    for line in graph.defined.values():
        if line.switches is None and line.nodes is None:
            graph.problems.remark(
                line.line, f"switch {line.name!r} has neither nodes nor switches: left out"
            )
        elif line.switches is not None and not levels[line.switches]:
            listed = _first_of(graph.lists[line.switches])
            graph.problems.remark(
                line.line,
                f"switch {line.name!r} lists switch {listed}, but no node is below: left out",
            )
        elif line.switches is not None and levels[line.switches] > max(MAX_LEVELS, highest - 1):
            raise graph.problems.error(
                line.line,
                f"switch {line.name!r} is on level {highest}: expected at most "
                f"{MAX_LEVELS} levels of switches",
            )
    if not graph.leaves:
        graph.problems.note(None, "no switch has nodes")
    return levels


def level_of(graph: _Graph, levels: Mapping[str, int], switch: str) -> int:
    """Return the level of a switch: 1 for a leaf, 0 where no node is below."""
    text = graph.list_of(switch)
    return int(switch in graph.leaves) if text is None else levels[text]


def _built(graph: _Graph, order: Sequence[str], levels: Mapping[str, int]) -> Topology:
    """Return the tree of a graph that has nothing wrong with it."""
    leaves = [hierarchy.Leaf((name,), nodes) for name, nodes in graph.leaves.items()]
    position = {name: i for i, name in enumerate(graph.leaves)}
    try:
        nearest_leaves.check_size(len(leaves), len(order))
        below: dict[str, int] = {}
        for text in order:
            reached = 0
            for switch in graph.lists[text]:
                under = graph.list_of(switch)
                if under is not None:
                    reached |= below[under]
                elif switch in position:
                    reached |= 1 << position[switch]
            below[text] = reached
        by_level: dict[int, list[int]] = {}
        for text in order:
            if levels[text]:
                by_level.setdefault(levels[text], []).append(below[text])
        near = nearest_leaves.near_of(len(leaves), by_level)
        if len(near) // 2 + 1 > max(by_level, default=1):
            _remark_apart(graph, leaves, near)
    except ValueError as error:
        raise graph.problems.error(None, str(error)) from error
    uppers = [
        hierarchy.Upper(line.name, levels[line.switches], below[line.switches])
        for line in graph.defined.values()
        if line.switches is not None and levels[line.switches]
    ]
    _check_reached(graph, leaves, below)
    graph.problems.stop()
    try:
        return hierarchy.build(leaves, near, uppers, graph.problems.remarks)
    except exceptions.TopologyError as error:
        raise graph.problems.error(None, str(error)) from error


def _remark_apart(
    graph: _Graph, leaves: Sequence[hierarchy.Leaf], near: Sequence[Sequence[int]]
) -> None:
    """Say which leaves are connected although no switch has both below."""
    for i, (close, connected) in enumerate(zip(near[-2], near[-1], strict=True)):
        if close != connected:
            other = next(hierarchy.bits(connected & ~close))
            (a,), (b,) = leaves[i].switches, leaves[other].switches
            graph.problems.remark(
                graph.defined[a].line,
                f"switch {a!r} and switch {b!r} have no switch above both and are connected by "
                "way of others: one level is added above all",
            )
            return


def _check_reached(
    graph: _Graph, leaves: Sequence[hierarchy.Leaf], below: Mapping[str, int]
) -> None:
    """Note the switches that name nodes they do not reach, or not all those that they do."""
    checked: dict[tuple[str, int], str] = {}
    for line in graph.defined.values():
        if not line.reaches or line.switches is None or not line.nodes:
            continue
        key = (line.nodes, below[line.switches])
        if key not in checked:
            named = set(graph.names_of(line, line.nodes, "node"))
            reached = {node for i in hierarchy.bits(key[1]) for node in leaves[i].hosts}
            wrong, what = sorted(named - reached), "names node {} and does not reach it"
            if not wrong:
                wrong, what = sorted(reached - named), "reaches node {} and does not name it"
            checked[key] = what.format(_first_of(wrong)) if wrong else ""
        if checked[key]:
            graph.problems.note(line.line, f"switch {line.name!r} {checked[key]}")


def ordered(
    lists: Mapping[str, Sequence[str]],
    list_of: Callable[[str], str | None],
    cycle: Callable[[list[str]], None],
) -> list[str]:
    """Return the keys of lists, those of the lists below before those above.

    Linear, and without recursion: a file may be a chain of as many switches as it has lines.

    :param lists: key to the switches that it lists
    :param list_of: the key of the list that a switch has below it, None for a leaf
    :param cycle: told the switches of a cycle, of which each lists the next
    """
    order: list[str] = []
    done: set[str] = set()
    for start in lists:
        if start in done:
            continue
        path: dict[str, str] = {start: ""}  # the lists on the way down, and by which switch
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(lists[start]))]
        while stack:
            key, rest = stack[-1]
            for switch in rest:
                below = list_of(switch)
                if below is None or below in done:
                    continue
                if below in path:
                    ways = list(path)
                    cycle([path[way] for way in ways[ways.index(below) + 1 :]] + [switch])
                    continue
                path[below] = switch
                stack.append((below, iter(lists[below])))
                break
            else:
                stack.pop()
                path.pop(key)
                done.add(key)
                order.append(key)
    return order
