"""An InfiniBand fabric as a graph of switches, made into a tree.

fabric         the entry: from the cables of a dump to a Topology
  _read          the switches, numbered in the order of their names, and their hosts
  _leaves        hosts grouped by their set of leaf switches
  _links         data rates of a switch's links
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.hierarchy import Leaf, Upper
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.infiniband import leaf_distances
from hpc_sched.topology.readers.infiniband.ibnetdiscover_dump import HCA, Cable
from hpc_sched.topology.readers.infiniband.leaf_distances import Switches
from hpc_sched.topology.tree import Links

# The masks of more leaves would take gigabytes; a leaf has some 20 hosts.
MAX_LEAVES = 10_000


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

    A leaf is a set of hosts connected to the same switches, by one rail or several; leaves are in
    the order of their switches' names. The distance of hosts with several rails is that of the
    nearest two. The order of the cables is irrelevant. Linear in cables, times the longest path, in
    steps of 64 leaves.

    :param names: switch to its unique name
    :param hosts: HCA to its host
    :param inner: HCAs that are part of a switch
    :param remarks: of the reader so far
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
    found = leaf_distances.between(list(by_switches), graph.neighbours, graph.names)
    height = {s: 0 for switches in by_switches for s in switches}
    height |= {s: distance for s, (distance, _) in found.uppers.items()}
    return hierarchy.build(
        [
            Leaf(
                tuple(graph.names[s] for s in switches),
                tuple(members),
                _leaf_links(graph, switches, height),
            )
            for switches, members in by_switches.items()
        ],
        found.near,
        [
            Upper(graph.names[s], distance + 1, below, _links(graph, s, height))
            for s, (distance, below) in sorted(found.uppers.items())
        ],
        remarks,
    )


def _read(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    inner: Container[str],
) -> tuple[_Graph, dict[str, set[int]]]:
    """Return the graph, and the switches to which each host is connected."""
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


def _leaves(above: Mapping[str, set[int]]) -> dict[Switches, list[str]]:
    """Return the hosts of each leaf, by its switches."""
    found: dict[Switches, list[str]] = {}
    for host in sorted(above):
        found.setdefault(tuple(sorted(above[host])), []).append(host)
    return dict(sorted(found.items()))


def _links(graph: _Graph, s: int, height: Mapping[int, int]) -> Links | None:
    """Return the data rates of a switch's links, or None if one is unknown.

    :param height: number of links to the nearest leaf switch, for leaf switches and uppers
    """
    down = up = 0.0
    for there, rate in graph.rates[s]:
        # An HCA at a leaf switch is a host's; one at a spine is not.
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


def _leaf_links(graph: _Graph, switches: Switches, height: Mapping[int, int]) -> Links | None:
    """Return the data rates of all switches of a leaf, or None if one is unknown."""
    known = [links for s in switches if (links := _links(graph, s, height)) is not None]
    return Links.total(known) if len(known) == len(switches) else None
