"""The graph of switches of a fabric, made into a tree."""

import itertools
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.hierarchy import Leaf, Upper, bits, union
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.cabling.cabled_leaves import LeafSets
from hpc_sched.topology.tree import MAX_LEVELS

# Links on the longest path in a tree of ``MAX_LEVELS`` levels.
_MAX_LINKS = 2 * MAX_LEVELS - 2

# The switches of a leaf, and those that each switch is linked to, by number.
_Switches = tuple[int, ...]
_Neighbours = Sequence[_Switches]
# Parallel links one by one: the switch at the other end, None for an adapter, and Gb/s.
_Ends = list[tuple[int | None, float | None]]


class Cable(NamedTuple):
    """A link between two nodes, by their ids, and its data rate in Gb/s if known."""

    a: str
    b: str
    rate: float | None = None


def fabric(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    adapters: Container[str],
    *,
    ids: Mapping[str, str] = hierarchy.NO_IDS,
    remarks: Sequence[str] = (),
    incomplete: Sequence[str] = (),
) -> Topology:
    """Return the tree of the hosts of a fabric.

    Leaves are those of :class:`LeafSets`, in the order of their switches' names. The distance of
    hosts with several rails is that of the nearest two, of the rails that most hosts of a leaf
    have. The order of the cables is irrelevant.
    Linear in cables, times the longest path, in steps of 64 leaves.

    :param names: switch to its unique name
    :param hosts: adapter to its host; or host to itself
    :param adapters: what is no switch and takes data rate of one; cables to anything else are left
        out
    :param ids: name of a switch to its id
    :raises exceptions.TopologyError: where no switch carries a host, for too many leaves, and for
        paths longer than those of any tree
    """
    links, above, carried = _links(cables, names, hosts, adapters)
    if not above:
        raise exceptions.TopologyError(
            "expected a switch that carries a host, found hosts that are linked to none"
        )
    sets = LeafSets(above)
    name = sorted(names.values())
    number = {text: s for s, text in enumerate(name)}
    leaves = [
        tuple(number[one] for one in _of_most(switches, hosts_of, above))
        for switches, hosts_of in sets.leaves.items()
    ]
    neighbours = [tuple(sorted({s for s, _ in ends if s is not None})) for ends in links]
    parts = by_key((s, 1 << i) for i, switches in enumerate(leaves) for s in switches)
    # Per switch: mask of the leaves that it is part of.
    start = [union(parts.get(s, ())) for s in range(len(name))]
    _check_span(leaves, neighbours, start, name)
    near = _near(leaves, neighbours, start, name)
    uppers = sorted(_uppers(neighbours, start, near).items())
    # Number of links to the nearest leaf switch, for leaf switches and uppers.
    height = {s: 0 for s, mask in enumerate(start) if mask}
    height |= {s: distance for s, (distance, _) in uppers}
    below = {s: start[s] for s in height} | {s: mask for s, (_, mask) in uppers}
    rates = {s: _rates(links[s], s, height, below) for s in height}
    return hierarchy.build(
        [
            Leaf(whole, hosts_of, Links.total(rates[s] for s in switches))
            for (whole, hosts_of), switches in zip(sets.leaves.items(), leaves, strict=True)
        ],
        near,
        [Upper(name[s], distance + 1, below, rates[s]) for s, (distance, below) in uppers],
        (*remarks, *sets.remarks),
        incomplete,
        ids,
        _host_links(carried),
    )


def _links(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    adapters: Container[str],
) -> tuple[list[_Ends], dict[str, set[str]], dict[str, list[float | None]]]:
    """Return the links of each switch, in the order of names, and of each host.

    A host's are the names of its switches, and the rates of its links to these.
    """
    number = {id_: s for s, id_ in enumerate(sorted(names, key=names.__getitem__))}
    links: list[_Ends] = [[] for _ in number]
    above: dict[str, set[str]] = {}
    carried: dict[str, list[float | None]] = {}
    for a, b, rate in cables:
        for here, there in ((a, b), (b, a)) if a != b else ():
            if here in number and (there in number or there in adapters):
                links[number[here]].append((number.get(there), rate))
            if here in number and there in hosts:
                above.setdefault(hosts[there], set()).add(names[here])
                carried.setdefault(hosts[there], []).append(rate)
    return links, above, carried


def _host_links(carried: Mapping[str, Sequence[float | None]]) -> dict[str, Cables]:
    """Return the links of each host; equal ones are one object."""
    known: dict[Cables, Cables] = {}
    found = {host: Cables.of(rates) for host, rates in carried.items()}
    return {host: known.setdefault(one, one) for host, one in found.items()}


def _of_most(
    switches: Sequence[str], hosts: Sequence[str], above: Mapping[str, Collection[str]]
) -> Sequence[str]:
    """Return those switches of a leaf that most of its hosts are connected to.

    A switch that only a few have, be it a core switch, does not bring the others closer to it.
    """
    if all(len(above[host]) == len(switches) for host in hosts):
        return switches
    count = Counter(switch for host in hosts for switch in above[host])
    return [one for one in switches if 2 * count[one] > len(hosts)] or switches


def _distances(neighbours: _Neighbours, switches: Iterable[int]) -> dict[int, int]:
    """Return all reachable switches with the links from the nearest of some; nearest first."""
    distance = dict.fromkeys(switches, 0)
    queue = list(distance)
    for here in queue:
        for there in neighbours[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def _check_span(
    leaves: Sequence[_Switches], neighbours: _Neighbours, start: list[int], names: Sequence[str]
) -> None:
    """Refuse paths longer than a tree's: one search finds at least half of the longest path."""
    reached: set[int] = set()
    for i, switches in enumerate(leaves):
        if i in reached:
            continue
        links: dict[int, int] = {}
        for s, distance in _distances(neighbours, switches).items():
            for leaf in bits(start[s]):
                links.setdefault(leaf, distance)
        reached |= links.keys()
        farthest, distance = list(links.items())[-1]
        if distance > _MAX_LINKS:
            raise _too_far(names, switches, leaves[farthest], f"{distance + 1}")


def _too_far(
    names: Sequence[str], here: _Switches, there: _Switches, switches: str
) -> exceptions.TopologyError:
    return exceptions.TopologyError(
        f"{switches} switches on the shortest path between {names[here[0]]!r} and "
        f"{names[there[0]]!r}, {_MAX_LINKS + 1} at most: there is no tree to be seen"
    )


def _spread(neighbours: _Neighbours, masks: list[int]) -> Iterator[list[int]]:
    """Yield, per switch, the masks of the leaves within 0, 1, 2 links and so on, without end."""
    while True:
        yield masks
        masks = [
            mask | union(masks[there] for there in next_)
            for mask, next_ in zip(masks, neighbours, strict=True)
        ]


def _near(
    leaves: Sequence[_Switches], neighbours: _Neighbours, start: list[int], names: Sequence[str]
) -> list[list[int]]:
    """Return the mask of the leaves near each leaf, per number of links up to the longest path."""
    connected: dict[int, int] = {}  # by switch
    for s in itertools.chain.from_iterable(leaves):
        if s not in connected:
            part = _distances(neighbours, [s])
            connected |= dict.fromkeys(part, union(start[other] for other in part))
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
    neighbours: _Neighbours, start: list[int], near: Sequence[Sequence[int]]
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


def _rates(ends: _Ends, s: int, height: Mapping[int, int], below: Mapping[int, int]) -> Links:
    """Return the links of a switch; those to switches that are not in the tree do not count.

    Links to switches of its own height are its uplinks if it has no others, and the other switch
    has other leaves below: the link of an MLAG pair is none.
    """
    down: list[float | None] = []
    up: list[float | None] = []
    across: list[float | None] = []
    for there, rate in ends:
        # An adapter at a leaf switch is a host's; one at a spine is not.
        other = -1 if there is None and not height[s] else height.get(s if there is None else there)
        if other is None:
            continue
        if other != height[s]:
            (down if other < height[s] else up).append(rate)
        elif there is not None and not below[s] & below[there]:
            across.append(rate)
    return Links(Cables.of(down).rate, Cables.of(up or across))
