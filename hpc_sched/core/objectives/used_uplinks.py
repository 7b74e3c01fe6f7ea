"""The uplinks that groups use: those of switches above a part of their VMs."""

from collections.abc import Iterable, Mapping

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.topology.model import Topology


def used_uplinks(topology: Topology, groups: Iterable[Mapping[str, int]]) -> Mask:
    """Return whether any group uses the uplinks of each switch. Shape (switches,).

    O(hosts of the groups * depth).

    :param groups: VMs by host, of each group; a host that the topology lacks is below none of its
        switches
    """
    is_used = np.zeros(len(topology.switches), dtype=np.bool_)
    for group in groups:
        by_leaf: dict[int, int] = {}
        for host, vms in group.items():
            if host in topology:
                leaf = topology.leaf_index.item(topology.index_of(host))
                by_leaf[leaf] = by_leaf.get(leaf, 0) + vms
        is_used[used_by(topology, by_leaf, sum(group.values()))] = True
    return is_used


def used_by(topology: Topology, by_leaf: Mapping[int, int], everyone: int) -> list[int]:
    """Return the switches whose uplinks one group uses, as indices. O(leaves * depth).

    :param by_leaf: VMs below each leaf, an index in ``topology.switches``
    :param everyone: VMs of the group
    """
    below: dict[int, int] = {}
    for leaf, vms in by_leaf.items():
        for switch in topology.upwards(leaf):
            below[switch] = below.get(switch, 0) + vms
    return [switch for switch, vms in below.items() if vms < everyone]
