"""The neighbours of one host or switch, as ``lldpcli show neighbors -f json`` prints them.

``json`` writes a list of one item as the item, and takes names as keys; ``json0`` always writes
lists. The form ``summary`` has no capabilities, and only ``details`` has the kind of the link,
which names its rate. All of them are read::

    {"lldp": {"interface": {"eth0": {"chassis": {"leaf1": {"id": {"value": "00:1b:.."}}}}}}}
    {"lldp": [{"interface": [{"name": "eth0", "chassis": [{"name": [{"value": "leaf1"}]}]}]}]}
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpc_sched.topology.hostlist import printable

# Kinds of links as lldpd names them: 1000BaseTFD, 2p5GigT, 10GigBaseLR, 100GbaseCR4. Without a G
# the number is that of Mb/s.
_KIND = re.compile(r"([0-9]{1,5})(?:p([0-9]))?(G(?:ig)?)?(?:Base|T)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Chassis:
    """A device on the network: a switch, a host or a telephone."""

    id: str  # often a MAC address, in lower case; its name where it has no id
    name: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What one interface receives from the device at the other end of its link."""

    interface: str
    chassis: Chassis
    port: str  # name of the interface at the other end, or a description of it
    forwards: bool | None  # True if the device is a bridge or router; None where it does not say
    rate: float | None = None  # Gb/s of the link; None where the device does not say


def neighbours_of(document: object) -> list[Neighbour] | None:
    """Return the neighbours in a document, in its order; None if it is not lldpcli's. Linear."""
    if not isinstance(document, dict) or "lldp" not in document:
        return None
    return [
        neighbour
        for lldp in _objects(document["lldp"])
        for name, interface in _interfaces(lldp.get("interface"))
        if (neighbour := _neighbour(name, interface)) is not None
    ]


def _interfaces(found: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in _objects(found):
        if isinstance(item.get("name"), str):
            yield item["name"], item
        else:
            yield from ((name, one) for name, one in item.items() if isinstance(one, dict))


def _neighbour(interface: str, found: dict[str, Any]) -> Neighbour | None:
    chassis = next(iter(_objects(found.get("chassis"))), {})
    name = _text(chassis.get("name"))
    if not name and not _text(chassis.get("id")):
        # json has the name as key of all the rest.
        name, chassis = next(
            ((name, one) for name, one in chassis.items() if isinstance(one, dict)), ("", {})
        )
    name = printable(name)
    id_ = printable(_text(chassis.get("id"))).lower() or name
    if not id_:
        return None
    port = next(iter(_objects(found.get("port"))), {})
    is_named = [one.get("type") for one in _objects(port.get("id"))][:1] == ["ifname"]
    port_name = _text(port.get("id" if is_named else "descr")) or _text(port.get("id"))
    return Neighbour(
        printable(interface),
        Chassis(id_, name),
        printable(port_name),
        _forwards(chassis.get("capability")),
        _rate(port.get("auto-negotiation")),
    )


def _forwards(capabilities: object) -> bool | None:
    found = [
        one.get("enabled") is True and str(one.get("type")).lower() in ("bridge", "router")
        for one in _objects(capabilities)
    ]
    return any(found) if found else None


def _rate(negotiation: object) -> float | None:
    """Return the rate of the link in Gb/s, by the kind that is in use; None where unknown."""
    current = next((_text(one.get("current")) for one in _objects(negotiation)), "")
    found = _KIND.match(current)
    if found is None:
        return None
    rate = float(f"{found[1]}.{found[2] or 0}") / (1 if found[3] else 1000)
    return rate or None


def _objects(found: object) -> list[dict[str, Any]]:
    """Return the objects of a list, or the object that stands for a list of one."""
    return [one for one in _items(found) if isinstance(one, dict)]


def _items(found: object) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _text(found: object) -> str:
    """Return a text, or the value of ``{"type": ..., "value": TEXT}``; empty for neither."""
    for item in _items(found):
        value = item.get("value") if isinstance(item, dict) else item
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
