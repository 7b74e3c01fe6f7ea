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
        below: dict[int, int] = {}
        for host, vms in group.items():
            if host not in topology:
                continue
            for switch in topology.upwards(topology.leaf_index.item(topology.index_of(host))):
                below[switch] = below.get(switch, 0) + vms
        everyone = sum(group.values())
        is_used[[switch for switch, vms in below.items() if vms < everyone]] = True
    return is_used
