"""The max-plus convolution of two tables of scores."""

from collections.abc import Callable, Iterable

import numpy as np

from hpc_sched.core.arrays import Array

LOWEST = np.iinfo(np.int64).min
_CALL = 1000  # additions that cost as much as a call of NumPy
_STEPS = (1, 2, 4, 8, 16)
_SMALL = 1 << 14  # sums that are made at once
_CHEAP = 50_000  # additions that cost less than to look for a better step


def bent(scores: Array, step: int) -> Array:
    """Return where a table is not strictly convex over ``step`` VMs to both sides, or ends there.

    Of two tables side by side, a best split leaves at most one between such points: elsewhere
    ``step`` VMs more here and less there, or the reverse, have a better score.
    """
    if len(scores) <= 2 * step:
        return np.arange(len(scores))
    is_bent = np.ones(len(scores), dtype=np.bool_)
    middle = scores[step:-step]
    is_bent[step:-step] = scores[2 * step :] + scores[: -2 * step] <= middle + middle
    return np.flatnonzero(is_bent)


def maxplus(
    left: Array, right: Array, most: int, spend: Callable[[int], None] | None = None
) -> Array:
    """Return max over i + j = k of left[i] + right[j] for each k from 0 to at most ``most``.

    Only sums with i or j in :func:`bent` are looked at, for the best of some steps.
    O(bent(left) * len(right) + len(left) * bent(right)). All sums must lie within 62 bits.

    :param spend: called with the additions that this takes
    """
    if len(left) < len(right):
        left, right = right, left
    if len(left) * len(right) <= _SMALL:
        if spend:
            spend(len(left) * len(right))
        shifted, column = sums(left, right)
        best: Array = (shifted + column).max(axis=0)
        return best[: most + 1]
    result = np.full(min(len(left) + len(right) - 1, most + 1), LOWEST)
    # All sums, until a step is found that needs fewer.
    points, corners = np.arange(len(right)), np.arange(0)
    cost = _cost(points, left)
    for step in _STEPS:
        if cost < _CHEAP:
            break
        few, others = bent(right, step), bent(left, step)
        if (sparse := _cost(few, left) + _cost(others, right)) < cost:
            points, corners, cost = few, others, sparse
    if spend:
        spend(cost)
    _raise(result, left, right, points.tolist())
    _raise(result, right, left, corners.tolist())
    return result


def splits(left: Array, right: Array, total: int) -> tuple[int, Array]:
    """Return the least i with i + j = total, and the sums of left[i] and right[j] from it on."""
    low, high = max(0, total - len(right) + 1), min(total, len(left) - 1)
    return low, left[low : high + 1] + right[total - high : total - low + 1][::-1]


def sums(table: Array, other: Array) -> tuple[Array, Array]:
    """Return one table shifted against another one, and the other one, as columns.

    Their sum at ``[j, k]`` is ``table[k - j] + other[j]``; very little if there is no such entry.
    """
    edge = np.full(len(other) - 1, LOWEST >> 1)
    padded = np.concatenate((edge, table, edge))
    shape, step = (len(other), len(table) + len(other) - 1), padded.itemsize
    # A view of the memory: row j begins j entries before the end of the first edge.
    shifted = np.ndarray(shape, padded.dtype, padded, strides=(step, step))[::-1]
    return shifted, other[:, None]


def _cost(points: Array, table: Array) -> int:
    """Return what a table's sums with some points cost, in additions."""
    return len(points) * (len(table) + _CALL)


def _raise(result: Array, table: Array, other: Array, points: Iterable[int]) -> None:
    """Raise a result to the sums of a table with some points of another."""
    for point in points:
        part = result[point : point + len(table)]
        if not len(part):
            return
        np.maximum(part, table[: len(part)] + other[point], out=part)
