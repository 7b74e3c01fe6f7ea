"""The order of the fabric: depth first, switches and hosts by natural order of their names."""

import functools
import re
from collections.abc import Sequence
from typing import Any

from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology

_NUMBER = re.compile(r"([0-9]+)")


@functools.lru_cache(maxsize=1 << 14)
def natural_key(name: str) -> tuple[Any, ...]:
    """Return a sort key by which ``node2`` is before ``node10``; names that differ have two keys.

    Texts and numbers, of any length, in turn; then the name itself, which differs by zeros.
    """
    parts = _NUMBER.split(name)
    digits = (number.lstrip("0") for number in parts[1::2])
    parts[1::2] = [(len(number), number) for number in digits]
    return (parts, name)


def in_fabric_order(topology: Topology, hosts: Sequence[int]) -> list[int]:
    """Return hosts, as indices in ``topology.hosts``, in the order of the fabric.

    A host that is given several times is there as often, in a row. O(hosts log hosts).
    """
    if len(set(hosts)) < 2:
        return list(hosts)
    groups, names, switches = topology.groups, topology.hosts, topology.switches
    inside = by_key(zip(groups[0, hosts].tolist(), hosts, strict=True))

    def way_down(leaf: int) -> list[tuple[Any, ...]]:
        """Return the sort keys of the switches above a leaf, root first, and its own."""
        return [natural_key(switches[s].name) for s in groups[::-1, inside[leaf][0]].tolist()]

    return [
        host
        for leaf in (sorted(inside, key=way_down) if len(inside) > 1 else inside)
        for host in sorted(inside[leaf], key=lambda host: natural_key(names[host]))
    ]
