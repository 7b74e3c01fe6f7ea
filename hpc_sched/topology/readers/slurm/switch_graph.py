"""The graph of switches in Slurm's files, each of which lists nodes or other switches.

A switch may be listed by several others, as the leaves of a fat tree are by all its spines, or by
none. Its level is one more than the highest level of the switches that it lists, and two hosts
meet on the lowest level on which one switch has both below.

topology_of     the entry: collects problems, then builds the tree
  _Graph          switches by name, with the names that they list
  _ordered        lists of switches, lower ones first; finds cycles
  _levels         level of each list of switches
"""

import graphlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.leaf_masks import bits
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm import name_lists, nearest_leaves
from hpc_sched.topology.tree import MAX_LEVELS

MAX_SHOWN = 12  # switches of a cycle that an error names
MAX_CYCLES = 10  # cycles that are reported; each takes another search


@dataclass(frozen=True, slots=True)
class SwitchLine:
    """A switch of a text, lists still folded."""

    name: str
    line: int
    nodes: str | None = None
    switches: str | None = None
    # Slurm prints the nodes of a switch above leaves too: all those that it reaches.
    reaches: bool = False


def topology_of(lines: Sequence[SwitchLine], problems: Problems) -> Topology:
    """Return the topology of switches in the order of a text.

    Linear in the names that the lines list, each list counted once, but for graphs that are no
    trees, see :func:`hierarchy.build`.

    :param problems: of the text so far; more are added
    :raises exceptions.TopologyError: with every problem
    """
    graph = _Graph(problems)
    graph.read(lines)
    order = _ordered(graph)
    problems.stop()
    levels = _levels(graph, order)
    problems.stop()
    return _built(graph, order, levels)


@dataclass
class _Graph:
    """Switches by name. A list of switches is keyed by its text: all spines of a fat tree have
    the same one."""

    problems: Problems
    defined: dict[str, SwitchLine] = field(default_factory=dict)
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # leaf to its nodes
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)  # text to switches
    unfolding: name_lists.Unfolding = field(default_factory=name_lists.Unfolding)

    def read(self, lines: Sequence[SwitchLine]) -> None:
        """Add all lines, and note the problems that do not depend on levels."""
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
        if (first.nodes, first.switches) == (line.nodes, line.switches):
            self.problems.remark(
                line.line, f"switch {line.name!r} stands on line {first.line} already, the same"
            )
        else:
            self.problems.note(
                line.line, f"switch {line.name!r} stands twice, first on line {first.line}"
            )

    def names_of(self, line: SwitchLine, text: str, what: str) -> tuple[str, ...]:
        """Return the names of a list; none after a problem."""
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
        """Return the text of a switch's list of switches; None for leaves."""
        return self.defined[switch].switches


def _first_of(names: Sequence[str]) -> str:
    more = len(names) - 1
    return f"{names[0]!r}" + (f" (and {more} more)" if more else "")


def _ordered(graph: _Graph) -> list[str]:
    """Return the texts of the lists of switches, lower ones first; note cycles as problems.

    Linear, and without recursion: a file may be a chain of as many switches as it has lines.
    """
    below: dict[str, dict[str, str]] = {}  # per list: the lists just below, and by which switch
    for text, switches in graph.lists.items():
        below[text] = {}
        for switch in switches:
            lower = graph.list_of(switch)
            if lower is not None:
                below[text].setdefault(lower, switch)
    for _ in range(MAX_CYCLES):
        try:
            return list(graphlib.TopologicalSorter(below).static_order())
        except graphlib.CycleError as error:
            cycle: list[str] = error.args[1]  # each is below the next, and the last is the first
            chain = [below[upper][lower] for lower, upper in itertools.pairwise(cycle)]
            _note_cycle(graph, chain[::-1])
            # Without this link the next cycle is found.
            del below[cycle[1]][cycle[0]]
    return []


def _note_cycle(graph: _Graph, chain: Sequence[str]) -> None:
    """Note switches of which each lists the next, and the last the first."""
    first = chain.index(min(chain, key=lambda switch: graph.defined[switch].line))
    chain = [*chain[first:], *chain[:first]]
    shown = chain if len(chain) <= MAX_SHOWN else [*chain[: MAX_SHOWN - 1], "..."]
    graph.problems.note(
        graph.defined[chain[0]].line,
        f"cycle: switch {chain[0]!r} is below itself ({' > '.join([*shown, chain[0]])})",
    )


def _levels(graph: _Graph, order: Sequence[str]) -> dict[str, int]:
    """Return the level of each list's switch, by the list's text; 0 where no node is below."""
    levels: dict[str, int] = {}
    for text in order:
        below = [_level_of(graph, levels, switch) for switch in graph.lists[text]]
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


def _level_of(graph: _Graph, levels: Mapping[str, int], switch: str) -> int:
    """Return the level of a switch: 1 for a leaf, 0 where no node is below."""
    text = graph.list_of(switch)
    return int(switch in graph.leaves) if text is None else levels[text]


def _built(graph: _Graph, order: Sequence[str], levels: Mapping[str, int]) -> Topology:
    """Return the tree of a graph without problems."""
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
    """Add a remark on the first two connected leaves that no switch has both below."""
    for i, (close, connected) in enumerate(zip(near[-2], near[-1], strict=True)):
        if close != connected:
            other = next(bits(connected & ~close))
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
    """Note the switches whose nodes differ from those that they reach."""
    checked: dict[tuple[str, int], str] = {}
    for line in graph.defined.values():
        if not line.reaches or line.switches is None or not line.nodes:
            continue
        key = (line.nodes, below[line.switches])
        if key not in checked:
            named = set(graph.names_of(line, line.nodes, "node"))
            reached = {node for i in bits(key[1]) for node in leaves[i].hosts}
            wrong, what = sorted(named - reached), "names node {} and does not reach it"
            if not wrong:
                wrong, what = sorted(reached - named), "reaches node {} and does not name it"
            checked[key] = what.format(_first_of(wrong)) if wrong else ""
        if checked[key]:
            graph.problems.note(line.line, f"switch {line.name!r} {checked[key]}")
