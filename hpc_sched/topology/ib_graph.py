"""An InfiniBand fabric as a graph of switches, made into leaves and their distances.

fabric         the entry: the cables of a dump made into a Topology
  _read          the switches, numbered in the order of their names, and who hangs on them
  _leaves        hosts that share their set of leaf switches
  _check_span    no path is longer than those of a tree
  _near          which leaves are how near
  _uppers        the switches above that paths between hosts lead over
  _links         what the links of a switch carry

Sets of leaves are masks, bit i for leaf i, so that a step of the search along one link takes all
leaves further at once.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.hierarchy import Leaf, Upper, bits
from hpc_sched.topology.ib_dump import HCA, Cable
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Links

# The masks of more leaves would take gigabytes; a leaf has some 20 hosts.
MAX_LEAVES = 10_000
# Links on the longest path that a tree of so many levels can stand for.
_MAX_LINKS = 2 * hierarchy.MAX_LEVELS - 2


# The switches of a leaf.
_Switches = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Graph:
    """The switches of a fabric, by number."""

    names: tuple[str, ...]
    neighbours: tuple[tuple[int, ...], ...]
    # Parallel links one by one: the switch at the other end, None for an HCA, and Gb/s.
    rates: tuple[tuple[tuple[int | None, float | None], ...], ...]


def fabric(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    inner: Container[str] = (),
    remarks: Sequence[str] = (),
) -> Topology:
    """Return the tree of the hosts of a fabric.

    Leaves are hosts that hang on the same switches, with one rail or several, in the order of
    the names of these. Where hosts have several rails their distance is that of the nearest two.
    The order of the cables does not matter. Linear in cables, times the longest path, in steps of
    64 leaves.

    :param names: switch to its name, each its own
    :param hosts: HCA to the host that has it
    :param inner: HCAs that are part of a switch
    :param remarks: what the reader has put right already
    :raises exceptions.TopologyError: where no switch carries a host, for too many leaves, and for
        paths longer than those of any tree
    """
    graph, above = _read(cables, names, hosts, inner)
    if not above:
        raise exceptions.TopologyError(
            "expected a switch that carries a host, found hosts that are linked to none"
        )
    by_switches = _leaves(above)
    if len(by_switches) > MAX_LEAVES:
        raise exceptions.TopologyError(
            f"expected hosts on at most {MAX_LEAVES} leaf switches or sets of them, found "
            f"{len(by_switches)}"
        )
    leaves = list(by_switches)
    _check_span(graph, leaves)
    start = _masks(graph, leaves)
    near = _near(graph, leaves, start)
    uppers = _uppers(graph, start, near)
    height = {s: 0 for s, mask in enumerate(start) if mask}
    height |= {s: distance for s, (distance, _) in uppers.items()}
    return hierarchy.build(
        [
            Leaf(
                tuple(graph.names[s] for s in switches),
                tuple(members),
                _sum([_links(graph, s, height) for s in switches]),
            )
            for switches, members in by_switches.items()
        ],
        near,
        [
            Upper(graph.names[s], distance + 1, below, _links(graph, s, height))
            for s, (distance, below) in sorted(uppers.items())
        ],
        remarks,
    )


def _read(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    inner: Container[str],
) -> tuple[_Graph, dict[str, set[int]]]:
    """Return the graph, and the switches that each host hangs on."""
    ordered = sorted(names, key=names.__getitem__)
    number = {id_: s for s, id_ in enumerate(ordered)}
    neighbours: list[set[int]] = [set() for _ in ordered]
    rates: list[list[tuple[int | None, float | None]]] = [[] for _ in ordered]
    above: dict[str, set[int]] = {}
    for cable in cables:
        for (here, _), (there, _) in ((cable.a, cable.b), (cable.b, cable.a)):
            if here not in number or here == there:
                continue
            s = number[here]
            if there in number:
                neighbours[s].add(number[there])
                rates[s].append((number[there], cable.rate))
            elif there[0] == HCA and there not in inner:
                rates[s].append((None, cable.rate))
            if there in hosts:
                above.setdefault(hosts[there], set()).add(s)
    graph = _Graph(
        tuple(names[id_] for id_ in ordered),
        tuple(tuple(sorted(found)) for found in neighbours),
        tuple(tuple(found) for found in rates),
    )
    return graph, above


def _leaves(above: Mapping[str, set[int]]) -> dict[_Switches, list[str]]:
    """Return the hosts of each leaf by its switches, in order."""
    found: dict[_Switches, list[str]] = {}
    for host in sorted(above):
        found.setdefault(tuple(sorted(above[host])), []).append(host)
    return dict(sorted(found.items()))


def _masks(graph: _Graph, leaves: Sequence[_Switches]) -> list[int]:
    """Return, by switch, the leaves that it is part of."""
    masks = [0] * len(graph.names)
    for i, switches in enumerate(leaves):
        for s in switches:
            masks[s] |= 1 << i
    return masks


def _distances(graph: _Graph, switches: Iterable[int]) -> dict[int, int]:
    """Return the links from the nearest of some switches to all that they reach, nearest first."""
    distance = dict.fromkeys(switches, 0)
    queue = list(distance)
    for here in queue:
        for there in graph.neighbours[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def _check_span(graph: _Graph, leaves: Sequence[_Switches]) -> None:
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
        for s, distance in _distances(graph, switches).items():
            for leaf in part_of.get(s, ()):
                links.setdefault(leaf, distance)
        reached |= links.keys()
        farthest, distance = list(links.items())[-1]
        if distance > _MAX_LINKS:
            raise _too_far(graph, leaves[i], leaves[farthest], f"{distance + 1}")


def _too_far(
    graph: _Graph, here: _Switches, there: _Switches, switches: str
) -> exceptions.TopologyError:
    return exceptions.TopologyError(
        f"{switches} switches on the shortest path between {graph.names[here[0]]!r} and "
        f"{graph.names[there[0]]!r}, {_MAX_LINKS + 1} at most: there is no tree to be seen"
    )


def _spread(graph: _Graph, masks: list[int]) -> Iterator[list[int]]:
    """Yield, by switch, the leaves within 0 links, 1 link, 2 links and so on, without an end."""
    while True:
        yield masks
        wider = []
        for mask, neighbours in zip(masks, graph.neighbours, strict=True):
            for there in neighbours:
                mask |= masks[there]
            wider.append(mask)
        masks = wider


def _near(graph: _Graph, leaves: Sequence[_Switches], start: list[int]) -> list[list[int]]:
    """Return, by links, the leaves within so many links of each leaf, until nobody is missing."""
    connected = [0] * len(start)
    for switches in leaves:
        for s in switches:
            if not connected[s]:
                part = _distances(graph, [s])
                together = 0
                for other in part:
                    together |= start[other]
                for other in part:
                    connected[other] = together
    everybody = [_union(connected, switches) for switches in leaves]
    near: list[list[int]] = []
    for masks in _spread(graph, start):
        near.append([_union(masks, switches) for switches in leaves])
        if near[-1] == everybody:
            break
        if len(near) > _MAX_LINKS:
            i = next(i for i, mask in enumerate(near[-1]) if mask != everybody[i])
            missing = next(bits(everybody[i] & ~near[-1][i]))
            raise _too_far(graph, leaves[i], leaves[missing], f"more than {len(near)}")
    return near


def _union(masks: Sequence[int], switches: _Switches) -> int:
    union = 0
    for s in switches:
        union |= masks[s]
    return union


def _uppers(
    graph: _Graph, start: list[int], near: Sequence[Sequence[int]]
) -> dict[int, tuple[int, int]]:
    """Return the links from the nearest leaf, and the leaves so near, of the switches above.

    A switch counts that is on a shortest path from one of those leaves to another. What only
    looks like the top of a tree does not: a leaf switch that no host hangs on yet is linked to
    all spines as a core switch is.
    """
    found: dict[int, tuple[int, int]] = {}
    first: dict[int, tuple[int, int]] = {}
    known: dict[tuple[int, int, int], bool] = {}  # switches side by side see the same
    for links, masks in zip(range(len(near)), _spread(graph, start), strict=False):
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


def _links(graph: _Graph, s: int, height: Mapping[int, int]) -> Links | None:
    """Return what the links of a switch carry, or None where a rate is not known.

    :param height: links to the nearest leaf switch, of the switches that count
    """
    down = up = 0.0
    for there, rate in graph.rates[s]:
        # Hosts are below a leaf switch; what hangs on a spine beside them is no host.
        other = -1 if there is None and not height[s] else height.get(s if there is None else there)
        if other is None or other == height[s]:
            continue
        if rate is None:
            return None
        if other < height[s]:
            down += rate
        else:
            up += rate
    return Links(down, up)


def _sum(links: Sequence[Links | None]) -> Links | None:
    known = [part for part in links if part is not None]
    if len(known) < len(links):
        return None
    return Links(sum(part.down for part in known), sum(part.up for part in known))
