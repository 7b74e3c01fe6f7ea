"""Distances between the leaves of a graph of switches, and the switches on their paths.

between        the entry
  _check_span    bounds the length of paths
  _near          the leaves near each leaf
  _uppers        the switches above leaves, on shortest paths between them
    _spread        one step of the search, for all switches and all leaves at once
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology.leaf_masks import bits, union
from hpc_sched.topology.tree import MAX_LEVELS

# Links on the longest path in a tree of ``MAX_LEVELS`` levels.
_MAX_LINKS = 2 * MAX_LEVELS - 2

# The switches of a leaf, and those that each switch is linked to, by number.
Switches = tuple[int, ...]
Neighbours = Sequence[Switches]


@dataclass(frozen=True, slots=True)
class Distances:
    """Distances between leaves, and the switches above them."""

    near: list[list[int]]  # near[k][i]: mask of the leaves within k links of leaf i
    uppers: dict[int, tuple[int, int]]  # by switch: links to the nearest leaves, and their mask


def between(leaves: Sequence[Switches], neighbours: Neighbours, names: Sequence[str]) -> Distances:
    """Return the distances between leaves: between their nearest switches.

    Linear in links, times the longest path, in steps of 64 leaves.

    :param names: of the switches, for errors
    :raises exceptions.TopologyError: for paths longer than those of any tree
    """
    _check_span(leaves, neighbours, names)
    start = _masks(leaves, neighbours)
    near = _near(leaves, neighbours, start, names)
    return Distances(near, _uppers(neighbours, start, near))


def _masks(leaves: Sequence[Switches], neighbours: Neighbours) -> list[int]:
    """Return, per switch, the mask of the leaves that it is part of."""
    masks = [0] * len(neighbours)
    for i, switches in enumerate(leaves):
        for s in switches:
            masks[s] |= 1 << i
    return masks


def _distances(neighbours: Neighbours, switches: Iterable[int]) -> dict[int, int]:
    """Return all reachable switches with the links from the nearest of some switches.

    Nearest first.
    """
    distance = dict.fromkeys(switches, 0)
    queue = list(distance)
    for here in queue:
        for there in neighbours[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def _check_span(leaves: Sequence[Switches], neighbours: Neighbours, names: Sequence[str]) -> None:
    """Refuse paths longer than those of a tree, before masks are spread along them.

    One search finds at least half of the longest path. Each connected part of the fabric is
    searched once.

    :raises exceptions.TopologyError: for a longer path
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
    """Yield, per switch, the masks of the leaves within 0, 1, 2 links and so on, without end."""
    while True:
        yield masks
        masks = [
            mask | union(masks[there] for there in next_)
            for mask, next_ in zip(masks, neighbours, strict=True)
        ]


def _near(
    leaves: Sequence[Switches], neighbours: Neighbours, start: list[int], names: Sequence[str]
) -> list[list[int]]:
    """Return, per number of links and leaf, the mask of the leaves within that distance.

    Ends at the distance that reaches all connected leaves.
    """
    connected = [0] * len(start)
    for switches in leaves:
        for s in switches:
            if not connected[s]:
                part = _distances(neighbours, [s])
                together = union(start[other] for other in part)
                for other in part:
                    connected[other] = together
    reachable = [union(connected[s] for s in switches) for switches in leaves]
    near: list[list[int]] = []
    for masks in _spread(neighbours, start):
        near.append([union(masks[s] for s in switches) for switches in leaves])
        if near[-1] == reachable:
            break
        if len(near) > _MAX_LINKS:
            i = next(i for i, mask in enumerate(near[-1]) if mask != reachable[i])
            missing = next(bits(reachable[i] & ~near[-1][i]))
            raise _too_far(names, leaves[i], leaves[missing], f"more than {len(near)}")
    return near


def _uppers(
    neighbours: Neighbours, start: list[int], near: Sequence[Sequence[int]]
) -> dict[int, tuple[int, int]]:
    """Return, per switch above leaves, the links to its nearest leaves, and their mask.

    Such a switch is on a shortest path from one of these leaves to another. That excludes a leaf
    switch without hosts, which is linked to all spines as a core switch is.
    """
    found: dict[int, tuple[int, int]] = {}
    first: dict[int, tuple[int, int]] = {}
    known: dict[tuple[int, int, int], bool] = {}  # parallel switches have the same key
    for links, masks in zip(range(len(near)), _spread(neighbours, start), strict=False):
        for s, mask in enumerate(masks):
            if start[s] or not mask or s in found:
                continue
            distance, below = first.setdefault(s, (links, mask))
            if distance + links >= len(near):
                continue  # no two leaves are this far apart
            key = (distance + links, below, mask)
            if key not in known:
                nearer = near[distance + links - 1]
                known[key] = any(mask & ~nearer[leaf] for leaf in bits(below))
            if known[key]:
                found[s] = distance, below
    return found
