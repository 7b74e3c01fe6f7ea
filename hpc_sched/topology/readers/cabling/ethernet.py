"""An Ethernet fabric from those of its cables that a source names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hpc_sched.topology import plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.cabling.fabric import Cable, fabric
from hpc_sched.topology.tree import unique

ROOT = "fabric"
# A switch with hosts of more leaves than this, and of most, is probably no leaf switch.
_FEW = 2


def ethernet_fabric(
    cables: Iterable[Cable],
    names: Mapping[str, str],
    hosts: Mapping[str, str],
    *,
    ids: Mapping[str, str],
    remarks: Sequence[str] = (),
    incomplete: Sequence[str] = (),
) -> Topology:
    """Return the tree of the hosts of a fabric, below one root; arguments as :func:`fabric`'s.

    All of an Ethernet cloud is connected, whether or not the switches above are known.
    """
    cables = list(cables)
    found = fabric(cables, names, hosts, hosts, ids=ids, remarks=remarks, incomplete=incomplete)
    doubts = (*shared_switches(found), *_management_switch(cables, names, hosts))
    found = replace(found, remarks=(*found.remarks, *doubts))
    tree = found.to_tree()
    if len(tree) == 1:
        return found
    root = unique(ROOT, {switch.name for switch in found.switches})
    return Topology.from_tree(
        {root: tree},
        details=found.details(),
        remarks=found.remarks,
        incomplete=incomplete,
        host_links=found.host_links,
    )


def shared_switches(fabric: Topology) -> list[str]:
    """Return a remark on a switch to which hosts of most leaves are connected."""
    leaves = [switch for switch in fabric.switches if switch.level == 1]
    count = Counter(member for leaf in leaves for member in leaf.members or (leaf.name,))
    most = max(sorted(count), key=count.__getitem__)
    remark = (
        f"hosts of {count[most]} of {plurals.text(len(leaves), 'leaf')} are connected to switch "
        f"{most!r}: if it is none of this fabric, such as a management switch, leave it out by "
        "topology_switch_pattern or topology_port_pattern"
    )
    return [remark] if count[most] > max(_FEW, len(leaves) // 2) else []


def _management_switch(
    cables: Iterable[Cable], names: Mapping[str, str], hosts: Mapping[str, str]
) -> list[str]:
    """Return a remark on a switch without hosts that switches of several levels are linked to.

    It makes all leaves equally near. Two spines of a pair are linked to each other only.
    """
    ends = {end for a, b, _ in cables if a != b for end in ((a, b), (b, a)) if end[0] in names}
    others = by_key(end for end in ends if end[1] in names)
    linked = {here: set(found) for here, found in others.items()}
    leaves = {here for here, there in ends if there in hosts}
    above = {one for one, found in linked.items() if one not in leaves and found & leaves}
    count = {one: len(linked[one] & above) for one in above}
    most = min(above, key=lambda one: (-count[one], -len(linked[one]), names[one]), default=None)
    if most is None or count[most] < _FEW:
        return []
    return [
        f"switch {names[most]!r} is linked to leaf switches, and to {count[most]} of the switches "
        "above them: if it is a management switch, all leaves look equally near; leave it out by "
        "topology_switch_pattern"
    ]
