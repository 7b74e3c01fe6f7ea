"""Dumps of ibnetdiscover: nodes, and the cables between their ports.

A section begins with a node (``Switch``, ``Ca`` or ``Rt``); each line has the peer of a port::

    Switch  36 "S-0002c90200404718"     # "MF0;leaf01:SX6036/U1" enhanced port 0 lid 4 lmc 0
    [1]  "H-0002c903000a1b2c"[1](2c903000a1b2d)    # "node0001 HCA-1" lid 7 4xFDR

A cable is in the sections of both ends, and one is enough. The format is that of
infiniband-diags, with and without ``--full`` and ``--grouping``, or with ``--ports``, see
``port_report``.
"""

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.readers.cabling.fabric import Cable
from hpc_sched.topology.readers.infiniband import dump_gaps, port_report
from hpc_sched.topology.readers.infiniband.port_report import ReportedEnd
from hpc_sched.topology.readers.name_map import normalized_guid

SWITCH = "S"
HCA = "H"

# A node's description has 64 bytes; names from a map may be longer, but not by much.
MAX_DESCRIPTION = 256
# Nodes and cables. 10,000 hosts with 8 rails under three levels have some 330,000; a million take
# 0.6 GB.
MAX_PARTS = 1_000_000
_MAX_PORTS = 256
_SHOWN = 80

# Data rate of one lane in Gb/s.
_LANE = {
    **{"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0},
    **{"HDR": 50.0, "NDR": 100.0, "XDR": 200.0},
}

# For stripped lines. Every repetition ends at a character that it cannot contain, so that matching
# takes linear time.
_ID = r'"([A-Z?])-([0-9a-fA-F]{1,16})"'
_EXTERNAL = r"(?:\s*\[ext\s+[0-9]+\])?"  # a chassis' own number of the port, with --grouping
_GUID = r"(?:\s*\(([0-9a-fA-F]{1,16})\))?"
_NODE = re.compile(rf"(?:Switch|Ca|Rt|\?\?\?)\s+[0-9]+\s+{_ID}")
_PORT = re.compile(
    rf"\[([0-9]{{1,5}})\]{_EXTERNAL}{_GUID}\s*{_ID}\s*\[([0-9]{{1,5}})\]{_EXTERNAL}{_GUID}"
)
_RATE = re.compile(r"\b([0-9]{1,2})x([A-Z]+[0-9]*)\b")
# Lines without cables that end a section.
_BETWEEN = re.compile(
    r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|\?\?\?guid)=|"
    r"Chassis\s+[0-9]+|Non-Chassis Nodes|Hostname:"
)
_HEADER = re.compile(r"(?:Switch|Ca|Rt|\?\?\?)\s")

# A node and the number of one of its ports.
Port = tuple[str, int]


@dataclass(slots=True)
class IBNode:
    """A switch, an HCA or a router."""

    id: str  # kind and GUID: S-0002c90200404718
    kind: str  # ``SWITCH``, ``HCA``, or something else
    guid: str  # 16 digits
    description: str = ""
    port_guids: tuple[str, ...] = ()  # of HCAs


@dataclass
class _SkippedLines:
    """The first skipped line of a kind, and the number of all."""

    first: str = ""
    count: int = 0

    def add(self, text: str) -> None:
        self.first = self.first or text
        self.count += 1

    def remarks(self, before: str, after: str) -> list[str]:
        more = f", and {plurals.text(self.count - 1, 'more such line')}" if self.count > 1 else ""
        return [f"{self.first}{before}{more}: {after}"] if self.count else []


class Dump:
    """The content of a dump, linear in its length; TopologyError if no line has a node.

    Lines of other programs, such as a prompt or a warning, are skipped with a remark. So are lines
    that contradict an earlier one: cables may be pulled during a discovery.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self.name = name
        self.nodes: dict[str, IBNode] = {}  # by id
        self._stated: dict[str, int] = {}  # links in a node's own section
        self._by_peers: set[str] = set()  # nodes that a peer has described
        self._other_end: dict[Port, Port] = {}
        self._rates: dict[Port, float] = {}
        self._section: IBNode | None = None
        self._strays, self._contradictions = _SkippedLines(), _SkippedLines()
        self._read(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace"))
        if not self.nodes:
            stray = f"; first line: {self._strays.first}" if self._strays.count else ""
            raise exceptions.TopologyError(
                f"{name}: expected the output of ibnetdiscover, lines such as "
                f"'Switch 36 \"S-0002c90200404718\"', found none{stray}"
            )
        self.remarks = (
            *self._strays.remarks(" is no line of ibnetdiscover", "passed over"),
            *self._contradictions.remarks("", "the first line counts"),
        )
        ends = (node for node, _ in self._other_end)
        missing = dump_gaps.sentences(self.nodes, self._stated, ends)
        self.incomplete = [f"{name}: {text}" for text in missing]

    @property
    def cables(self) -> list[Cable]:
        """All cables, each once."""
        ends = ((a, b) for a, b in self._other_end.items() if a <= b)
        return [Cable(a[0], b[0], self._rates.get(a, self._rates.get(b))) for a, b in ends]

    def _read(self, lines: Iterable[str]) -> None:
        for number, raw in enumerate(lines, 1):
            if len(self.nodes) + len(self._other_end) // 2 > MAX_PARTS:
                raise exceptions.TopologyError(
                    f"{self.name}:{number}: expected at most {MAX_PARTS} nodes and cables, found "
                    "more"
                )
            line = raw.strip()
            if not line or line[0] == "#":
                continue
            if line[0] in "CSR" and port_report.is_port(line):
                if cable := port_report.cable_in(line):
                    self._reported(number, *cable)
                continue
            if line[0] == "[" and self._port(line, number):
                continue
            if _HEADER.match(line):
                # The lines after an unreadable header belong to no section.
                self._section = None
                found = _NODE.match(line)
                if found:
                    self._section = self._node(found[1], found[2])
                    self._stated.setdefault(self._section.id, 0)
                    self._describe(self._section, line, found.end())
                    continue
            elif _BETWEEN.match(line):
                self._section = None
                continue
            self._strays.add(f"{self.name}:{number}: {line[:_SHOWN]!r}")

    def _reported(
        self, number: int, here: ReportedEnd, there: ReportedEnd, lanes: str, speed: str
    ) -> None:
        ports: list[Port] = []
        for kind, guid, port, description in (here, there):
            node = self._node(kind, guid)
            if len(description) <= MAX_DESCRIPTION:
                node.description = node.description or description
            _add_guid(node, guid)
            ports.append((node.id, port))
        (here_id, here_port), peer = ports
        self._stated.setdefault(here_id, 0)
        if self._linked((here_id, here_port), peer, number, lanes, speed):
            self._stated[here_id] += 1

    def _port(self, line: str, number: int) -> bool:
        """Read the line of a port; return False if it is none."""
        found = _PORT.match(line)
        if found is None or self._section is None:
            return False
        own, own_guid, kind, guid, port, port_guid = found.groups()
        peer = self._node(kind, guid)
        a, b = (self._section.id, int(own)), (peer.id, int(port))
        _add_guid(self._section, own_guid)
        _add_guid(peer, port_guid)
        self._stated[self._section.id] += 1
        if self._other_end.get(a) == b and b in self._rates and peer.id in self._by_peers:
            return True  # all of it is known from the other end
        rate = _RATE.search(line, self._describe(peer, line, found.end()))
        self._linked(a, b, number, *(rate.groups() if rate else ("", "")))
        return True

    def _node(self, kind: str, guid: str) -> IBNode:
        guid = normalized_guid(guid)
        id_ = f"{kind}-{guid}"
        return self.nodes.setdefault(id_, IBNode(id_, kind, guid))

    def _describe(self, node: IBNode, line: str, start: int) -> int:
        """Read the description of a node in a line; return its end position.

        A name map given to ibnetdiscover itself changes the descriptions of HCAs in the sections of
        switches, not those in their own: the peer's description takes precedence.
        """
        first, last = line.find('"', start), line.rfind('"', start)
        if first == last:
            return start
        if line.find("#", start, first) < 0:
            return last
        of_itself = node is self._section
        if not node.description or (not of_itself and node.id not in self._by_peers):
            text = hostlist.printable(line[first + 1 : last], most=None)
            # No description is better than a damaged one.
            if text and len(text) <= MAX_DESCRIPTION:
                node.description = text
                if not of_itself:
                    self._by_peers.add(node.id)
        return last

    def _linked(self, a: Port, b: Port, number: int, lanes: str, speed: str) -> bool:
        """Link two ports; return False if one is linked to another port already."""
        for port, peer in ((a, b), (b, a)):
            if (known := self._other_end.get(port, peer)) != peer:
                port_, here, before = (f'"{node}"[{n}]' for node, n in (port, peer, known))
                self._contradictions.add(
                    f"{self.name}:{number}: port {port_} is linked to {here} here and to {before} "
                    "before"
                )
                return False
        self._other_end |= {a: b, b: a}
        if speed in _LANE:
            self._rates.setdefault(a, int(lanes) * _LANE[speed])
        return True


def _add_guid(node: IBNode, guid: str | None) -> None:
    if guid and node.kind == HCA and len(node.port_guids) < _MAX_PORTS:
        found = normalized_guid(guid)
        if found not in node.port_guids:
            node.port_guids += (found,)
