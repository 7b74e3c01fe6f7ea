"""How far the leaves of a graph of switches are from each other, and over which switches.

between        the entry
  _check_span    no path is longer than those of a tree
  _near          which leaves are how near
  _uppers        the switches above that paths between leaves lead over
    _spread        a step of the search, for all switches and all leaves at once

Sets of leaves are masks, bit i for leaf i, so that one operation takes 64 leaves a step further.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology.hierarchy import bits
from hpc_sched.topology.tree import MAX_LEVELS

# Links on the longest path that a tree of so many levels can stand for.
_MAX_LINKS = 2 * MAX_LEVELS - 2

# The switches of a leaf, and those that each switch is linked to, by number.
Switches = tuple[int, ...]
Neighbours = Sequence[Switches]


@dataclass(frozen=True, slots=True)
class Distances:
    """Which leaves are how near, and the switches above them."""

    near: list[list[int]]  # near[k][i]: the leaves within k links of leaf i, itself included
    uppers: dict[int, tuple[int, int]]  # links to the nearest leaves, and these


def between(leaves: Sequence[Switches], neighbours: Neighbours, names: Sequence[str]) -> Distances:
    """Return the distances between leaves, any switch of the one to any of the other.

    Linear in links, times the longest path, in steps of 64 leaves.

    :param names: of the switches, for errors
    :raises exceptions.TopologyError: for paths longer than those of any tree
    """
    _check_span(leaves, neighbours, names)
    start = _masks(leaves, neighbours)
    near = _near(leaves, neighbours, start, names)
    return Distances(near, _uppers(neighbours, start, near))


def _masks(leaves: Sequence[Switches], neighbours: Neighbours) -> list[int]:
    """Return, by switch, the leaves that it is part of."""
    masks = [0] * len(neighbours)
    for i, switches in enumerate(leaves):
        for s in switches:
            masks[s] |= 1 << i
    return masks


def _distances(neighbours: Neighbours, switches: Iterable[int]) -> dict[int, int]:
    """Return the links from the nearest of some switches to all that they reach, nearest first."""
    distance = dict.fromkeys(switches, 0)
    queue = list(distance)
    for here in queue:
        for there in neighbours[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def _check_span(leaves: Sequence[Switches], neighbours: Neighbours, names: Sequence[str]) -> None:
    """Refuse paths that no tree stands for, before masks are spread along them.

    One search finds at least half of the longest path. Each part of the fabric is searched once:
    who shares a part with a leaf is reached from it.
    """
    part_of: dict[int, list[int]] = {}
    for i, switches in enumerate(leaves):
        for s in switches:
            part_of.setdefault(s, []).append(i)
    reached: set[int] = set()
    for i, switches in enumerate(leaves):
        if i in reached:
            continue
        links: dict[int, int] = {}
        for s, distance in _distances(neighbours, switches).items():
            for leaf in part_of.get(s, ()):
                links.setdefault(leaf, distance)
        reached |= links.keys()
        farthest, distance = list(links.items())[-1]
        if distance > _MAX_LINKS:
            raise _too_far(names, leaves[i], leaves[farthest], f"{distance + 1}")


def _too_far(
    names: Sequence[str], here: Switches, there: Switches, switches: str
) -> exceptions.TopologyError:
    return exceptions.TopologyError(
        f"{switches} switches on the shortest path between {names[here[0]]!r} and "
        f"{names[there[0]]!r}, {_MAX_LINKS + 1} at most: there is no tree to be seen"
    )


def _spread(neighbours: Neighbours, masks: list[int]) -> Iterator[list[int]]:
    """Yield, by switch, the leaves within 0 links, 1 link, 2 links and so on, without an end."""
    while True:
        yield masks
        wider = []
        for mask, next_ in zip(masks, neighbours, strict=True):
            for there in next_:
                mask |= masks[there]
            wider.append(mask)
        masks = wider


def _near(
    leaves: Sequence[Switches], neighbours: Neighbours, start: list[int], names: Sequence[str]
) -> list[list[int]]:
    """Return, by links, the leaves within so many links of each leaf, until nobody is missing."""
    connected = [0] * len(start)
    for switches in leaves:
        for s in switches:
            if not connected[s]:
                part = _distances(neighbours, [s])
                together = 0
                for other in part:
                    together |= start[other]
                for other in part:
                    connected[other] = together
    everybody = [_union(connected, switches) for switches in leaves]
    near: list[list[int]] = []
    for masks in _spread(neighbours, start):
        near.append([_union(masks, switches) for switches in leaves])
        if near[-1] == everybody:
            break
        if len(near) > _MAX_LINKS:
            i = next(i for i, mask in enumerate(near[-1]) if mask != everybody[i])
            missing = next(bits(everybody[i] & ~near[-1][i]))
            raise _too_far(names, leaves[i], leaves[missing], f"more than {len(near)}")
    return near


def _union(masks: Sequence[int], switches: Switches) -> int:
    union = 0
    for s in switches:
        union |= masks[s]
    return union


def _uppers(
    neighbours: Neighbours, start: list[int], near: Sequence[Sequence[int]]
) -> dict[int, tuple[int, int]]:
    """Return the links from the nearest leaf, and the leaves so near, of the switches above.

    A switch counts that is on a shortest path from one of those leaves to another. What only
    looks like the top of a tree does not: a leaf switch that no host hangs on yet is linked to
    all spines as a core switch is.
    """
    found: dict[int, tuple[int, int]] = {}
    first: dict[int, tuple[int, int]] = {}
    known: dict[tuple[int, int, int], bool] = {}  # switches side by side see the same
    for links, masks in zip(range(len(near)), _spread(neighbours, start), strict=False):
        for s, mask in enumerate(masks):
            if start[s] or not mask or s in found:
                continue
            distance, below = first.setdefault(s, (links, mask))
            if distance + links >= len(near):
                continue  # nobody is so far from anybody
            key = (distance + links, below, mask)
            if key not in known:
                nearer = near[distance + links - 1]
                known[key] = any(mask & ~nearer[leaf] for leaf in bits(below))
            if known[key]:
                found[s] = distance, below
    return found
