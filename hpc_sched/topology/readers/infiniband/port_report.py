"""Lines of ``ibnetdiscover -p``: one port each, with the peer if there is one.

::

    CA 36  1 0x000000000010003f 4x FDR - SW 36  8 0x0000000000200003 ( 'node1 HCA-1' - 'leaf4' )

The GUID of a host channel adapter is that of the port.
"""

import re

_END = r"(CA|SW|RT)\s+[0-9]+\s+([0-9]{1,5})\s+0x([0-9a-fA-F]{1,16})"
_LINE = re.compile(rf"{_END}\s+([0-9]{{1,2}})x\s+(\w+)\s+-\s+{_END}\s+\(\s*'")
_UNLINKED = re.compile(rf"{_END}\s")
_KINDS = {"CA": "H", "SW": "S", "RT": "R"}


# A port: kind of its node (H, S or R), GUID as written, number and the node's description.
ReportedEnd = tuple[str, str, int, str]


def cable_in(line: str) -> tuple[ReportedEnd, ReportedEnd, str, str] | None:
    """Return two ports that are linked, the number of lanes and the name of their data rate.

    None for a line of another kind, or one that is incomplete.
    """
    found = _LINE.match(line)
    rest = line[found.end() :].rstrip(" )") if found else ""
    if not found or not rest.endswith("'"):
        return None
    kind, port, guid, lanes, speed, peer_kind, peer_port, peer_guid = found.groups()
    here, _, there = rest[:-1].partition("' - '")
    return (
        (_KINDS[kind], guid, int(port), here.strip()),
        (_KINDS[peer_kind], peer_guid, int(peer_port), there.strip()),
        lanes,
        speed,
    )


def is_port(line: str) -> bool:
    """True if a line is that of a port, linked or not."""
    return _UNLINKED.match(line) is not None
