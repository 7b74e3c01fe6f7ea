"""Where the switches of a fabric stand in a picture of it.

Levels stand side by side, the root on the left; a switch is as high as all that is below it, and
the leaves below one switch wrap into rows::

    +------+------+  +--------+ +--------+ +--------+
    | core | pod1 |  | leaf01 | | leaf02 | | leaf03 |
    |      |      |  +--------+ +--------+ +--------+
    |      |      |  +--------+
    |      |      |  | leaf04 |
    |      +------+  +--------+
    |      +------+  +--------+ +--------+
    |      | pod2 |  | leaf05 | | leaf06 |
    +------+------+  +--------+ +--------+
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.topology.model import Topology

# All lengths in pixels.
CELL = 10  # the square of a host and the gap to the next one, at least
MAX_CELL = 14
PADDING = 6
HEADING = 30  # of a leaf's box, for two lines of text
COLUMN = 112  # an upper switch and the gap to what is below it
GAP = 8
ISLAND_GAP = 24
MIN_BAR = 44  # for three lines of text
MIN_COLUMNS = 13  # cells side by side, so that a leaf's name has some room
MAX_COLUMNS = 60
ASPECT = 1.6  # width to height of a page on its side, or a screen


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a switch."""

    switch: int  # index in Topology.switches
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """A connection across a level on which a branch has no switch."""

    x: int
    y: int
    width: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all switches, in the order of ``Topology.switches`` on each level."""

    width: int
    height: int
    cells: int  # host cells side by side in a leaf
    cell: int  # the square of a host and the gap to the next one
    columns: tuple[int, ...]  # left edge of each level, bottom up
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def of(topology: Topology) -> Layout:
    """Return the places of a fabric's switches.

    The rows are as long as a page on its side wants. O(switches * sqrt(switches)).
    """
    children: list[list[int]] = [[] for _ in topology.switches]
    roots: list[int] = []
    for i, switch in enumerate(topology.switches):
        (children[switch.parent] if switch.parent >= 0 else roots).append(i)
    sizes = [0] * len(topology.switches)
    for leaf in topology.leaf_index.tolist():
        sizes[leaf] += 1
    widest = max(len(below) for below in (roots, *children))
    best = found = _Placing(topology, children, sizes, 1).layout(roots)
    across = 1
    while across < widest and found.width < ASPECT * found.height:
        # Steps that grow: the difference between 40 and 41 leaves side by side does not show.
        across = min(widest, max(across + 1, across * 9 // 8))
        found = _Placing(topology, children, sizes, across).layout(roots)
        best = min(best, found, key=_misfit)
    return best


def _misfit(layout: Layout) -> float:
    """Return how far a layout is from the shape of a page."""
    return abs(math.log(layout.width / (ASPECT * layout.height)))


class _Placing:
    """One try, with so many leaves side by side."""

    def __init__(
        self,
        topology: Topology,
        children: Sequence[Sequence[int]],
        sizes: Sequence[int],
        across: int,
    ) -> None:
        self.switches = topology.switches
        self.depth = topology.depth
        self.children = children
        self.sizes = sizes
        self.across = across
        largest = max(sizes)
        room = min(MAX_COLUMNS, max(MIN_COLUMNS, math.ceil(math.sqrt(2 * largest))))
        self.cells = _even(largest, room)
        self.cell = min(MAX_CELL, room * CELL // self.cells)
        self.leaf_width = room * CELL + 2 * PADDING
        self.boxes: list[Box] = []
        self.lines: list[Line] = []

    def layout(self, roots: Sequence[int]) -> Layout:
        bottom = self._rows(roots, -1, 0, ISLAND_GAP)
        return Layout(
            width=max(box.x + box.width for box in self.boxes),
            height=bottom,
            cells=self.cells,
            cell=self.cell,
            columns=tuple(self._left(level) for level in range(1, self.depth + 1)),
            boxes=tuple(self.boxes),
            lines=tuple(self.lines),
        )

    def _left(self, level: int) -> int:
        return (self.depth - level) * COLUMN

    def _rows(self, below: Sequence[int], parent: int, top: int, gap: int) -> int:
        """Place switches under each other, leaves in rows; return where they end."""
        y = top
        for are_leaves, found in itertools.groupby(
            below, key=lambda child: self.switches[child].level == 1
        ):
            children = list(found)
            if are_leaves:
                across = _even(len(children), self.across)
                for i in range(0, len(children), across):
                    y = self._leaves(children[i : i + across], parent, y) + GAP
                y += gap - GAP
            else:
                for child in children:
                    y = self._upper(child, parent, y) + gap
        return y - gap

    def _leaves(self, row: Sequence[int], parent: int, y: int) -> int:
        x = self._left(1)
        height = max(self._leaf_height(leaf) for leaf in row)
        for i, leaf in enumerate(row):
            left = x + i * (self.leaf_width + GAP)
            self.boxes.append(Box(leaf, left, y, self.leaf_width, self._leaf_height(leaf)))
        self._connect(1, parent, y + HEADING // 2)
        return y + height

    def _leaf_height(self, leaf: int) -> int:
        return HEADING + math.ceil(self.sizes[leaf] / self.cells) * self.cell + PADDING

    def _upper(self, switch: int, parent: int, y: int) -> int:
        level = self.switches[switch].level
        bottom = max(self._rows(self.children[switch], switch, y, GAP), y + MIN_BAR)
        self.boxes.append(Box(switch, self._left(level), y, COLUMN - GAP, bottom - y))
        self._connect(level, parent, y + HEADING // 2)
        return bottom

    def _connect(self, level: int, parent: int, y: int) -> None:
        """Draw a line where the switch above stands more than one level away."""
        if parent >= 0 and self.switches[parent].level > level + 1:
            left = self._left(self.switches[parent].level) + COLUMN - GAP
            self.lines.append(Line(left, y, self._left(level) - left))


def _even(number: int, most: int) -> int:
    """Return how many stand in a row where no row has more than ``most`` and all are alike."""
    rows = math.ceil(number / most)
    return math.ceil(number / rows)
