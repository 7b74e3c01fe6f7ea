"""Sets of leaves as masks, bit i for leaf i: one machine operation handles 64 leaves."""

import itertools
from collections.abc import Iterable, Iterator, Sequence


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


def merged(clusters: Sequence[int], within: Sequence[int]) -> list[list[int]]:
    """Return which disjoint clusters become one, as lists of their indices.

    Each joins the first part all of which is near enough.

    :param clusters: masks of their leaves
    :param within: per leaf, the mask of the leaves that are near enough
    """
    parts: list[list[int]] = []
    members: list[int] = []  # per part: mask of its leaves
    common: list[int] = []  # per part: mask of the leaves that are near all of its members
    by_common: dict[int, int] = {}
    part_of: dict[int, int] = {}  # by leaf
    for i, cluster in enumerate(clusters):
        near_all = -1
        for leaf in bits(cluster):
            near_all &= within[leaf]
        # On a tree all members of a part are near the same leaves.
        likely = by_common.get(near_all)
        tried = () if likely is None else (likely,)
        others: Iterable[int] = range(len(parts))
        neighbours = near_all & ~cluster
        if neighbours.bit_count() < len(parts):
            # A part fits only if all of it is near: only the parts of these leaves can.
            others = sorted({part_of[leaf] for leaf in bits(neighbours) if leaf in part_of})
        found = next(
            (
                part
                for part in itertools.chain(tried, others)
                if not cluster & ~common[part] and not members[part] & ~near_all
            ),
            None,
        )
        if found is None:
            by_common[near_all] = len(parts)
            parts.append([i])
            members.append(cluster)
            common.append(near_all)
        else:
            parts[found].append(i)
            members[found] |= cluster
            common[found] &= near_all
            by_common[common[found]] = found
        part = len(parts) - 1 if found is None else found
        part_of.update(dict.fromkeys(bits(cluster), part))
    return parts
