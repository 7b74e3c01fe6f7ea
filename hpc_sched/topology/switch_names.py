"""Names of switches as people write and read them: members and GUIDs, leaves with their pod."""

import re

from hpc_sched.topology.model import Topology

_MAC = re.compile(r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\Z|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}\Z", re.I)
_SEPARATOR = re.compile(r"[:.-]")
_GUID = re.compile(r"(?:S-|H-)?(?:0x)?([0-9a-f]{1,16})\Z", re.IGNORECASE)


def known_as(topology: Topology, name: str) -> tuple[str, ...]:
    """Return the switches with this name, else those with such a member or id. O(switches).

    A GUID may be written with or without 0x, zeros or a leading ``S-``; several switches of
    the tree may have one member in common.
    """
    if any(switch.name == name for switch in topology.switches):
        return (name,)
    wanted = _normalized_id(name)
    return tuple(
        switch.name
        for switch in topology.switches
        if name in switch.members or wanted in map(_normalized_id, switch.ids)
    )


def leaf_title(topology: Topology, leaf: str) -> str:
    """Return a leaf's name, after that of the switch above it unless that is a root."""
    above = topology.switches[topology.switch_index(leaf)].parent
    if above < 0 or topology.switches[above].parent < 0:
        return leaf
    return f"{topology.switches[above].name} {leaf}"


def _normalized_id(id_: str) -> str:
    """Return a GUID or MAC address as 16 lower-case digits; another id in lower case."""
    found = _GUID.match(_SEPARATOR.sub("", id_) if _MAC.match(id_) else id_)
    return found[1].lower().rjust(16, "0") if found else id_.lower()
