"""InfiniBand fabrics of any shape, as ibnetdiscover would print them and as graphs to check by."""

import math
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import networkx

from hpc_sched.topology import Topology
from hpc_sched.topology.readers.infiniband.ibnetdiscover import IbnetdiscoverDriver

SWITCH_GUID = 0x0002C90300A00000
HCA_GUID = 0xE41D2D0300000000


@dataclass
class Fabric:
    """Switches, HCAs and cables; ports are taken in the order of the cables."""

    nodes: dict[str, str] = field(default_factory=dict)  # name to id: S-0002c90300a00001
    descriptions: dict[str, str] = field(default_factory=dict)
    cables: list[tuple[str, int, str, int, str]] = field(default_factory=list)
    hosts: dict[str, list[str]] = field(default_factory=dict)  # host to its switches
    _ports: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def switch(self, name: str, description: str | None = None) -> str:
        """Add a switch, unless it exists; return its name."""
        if name not in self.nodes:
            self.nodes[name] = f"S-{SWITCH_GUID + len(self.nodes):016x}"
            self.descriptions[name] = description or f"MF0;{name}:SX6036/U1"
        return name

    def hca(self, name: str, description: str, switch: str, rate: str = "4xHDR") -> str:
        """Add an HCA below a switch; return its name."""
        self.nodes[name] = f"H-{HCA_GUID + len(self.nodes):016x}"
        self.descriptions[name] = description
        self.link(switch, name, rate)
        return name

    def host(self, name: str, *switches: str) -> None:
        """Add a host with an HCA on each of some switches."""
        for rail, switch in enumerate(switches):
            self.hca(f"{name} mlx5_{rail}", f"{name} mlx5_{rail}", self.switch(switch))
        self.hosts[name] = list(switches)

    def link(self, a: str, b: str, rate: str = "4xHDR", cables: int = 1) -> None:
        """Link two nodes, by one cable or several."""
        for _ in range(cables):
            ends = []
            for name in (a, b):
                if name not in self.nodes:
                    self.switch(name)
                self._ports[name] += 1
                ends += [name, self._ports[name]]
            self.cables.append((ends[0], ends[1], ends[2], ends[3], rate))

    def text(self, order: random.Random | None = None, kinds: str = "SHR") -> str:
        """Return the dump.

        :param order: shuffles sections and the lines in them
        :param kinds: of the nodes that have a section
        """
        lines: dict[str, list[str]] = {name: [] for name in self.nodes}
        for a, port_a, b, port_b, rate in self.cables:
            for own, port, peer, peer_port in ((a, port_a, b, port_b), (b, port_b, a, port_a)):
                id_ = self.nodes[peer]
                guid = f"({id_[2:].lstrip('0')}) " if id_[0] == "H" else ""
                lines[own].append(
                    f'[{port}]\t"{id_}"[{peer_port}]{guid}\t\t# "{self.descriptions[peer]}" '
                    f"lid {len(peer)} {rate}"
                )
        sections = []
        for name, id_ in self.nodes.items():
            if id_[0] not in kinds:
                continue
            word, key = {"S": ("Switch", "switch"), "H": ("Ca", "ca"), "R": ("Rt", "rt")}[id_[0]]
            tail = " base port 0 lid 3 lmc 0" if id_[0] == "S" else ""
            if order:
                order.shuffle(lines[name])
            head = (
                f"vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x{id_[2:]}\n{key}guid=0x{id_[2:]}\n"
                f'{word}\t{len(lines[name])} "{id_}"\t\t# "{self.descriptions[name]}"{tail}'
            )
            sections.append("\n".join([head, *lines[name]]))
        if order:
            order.shuffle(sections)
        start = "#\n# Topology file: generated on Sat Nov 21 02:18:18 2026\n#\n"
        return start + "".join(f"\n{section}\n" for section in sections)

    def topology(self, **kwargs: object) -> Topology:
        """Return what the driver reads of the dump."""
        return read(self.text(**kwargs))  # type: ignore[arg-type]

    def distances(self) -> dict[tuple[str, str], float]:
        """Return the switches on the shortest path between every two hosts."""
        graph = networkx.Graph()
        graph.add_nodes_from(name for name, id_ in self.nodes.items() if id_[0] == "S")
        graph.add_edges_from(
            (a, b) for a, _, b, _, _ in self.cables if a in graph and b in graph and a != b
        )
        return switches_between(graph, self.hosts)


def port_report_of(fabric: Fabric) -> str:
    """Return what ``ibnetdiscover -p`` prints of a fabric: a line for each port."""
    lines = []
    for a, port_a, b, port_b, rate in fabric.cables:
        for own, port, peer, peer_port in ((a, port_a, b, port_b), (b, port_b, a, port_a)):
            ends = []
            for name, number in ((own, port), (peer, peer_port)):
                id_ = fabric.nodes[name]
                word = {"S": "SW", "H": "CA"}[id_[0]]
                guid = int(id_[2:], 16) + (id_[0] == "H")
                ends.append(f"{word}    33 {number:>2} 0x{guid:016x}")
            names = f"'{fabric.descriptions[own]}' - '{fabric.descriptions[peer]}'"
            lines.append(f"{ends[0]} {rate[:2]} {rate[2:]} - {ends[1]} ( {names} )")
    id_ = fabric.nodes[fabric.cables[0][0]]
    lines.append(f"SW    33 36 0x{id_[2:]} 4x SDR 'MF0;leaf1:SX6036/U1'")
    # All ports of a node follow each other.
    return "\n".join(sorted(lines, key=lambda line: line.split()[3])) + "\n"


def switches_between(
    graph: networkx.Graph, hosts: dict[str, list[str]]
) -> dict[tuple[str, str], float]:
    """Return the switches on the shortest path between every two hosts, any rail to any rail."""
    links = dict(networkx.all_pairs_shortest_path_length(graph))
    # Hosts on the same switches are alike.
    places = {tuple(sorted(set(switches))) for switches in hosts.values()}
    apart = {
        (a, b): 1 + min(links[s].get(t, math.inf) for s, t in product(a, b))
        for a, b in product(places, places)
    }
    place = {host: tuple(sorted(set(switches))) for host, switches in hosts.items()}
    return {(a, b): apart[place[a], place[b]] for a, b in product(hosts, hosts) if a != b}


def read(text: str | bytes, names: dict[str, str] | None = None, **options: str) -> Topology:
    """Return what the driver reads of a dump that it calls ``dump``."""
    content = text.encode() if isinstance(text, str) else text
    return IbnetdiscoverDriver(path="unused", **options).parse_text(content, "dump", names or {})


def state(fabric: Topology) -> tuple[object, ...]:
    """Return everything that two equal fabrics have in common."""
    return (
        fabric.hosts,
        fabric.switches,
        fabric.levels,
        fabric.groups.tolist(),
        fabric.remarks,
    )


def two_levels(leaves: int, spines: int, hosts: int, cables: int = 1) -> Fabric:
    """Return a fat tree, every leaf linked to every spine.

    ::

        spine1   spine2
           | \\   / |
        leaf1   leaf2
        n1 n2   n3 n4
    """
    fabric = Fabric()
    for leaf in range(1, leaves + 1):
        for i in range(hosts):
            fabric.host(f"n{(leaf - 1) * hosts + i + 1:03}", f"leaf{leaf}")
        for spine in range(1, spines + 1):
            fabric.link(f"leaf{leaf}", f"spine{spine}", cables=cables)
    return fabric


def three_levels(pods: int, leaves: int, hosts: int, cores: int = 2) -> Fabric:
    """Return pods, each a fat tree of two spines, below cores that all spines are linked to."""
    fabric = Fabric()
    for pod, leaf in product(range(pods), range(leaves)):
        for i in range(hosts):
            fabric.host(f"p{pod}l{leaf}n{i}", f"leaf{pod}{leaf}")
        for spine in range(2):
            fabric.link(f"leaf{pod}{leaf}", f"spine{pod}{spine}")
    for pod, spine, core in product(range(pods), range(2), range(cores)):
        fabric.link(f"spine{pod}{spine}", f"core{core}")
    return fabric


def rails(groups: int, hosts: int, count: int) -> Fabric:
    """Return hosts with a rail to each of ``count`` leaf switches, which share their spines.

    ::

          spine of rail 1      spine of rail 2
           /         \\         /         \\
        g0r1        g1r1     g0r2        g1r2
           \\__________\\_______/          /
            hosts of g0 \\_______________/ hosts of g1
    """
    fabric = Fabric()
    for group, i in product(range(groups), range(hosts)):
        fabric.host(f"g{group}n{i}", *(f"g{group}r{rail}" for rail in range(count)))
    for group, rail in product(range(groups), range(count)):
        fabric.link(f"g{group}r{rail}", f"spine-r{rail}")
    return fabric


def from_links(links: Iterable[tuple[str, str]], hosts: dict[str, list[str]]) -> Fabric:
    """Return switches with the given links, and hosts on some of them."""
    fabric = Fabric()
    for host, switches in hosts.items():
        fabric.host(host, *switches)
    for a, b in links:
        fabric.link(a, b)
    return fabric
