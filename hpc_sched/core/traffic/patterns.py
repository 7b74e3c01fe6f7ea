"""What the ranks of parallel applications send in one iteration, as steps.

Sizes of a pattern are relative to each other. Ranks are numbered in the order of their places.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.traffic.block_tridiagonal import block_tridiagonal
from hpc_sched.core.traffic.step import Step, step

NONE = "none"  # of an application that does not communicate
RING = "ring"
BT = "bt"


def ring_allreduce(ranks: int) -> Iterator[Step]:
    """Yield the steps of a reduction and a gathering around a ring, each in ranks - 1 rounds.

    In each round a rank sends a part of its data, 1 / ranks, to the next one.
    """
    here = np.arange(ranks)
    yield step([(here, np.roll(here, -1))], 1.0, times=2 * (ranks - 1))


def recursive_doubling(ranks: int) -> Iterator[Step]:
    """Yield the steps of an allreduce in which ranks exchange all data at twice the distance.

    Beyond a power of two, the first ranks are pairs: of each the even one gives its data to the
    odd one before, and gets the result after (Thakur, Rabenseifner, Gropp: Optimization of
    collective communication operations in MPICH).
    """
    power = 1 << (ranks.bit_length() - 1)
    beyond = ranks - power
    even = np.arange(0, 2 * beyond, 2)
    others = np.concatenate([even + 1, np.arange(2 * beyond, ranks)])
    here = np.arange(power)
    if beyond:
        yield step([(even, even + 1)], 1.0)
    for bit in range(power.bit_length() - 1):
        yield step([(others, others[here ^ (1 << bit)])], 1.0)
    if beyond:
        yield step([(even + 1, even)], 1.0)


def all_to_all(ranks: int) -> Iterator[Step]:
    """Yield the steps of a personalised exchange: in the k-th, each rank sends to rank + k."""
    here = np.arange(ranks)
    for distance in range(1, ranks):
        yield step([(here, np.roll(here, -distance))], 1.0)


def halo(sides: tuple[int, ...]) -> Iterator[Step]:
    """Yield the step of a periodic grid whose ranks send to both neighbours of each dimension.

    On a side of two, both neighbours are one rank, which gets two messages. In C order the last
    dimension's neighbours are next to each other.
    """
    here = np.arange(math.prod(sides)).reshape(sides)
    yield step(
        [
            (here.ravel(), np.roll(here, by, axis).ravel())
            for axis in range(len(sides))
            for by in (-1, 1)
        ],
        1.0,
    )


def nearly_cubic_halo(dimensions: int) -> Callable[[int], Iterator[Step]]:
    """Return the pattern of a periodic grid whose sides are those of :func:`grid`."""
    return lambda ranks: halo(grid(ranks, dimensions))


def broadcast(ranks: int) -> Iterator[Step]:
    """Yield the steps of a binomial tree from rank 0: those that have the data send it on."""
    have = 1
    while have < ranks:
        new: Array = np.arange(have, min(2 * have, ranks))
        yield step([(new - have, new)], 1.0)
        have *= 2


def nothing(ranks: int) -> Iterator[Step]:
    """Yield no step."""
    return iter(())


_SWEEPS = 0.9  # of BT's computation: its systems forward; the rest is back substitution

PATTERNS: Mapping[str, Callable[[int], Iterator[Step]]] = MappingProxyType(
    {
        RING: ring_allreduce,
        "doubling": recursive_doubling,
        "alltoall": all_to_all,
        "halo1": nearly_cubic_halo(1),
        "halo2": nearly_cubic_halo(2),
        "halo3": nearly_cubic_halo(3),
        BT: lambda ranks: block_tridiagonal(math.isqrt(ranks), forward=_SWEEPS),
        "broadcast": broadcast,
        NONE: nothing,
    }
)


def sends(pattern: str, ranks: int) -> bool:
    """Return whether this many ranks have any message in a pattern."""
    return pattern != NONE and ranks >= (4 if pattern == BT else 2)


def grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the sides of a grid that are nearest to each other, ascending; their product is ranks.

    O(ranks ** (1 / 2) * dimensions).
    """
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] = (1,) * (dimensions - 1) + (ranks,)
    for side in range(1, round(ranks ** (1 / dimensions)) + 1):
        if ranks % side == 0:
            rest = grid(ranks // side, dimensions - 1)
            found = tuple(sorted((side, *rest)))
            # The least sum of sides is the grid nearest to a cube: it has the least surface.
            if sum(found) < sum(best):
                best = found
    return best
