"""What a topology file states of links, which few files do: uplinks, hosts' links and ratios.

Cables are ``NUMBER x RATE``, the rate in Gb/s, or a list of such texts where rates differ::

    uplinks: {leaf: 4 x 100, pod: 8 x 400}    # of every switch of a level; one may have its own
    host_links: 1 x 100                       # of every host; a switch and a host likewise
    oversubscription: {leaf: 2}               # in place of uplinks
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import yaml

from hpc_sched import decimals
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.yaml_items import invalid, items, mapping, text
from hpc_sched.yaml_nodes import line_of

UPLINKS, HOST_LINKS, RATIO = "uplinks", "host_links", "oversubscription"
# Of the rates of the links below a switch over that of its uplinks: no fabric has fewer uplinks.
MOST_RATIO = 1000.0
# No switch, or merged ones, has more cables; no cable is as fast, in Gb/s.
_MOST_CABLES, _MOST_RATE = 100_000, 100_000.0
_MOST_PARTS = 16  # different rates of one switch
_FORM = re.compile(r"([0-9]{1,6})(?:\s*x\s*(\S{1,20}))?\Z", re.ASCII)
_EXPECTED = "expected NUMBER x RATE in Gb/s, such as 4 x 100, or the number alone"


def with_links(
    fabric: Topology,
    file: Mapping[str, yaml.Node],
    switches: Mapping[str, Mapping[str, yaml.Node]],
    hosts: Mapping[str, yaml.Node],
    problems: Problems,
) -> Topology:
    """Return the fabric with what nodes state of links. Linear in switches and hosts.

    :param file: nodes of the whole file by key
    :param switches: nodes by switch and key
    :param hosts: node of the links of a host
    :raises exceptions.TopologyError: naming the line of each node that is wrong
    """
    reader = _Reader(fabric)
    with problems.collecting():
        reader.read_file(file)
    for index, switch in enumerate(fabric.switches):
        with problems.collecting():
            reader.read_switch(index, switches.get(switch.name, {}))
    for host, node in hosts.items():
        with problems.collecting():
            reader.own_links[host] = reader.cables(node, f"links of host {host!r}")
    problems.stop()
    return reader.fabric()


@dataclass
class _Reader:
    given: Topology
    ratios: dict[str, float] = field(default_factory=dict)
    of_level: dict[str, Cables] = field(default_factory=dict)
    of_all_hosts: Cables | None = None
    uplinks: list[Cables | None] = field(default_factory=list)  # by switch
    below: list[Cables | None] = field(default_factory=list)  # links of hosts below, by switch
    own_links: dict[str, Cables] = field(default_factory=dict)  # by host

    def read_file(self, nodes: Mapping[str, yaml.Node]) -> None:
        """Read what holds for all switches of a level, and for all hosts."""
        levels = self.given.levels
        stated = {key: mapping(nodes[key], key, levels) for key in (RATIO, UPLINKS) if key in nodes}
        ratios, uplinks = stated.get(RATIO, {}), stated.get(UPLINKS, {})
        if both := [level for level in levels if level in ratios and level in uplinks]:
            raise invalid(
                uplinks[both[0]],
                f"{both[0]} has both uplinks and oversubscription (line "
                f"{line_of(ratios[both[0]])}): expected one of them",
            )
        self.ratios = {level: _ratio(node, level) for level, node in ratios.items()}
        lower = {levels[one.level - 1] for one in self.given.switches if one.parent >= 0}
        for level, node in uplinks.items():
            if level not in lower:
                raise invalid(node, f"uplinks of {level}: there is no switch above this level")
            self.of_level[level] = self.cables(node, f"uplinks of {level}")
        if HOST_LINKS in nodes:
            self.of_all_hosts = self.cables(nodes[HOST_LINKS], HOST_LINKS)

    def read_switch(self, index: int, nodes: Mapping[str, yaml.Node]) -> None:
        """Read what one switch states; those above it have been read."""
        switch = self.given.switches[index]
        is_root = switch.parent < 0
        self.uplinks.append(
            None if is_root else self.of_level.get(self.given.levels[switch.level - 1])
        )
        self.below.append(self.of_all_hosts if is_root else self.below[switch.parent])
        if UPLINKS in nodes:
            if is_root:
                raise invalid(
                    nodes[UPLINKS], f"switch {switch.name!r} has uplinks, and no switch above it"
                )
            self.uplinks[index] = self.cables(nodes[UPLINKS], f"uplinks of switch {switch.name!r}")
        if HOST_LINKS in nodes:
            what = f"host_links of switch {switch.name!r}"
            self.below[index] = self.cables(nodes[HOST_LINKS], what)

    def cables(self, node: yaml.Node, what: str) -> Cables:
        """Return the cables of a node, which may be that of many switches or hosts."""
        if isinstance(node, yaml.ScalarNode):
            return self._part(node, what)
        parts = items(node, what)
        if not 0 < len(parts) <= _MOST_PARTS:
            raise invalid(
                node, f"{what}: expected 1 to {_MOST_PARTS} different rates, found {len(parts)}"
            )
        return Cables.total(self._part(part, what) for part in parts)

    def _part(self, node: yaml.Node, what: str) -> Cables:
        stated = text(node, what)
        found = _FORM.match(stated)
        number, rate = (int(found[1]), found[2]) if found else (0, None)
        value = decimals.number_in(rate) if rate else None
        if not 0 < number <= _MOST_CABLES or (rate and value is None):
            raise invalid(node, f"{what}: {_EXPECTED}, found {stated[:80]!r}")
        if value is not None and not 1 / 1000 <= value <= _MOST_RATE:
            raise invalid(
                node, f"{what}: expected a rate from 0.001 to {_MOST_RATE:g} Gb/s, found {rate!r}"
            )
        return Cables(((value, number),))

    def fabric(self) -> Topology:
        """Return the fabric with all that was read."""
        given = self.given
        switches = tuple(
            replace(switch, links=Links(None, up)) if up is not None else switch
            for switch, up in zip(given.switches, self.uplinks, strict=True)
        )
        inherited = zip(given.hosts, given.leaf_index.tolist(), strict=True)
        links = {host: one for host, leaf in inherited if (one := self.below[leaf]) is not None}
        return replace(
            given,
            switches=switches,
            oversubscription=self.ratios,
            host_links=links | self.own_links,
        )


def _ratio(node: yaml.Node, level: str) -> float:
    number = decimals.number_in(text(node, f"oversubscription of {level}"))
    if number is None or not 1 / MOST_RATIO <= number <= MOST_RATIO:
        raise invalid(
            node,
            f"oversubscription of {level}: expected a number from {1 / MOST_RATIO:g} to "
            f"{MOST_RATIO:g}, found {node.value[:80]!r}",
        )
    return number
