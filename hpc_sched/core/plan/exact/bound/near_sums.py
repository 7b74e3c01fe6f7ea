"""Scores near the best one of two nodes together, by VMs and leaves."""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.near_scores import NearScores, Wanted
from hpc_sched.core.plan.exact.order import ScoreWeights
from hpc_sched.core.plan.maxplus import LOWEST, splits, sums
from hpc_sched.core.plan.time_limit import Effort

_BLOCK = 1 << 16  # sums that are made at a time: their arrays stay in the cache of a core
_FEW = 1 << 12  # sums that are all made, whether wanted or not
_CALL = 5_000  # sums that take as long as the rest of a call
_SORT = 4  # sums that take as long as to sort one


def near_in_rows(rows: Iterable[Array], wanted: Wanted, *, has_members: bool) -> NearScores:
    """Return the wanted scores of 0, 1, 2 .. leaves that are alike.

    :param rows: scores of ways that use 1, 2 .. of them, each from as many VMs on
    :param has_members: whether they have members: such leaves count as none
    """
    nothing = wanted.vms[wanted.vms == 0]
    found = [NearScores(nothing, nothing)]
    for used, row in enumerate(rows, 1):
        is_there = (wanted.vms >= used) & (wanted.vms < used + len(row))
        scores = row[wanted.vms[is_there] - used]
        is_near = scores >= wanted.least[is_there]
        found.append(NearScores(wanted.vms[is_there][is_near], scores[is_near]))
    vms, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if not has_members:
        order = np.argsort(vms, kind="stable")
        return NearScores(vms[order], scores[order])
    # The best score of all numbers of them.
    order = np.lexsort((-scores, vms))
    vms, first = np.unique(vms[order], return_index=True)
    return NearScores(vms, scores[order][first])


def wanted_below(
    wanted: Wanted, left: Array, right: Array, effort: Effort
) -> tuple[Wanted, Wanted]:
    """Return what is wanted of two nodes side by side.

    :param left: the best score of 0, 1, 2 .. VMs
    :param right: likewise
    :raises EffortSpent: for too many sums
    """
    if len(left) > len(right):
        return wanted_below(wanted, right, left, effort)[::-1]
    # By how much less than the best score a way may have. Negative: it is not wanted.
    spare_left, spare_right = (np.full(len(table), -1) for table in (left, right))
    effort.spend(_CALL)
    if len(wanted.vms) == 1:
        all_vms = int(wanted.vms[0])
        low, best = splits(left, right, all_vms)
        high = low + len(best) - 1
        spare_left[low : high + 1] = best - wanted.least[0]
        spare_right[all_vms - high : all_vms - low + 1] = spare_left[low : high + 1][::-1]
        return _within(left, spare_left), _within(right, spare_right)
    shifted, column = sums(right, left)
    number = max(_BLOCK // len(left), 1)
    for first in range(0, len(wanted.vms), number):
        vms, least = wanted.vms[first : first + number], wanted.least[first : first + number]
        effort.spend(len(vms) * len(left))
        spare = shifted[:, vms] + (column - least)
        here, i = np.nonzero(spare >= 0)
        spare = spare[here, i]
        np.maximum.at(spare_left, here, spare)
        np.maximum.at(spare_right, vms[i] - here, spare)
    return _within(left, spare_left), _within(right, spare_right)


def _within(table: Array, spare: Array) -> Wanted:
    vms = np.flatnonzero(spare >= 0)
    return Wanted(vms, table[vms] - spare[vms])


def side_by_side(
    left: NearScores, right: NearScores, wanted: Wanted, weights: ScoreWeights, effort: Effort
) -> NearScores:
    """Return the scores of two nodes together.

    :raises EffortSpent: for too many sums
    """
    for side, other in ((left, right), (right, left)):
        # Nothing, or no VMs there: the other side's ways are wanted as they are.
        if not len(side.vms) or not side.vms[-1]:
            return NearScores(other.vms, other.scores + side.scores[0]) if len(side.vms) else side
    effort.spend(_CALL)
    found = []
    for row, one, two in _pairs(left, right, wanted, effort):
        scores = left.scores[one] + right.scores[two]
        is_near = scores >= wanted.least[row]
        found.append((row[is_near], scores[is_near]))
    row, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    effort.spend(_SORT * len(row))
    return _not_dominated(wanted.vms, row, scores, weights)


def _pairs(
    left: NearScores, right: NearScores, wanted: Wanted, effort: Effort
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the indices of a wanted number of VMs and of ways on both sides, in blocks."""
    if len(left.vms) * len(right.vms) <= _FEW:
        vms = left.vms[:, None] + right.vms
        row = np.searchsorted(wanted.vms, vms)
        one, two = np.nonzero(wanted.vms[np.minimum(row, len(wanted.vms) - 1)] == vms)
        yield row[one, two], one, two
        return
    first_left, number_left = _runs(left.vms)
    here, best_left = left.vms[first_left], np.maximum.reduceat(left.scores, first_left)
    # The right one by number of VMs, with an entry for those that it does not have.
    first, number = _runs(right.vms)
    there, missing = right.vms[first], int(right.vms[-1]) + 1
    first_right, number_right = np.zeros((2, missing + 1), dtype=np.int64)
    best_right = np.full(missing + 1, LOWEST >> 1)
    first_right[there], number_right[there] = first, number
    best_right[there] = np.maximum.reduceat(right.scores, first)
    rows = max(_BLOCK // len(here), 1)
    for start in range(0, len(wanted.vms), rows):
        vms, least = wanted.vms[start : start + rows], wanted.least[start : start + rows]
        rest = vms[:, None] - here
        rest[(rest < 0) | (rest > missing)] = missing
        effort.spend(rest.size)
        row, one = np.nonzero(best_left + best_right[rest] >= least[:, None])
        two = rest[row, one]
        for part in _blocks(number_left[one]):
            at, i = _each(number_left[one[part]])
            effort.spend(len(at))
            of_row, way, of_right = row[part][at], first_left[one[part]][at] + i, two[part][at]
            # Most ways of the left side are too few with the best one of the right.
            is_near = left.scores[way] + best_right[of_right] >= least[of_row]
            of_row, way, of_right = of_row[is_near], way[is_near], of_right[is_near]
            for block in _blocks(number_right[of_right]):
                at, j = _each(number_right[of_right[block]])
                effort.spend(len(at))
                first_of = first_right[of_right[block]]
                yield start + of_row[block][at], way[block][at], first_of[at] + j


def _runs(vms: Array) -> tuple[Array, Array]:
    """Return where runs of equal numbers begin, and how long they are."""
    first = np.flatnonzero(np.concatenate(([True], vms[1:] != vms[:-1])))
    return first, np.diff(np.append(first, len(vms)))


def _blocks(sizes: Array) -> Iterator[slice]:
    """Yield parts of a row of numbers that add up to some ``_BLOCK`` each."""
    ends = np.cumsum(sizes)
    last = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(_BLOCK, last, _BLOCK), side="right").tolist()
    for first, end in itertools.pairwise([0, *cuts, len(sizes)]):
        yield slice(first, end)


def _each(numbers: Array) -> tuple[Array, Array]:
    """Return the position of each number, and 0, 1, 2 .., as often as it says."""
    at = np.repeat(np.arange(len(numbers)), numbers)
    return at, np.arange(len(at)) - np.repeat(np.cumsum(numbers) - numbers, numbers)


def _not_dominated(vms: Array, row: Array, scores: Array, weights: ScoreWeights) -> NearScores:
    """Return the scores of each number of VMs that save more than any with fewer leaves.

    The best of each number of leaves, if all are kept. Leaves have their sign; where that is -1
    those that save as much stay too, for of plans that keep a bound at least the one with fewer
    leaves comes first.

    :param row: of each score: an index into ``vms``
    """
    if not len(row):
        return NearScores(vms[row], scores)
    leaves = weights.leaves(scores)
    low = int(leaves.min())
    width = int(leaves.max()) - low + 1
    # The best of each number of leaves. Of one key each: by three keys it takes five times as long.
    keys = row * width + (leaves - low)
    order = keys.argsort()
    keys = keys[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    scores = np.maximum.reduceat(scores[order], first)
    row, leaves = np.divmod(keys[first], width)
    leaves += low
    if weights.keeps_all:
        return NearScores(vms[row], scores)
    saved = weights.saved(scores, leaves)
    # Above all of the numbers of VMs before.
    saved += row * (int(saved.max()) - int(saved.min()) + 1)
    is_more = np.ones(len(saved), dtype=np.bool_)
    is_more[1:] = saved[1:] + (weights.sign < 0) > np.maximum.accumulate(saved)[:-1]
    return NearScores(vms[row[is_more]], scores[is_more])
