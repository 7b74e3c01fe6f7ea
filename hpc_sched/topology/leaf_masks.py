"""Sets of leaves as masks, bit i for leaf i: one operation handles 64 leaves."""

from collections.abc import Iterable, Iterator


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of a mask, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def union(masks: Iterable[int]) -> int:
    """Return the union of masks."""
    found = 0
    for mask in masks:
        found |= mask
    return found
