"""Nodes and ports of Ironic, as its API returns them and ``openstack baremetal`` prints them.

A text has documents one after the other, in any order. Those of the API are ``{"nodes": [...]}``
and ``{"ports": [...]}``, also in several pages, or one object alone. The command prints lists,
whose keys were titles such as "Node UUID" before they were the names of the API.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


class NodeLists:
    """All nodes of a text by UUID, and the ports that are connected to a switch.

    Raises a TopologyError with every problem. Linear.
    """

    def __init__(self, content: bytes, problems: Problems) -> None:
        self.problems = problems
        self.nodes: dict[str, Node] = {}
        self.ports: list[Port] = []
        self.port_count = 0
        self._with_port: set[str] = set()  # UUIDs of nodes
        self._last: dict[str, _Item] = {}  # the last page of each kind
        for document in json_text.documents(content, problems.path):
            for kind, items in self._lists(document):
                add = self._node if kind == _NODES else self._port
                for item in items:
                    if isinstance(item, dict):
                        add({_key(key): value for key, value in item.items()})
                    else:
                        problems.note(None, f"{kind}: expected objects, found {_kind(item)}")
        problems.stop()
        if not self.nodes:
            raise problems.error(None, f"{_EXPECTED}, found no node")
        self.nodes = _with_unique_names(self.nodes)

    @property
    def incomplete(self) -> list[str]:
        """Sentences on what shows that the lists have been cut off."""
        name, nodes = self.problems.path, self.nodes.keys()
        # Lists that the command prints have no sign of more.
        signs = (
            (_NODES, len(nodes), self._with_port <= nodes, "there are ports of others"),
            (_PORTS, self.port_count, nodes <= self._with_port, "there are nodes without one"),
        )
        return [
            f"{name}: the list of {kind} goes on ({page['next']}): expected all pages"
            for kind, page in sorted(self._last.items())
            if page.get("next")
        ] or [
            f"{name}: the list has {PAGE} {kind}, and {why}: expected all of them, add '--limit 0'"
            for kind, number, are_all, why in signs
            if number == PAGE and not are_all
        ]

    def _lists(self, document: object) -> Iterator[tuple[str, list[Any]]]:
        """Yield the kind and the items of each list in a document."""
        # The links of a node that is shown alone are called ports too.
        if isinstance(document, dict) and "uuid" in document:
            document = [document]
        if isinstance(document, list):
            # Nodes have no address, and ports have little else.
            keys = {_key(key) for item in document if isinstance(item, dict) for key in item}
            is_port = not keys.isdisjoint(("address", "node_uuid", "local_link_connection"))
            yield (_PORTS if is_port else _NODES), document
            return
        page = document if isinstance(document, dict) else {}
        kinds = [kind for kind in (_NODES, _PORTS) if isinstance(page.get(kind), list)]
        if not kinds:
            self.problems.note(None, f"{_EXPECTED}, found {_kind(document)}")
        for kind in kinds:
            self._last[kind] = page
            yield kind, page[kind]

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
        self.problems.check_number(len(self.nodes) + 1, hostlist.MAX_NAMES, "nodes")
        self.nodes[uuid] = Node(uuid, name or uuid, tuple(sorted(traits)), values)

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
        self.port_count += 1
        self._with_port.add(node)
        link = self._object(item, "local_link_connection", where)
        id_ = self._text(link, "switch_id", where, default="")
        info = self._text(link, "switch_info", where, default="")
        network = self._text(item, "physical_network", where, default="")
        id_ = "" if _NO_ID.match(id_ or "") else (id_ or "").lower()
        if id_ or info:
            self.ports.append(Port(node, id_, info or "", network or ""))

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
        return json_text.keys_of(found)
    if found is None:
        return "none"
    if isinstance(found, list):
        return f"a list of {plurals.text(len(found), 'item')}"
    return hostlist.truncated(repr(found))
