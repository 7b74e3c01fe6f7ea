"""Layout of a fabric's picture: the boxes of its switches, and texts cut to fit them.

Levels are columns, the root on the left; a switch is as high as all that is below it, and the
leaves below one switch wrap into rows::

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
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.topology.model import Topology

# All lengths in pixels.
CELL = 10  # the smallest square of a host, with the gap to the next one
MAX_CELL = 14
PADDING = 6
HEADING = 30  # of a leaf's box, for two lines of text
COLUMN = 112  # an upper switch and the gap to what is below it
GAP = 8
ISLAND_GAP = 24
MIN_BAR = 44  # for three lines of text
MIN_COLUMNS = 13  # cells side by side: room for a leaf's name
MAX_COLUMNS = 60
ASPECT = 1.6  # width to height of a landscape page or a screen

# Monospaced, so that the width of a text is known without the font.
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

_EM = 0.61  # width of a character at font size 1; the widest of these fonts have 0.602
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Box:
    """Box of a switch."""

    switch: int  # index in Topology.switches
    x: int
    y: int
    width: int
    height: int


def of(topology: Topology) -> "Layout":
    """Return the layout whose shape is nearest to ``ASPECT``. O(switches * sqrt(switches))."""
    best = found = Layout(topology, across=1)
    across = 1
    while across < found.widest and found.width < ASPECT * found.height:
        # Growing steps: the difference between 40 and 41 leaves in a row is invisible.
        across = min(found.widest, max(across + 1, across * 9 // 8))
        found = Layout(topology, across)
        # The difference of the shape from ASPECT.
        best = min(best, found, key=lambda one: abs(math.log(one.width / (ASPECT * one.height))))
    return best


class Layout:
    """Boxes of all switches, with a fixed number of leaves side by side."""

    def __init__(self, topology: Topology, across: int) -> None:
        self._switches = topology.switches
        self._children = topology.children()
        roots = [s for s, switch in enumerate(topology.switches) if switch.parent < 0]
        self.widest = max(len(below) for below in (roots, *self._children))
        self._sizes = Counter(topology.leaf_index.tolist())
        self._across = across
        largest = max(self._sizes.values())
        room = min(MAX_COLUMNS, max(MIN_COLUMNS, math.ceil(math.sqrt(2 * largest))))
        self.cells = _even(largest, room)  # host cells side by side in a leaf
        # Square of a host, with the gap to the next one.
        self.cell = min(MAX_CELL, room * CELL // self.cells)
        self._leaf_width = room * CELL + 2 * PADDING
        # Left edge of each level, bottom up.
        self.columns = [level * COLUMN for level in reversed(range(topology.depth))]
        self.boxes: list[Box] = []  # on each level in the order of ``Topology.switches``
        # Left end, y and width of horizontal lines across levels on which a branch has no switch.
        self.lines: list[tuple[int, int, int]] = []
        self.height = self._rows(roots, -1, 0, ISLAND_GAP)
        self.width = max(box.x + box.width for box in self.boxes)

    def _rows(self, below: Sequence[int], parent: int, top: int, gap: int) -> int:
        """Stack switches vertically, leaves in rows; return the bottom y coordinate."""
        y = top
        for level, found in itertools.groupby(below, key=lambda child: self._switches[child].level):
            children = list(found)
            if level == 1:
                across = _even(len(children), self._across)
                for i in range(0, len(children), across):
                    y = self._leaves(children[i : i + across], parent, y) + GAP
                y += gap - GAP
            else:
                for child in children:
                    y = self._upper(child, parent, y) + gap
        return y - gap

    def _leaves(self, row: Sequence[int], parent: int, y: int) -> int:
        lefts = itertools.count(self.columns[0], self._leaf_width + GAP)
        rows = [math.ceil(self._sizes[leaf] / self.cells) for leaf in row]
        heights = [HEADING + number * self.cell + PADDING for number in rows]
        for leaf, left, height in zip(row, lefts, heights, strict=False):
            self.boxes.append(Box(leaf, left, y, self._leaf_width, height))
        self._connect(1, parent, y + HEADING // 2)
        return y + max(heights)

    def _upper(self, switch: int, parent: int, y: int) -> int:
        level = self._switches[switch].level
        bottom = max(self._rows(self._children[switch], switch, y, GAP), y + MIN_BAR)
        self.boxes.append(Box(switch, self.columns[level - 1], y, COLUMN - GAP, bottom - y))
        self._connect(level, parent, y + HEADING // 2)
        return bottom

    def _connect(self, level: int, parent: int, y: int) -> None:
        if parent >= 0 and self._switches[parent].level > level + 1:
            left = self.columns[self._switches[parent].level - 1] + COLUMN - GAP
            self.lines.append((left, y, self.columns[level - 1] - left))


def _even(number: int, most: int) -> int:
    """Return the length of equal rows, of at most ``most`` items each."""
    return math.ceil(number / math.ceil(number / most))


def width_of(text: str, size: int) -> int:
    """Return the width of a text, px, rounded up; East Asian wide characters count twice."""
    letters = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return int(letters * size * _EM) + 1


def cut(text: str, room: int, size: int) -> str:
    """Return a text that fits ``room`` px, its middle an ellipsis: the ends of names differ."""
    if width_of(text, size) <= room:
        return text
    for left in range(min(len(text) - 1, int(room / (size * _EM))), 0, -1):
        shown = text[: left - left // 2] + _ELLIPSIS + text[len(text) - left // 2 :]
        if width_of(shown, size) <= room:
            return shown
    return _ELLIPSIS
