"""The ``ibnetdiscover`` driver: an InfiniBand fabric from a saved dump or a discovery now."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options
from hpc_sched.topology.readers.cabling.fabric import fabric
from hpc_sched.topology.readers.infiniband.ibnetdiscover_dump import HCA, SWITCH, Dump, IBNode
from hpc_sched.topology.readers.reader_errors import pattern_of
from hpc_sched.topology.readers.text_driver import TextDriver

# Name of an HCA after the host's name: by openibd, by the kernel, by rdma-core.
_ADAPTER = re.compile(
    r"(?:HCA-?[0-9]+"
    r"|(?:mlx[0-9]*|mthca|hfi[0-9]*|qib|ipath|ehca|cxgb[0-9]*|bnxt_re|irdma|siw|rxe)_?[a-z0-9_]*[0-9]"
    r"|(?:ib|roce|opa?|iw|rdma)[a-z0-9_]*[0-9][a-z0-9_]*)\Z",
    re.IGNORECASE,
)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_NOTE = re.compile(r"\s*\([^()]*\)\Z")  # after the name of an HCA: node1 HCA-1 (Mellanox HCA)
_SIMULATED = re.compile(r"Hca[0-9]+\Z")  # ibsim's own names of hosts
_MODEL = re.compile(r"MT[0-9]+\Z")  # until a driver sets a description
_PLACEHOLDERS = frozenset(
    ("localhost", "localhost.localdomain", "none", "null", "unknown", "hostname", "noname")
)

# Mellanox' managed switches: MF0;leaf04:SX6036/U1, a board of a director MF0;core:CS7500/L01/U1.
_MANAGED = re.compile(r"[^;]*;(?P<name>.+):[^:/]*(?P<unit>(?:/[^:/]+)*)\Z")


class IbnetdiscoverDriver(TextDriver):
    """Reads the output of ibnetdiscover.

    The first group of ``host_pattern``, or its whole match, is the host in an HCA's description.
    """

    is_discovered = True
    options = driver_options.of_text("host_pattern")
    rank = 1
    patterns = (
        re.compile(rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+\d+[ \t]+"[A-Z]-', re.MULTILINE),
        re.compile(rb"^(?:CA|SW|RT)[ \t]+\d+[ \t]+\d+[ \t]+0x", re.MULTILINE),
    )
    others = (
        (
            re.compile(rb"^(?:Switch|Ca|Rt)[ \t]+: 0x", re.MULTILINE),
            "ibnetdiscover without options",
        ),
        (
            re.compile(rb"^(?:CA|Switch): .*:$", re.MULTILINE),
            "ibnetdiscover in place of iblinkinfo",
        ),
        (
            re.compile(rb"^\{ (?:CA|SW) Ports:", re.MULTILINE),
            "ibnetdiscover in place of OpenSM's list",
        ),
    )

    def __init__(self, *, host_pattern: str | None = None, **source: Any) -> None:
        super().__init__(**source)
        self.pattern = pattern_of(host_pattern, "topology_host_pattern")

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a dump, ``names`` by GUIDs of 16 digits; raises TopologyError."""
        dump = Dump(content, name)
        hcas = [node for node in dump.nodes.values() if node.kind == HCA]
        hosts = {
            node.id: host
            for node in hcas
            if (host := _host_of(node, names, self.pattern)) is not None
        }
        inner = {node.id for node in hcas if node.id not in hosts and _is_aggregation(node)}
        known = hosts.keys() | inner
        nameless = [node for node in hcas if node.id not in known]
        switches = [node for node in dump.nodes.values() if node.kind == SWITCH]
        switch_names = _switch_names(switches, names)
        shown = f"{len(nameless)}{_example(nameless)}"
        if not hosts:
            raise exceptions.TopologyError(
                f"{name}: expected a switch that carries a host, found switches: "
                f"{len(switches)}, HCAs without the name of a host: {shown}"
            )
        remark = f"HCAs without the name of a host, which count for none: {shown}"
        try:
            return fabric(
                dump.cables,
                switch_names,
                hosts,
                {node.id for node in hcas} - inner,
                ids={switch_names[node.id]: f"0x{node.guid}" for node in switches},
                remarks=[*dump.remarks, *([remark] if nameless else ())],
                incomplete=dump.incomplete,
            )
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(f"{name}: {error}") from error


def _example(nodes: Sequence[IBNode]) -> str:
    if not nodes:
        return ""
    node = min(nodes, key=lambda node: (not node.description, node.guid))
    guid = f"0x{node.guid}"
    shown = f", such as {node.description!r} ({guid}); expected a line '{guid} HOST' in"
    first, *more = node.description.split() or ("",)
    if not _is_host(first):
        return f"{shown} topology_name_map, or a topology_host_pattern"
    pattern = r"^(\S+)" if more else r"^(.+)$"
    return f"{shown} topology_name_map, or topology_host_pattern = {pattern} for host {first!r}"


def _is_aggregation(hca: IBNode) -> bool:
    """True for a SHARP tree's node in a switch, seen as an HCA."""
    return "aggregation node" in hca.description.lower()


def _host_of(node: IBNode, names: Mapping[str, str], pattern: re.Pattern[str] | None) -> str | None:
    """Return the host of an HCA by the name map (GUIDs of node or ports), else its description."""
    for guid in (node.guid, *sorted(node.port_guids)):
        if guid in names:
            # A name map for ibnetdiscover itself has whole descriptions.
            return _host_in(names[guid]) or names[guid]
    if _is_aggregation(node):
        return None
    if pattern is None:
        return _host_in(node.description)
    found = pattern.search(node.description)
    host = ((found[1] if pattern.groups else found[0]) or "").strip() if found else ""
    return host if _is_name(host) else None


def _host_in(description: str) -> str | None:
    words = _NOTE.sub("", description).split()
    # The host's name, alone or with that of the adapter.
    is_alone = len(words) == 1 or (len(words) == 2 and _ADAPTER.match(words[1]))
    return words[0] if is_alone and _is_host(words[0]) else None


def _is_host(word: str) -> bool:
    is_other = _ADAPTER.match(word) or _MODEL.match(word)
    is_host = _HOST.match(word) and not is_other and _is_name(word)
    return bool(is_host or _SIMULATED.match(word))


def _is_name(host: str) -> bool:
    return bool(host) and host.strip("()").lower() not in _PLACEHOLDERS


def _switch_names(nodes: Iterable[IBNode], names: Mapping[str, str]) -> dict[str, str]:
    """Return the unique name of each switch, by its id: that of the name map or the description.

    To a name that several switches have, their places in a director switch are added if these
    differ, else their GUIDs. The order of the nodes is irrelevant.
    """
    ordered = sorted(nodes, key=lambda node: node.id)
    short: dict[str, str] = {}
    long: dict[str, str] = {}  # with the place of a board in a director switch
    for node in ordered:
        given = names.get(node.guid, node.description)
        managed = _MANAGED.match(given)
        name = managed["name"].strip() if managed else ""
        short[node.id] = name or given or node.guid
        long[node.id] = name + managed["unit"] if managed and name else short[node.id]
    count = Counter(short.values())
    placed = Counter(long.values())
    # Names of which two switches have the same place, or one has none.
    unclear = {name for id_, name in short.items() if placed[long[id_]] > 1 or long[id_] == name}
    found: dict[str, str] = {}  # unique name to id
    for node in ordered:
        name = short[node.id]
        if count[name] > 1:
            name = f"{name}-{node.guid}" if name in unclear else long[node.id]
        while name in found:
            name = f"{name}-{node.guid}"
        found[name] = node.id
    return {id_: name for name, id_ in found.items()}
