"""The knapsack over a tree of switches that gives the least Hop-Byte cost.

The closed form of the cost (Dudina2013) is a constant less what each switch and host saves, and
the savings below a switch depend only on how many VMs go below each of its children. So the best
split is found bottom up, one table a switch: the best score of 0, 1, 2 .. new VMs below it.

A score is one integer whose digits are, from the highest, the saving, the leaves used and the
excess capacity of those leaves, the last two negative: the greatest score is the least cost, of
equal costs the one with fewer leaves, of equal numbers of leaves the one with less excess.

With a bound on the leaves a table has a row for each number of leaves used; without one it has
one row. A row keeps only what no row with fewer leaves does as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]

# The score of what cannot be; two of them still fit into an int64.
NEVER = -(1 << 61)
# Every score that can be is above this, whatever is added to one that cannot.
IMPOSSIBLE = NEVER // 2
_BLOCK = 1 << 17  # numbers that are worked on at a time, some 1 MB


@dataclass(frozen=True, slots=True)
class Row:
    """Scores of consecutive numbers of VMs."""

    first: int  # the number of VMs of the first score
    scores: Array

    def at(self, count: int) -> int:
        """Return the score of a number of VMs, NEVER outside the row."""
        place = count - self.first
        return int(self.scores[place]) if 0 <= place < len(self.scores) else NEVER


Table = tuple[Row | None, ...]  # by leaves used

NOTHING: Table = (Row(0, np.zeros(1, dtype=np.int64)),)


@dataclass(frozen=True, slots=True)
class Digits:
    """How a score is put together."""

    saving: int
    leaf: int  # what a leaf costs
    excess_limit: int  # the most excess of one leaf that is told apart

    @classmethod
    def of(cls, *, saving: int, leaves: int, excess: int, open_leaves: int) -> "Digits":
        """Return digits that hold a saving, a number of leaves and their excess capacity.

        Where all three do not fit into 60 bits, excess is told apart only up to a limit.
        """
        room = max((1 << 60) // ((saving + 1) * (leaves + 1)), 1)
        limit = excess if excess < room else (room - 1) // max(open_leaves, 1)
        width = min(excess, limit * max(open_leaves, 1)) + 1
        return cls(saving=width * (leaves + 1), leaf=width, excess_limit=limit)


@dataclass(frozen=True)
class Leaf:
    """A leaf switch with its table."""

    index: int  # in Topology.switches
    bit: int  # the leaf's weight in the order of sets of leaves
    table: Table

    def best(self, leaves: int, count: int) -> "Choice":
        """Return the one way to place a number of VMs in this leaf."""
        return Choice(self.bit if count else 0, ((self.index, count),) if count else ())


@dataclass(frozen=True, slots=True)
class Choice:
    """The VMs of each leaf, and the leaves as a set: the greater, the earlier in tie order."""

    leaves: int
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Chain:
    """Nodes side by side; ``own`` is what their common switch adds for 0, 1, 2 .. VMs."""

    nodes: Sequence["Leaf | Chain"]
    own: Array
    most: int
    limit: int | None  # most leaves; None where they are not counted
    in_tie_order: bool = False  # all nodes are leaves, best one first
    _found: dict[tuple[int, int], Choice] = field(default_factory=dict)

    @cached_property
    def _rest(self) -> list[Table]:
        """The tables of the nodes from the i-th on."""
        rest = [NOTHING]
        for node in reversed(self.nodes):
            rest.append(combine(node.table, rest[-1], self.most, self.limit))
        rest.reverse()
        return rest

    @cached_property
    def table(self) -> Table:
        """The best score for every number of VMs in these nodes."""
        return plus(self._rest[0], self.own)

    def best(self, leaves: int, count: int) -> Choice:
        """Return the first of the equally good ways, in tie order of the sets of leaves used.

        Walks the nodes once with all ways that are still equal; among leaves in tie order only
        those that have used the best set so far, for no later leaf can make up for one.
        """
        known = self._found.get((leaves, count))
        if known is None:
            known = self._found[leaves, count] = self._walk(leaves, count)
        return known

    def _walk(self, leaves: int, count: int) -> Choice:
        ways = {(leaves, count): Choice(0, ())}
        for i, node in enumerate(self.nodes):
            if all(left == 0 for _, left in ways):
                break
            after: dict[tuple[int, int], Choice] = {}
            for (used, left), so_far in ways.items():
                for row, takes in _splits(node.table, self._rest[i], self._rest[i + 1], used, left):
                    here = node.best(row, takes)
                    state = (used - row, left - takes)
                    leaves_used = so_far.leaves + here.leaves
                    if state not in after or leaves_used > after[state].leaves:
                        after[state] = Choice(leaves_used, so_far.counts + here.counts)
            if self.in_tie_order:
                best = max(way.leaves for way in after.values())
                after = {state: way for state, way in after.items() if way.leaves == best}
            ways = after
        return max((way for (_, left), way in ways.items() if not left), key=lambda way: way.leaves)


def _splits(
    table: Table, whole: Table, rest: Table, leaves: int, count: int
) -> list[tuple[int, int]]:
    """Return the best (leaves, VMs) for a node, most VMs first, the rest going to ``rest``."""
    row = whole[leaves]
    wanted = NEVER if row is None else row.at(count)
    found: list[tuple[int, int]] = []
    for used in range(min(leaves, len(table) - 1) + 1):
        here = table[used]
        there = rest[leaves - used] if leaves - used < len(rest) else None
        if here is None or there is None:
            continue
        low = max(here.first, count - (there.first + len(there.scores) - 1))
        high = min(here.first + len(here.scores) - 1, count - there.first)
        if low > high:
            continue
        mine = here.scores[low - here.first : high + 1 - here.first]
        start = count - high - there.first
        others = there.scores[start : start + len(mine)][::-1]
        for takes in np.flatnonzero(mine + others == wanted)[::-1].tolist():
            found.append((used, low + takes))
    return found


def plus(table: Table, own: Array) -> Table:
    """Return a table with what a switch adds for 0, 1, 2 .. VMs below it."""
    return tuple(
        None
        if row is None
        else Row(row.first, row.scores + own[row.first : row.first + len(row.scores)])
        for row in table
    )


def leaf_table(scores: Array, *, has_members: bool, limit: int | None) -> Table:
    """Return the table of a leaf; one without members is one more leaf used for any VM."""
    if has_members or limit is None:
        return (Row(0, scores),)
    if limit < 1:
        return NOTHING
    return (Row(0, scores[:1]), Row(1, scores[1:]))


def combine(left: Table, right: Table, most: int, limit: int | None) -> Table:
    """Return the table of two nodes side by side, for up to ``most`` VMs on ``limit`` leaves."""
    if limit is None and left[0] is not None and right[0] is not None:
        return (Row(0, maxplus(left[0].scores, right[0].scores, most)),)
    rows: list[Row | None] = []
    best_so_far = np.full(most + 1, NEVER, dtype=np.int64)
    for used in range(min(len(left) + len(right) - 2, limit or 0) + 1):
        scores = np.full(most + 1, NEVER, dtype=np.int64)
        for mine in range(max(used - len(right) + 1, 0), min(used, len(left) - 1) + 1):
            a, b = left[mine], right[used - mine]
            if a is None or b is None or a.first + b.first > most:
                continue
            first = a.first + b.first
            sums = maxplus(a.scores, b.scores, most - first)
            part = scores[first : first + len(sums)]
            np.maximum(part, sums, out=part)
        scores[scores <= best_so_far] = NEVER
        np.maximum(best_so_far, scores, out=best_so_far)
        kept = np.flatnonzero(scores > IMPOSSIBLE)
        if len(kept):
            rows.append(Row(int(kept[0]), scores[kept[0] : kept[-1] + 1]))
        else:
            rows.append(None)
    while len(rows) > 1 and rows[-1] is None:
        rows.pop()
    return tuple(rows)


def maxplus(left: Array, right: Array, most: int) -> Array:
    """Return max over i + j = k of left[i] + right[j], for k = 0 .. at most ``most``.

    O(len(left) * len(right)), in blocks that stay in the processor's cache.
    """
    if len(left) < len(right):
        left, right = right, left
    length = min(len(left) + len(right) - 1, most + 1)
    if len(right) == 1:
        total: Array = np.maximum(left[:length] + right[0], NEVER)
        return total
    reach = len(right) - 1
    padded = np.full(len(left) + 2 * reach, NEVER, dtype=np.int64)
    padded[reach : reach + len(left)] = left
    # shifted[t, k] = left[k + t - reach] meets right[reach - t].
    shifted: Array = np.ndarray((reach + 1, length), np.int64, padded, strides=(8, 8))
    turned = right[::-1, None]
    result = np.full(length, NEVER, dtype=np.int64)
    step = max(_BLOCK // length, 1)
    for start in range(0, reach + 1, step):
        block = shifted[start : start + step] + turned[start : start + step]
        np.maximum(result, block.max(axis=0), out=result)
    return result
