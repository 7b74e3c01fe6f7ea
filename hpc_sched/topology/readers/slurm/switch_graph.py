"""The graph of switches in Slurm's files, each of which lists nodes or other switches.

A switch may be listed by several others, as the leaves of a fat tree are by all its spines, or by
none.
"""

import graphlib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field

from hpc_sched.topology import hostlist
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.readers.reader_errors import Problems, first_of

# Names in all lists of switches. 2,500 spines that each list 4,000 leaves have as many.
MAX_LISTED = 10_000_000
MAX_SHOWN = 12  # switches of a cycle that an error names
MAX_CYCLES = 10  # cycles that are reported; each takes another search
# The longest name that Nova stores for a host.
MAX_LENGTH = 255

# To Slurm blanks are commas, except in brackets.
_PART = re.compile(r"(?:[^\s,\[\]]+|\[[^\[\]]*\]|[\[\]])+", re.ASCII)


def check_name(name: str) -> None:
    """Raise a ValueError for a name that is too long or cannot be printed."""
    if len(name) > MAX_LENGTH:
        raise ValueError(f"expected a name of at most {MAX_LENGTH} characters, found {len(name)}")
    if not name.isprintable():
        raise ValueError(f"expected a name that can be printed, found {name!r}")


@dataclass(frozen=True, slots=True)
class SwitchLine:
    """A switch of a text, lists still folded."""

    name: str
    line: int
    nodes: str | None = None
    switches: str | None = None
    # Slurm prints the nodes of a switch above leaves too: all those that it reaches.
    reaches: bool = False


@dataclass(slots=True)
class SwitchList:
    """Switches that one or several lines list: all spines of a fat tree list the same."""

    switches: tuple[str, ...] = ()
    level: int = 0  # of the switches with this list; 0 where no node is below
    leaves: int = 0  # mask of the leaves below


@dataclass(frozen=True, slots=True)
class _Unfolded:
    """The names of one list."""

    names: tuple[str, ...]  # without repetitions; of switches, those that a line defines
    twice: str  # the repeated ones in words
    undefined: str  # the switches that no line defines


@dataclass
class SwitchGraph:
    """Switches by name, and their lists by text; notes problems that do not depend on levels."""

    lines: InitVar[Sequence[SwitchLine]]
    problems: Problems
    noun: str = "switch"  # for texts; blocks are read as leaves
    defined: dict[str, SwitchLine] = field(default_factory=dict)
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # leaf to its nodes
    lists: dict[str, SwitchList] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)  # nodes that several leaves list
    _unfolded: dict[tuple[str, str], _Unfolded] = field(default_factory=dict)  # by kind and text
    _nodes: hostlist.Expansion = field(default_factory=hostlist.Expansion)
    _switches: hostlist.Expansion = field(
        default_factory=lambda: hostlist.Expansion("switch name", MAX_LISTED)
    )

    def __post_init__(self, lines: Sequence[SwitchLine]) -> None:
        for line in lines:
            self._define(line)
        owner: dict[str, str] = {}
        for line in self.defined.values():
            if line.switches is not None:
                names = self.names_of(line, line.switches, "switch")
                self.lists.setdefault(line.switches, SwitchList(names))
            elif line.nodes is not None:
                self._list_nodes(line, line.nodes, owner)

    def note(self, line: SwitchLine, text: str) -> None:
        """Add a problem of a switch; the text follows its name."""
        self.problems.note(line.line, f"{self.noun} {line.name!r}{text}")

    def remark(self, line: SwitchLine, text: str) -> None:
        """Add a remark on a switch; the text follows its name."""
        self.problems.remark(line.line, f"{self.noun} {line.name!r}{text}")

    def _define(self, line: SwitchLine) -> None:
        try:
            check_name(line.name)
        except ValueError as error:
            self.note(line, f": {error}")
            return
        if "[" in line.name:
            self.remark(line, f": a {self.noun}'s own name is not unfolded")
        first = self.defined.setdefault(line.name, line)
        if first is line:
            return
        if (first.nodes, first.switches) == (line.nodes, line.switches):
            self.remark(line, f" stands on line {first.line} already, the same")
        else:
            self.note(line, f" stands twice, first on line {first.line}")

    def names_of(self, line: SwitchLine, text: str, what: str) -> tuple[str, ...]:
        """Return the names of a list such as ``cn[01-18]``, unfolded once; none after a problem."""
        try:
            if (what, text) not in self._unfolded:
                self._unfolded[what, text] = self._unfold(text, what)
            found = self._unfolded[what, text]
        except hostlist.TooManyNamesError as error:
            raise self.problems.error(line.line, f"{self.noun} {line.name!r}: {error}") from error
        except ValueError as error:
            self.note(line, f": {error}")
            return ()
        if found.twice:
            self.remark(line, f": {what} {found.twice} stands twice in the list")
        if found.undefined:
            self.note(line, f" lists switch {found.undefined}, which no line defines")
        elif not found.names:
            self.note(line, f": expected names of {what}s, found none")
        return found.names

    def _unfold(self, text: str, what: str) -> _Unfolded:
        # A list has no more switches than the file has lines.
        expansion = self._nodes if what == "node" else hostlist.Expansion("switch name")
        names: dict[str, None] = {}
        twice: dict[str, None] = {}
        undefined: dict[str, None] = {}
        try:
            for found in _PART.finditer(text):
                part = found[0]
                if hostlist.PLAIN.match(part):
                    expansion.count(1, part)
                    unfolded = [part]
                else:
                    unfolded = expansion.expand(part)
                for name in unfolded:
                    kept = names
                    if what == "node":
                        check_name(name)
                    elif line := self.defined.get(name):
                        name = line.name  # all lists share one text of each name
                    else:
                        kept = undefined
                    if name in kept:
                        twice[name] = None
                    kept[name] = None
        finally:
            # A list with an error has taken time too, and is unfolded again for each line.
            if what == "switch":
                self._switches.count(expansion.found, text)
        return _Unfolded(tuple(names), _words(twice), _words(undefined))

    def _list_nodes(self, line: SwitchLine, text: str, owner: dict[str, str]) -> None:
        names = self.names_of(line, text, "node")
        shared = by_key((owner.setdefault(node, line.name), node) for node in names)
        own = shared.pop(line.name, [])
        for other, common in shared.items():
            first = f"{self.noun} {other!r} (line {self.defined[other].line})"
            self.problems.remark(
                line.line,
                f"node {first_of(common)} is under {first} and {self.noun} {line.name!r}: read as "
                "under the first of them",
            )
            self.shared.update(common)
        if own:
            self.leaves[line.name] = tuple(own)
        elif shared:
            self.remark(line, " has no nodes of its own: left out")

    def list_of(self, switch: str) -> SwitchList | None:
        """Return a switch's list of switches; None for leaves."""
        text = self.defined[switch].switches
        return None if text is None else self.lists[text]

    def ordered(self) -> list[SwitchList]:
        """Return the lists of switches, lower ones first; note cycles as problems.

        Linear, and without recursion: a file may be a chain of as many switches as it has lines.
        """
        # Per list: the lists just below, and the first switch with each.
        below = {
            text: {
                lower: switch
                for switch in reversed(listed.switches)
                if (lower := self.defined[switch].switches) is not None
            }
            for text, listed in self.lists.items()
        }
        for _ in range(MAX_CYCLES):
            try:
                order = graphlib.TopologicalSorter(below).static_order()
                return [self.lists[text] for text in order]
            except graphlib.CycleError as error:
                cycle: list[str] = error.args[1]  # each is below the next; the last is the first
                chain = [below[upper][lower] for lower, upper in itertools.pairwise(cycle)]
                self._note_cycle(chain[::-1])
                # Without this link the next cycle is found.
                del below[cycle[1]][cycle[0]]
        return []

    def _note_cycle(self, chain: Sequence[str]) -> None:
        """Note switches of which each lists the next, and the last the first."""
        first = chain.index(min(chain, key=lambda switch: self.defined[switch].line))
        chain = [*chain[first:], *chain[:first]]
        shown = chain if len(chain) <= MAX_SHOWN else [*chain[: MAX_SHOWN - 1], "..."]
        self.problems.note(
            self.defined[chain[0]].line,
            f"cycle: switch {chain[0]!r} is below itself ({' > '.join([*shown, chain[0]])})",
        )


def _words(names: Iterable[str]) -> str:
    return first_of(found) if (found := tuple(names)) else ""
