"""Ethernet fabrics, and what lldpcli prints on each of their devices."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BRIDGE, STATION = "Bridge", "Station"


@dataclass
class Network:
    """Links between devices by name, each with the names of its two ports."""

    switches: set[str] = field(default_factory=set)
    links: list[tuple[str, str, str, str]] = field(default_factory=list)
    # Names that devices announce where they are not those of their files, and what they are.
    announced: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Kind of the link that a device announces for a port, as ``details`` prints it.
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)

    def link(self, a: str, port_a: str, b: str, port_b: str) -> None:
        self.links.append((a, port_a, b, port_b))

    def cut(self, a: str, port_a: str) -> None:
        """Take out the cable in a port."""
        self.links = [one for one in self.links if (a, port_a) not in (one[:2], one[2:])]

    def id_of(self, device: str) -> str:
        number = sum(map(ord, device)) * 65536 + len(device)
        default = f"0c:{device.encode().hex()[-8:]:0>8}{number % 256:02x}"
        return self.ids.get(device, default)

    def neighbours(self, device: str) -> list[tuple[str, str, str]]:
        """Return own port, neighbour and its port for each link of a device."""
        ends = [*self.links, *((c, d, a, b) for a, b, c, d in self.links)]
        return [(port, there, far) for here, port, there, far in ends if here == device]

    def output(self, device: str, *, form: str = "json", capable: bool = True) -> dict[str, Any]:
        """Return the output of ``lldpcli show neighbors -f FORM`` on a device."""
        make = _json if form == "json" else _json0
        return make([self._neighbour(*one, capable) for one in self.neighbours(device)])

    def _neighbour(self, port: str, there: str, far: str, capable: bool) -> dict[str, Any]:
        enabled = self.capabilities.get(there, (BRIDGE if there in self.switches else STATION,))
        return {
            "interface": port,
            "name": self.announced.get(there, there),
            "id": self.id_of(there),
            "port": far,
            "kind": self.kinds.get((there, far), ""),
            "capability": [
                {"type": one, "enabled": one in enabled}
                for one in (BRIDGE, "Router", "Wlan", STATION)
            ]
            if capable
            else [],
        }


def _json(neighbours: list[dict[str, Any]]) -> dict[str, Any]:
    found = [
        {
            one["interface"]: {
                "via": "LLDP",
                "rid": "1",
                "age": "0 day, 00:00:04",
                "chassis": _named(one),
                "port": {
                    "id": {"type": "mac", "value": one["id"]},
                    "descr": one["port"],
                    "ttl": "120",
                    **_negotiation(one["kind"]),
                },
            }
        }
        for one in neighbours
    ]
    if not found:
        return {"lldp": {}}
    return {"lldp": {"interface": found[0] if len(found) == 1 else found}}


def _named(one: Mapping[str, Any]) -> dict[str, Any]:
    chassis: dict[str, Any] = {"id": {"type": "mac", "value": one["id"]}, "descr": "NOS"}
    if one["capability"]:
        chassis["capability"] = one["capability"]
    return {one["name"]: chassis} if one["name"] else chassis


def _negotiation(kind: str) -> dict[str, dict[str, Any]]:
    stated = {"supported": True, "enabled": True, "current": kind}
    return {"auto-negotiation": stated} if kind else {}


def _json0(neighbours: list[dict[str, Any]]) -> dict[str, Any]:
    found = [
        {
            "name": one["interface"],
            "via": "LLDP",
            "chassis": [
                {
                    "id": [{"type": "mac", "value": one["id"]}],
                    **({"name": [{"value": one["name"]}]} if one["name"] else {}),
                    "descr": [{"value": "NOS"}],
                    **({"capability": one["capability"]} if one["capability"] else {}),
                }
            ],
            "port": [
                {
                    "id": [{"type": "ifname", "value": one["port"]}],
                    "descr": [{"value": one["port"]}],
                    "ttl": [{"value": "120"}],
                    **{
                        key: [{**value, "current": [{"value": value["current"]}]}]
                        for key, value in _negotiation(one["kind"]).items()
                    },
                }
            ],
        }
        for one in neighbours
    ]
    return {"lldp": [{"interface": found} if found else {}]}


def racks(
    count: int, hosts: int, spines: int = 2, *, domain: str = "", peer_link: bool = True
) -> Network:
    """Return racks of two leaves that are an MLAG pair, hosts connected to both, and spines.

    ::

           spine1      spine2         each leaf is connected to each spine
            |    \\   /   |
        leaf01a = leaf01b   ...       peer link
            |    \\ /    |
            node0001    node0002      eth0 to a, eth1 to b
    """
    network = Network()
    number = 0
    for rack in range(1, count + 1):
        pair = [f"leaf{rack:02}{side}" for side in "ab"]
        network.switches.update(pair)
        for spine in range(1, spines + 1):
            network.switches.add(f"spine{spine}")
            for side, leaf in enumerate(pair):
                network.link(leaf, f"swp{48 + spine}", f"spine{spine}", f"swp{2 * rack + side}")
        if peer_link:
            network.link(pair[0], "swp47", pair[1], "swp47")
        for port in range(1, hosts + 1):
            number += 1
            host = f"node{number:04}"
            network.announced[host] = host + domain
            for side, leaf in enumerate(pair):
                network.link(host, f"eth{side}", leaf, f"swp{port}")
    return network


def write(
    network: Network, folder: Path, *, form: str = "json", switches: str | None = "switches"
) -> None:
    """Write a file for each device; those of switches into a subfolder, or not at all for None."""
    devices = {one for link in network.links for one in (link[0], link[2])}
    folder.mkdir(exist_ok=True)
    for device in sorted(devices):
        below = folder
        if device in network.switches:
            if switches is None:
                continue
            below = folder / switches
            below.mkdir(exist_ok=True)
        text = json.dumps(network.output(device, form=form), indent=2)
        (below / f"{device}.json").write_text(text)
