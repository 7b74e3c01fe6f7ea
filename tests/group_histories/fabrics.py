"""The fabrics of the histories, as trees of switches with nodes below.

::

      one: core             pods: core            islands: i      j   k
      _____|_____             ____|____                  __|__    |   |
     a   b   c   d           p         q                a     b   c   d
                            a b       c d

``metal`` is ``one``, with two compute services that have nodes under all leaves. Nodes are called
after their leaves: a1, a2, a3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nova.conf import CONF

from hpc_sched.nova_glue.io import loaded_topology
from tests.functional.trees import write_tree
from tests.protocol.nova_model import uuid_of

LEAVES = "abcd"
NODES = tuple(f"{leaf}{number}" for leaf in LEAVES for number in (1, 2, 3))
_ONE = dict.fromkeys(LEAVES, "core"), {"core": "core"}
_PODS = {"a": "p", "b": "p", "c": "q", "d": "q"}, {"p": "core", "q": "core"}
_ISLANDS = {"a": "i", "b": "i", "c": "j", "d": "k"}, {"i": "i", "j": "j", "k": "k"}


@dataclass(frozen=True)
class Fabric:
    """Switches above leaves; what a node is called by Nova."""

    name: str
    pod_of: Mapping[str, str]  # the switch above each leaf
    root_of_pod: Mapping[str, str]
    is_metal: bool = False
    # As libvirt calls nodes by the full names of their hosts, and services mostly have short ones.
    domain: str = ""

    def switch(self, level: str | None, leaf: str) -> str:
        """Return the switch of a level above a leaf; None: its root."""
        pod = self.pod_of[leaf]
        return {"leaf": leaf, "pod": pod}.get(level or "", self.root_of_pod[pod])

    def nodename(self, node: str) -> str:
        """Return what Nova calls a node: its uuid on bare metal."""
        return uuid_of(node) if self.is_metal else f"{node}{self.domain}"

    def service(self, node: str) -> str:
        """Return the compute service of a node."""
        return ("m1" if node[1] < "3" else "m2") if self.is_metal else node

    @property
    def tree(self) -> dict[str, Any]:
        """The switches, as ``Topology.from_tree`` takes them."""
        tree: dict[str, Any] = {}
        for leaf, pod in self.pod_of.items():
            root = self.root_of_pod[pod]
            below = tree.setdefault(root, {})
            if pod != root:
                below = below.setdefault(pod, {})
            below[leaf] = [self.nodename(node) for node in NODES if node[0] == leaf]
        return tree


FABRICS = {
    found.name: found
    for found in (
        Fabric("one", *_ONE),
        Fabric("pods", *_PODS, domain=".site.example"),
        Fabric("islands", *_ISLANDS),
        Fabric("metal", *_ONE, is_metal=True),
    )
}


def leaves_of(nodes: Iterable[str]) -> frozenset[str]:
    """Return the leaves of some nodes."""
    return frozenset(node[0] for node in nodes)


@contextmanager
def loaded(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Load the topology of each fabric; yield what :func:`use` takes, by name."""
    before, found = loaded_topology._loaded, {}
    option = ("topology_file", str(CONF.hpc_sched.topology_file), "hpc_sched")
    try:
        for fabric in FABRICS.values():
            path = write_tree(folder / f"{fabric.name}.yaml", fabric.tree)
            CONF.set_override("topology_file", str(path), "hpc_sched")
            loaded_topology.load()
            found[fabric.name] = loaded_topology._loaded
        yield found
    finally:
        CONF.set_override(*option)
        loaded_topology._loaded = before


def use(topology: Any) -> None:
    """Let the plugin have a topology that was loaded."""
    loaded_topology._loaded = topology
