"""The ``ibnetdiscover`` driver: an InfiniBand fabric from a saved dump or a discovery now."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.infiniband import ibnetdiscover_dump, node_names, switch_cables
from hpc_sched.topology.readers.infiniband.ibnetdiscover_dump import HCA, SWITCH, Node
from hpc_sched.topology.readers.text_driver import TextDriver

_OPTIONS = "topology_name_map (GUID to host) or topology_host_pattern"


class IbnetdiscoverDriver(TextDriver):
    """Reads the output of ibnetdiscover."""

    def __init__(self, *, host_pattern: str | None = None, **source: Any) -> None:
        """Read a file or a command, see :class:`TextDriver`.

        :param host_pattern: regular expression that finds the name of a host in the description
            of its HCA: the first group, or the whole match
        :raises exceptions.TopologyError: for an invalid expression, and as TextDriver does
        """
        super().__init__(**source)
        self.pattern: re.Pattern[str] | None = None
        if host_pattern:
            try:
                self.pattern = re.compile(host_pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise exceptions.TopologyError(
                    f"topology_host_pattern: expected a regular expression, found "
                    f"{host_pattern!r}: {error}"
                ) from error

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a dump.

        Linear in its length, but for the distances, see :func:`switch_cables.fabric`.

        :param names: GUID to host or switch, with 16 digits
        :raises exceptions.TopologyError: where no switch carries a host, and as
            :func:`switch_cables.fabric` does
        """
        dump = ibnetdiscover_dump.read(content, name)
        hcas = [node for node in dump.nodes.values() if node.kind == HCA]
        hosts: dict[str, str] = {}
        inner: set[str] = set()
        nameless: list[Node] = []
        for node in hcas:
            host = node_names.host_of(node, names, self.pattern)
            if host is not None:
                hosts[node.id] = host
            elif node_names.is_aggregation(node):
                inner.add(node.id)
            else:
                nameless.append(node)
        switches = [node for node in dump.nodes.values() if node.kind == SWITCH]
        if not hosts:
            raise exceptions.TopologyError(
                f"{name}: expected a switch that carries a host, found switches: "
                f"{len(switches)}, HCAs without the name of a host: {len(nameless)}"
                f"{_example(nameless)}; see {_OPTIONS}"
            )
        remarks = list(dump.remarks)
        if nameless:
            remarks.append(
                f"HCAs without the name of a host, which count for none: {len(nameless)}"
                f"{_example(nameless)}; see {_OPTIONS}"
            )
        try:
            return switch_cables.fabric(
                dump.cables, node_names.switch_names(switches, names), hosts, inner, remarks
            )
        except exceptions.TopologyError as error:
            raise exceptions.TopologyError(f"{name}: {error}") from error


def _example(nodes: Sequence[Node]) -> str:
    """Return an example of some nodes, independent of their order."""
    if not nodes:
        return ""
    node = min(nodes, key=lambda node: (not node.description, node.guid))
    return f", such as {node.description!r} (0x{node.guid})"
