"""The ``ironic`` driver: bare-metal nodes below the switches of their ports.

Ports name leaf switches only. Switches above, or the leaves too, are named by traits, properties or
extra of the nodes.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy, hostlist, plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.hierarchy import Leaf
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options
from hpc_sched.topology.readers.cabling.cabled_leaves import LeafSets
from hpc_sched.topology.readers.cabling.ethernet import shared_switches
from hpc_sched.topology.readers.ironic import api
from hpc_sched.topology.readers.ironic.node_lists import Node, NodeLists, Port
from hpc_sched.topology.readers.level_tree import LEAF, LevelTree
from hpc_sched.topology.readers.reader_errors import Problems, matches, pattern_of
from hpc_sched.topology.readers.text_driver import MAX_BYTES, Text, TextDriver
from hpc_sched.topology.tree import Details

# Plugins keep other things than names in switch_info.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*\Z")


class IronicDriver(TextDriver):
    """Reads nodes and ports of Ironic, from the API of a cloud or a saved text.

    A host is called by its node's name and known by its UUID, which is the nodename in Nova.
    """

    is_discovered = True
    options = driver_options.of_text("cloud", "node_key", "port_pattern", "switch_pattern")
    rank = 4
    patterns = (
        re.compile(
            rb'"(?:local_link_connection|Local Link Connection)"\s{0,9}:'
            rb'|"(?:provision_state|Provisioning State|UUID)"\s{0,9}:'
        ),
    )

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        command: str | Sequence[str] = (),
        *,
        cloud: str | None = None,
        node_key: Mapping[str, str] | None = None,
        port_pattern: str | None = None,
        switch_pattern: str | None = None,
        **source: Any,
    ) -> None:
        """Keep the options; see :class:`TextDriver` for the others.

        :param cloud: name in clouds.yaml of the cloud to ask, in place of a file or command
        :param node_key: level to key, lowest first; a key in upper case is the beginning of
            traits, another one is a key of properties or extra
        :param port_pattern: of the physical networks of the ports that count
        :param switch_pattern: of the names or ids of the switches that count
        """
        if cloud and (path or command):
            raise exceptions.TopologyError(
                "expected a cloud ([hpc_sched] topology_cloud), a file (topology_file) or a "
                "command (topology_command), found several of them"
            )
        # With a cloud, the path is a name for errors.
        super().__init__(api.name_of(cloud) if cloud else path, command, **source)
        self.cloud = cloud
        self.keys = dict(node_key or {})
        if LEAF in list(self.keys)[1:]:
            raise exceptions.TopologyError(
                f"topology_node_key: expected the lowest level, {LEAF!r}, first, found "
                f"{', '.join(self.keys)}"
            )
        self.port_pattern = pattern_of(port_pattern, "topology_port_pattern")
        self.switch_pattern = pattern_of(switch_pattern, "topology_switch_pattern")

    def read(self) -> Text:
        """Return the current lists; see :func:`api.read` for the calls. Raises TopologyError."""
        if self.cloud is None:
            return super().read()
        return self.described(api.read(self.cloud, MAX_BYTES), api.name_of(self.cloud))

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of lists of nodes and ports; TopologyError has every problem."""
        problems = Problems(name)
        found = NodeLists(content, problems)
        tree = LevelTree(problems, list(self.keys) if LEAF in self.keys else [LEAF, *self.keys])
        details = None if LEAF in self.keys else self._add_leaves(tree, found)
        for level, key in self.keys.items():
            for node in found.nodes.values():
                for switch, source in _stated(node, key, problems):
                    tree.add(level, switch, (node.name,), source)
        kinds = {True: "trait that begins with", False: "property or extra"}
        tree.require(
            {
                level: f"node has a {kinds[key.isupper()]} {key!r}"
                for level, key in self.keys.items()
            },
            "topology_node_key",
        )
        if left_out := sorted({node.name for node in found.nodes.values()} - tree.hosts):
            problems.remark(
                None, f"nodes without a switch, which are left out: {hostlist.first(left_out)}"
            )
        ids = {node.name: node.uuid for node in found.nodes.values() if node.name in tree.hosts}
        return tree.topology("nodes without a leaf switch", ids, found.incomplete, details)

    def _add_leaves(self, tree: LevelTree, found: NodeLists) -> Details:
        """State the leaves of nodes with ports that count; return details of these leaves."""
        problems = tree.problems
        ports = [port for port in found.ports if port.node in found.nodes]
        names = _switch_names(ports, problems)
        counted = [
            port
            for port in ports
            if matches(self.port_pattern, port.network)
            and matches(self.switch_pattern, names[port], port.switch_id)
        ]
        above = by_key((found.nodes[port.node].name, names[port]) for port in counted)
        if not above:
            raise problems.error(
                None,
                "expected ports of nodes with the switch_id or switch_info of a switch in "
                f"local_link_connection, found {plurals.text(len(found.nodes), 'node')}, "
                f"{plurals.text(found.port_count, 'port')}, {len(ports)} of them with a switch, "
                "and none that topology_port_pattern and topology_switch_pattern match. Nodes "
                f"whose properties name their leaf need no ports: topology_node_key = {LEAF}:KEY",
            )
        ids = {name: port.switch_id for port, name in names.items() if port.switch_id}
        try:
            sets = LeafSets(above)
        except exceptions.TopologyError as error:
            raise problems.error(None, str(error)) from error
        leaves = [Leaf(switches, hosts) for switches, hosts in sets.leaves.items()]
        # Nothing is known of the distances: each leaf is near itself.
        cabled = hierarchy.build(leaves, [[1 << i for i in range(len(leaves))]], (), ids=ids)
        for remark in (*sets.remarks, *shared_switches(cabled)):
            problems.remark(None, remark)
        for switch, below in zip(cabled.switches, cabled.leaf_hosts(), strict=True):
            if below:
                tree.add(LEAF, switch.name, below, "its ports")
        return cabled.details()


def _stated(node: Node, key: str, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield what a node states for a key: a switch, and where that is."""
    where = f"node {node.name}"
    if key.isupper():
        for trait in node.traits:
            if trait.startswith(key) and trait != key:
                yield trait.removeprefix("CUSTOM_"), f"{where}: trait {trait}"
        return
    value = node.values.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        if value := hostlist.printable(value):
            yield value, f"{where}: {key}"
    elif value is not None:
        found = hostlist.truncated(repr(value))
        problems.note(None, f"{where}: {key}: expected a text, found {found}")


def _switch_names(ports: Sequence[Port], problems: Problems) -> dict[Port, str]:
    """Return the unique name of the switch of each port.

    That is switch_info if it is a name and of one id, else both. Several names of one id are
    several switches: sites that know switches by name may give all of them the same id.
    """
    infos = by_key((port.switch_id, _plain(port.switch_info)) for port in ports)
    known = {id_: sorted({*found} - {""}) for id_, found in infos.items() if id_}
    for id_, found in sorted(known.items()):
        if len(found) > 1:
            problems.remark(
                None,
                f"switch_id {id_} has several names, read as different switches: "
                f"{', '.join(found)}",
            )
    count = Counter(info for found in known.values() for info in found)
    names: dict[Port, str] = {}
    for port in ports:
        id_, others = port.switch_id, known.get(port.switch_id, ())
        info = _plain(port.switch_info) or (others[0] if len(others) == 1 else "")
        clear = f"{info}-{id_}" if id_ and count[info] > 1 else info
        names[port] = clear if info else id_ or port.switch_info
    return names


def _plain(info: str) -> str:
    """Return what switch_info has, if it is a name."""
    return info if _NAME.match(info) else ""
