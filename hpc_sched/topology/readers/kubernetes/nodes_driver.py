"""The ``kubernetes`` driver: labels of nodes, as ``kubectl get nodes -o json`` prints them.

The host is the node's name. Its label ``kubernetes.io/hostname``, which may differ, is another name
by which Nova may know it. Only names and labels are kept of megabytes: an object takes some 20 KB.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import driver_options, json_text
from hpc_sched.topology.readers.kubernetes import label_levels
from hpc_sched.topology.readers.kubernetes.label_levels import LabelLevel
from hpc_sched.topology.readers.level_tree import LevelTree
from hpc_sched.topology.readers.reader_errors import InvalidItemError, Problems
from hpc_sched.topology.readers.text_driver import TextDriver

_HOSTNAME = "kubernetes.io/hostname"
# Kubernetes stores no object of more than some 1.5 MB.
_MAX_LABELS = 1 << 20
_EXPECTED = "expected Nodes, as kubectl get nodes -o json prints them"


class _Metadata(msgspec.Struct, gc=False):
    name: str | None = None
    labels: msgspec.Raw = msgspec.Raw(b"null")  # decoded one node after the other
    more: str | None = msgspec.field(name="continue", default=None)


class _Node(msgspec.Struct, gc=False):
    kind: str | None = None
    metadata: _Metadata | None = None


class _Instance(msgspec.Struct, gc=False):
    """A node in the output of Topograph's engine ``graph``."""

    id: str
    network_layers: Sequence[str] | None = None  # closest to the node first
    labels: Mapping[str, str] | None = None


class _Document(_Node):
    items: Sequence[_Node] | None = None
    instances: Sequence[_Instance] | None = None


# A node's name, and its labels.
_Labels = tuple[str, Mapping[str, str]]


class KubernetesDriver(TextDriver):
    """Reads the labels of Kubernetes nodes: of Topograph, of clouds, or of the site."""

    is_discovered = True
    options = driver_options.of_text("node_key")
    rank = 2
    patterns = (
        re.compile(rb'"kind"\s{0,9}:\s{0,9}"(?:Node|NodeList|ConfigMap)"|"network_layers"\s{0,9}:'),
    )
    others = (
        (re.compile(rb'"NetworkNodes"\s{0,9}:'), "the labels of nodes that Topograph writes"),
    )

    def __init__(self, *, node_key: Mapping[str, str] | None = None, **source: Any) -> None:
        """Keep the keys; see :class:`TextDriver` for the source.

        :param node_key: level to label, bottom up, in place of the known labels
        """
        super().__init__(**source)
        self.keys = [LabelLevel(level, (label,)) for level, label in (node_key or {}).items()]

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology of a list of nodes; TopologyError has every problem. Linear."""
        problems = Problems(name)
        documents = json_text.documents_of(_Document, content, name)
        reader = _LabelReader(problems, {label for level in self.keys for label in level.labels})
        nodes = [node for document in documents for node in reader.nodes(document)]
        problems.stop()
        if not nodes:
            raise problems.error(None, f"{_EXPECTED}, found none")
        problems.check_number(len(nodes), hostlist.MAX_NAMES, "nodes", found=len(nodes))
        levels = self.keys or _known_levels(nodes, problems)
        tree = LevelTree(problems, [level.name for level in levels])
        for node, labels in nodes:
            tree.hosts.add(node)
            for level in levels if labels else ():
                if (switch := level.switch(labels)) is not None:
                    tree.add(level.name, switch, (node,), f"node {node!r}")
        tree.require(
            {level.name: f"node has label {level.labels[0]}" for level in levels},
            "topology_node_key",
        )
        problems.stop()
        lowest = " or ".join(levels[0].labels)
        cut = f"{name}: the list of nodes goes on (metadata.continue): expected all nodes"
        return tree.topology(
            f"nodes without label {lowest}",
            host_ids=_other_names(nodes),
            incomplete=[cut for one in documents if one.metadata and one.metadata.more][:1],
        )


class _LabelReader:
    def __init__(self, problems: Problems, keys: set[str]) -> None:
        self.problems = problems
        self.keys = keys  # the labels that count, or none for the known ones
        self.decode = msgspec.json.Decoder(dict[str, str] | None).decode

    def nodes(self, document: _Document) -> list[_Labels]:
        """Return nodes and their labels that count; notes a problem for what is no node."""
        if document.instances is not None:
            return self.problems.of_each(document.instances, self._instance)
        if document.kind == "Node":
            return self.problems.of_each([document], self._node)
        if document.items is not None and document.kind in ("List", "NodeList"):
            return self.problems.of_each(document.items, self._node)
        kind = repr(document.kind) if document.kind else "an object without a kind"
        advice = (
            "; a topology of Slurm in it is read by driver slurm from the output of kubectl get "
            "configmap NAME -o jsonpath='{.data.topology\\.conf}'"
            if document.kind == "ConfigMap"
            else ""
        )
        self.problems.note(None, f"{_EXPECTED}, found {kind}{advice}")
        return []

    def _node(self, node: _Node) -> _Labels:
        if node.kind not in (None, "", "Node"):
            raise InvalidItemError(None, f"{_EXPECTED}, found {node.kind!r} in the list")
        metadata = node.metadata or _Metadata()
        where = f"node {metadata.name!r}: labels"
        if (size := memoryview(metadata.labels).nbytes) > _MAX_LABELS:
            raise InvalidItemError(
                None, f"{where}: expected at most {_MAX_LABELS} bytes, found {size}"
            )
        try:
            labels = self.decode(metadata.labels) or {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidItemError(None, f"{where}: {error}") from error
        return self._labels(metadata.name, labels)

    def _instance(self, instance: _Instance) -> _Labels:
        tiers = enumerate(instance.network_layers or ())
        labels = {f"fabric.topograph.run/tier-{number}": switch for number, switch in tiers}
        return self._labels(instance.id, labels | dict(instance.labels or {}))

    def _labels(self, name: str | None, labels: Mapping[str, str]) -> _Labels:
        if not name or len(name) > hostlist.MAX_NAME or not hostlist.PLAIN.match(name):
            raise InvalidItemError(
                None,
                "metadata.name: expected a node's name of letters, digits, '.', '_' and '-', "
                f"found {name!r}",
            )
        counts = self.keys.__contains__ if self.keys else label_levels.is_known
        kept = {
            key: value.strip() for key, value in labels.items() if counts(key) or key == _HOSTNAME
        }
        return name, kept


def _known_levels(nodes: Sequence[_Labels], problems: Problems) -> list[LabelLevel]:
    """Return the levels of the known labels that nodes have, bottom up."""
    found = {key for _, labels in nodes for key, value in labels.items() if value}
    fabric, domains = label_levels.fabric_levels(found), label_levels.domain_levels(found)
    if not fabric and not domains:
        raise problems.error(
            None,
            f"no node has a label that names a switch: expected {', '.join(label_levels.KNOWN)}; "
            "or name the site's own in [hpc_sched] topology_node_key",
        )
    if fabric and label_levels.ZONE in fabric[0].labels:
        problems.remark(
            None, "the labels name zones, no switches: all nodes of a zone are read as equally near"
        )
    leaves: dict[str, str] = {}
    for _, labels in nodes if fabric and domains else ():
        domain, leaf = domains[-1].switch(labels), fabric[0].switch(labels)
        if domain and leaf and leaves.setdefault(domain, leaf) != leaf:
            problems.remark(
                None,
                f"domain {domain!r} of accelerators is below {fabric[0].name} {leaves[domain]!r} "
                f"and {fabric[0].name} {leaf!r}: domains are left out",
            )
            return fabric
    return domains + fabric


def _other_names(nodes: Sequence[_Labels]) -> dict[str, str]:
    """Return the label with its host's name of each node, unless another node has that name."""
    others = {node: labels.get(_HOSTNAME) or node for node, labels in nodes}
    count = Counter(others.values())
    return {
        node: other
        for node, other in others.items()
        if other != node and count[other] == 1 and other not in others
    }
