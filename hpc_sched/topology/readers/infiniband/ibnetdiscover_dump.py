"""What a dump of ibnetdiscover says: nodes, and the cables between their ports.

A section names a node (``Switch``, ``Ca`` or ``Rt``), its lines what its ports are linked to::

    Switch  36 "S-0002c90200404718"     # "MF0;leaf01:SX6036/U1" enhanced port 0 lid 4 lmc 0
    [1]  "H-0002c903000a1b2c"[1](2c903000a1b2d)    # "node0001 HCA-1" lid 7 4xFDR

Both ends of a cable tell of it, and one is enough. The format is that of infiniband-diags, with
and without ``--full`` and ``--grouping``.
"""

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hpc_sched import exceptions

SWITCH = "S"
HCA = "H"

# A node's description has 64 bytes; names from a map may be longer, but not by much.
MAX_DESCRIPTION = 256
_MAX_PORTS = 256
_SHOWN = 80

# Data rate of one lane in Gb/s.
_LANE = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}

# Lines come without blanks around them. Everything that repeats is bounded by a character that it
# cannot contain itself, so that no line takes more than linear time.
_ID = r'"([A-Z?])-([0-9a-fA-F]{1,16})"'
_EXTERNAL = r"(?:\s*\[ext\s+[0-9]+\])?"  # a chassis' own number of the port, with --grouping
_GUID = r"(?:\s*\(([0-9a-fA-F]{1,16})\))?"
_NODE = re.compile(rf"(?:Switch|Ca|Rt|\?\?\?)\s+[0-9]+\s+{_ID}")
_PORT = re.compile(
    rf"\[([0-9]{{1,5}})\]{_EXTERNAL}{_GUID}\s*{_ID}\s*\[([0-9]{{1,5}})\]{_EXTERNAL}{_GUID}"
)
_RATE = re.compile(r"\b([0-9]{1,2})x([A-Z]+[0-9]*)\b")
# Lines that tell nothing of cables, and end the section before them.
_BETWEEN = re.compile(
    r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|\?\?\?guid)=|"
    r"Chassis\s+[0-9]+|Non-Chassis Nodes|Hostname:"
)
_HEADER = re.compile(r"(?:Switch|Ca|Rt|\?\?\?)\s")

# A node and the number of one of its ports.
Port = tuple[str, int]


@dataclass(slots=True)
class Node:
    """A switch, an HCA or a router."""

    id: str  # kind and GUID: S-0002c90200404718
    description: str = ""
    port_guids: tuple[str, ...] = ()  # of HCAs

    @property
    def kind(self) -> str:
        """``SWITCH``, ``HCA``, or something else."""
        return self.id[0]

    @property
    def guid(self) -> str:
        """The GUID, 16 digits."""
        return self.id[2:]


@dataclass(frozen=True, slots=True)
class Cable:
    """What links two ports, and its data rate in Gb/s where the dump tells it."""

    a: Port
    b: Port
    rate: float | None


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump as it was read."""

    nodes: Mapping[str, Node]
    cables: tuple[Cable, ...]
    remarks: tuple[str, ...]


def read(content: bytes, name: str) -> Dump:
    """Return what a dump says; linear in its length.

    Lines of other programs, such as a prompt or a warning, are passed over with a remark, and so
    is what contradicts an earlier line: discovery takes its time, and cables are pulled meanwhile.

    :param name: what errors call the dump
    :raises exceptions.TopologyError: where no line is about a node
    """
    reader = _Reader(name)
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace")
    reader.read(lines)
    return reader.dump()


@dataclass
class _Reader:
    """Takes the lines one by one."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    by_peers: set[str] = field(default_factory=set)  # nodes that a peer has described
    other_end: dict[Port, Port] = field(default_factory=dict)
    rates: dict[Port, float] = field(default_factory=dict)
    section: Node | None = None
    strays: int = 0
    first_stray: str = ""
    contradictions: int = 0
    first_contradiction: str = ""

    def read(self, lines: Iterable[str]) -> None:
        for number, raw in enumerate(lines, 1):
            line = raw.strip()
            if not line or line[0] == "#":
                continue
            if line[0] == "[" and self._port(line, number):
                continue
            if _HEADER.match(line):
                # What follows a header that cannot be read belongs to nobody.
                self.section = None
                found = _NODE.match(line)
                if found:
                    self.section = self._node(found[1], found[2])
                    self._describe(self.section, line, found.end())
                    continue
            elif _BETWEEN.match(line):
                self.section = None
                continue
            self.strays += 1
            self.first_stray = self.first_stray or f"{self.name}:{number}: {line[:_SHOWN]!r}"

    def dump(self) -> Dump:
        """Return what was read."""
        if not self.nodes:
            stray = f"; first line: {self.first_stray}" if self.first_stray else ""
            raise exceptions.TopologyError(
                f"{self.name}: expected the output of ibnetdiscover, lines such as "
                f"'Switch 36 \"S-0002c90200404718\"', found none{stray}"
            )
        remarks = []
        if self.strays:
            remarks.append(
                f"{self.first_stray} is no line of ibnetdiscover{_and_more(self.strays)}: "
                "passed over"
            )
        if self.contradictions:
            remarks.append(
                f"{self.first_contradiction}{_and_more(self.contradictions)}: the first line counts"
            )
        cables = tuple(
            Cable(a, b, self.rates.get(a, self.rates.get(b)))
            for a, b in self.other_end.items()
            if a <= b
        )
        return Dump(self.nodes, cables, tuple(remarks))

    def _port(self, line: str, number: int) -> bool:
        """Take what a line says of a port; return False where it is no such line."""
        found = _PORT.match(line)
        if found is None or self.section is None:
            return False
        own, own_guid, kind, guid, port, port_guid = found.groups()
        peer = self._node(kind, guid)
        a, b = (self.section.id, int(own)), (peer.id, int(port))
        if own_guid and self.section.kind == HCA:
            _add_guid(self.section, own_guid)
        if port_guid and kind == HCA:
            _add_guid(peer, port_guid)
        if self.other_end.get(a) == b and b in self.rates and peer.id in self.by_peers:
            return True  # the other end has told all of it
        end = self._describe(peer, line, found.end())
        rate = _RATE.search(line, end)
        if self._linked(a, b, number) and rate and rate[2] in _LANE:
            self.rates.setdefault(a, int(rate[1]) * _LANE[rate[2]])
        return True

    def _node(self, kind: str, guid: str) -> Node:
        id_ = f"{kind}-{_guid(guid)}"
        node = self.nodes.get(id_)
        if node is None:
            node = self.nodes[id_] = Node(id_)
        return node

    def _describe(self, node: Node, line: str, start: int) -> int:
        """Take the description of a node from a line; return where it ends.

        A name map given to ibnetdiscover itself changes what switches say of HCAs, but not what
        HCAs say of themselves: peers come first.
        """
        first, last = line.find('"', start), line.rfind('"', start)
        if first == last:
            return start
        if line.find("#", start, first) < 0:
            return last
        of_itself = node is self.section
        if not node.description or (not of_itself and node.id not in self.by_peers):
            text = line[first + 1 : last].strip()
            if not text.isprintable():
                text = "".join(char if char.isprintable() else " " for char in text).strip()
            # None at all is better than one that nobody has given.
            if text and len(text) <= MAX_DESCRIPTION:
                node.description = text
                if not of_itself:
                    self.by_peers.add(node.id)
        return last

    def _linked(self, a: Port, b: Port, number: int) -> bool:
        """Link two ports; return False where one is linked to another port already."""
        if self.other_end.get(a) == b:
            return True
        for port, said in ((a, b), (b, a)):
            known = self.other_end.get(port)
            if known is not None:
                self.contradictions += 1
                self.first_contradiction = self.first_contradiction or (
                    f"{self.name}:{number}: port {_shown(port)} is linked to {_shown(said)} here "
                    f"and to {_shown(known)} before"
                )
                return False
        self.other_end[a] = b
        self.other_end[b] = a
        return True


def _guid(text: str) -> str:
    """Return a GUID in the form of the name map."""
    return text.lower().rjust(16, "0")


def _add_guid(node: Node, guid: str) -> None:
    said = _guid(guid)
    if len(node.port_guids) < _MAX_PORTS and said not in node.port_guids:
        node.port_guids += (said,)


def _and_more(lines: int) -> str:
    """Return how many lines there are beside the one that is shown."""
    return f", and {lines - 1} more such line{'s' if lines > 2 else ''}" if lines > 1 else ""


def _shown(port: Port) -> str:
    return f'"{port[0]}"[{port[1]}]'
