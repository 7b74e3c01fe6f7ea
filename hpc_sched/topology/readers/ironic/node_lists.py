"""Nodes and ports of Ironic, as its API returns them and ``openstack baremetal`` prints them.

A text has documents one after the other, in any order. Those of the API are ``{"nodes": [...]}``
and ``{"ports": [...]}``, also in several pages, or one object alone. The command prints lists,
whose keys were titles such as "Node UUID" before they were the names of the API.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.readers import json_text
from hpc_sched.topology.readers.reader_errors import Problems

_EXPECTED = (
    "expected nodes and ports of Ironic, as 'openstack baremetal node list --long -f json' and "
    "'... port list --long -f json' print them"
)
# Items in a page of the API, and in a list of the command without --limit.
PAGE = 1000
# Of switches that are known by switch_info alone: an id is required.
_NO_ID = re.compile(r"(?:0x)?[0:.-]*\Z")
_NODES, _PORTS = "nodes", "ports"
_Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """A bare-metal node."""

    uuid: str
    name: str  # that of the UUID for a node without a name of its own
    traits: tuple[str, ...]
    values: Mapping[str, Any]  # properties, and what extra has in addition


@dataclass(frozen=True, slots=True)
class Port:
    """A port that is connected to a switch."""

    node: str  # UUID
    switch_id: str  # a MAC address or datapath id in lower case, empty for none
    switch_info: str
    network: str  # the physical network, empty for none


@dataclass(slots=True)
class NodeLists:
    """All nodes by UUID, and the ports that are connected to a switch."""

    nodes: dict[str, Node] = field(default_factory=dict)
    ports: list[Port] = field(default_factory=list)
    port_count: int = 0
    incomplete: list[str] = field(default_factory=list)


def read(content: bytes, problems: Problems) -> NodeLists:
    """Return the nodes and ports of a text; raises TopologyError. Linear."""
    return _Reader(problems).read(content)


@dataclass
class _Reader:
    problems: Problems
    found: NodeLists = field(default_factory=NodeLists)
    names: dict[str, str] = field(default_factory=dict)  # UUID to name
    with_port: set[str] = field(default_factory=set)
    last: dict[str, _Item] = field(default_factory=dict)  # the last page of each kind

    def read(self, content: bytes) -> NodeLists:
        name, found = self.problems.path, self.found
        count = 0
        for document in json_text.documents(content, name):
            for kind, items in self._lists(document):
                count += 1
                add = self._node if kind == _NODES else self._port
                for item in items:
                    if isinstance(item, dict):
                        add({_key(key): value for key, value in item.items()})
                    else:
                        self.problems.note(None, f"{kind}: expected objects, found {_kind(item)}")
        self.problems.stop()
        if not count or not found.nodes:
            raise self.problems.error(None, f"{_EXPECTED}, found no node")
        found.nodes = _with_unique_names(found.nodes)
        found.incomplete += [
            f"{name}: the list of {kind} goes on ({page['next']}): expected all pages"
            for kind, page in sorted(self.last.items())
            if page.get("next")
        ]
        if found.incomplete:
            return found
        # Lists that the command prints have no sign of more.
        if len(found.nodes) == PAGE and not self.with_port <= found.nodes.keys():
            found.incomplete.append(self._cut(_NODES, "there are ports of others"))
        if found.port_count == PAGE and not found.nodes.keys() <= self.with_port:
            found.incomplete.append(self._cut(_PORTS, "there are nodes without one"))
        return found

    def _cut(self, kind: str, why: str) -> str:
        return (
            f"{self.problems.path}: the list has {PAGE} {kind}, and {why}: expected all of them, "
            "add '--limit 0'"
        )

    def _lists(self, document: object) -> Iterator[tuple[str, list[Any]]]:
        """Yield the kind and the items of each list in a document."""
        if isinstance(document, list):
            # Nodes have no address, and ports have little else.
            keys = {_key(key) for item in document if isinstance(item, dict) for key in item}
            is_port = not keys.isdisjoint(("address", "node_uuid", "local_link_connection"))
            yield (_PORTS if is_port else _NODES), document
            return
        if isinstance(document, dict):
            kinds = [kind for kind in (_NODES, _PORTS) if isinstance(document.get(kind), list)]
            # The links of a node that is shown alone are called ports too.
            if kinds and "uuid" not in document:
                for kind in kinds:
                    self.last[kind] = document
                    yield kind, document[kind]
                return
            if "uuid" in document:
                yield from self._lists([document])
                return
        self.problems.note(None, f"{_EXPECTED}, found {_kind(document)}")

    def _node(self, item: _Item) -> None:
        uuid = self._text(item, "uuid", "node")
        if uuid is None:
            return
        where = f"node {uuid}"
        name = self._text(item, "name", where, default=uuid)
        traits = item.get("traits") or []
        if not isinstance(traits, list) or not all(isinstance(one, str) for one in traits):
            self.problems.note(None, f"{where}: traits: expected texts, found {_kind(traits)}")
            return
        values = self._object(item, "extra", where) | self._object(item, "properties", where)
        if len(self.found.nodes) >= hostlist.MAX_NAMES:
            raise self.problems.error(
                None, f"expected at most {plurals.text(hostlist.MAX_NAMES, 'node')}, found more"
            )
        self.found.nodes[uuid] = Node(uuid, name or uuid, tuple(sorted(traits)), values)

    def _port(self, item: _Item) -> None:
        if "local_link_connection" not in item:
            self.problems.note(
                None,
                f"port {item.get('uuid', '')}: local_link_connection is missing: list ports with "
                "--long",
            )
            return
        node = self._text(item, "node_uuid", "port")
        if node is None:
            return
        where = f"port of node {node}"
        self.found.port_count += 1
        self.with_port.add(node)
        link = self._object(item, "local_link_connection", where)
        id_ = self._text(link, "switch_id", where, default="")
        info = self._text(link, "switch_info", where, default="")
        network = self._text(item, "physical_network", where, default="")
        id_ = "" if _NO_ID.match(id_ or "") else (id_ or "").lower()
        if id_ or info:
            self.found.ports.append(Port(node, id_, info or "", network or ""))

    def _text(self, item: _Item, key: str, where: str, default: str | None = None) -> str | None:
        """Return a text; note a problem and return None where it has none and there is no default.

        Of what may be missing another value is a problem too.
        """
        value = item.get(key)
        if isinstance(value, str) and value.strip():
            return hostlist.printable(value) or default
        if default is not None and (value is None or value == ""):
            return default
        self.problems.note(None, f"{where}: {key}: expected text, found {_kind(value)}")
        return default

    def _object(self, item: _Item, key: str, where: str) -> dict[str, Any]:
        value = item.get(key)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.problems.note(None, f"{where}: {key}: expected an object, found {_kind(value)}")
        return {}


def _with_unique_names(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return nodes without the names that several have, or that are another node's UUID."""
    count = Counter(node.name for node in nodes.values())
    return {
        uuid: node
        if node.name == uuid or (count[node.name] == 1 and node.name not in nodes)
        else Node(uuid, uuid, node.traits, node.values)
        for uuid, node in nodes.items()
    }


def _key(key: str) -> str:
    return key.lower().replace(" ", "_")


def _kind(found: object) -> str:
    if isinstance(found, dict):
        keys = ", ".join(map(repr, list(found)[:3])) or "no keys"
        return hostlist.truncated(f"an object with {keys}")
    if found is None:
        return "none"
    if isinstance(found, list):
        return f"a list of {plurals.text(len(found), 'item')}"
    return hostlist.truncated(repr(found))
