"""What the ranks of a group send each other in one iteration: the sums over its steps."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.core.traffic.step import Step

# Bytes are counted by pair in a matrix: of more ranks it would not be small.
MOST_RANKS = 1024
# Sums of some thousand switches, and products with their capacities, are exact in 64 bits.
MOST_BYTES = 1 << 36


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Bytes that ranks send each other, each pair once, by sender, then by receiver.

    They are whole numbers relative to each other, of at most ``MOST_BYTES`` together, so that what
    crosses a switch is exact. Shape of the arrays (pairs,). Read-only: requests share them.
    """

    ranks: int
    sender: Array
    receiver: Array
    bytes: Array

    def matrix(self) -> Array:
        """Return the bytes as a matrix, row sends to column. Shape (ranks, ranks)."""
        found = np.zeros((self.ranks, self.ranks), dtype=np.int64)
        found[self.sender, self.receiver] = self.bytes
        return found


def of_steps(ranks: int, steps: Iterable[Step]) -> Traffic:
    """Return what ranks send in all steps. O(messages + ranks ** 2).

    :raises ValueError: for more than ``MOST_RANKS`` ranks
    """
    sent = np.zeros(_checked(ranks) ** 2)
    for each in steps:
        # One step after the other: a product of matrices is rounded as threads have it.
        pair = each.sender * ranks + each.receiver
        sent += np.bincount(pair, each.size * each.times, ranks * ranks)
    return of_matrix(sent.reshape(ranks, ranks))


def of_matrix(sent: Reals) -> Traffic:
    """Return what ranks send by a matrix, row sends to column; nothing to themselves.

    Whole numbers of at most ``MOST_BYTES`` together stay; others are scaled, and rounded up, so
    that no message vanishes. O(ranks ** 2).

    :param sent: finite numbers of at least 0. Shape (ranks, ranks)
    :raises ValueError: for more than ``MOST_RANKS`` ranks
    """
    ranks = _checked(len(sent))
    apart = np.where(np.eye(ranks, dtype=np.bool_), 0.0, sent)
    if (apart != np.floor(apart)).any() or _sum(apart) > MOST_BYTES:
        # Powers of two change no ratio. First 1 at most, then half of what is allowed together.
        parts = np.ldexp(apart, -_exponent(apart.max()))
        parts = np.ceil(np.ldexp(parts, _exponent(MOST_BYTES / 4) - _exponent(_sum(parts))))
        apart = np.where(apart > 0, np.maximum(parts, 1), 0)
    sender, receiver = np.nonzero(apart)
    sent_bytes = apart[sender, receiver].astype(np.int64)
    for array in (sender, receiver, sent_bytes):
        array.flags.writeable = False
    return Traffic(ranks, sender, receiver, sent_bytes)


def _sum(numbers: Reals) -> float:
    """Return the sum, rounded once: NumPy's depends on the order in which a machine adds."""
    return math.fsum(numbers.ravel().tolist()) if numbers.max(initial=0.0) < 1e300 else math.inf


def _exponent(number: float) -> int:
    """Return the least power of two that is above a number."""
    return math.frexp(number)[1]


def _checked(ranks: int) -> int:
    if ranks > MOST_RANKS:
        raise ValueError(f"{ranks} ranks: expected at most {MOST_RANKS}")
    return ranks
