"""A snapshot and its fabric with hosts drained or added, or without VMs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from hpc_sched import exceptions
from hpc_sched.snapshot.cloud import Cloud, similar
from hpc_sched.snapshot.room import provider_trees
from hpc_sched.snapshot.snapshot_model import Hypervisor
from hpc_sched.topology import hostlist, switch_names
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import by_name

ADDITION = "[PARENT/]LEAF=HOSTS[:like=HOST]"
_ADDITION = re.compile(
    r"(?:(?P<parent>[^=]+)/)?(?P<leaf>[^=/]+)=(?P<hosts>.+?)(?::like=(?P<like>.+))?"
)
_error = exceptions.SnapshotError


@dataclass(frozen=True, slots=True)
class Addition:
    """Hosts that are added to a leaf, which may be new."""

    leaf: str
    hosts: tuple[str, ...]
    parent: str | None = None  # switch above a new leaf
    like: str | None = None  # host of the same size; by default another host of the leaf


def addition_in(expansion: hostlist.Expansion, text: str) -> Addition:
    """Return the addition of a text such as ``pod1/leaf05=node[100-108]:like=n1``.

    :param expansion: of the hosts of all additions
    :raises ValueError: saying what was expected
    """
    if (found := _ADDITION.fullmatch(text)) is None:
        raise ValueError(f"expected {ADDITION}, found {text!r}")
    return Addition(
        found["leaf"], tuple(expansion.expand(found["hosts"])), found["parent"], found["like"]
    )


def drained(cloud: Cloud, wanted: Iterable[str]) -> Cloud:
    """Return the cloud with hosts, folded or by switch, that take no new VMs; VMs on them stay.

    :raises exceptions.SnapshotError: for a name that is neither, naming similar ones
    """
    expansion = hostlist.Expansion()
    names = (name for text in wanted for name in _names(cloud, text, expansion))
    return replace(cloud, drained=cloud.drained.union(*(_below(cloud, name) for name in names)))


def emptied(cloud: Cloud) -> Cloud:
    """Return the cloud without VMs; hosts that take no new ones still take none. Linear in hosts.

    On hosts that had VMs, NUMA cells and PCI devices count as unread: what is free there without
    these VMs is not recorded.
    """
    without = structs.replace(
        cloud.snapshot,
        hypervisors=tuple(map(_emptied, cloud.snapshot.hypervisors)),
        shared_providers=provider_trees.unused(cloud.snapshot.shared_providers),
        servers=(),
        groups=(),
    )
    return replace(cloud, snapshot=without, host_of={}, servers_on={}, group_of={})


def unoccupied(cloud: Cloud) -> Cloud:
    """Return the cloud without VMs and with all hosts up and enabled; drained ones take none."""
    found = emptied(cloud)
    nodes = tuple(
        structs.replace(node, enabled=True, up=True) for node in found.snapshot.hypervisors
    )
    return replace(found, snapshot=structs.replace(found.snapshot, hypervisors=nodes))


def _emptied(node: Hypervisor) -> Hypervisor:
    providers, used = provider_trees.unused(node.providers), dict.fromkeys(node.used, 0)
    found = structs.replace(node, providers=providers, used=used)
    return node if found == node else structs.replace(found, devices=None)


def added(cloud: Cloud, additions: Sequence[Addition]) -> Cloud:
    """Return the cloud with more hosts, each with the size of another one and without VMs.

    :raises exceptions.SnapshotError: for a host that exists, a leaf or parent that does not, or
        no host of the wanted size
    """
    if not additions:
        return cloud
    old = cloud.description
    tree = old.to_tree()
    switches = by_name(tree)
    nodes = list(cloud.snapshot.hypervisors)
    known = {node.nodename for node in nodes}
    links = dict(old.host_links)
    for addition in (_known(old, addition) for addition in additions):
        name = _like(cloud, addition)
        like = cloud.hosts[name][0]
        unused = structs.replace(
            like, enabled=True, up=True, used=dict.fromkeys(like.used, 0), devices=None
        )
        leaf = _leaf(tree, switches, addition)
        for host in addition.hosts:
            if host in cloud.topology or host in known:
                raise _error(f"{addition.leaf}: host {host!r} is there already")
            known.add(host)
            leaf.append(host)
            if name in links:
                links[host] = links[name]
            nodes.append(
                structs.replace(
                    unused,
                    host=host,
                    nodename=host,
                    providers=provider_trees.copied(like, host),
                )
            )
    try:
        fabric = Topology.from_tree(
            tree,
            levels=old.levels,
            host_processors=old.host_processors,
            details=old.details(),
            remarks=old.remarks,
            host_ids=old.host_ids,
            oversubscription=old.oversubscription,
            host_links=links,
        )
    except exceptions.TopologyError as failure:
        raise _error(f"--add: {failure}") from failure
    nodes.sort(key=lambda node: (node.nodename, node.host))
    found = Cloud.of(structs.replace(cloud.snapshot, hypervisors=tuple(nodes)), fabric)
    return replace(found, drained=cloud.drained, fittings=cloud.fittings)


def _names(cloud: Cloud, text: str, expansion: hostlist.Expansion) -> list[str]:
    """Return the names in a text: one host or switch of that very name, or a folded list."""
    if text in cloud.topology or switch_names.known_as(cloud.topology, text):
        return [text]
    try:
        return expansion.expand(text)
    except ValueError as failure:
        raise _error(str(failure)) from failure


def _below(cloud: Cloud, name: str) -> tuple[str, ...]:
    """Return the hosts below a switch, or the host of a name, Nova's names included."""
    topology = cloud.topology
    if name in topology:
        return (name,)
    if switches := switch_names.known_as(topology, name):
        return tuple(host for switch in switches for host in topology.hosts_of(switch))
    if not (found := {host for place, host in cloud.name_at.items() if name in place}):
        known = [*topology.hosts, *(switch.name for switch in topology.switches)]
        raise _error(f"there is no host or switch {name!r}{similar(name, known)}")
    return tuple(sorted(found))


def _is_switch(topology: Topology, name: str) -> bool:
    return any(switch.name == name for switch in topology.switches)


def _known(topology: Topology, addition: Addition) -> Addition:
    """Return an addition with the name that its leaf has in the topology, if it is there.

    That name may have a slash, as ``row1/rack1``; the text may have the name of a member or an id.
    """
    parent, leaf = addition.parent, addition.leaf
    if parent is not None and _is_switch(topology, f"{parent}/{leaf}"):
        return replace(addition, leaf=f"{parent}/{leaf}", parent=None)
    switches = switch_names.known_as(topology, leaf)
    if len(switches) > 1:
        raise _error(f"{leaf} is part of several switches: {' and '.join(switches[:3])}")
    return replace(addition, leaf=switches[0]) if switches else addition


def _like(cloud: Cloud, addition: Addition) -> str:
    if addition.like is not None:
        hosts = _below(cloud, addition.like)
        fault = f"Nova has no host {addition.like!r} to be like"
    else:
        leaf = addition.leaf
        hosts = cloud.description.hosts_of(leaf) if _is_switch(cloud.description, leaf) else ()
        fault = f"{leaf}: no host is there that the added ones could be like: give :like=HOST"
    if (found := next((host for host in hosts if host in cloud.hosts), None)) is None:
        raise _error(fault)
    return found


def _leaf(tree: dict[str, Any], switches: dict[str, Any], addition: Addition) -> list[str]:
    name, parent = addition.leaf, addition.parent
    hosts = switches.get(name)
    if isinstance(hosts, dict):
        raise _error(f"{name} is no leaf switch")
    if hosts is None:
        if parent is None and len(tree) == 1:
            parent = next(iter(tree))
        above = switches.get(parent or "")
        if not isinstance(above, dict):
            known = [switch for switch, below in switches.items() if isinstance(below, dict)]
            raise _error(
                f"{name}: expected the switch above a new leaf, as in PARENT/{name}, "
                f"found {parent!r}{similar(parent or '', known)}"
            )
        hosts = switches[name] = above[name] = []
    assert isinstance(hosts, list)
    return hosts
