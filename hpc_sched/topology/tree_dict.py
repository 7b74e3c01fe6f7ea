"""A topology taken apart again, to be written or to be built anew with a change."""

from typing import Any

from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Details


def nested(topology: Topology) -> dict[str, Any]:
    """Return the nested switches that :meth:`Topology.from_tree` takes. O(hosts + switches)."""
    below: list[Any] = [[] if switch.level == 1 else {} for switch in topology.switches]
    for host, leaf in zip(topology.hosts, topology.leaf_index.tolist(), strict=True):
        below[leaf].append(host)
    tree: dict[str, Any] = {}
    for s, switch in enumerate(topology.switches):
        (tree if switch.parent < 0 else below[switch.parent])[switch.name] = below[s]
    return tree


def details_of(topology: Topology) -> Details:
    """Return what the switches of a topology have beside their place."""
    switches = topology.switches
    return Details(
        processors={s.name: s.processor for s in switches if s.processor is not None},
        members={s.name: s.members for s in switches if s.members},
        links={s.name: s.links for s in switches if s.links is not None},
    )
