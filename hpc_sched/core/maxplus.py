"""Sums of best choices: the inner loop of the planner's knapsack."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]

# The score of what cannot be; two of them still fit into an int64.
NEVER = -(1 << 61)
# Every score that can be is above this, whatever is added to one that cannot.
IMPOSSIBLE = NEVER // 2
_BLOCK = 1 << 17  # numbers that are worked on at a time, some 1 MB


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
