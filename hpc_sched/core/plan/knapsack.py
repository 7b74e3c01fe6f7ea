"""The knapsack over a tree of switches that gives the least Hop-Byte cost.

The closed form of the cost (Dudina2013) is a constant less the savings of each switch and host.
The savings below a switch depend only on the number of VMs below each of its children. So the
best split is found bottom up, with one table a switch: the best score of 0, 1, 2 .. new VMs
below it.

A score is one integer with three digits, from the highest: the saving, the leaves used, and the
excess capacity of those leaves. The last two are negative. So the greatest score is the least
cost; of equal costs that with fewer leaves; of equal leaves that with less excess.

With a bound on the leaves a table has a row for each number of leaves used, else one row. A row
has only the scores that no row with fewer leaves reaches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array

# The score of an impossible number of VMs; the sum of two fits into an int64.
NEVER = -(1 << 61)
# A score at most this is impossible: NEVER plus any possible score is below it.
IMPOSSIBLE = NEVER // 2
_BLOCK = 1 << 17  # numbers in one step of maxplus, some 1 MB


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Scores of consecutive numbers of VMs."""

    first: int  # the number of VMs of the first score
    scores: Array

    def at(self, count: int) -> int:
        """Return the score of a number of VMs, NEVER outside the row."""
        place = count - self.first
        return int(self.scores[place]) if 0 <= place < len(self.scores) else NEVER


Table = tuple[ScoreRow | None, ...]  # by leaves used

NOTHING: Table = (ScoreRow(0, np.zeros(1, dtype=np.int64)),)


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The weights of savings and leaves in a score; that of excess capacity is 1."""

    saving: int
    leaf: int
    excess_limit: int  # larger excesses of one leaf count as equal

    @classmethod
    def of(cls, *, saving: int, leaves: int, excess: int, open_leaves: int) -> "ScoreWeights":
        """Return weights for savings, numbers of leaves and excess capacities up to these.

        If they do not fit into 60 bits, the excess of each leaf is limited.
        """
        room = max((1 << 60) // ((saving + 1) * (leaves + 1)), 1)
        limit = excess if excess < room else (room - 1) // max(open_leaves, 1)
        width = min(excess, limit * max(open_leaves, 1)) + 1
        return cls(saving=width * (leaves + 1), leaf=width, excess_limit=limit)


@dataclass(frozen=True)
class LeafNode:
    """A leaf switch with its table."""

    index: int  # in Topology.switches
    bit: int  # the leaf's weight in the order of sets of leaves
    table: Table

    def best(self, leaves: int, count: int) -> "Choice":
        """Return the one way to place a number of VMs in this leaf."""
        return Choice(self.bit if count else 0, ((self.index, count),) if count else ())


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to place VMs in leaves."""

    leaf_set: int  # bit set of the used leaves; of two sets the greater is first in tie order
    counts: tuple[tuple[int, int], ...]  # (leaf, VMs)


@dataclass(frozen=True)
class Chain:
    """Nodes below one switch."""

    nodes: Sequence["LeafNode | Chain"]
    own: Array  # shape (most + 1,): score that the switch adds for 0, 1, 2 .. VMs
    most: int  # VMs
    limit: int | None  # most leaves; None: not counted
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
        """Return the way with the best score; of equals the first in tie order of leaf sets."""
        known = self._found.get((leaves, count))
        if known is None:
            known = self._found[leaves, count] = self._walk(leaves, count)
        return known

    def _walk(self, leaves: int, count: int) -> Choice:
        """Go through the nodes once, with all ways that are still equally good."""
        ways = {(leaves, count): Choice(0, ())}
        for i, node in enumerate(self.nodes):
            if all(left == 0 for _, left in ways):
                break
            after: dict[tuple[int, int], Choice] = {}
            for (used, left), so_far in ways.items():
                for row, takes in _splits(node.table, self._rest[i], self._rest[i + 1], used, left):
                    here = node.best(row, takes)
                    state = (used - row, left - takes)
                    leaves_used = so_far.leaf_set + here.leaf_set
                    if state not in after or leaves_used > after[state].leaf_set:
                        after[state] = Choice(leaves_used, so_far.counts + here.counts)
            if self.in_tie_order:
                # No later leaf outweighs an earlier one: keep the ways with the best set so far.
                best = max(way.leaf_set for way in after.values())
                after = {state: way for state, way in after.items() if way.leaf_set == best}
            ways = after
        return max(
            (way for (_, left), way in ways.items() if not left), key=lambda way: way.leaf_set
        )


def _splits(
    table: Table, whole: Table, rest: Table, leaves: int, count: int
) -> list[tuple[int, int]]:
    """Return the best (leaves, VMs) of a node; ``rest`` is of those after it, ``whole`` of all."""
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
    """Return a table with the scores that a switch adds for 0, 1, 2 .. VMs."""
    return tuple(
        row and ScoreRow(row.first, row.scores + own[row.first : row.first + len(row.scores)])
        for row in table
    )


def leaf_table(scores: Array, *, has_members: bool, limit: int | None) -> Table:
    """Return the table of a leaf; a leaf without members counts as used from the first VM on."""
    if has_members or limit is None:
        return (ScoreRow(0, scores),)
    if limit < 1:
        return NOTHING
    return (ScoreRow(0, scores[:1]), ScoreRow(1, scores[1:]))


def combine(left: Table, right: Table, most: int, limit: int | None) -> Table:
    """Return the table of two nodes side by side, for up to ``most`` VMs on ``limit`` leaves."""
    if limit is None and left[0] is not None and right[0] is not None:
        return (ScoreRow(0, maxplus(left[0].scores, right[0].scores, most)),)
    rows: list[ScoreRow | None] = []
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
        row = ScoreRow(int(kept[0]), scores[kept[0] : kept[-1] + 1]) if len(kept) else None
        rows.append(row)
    while len(rows) > 1 and rows[-1] is None:
        rows.pop()
    return tuple(rows)


def maxplus(left: Array, right: Array, most: int) -> Array:
    """Return max over i + j = k of left[i] + right[j] for each k from 0 to at most ``most``.

    O(len(left) * len(right)), in blocks that fit into the processor's cache.
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
