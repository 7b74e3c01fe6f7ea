"""A snapshot and its fabric with hosts drained or added."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpc_sched import exceptions
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.lookup import near
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology

ADDITION = "[PARENT/]LEAF=HOSTS[:like=HOST]"
_ADDITION = re.compile(
    r"(?:(?P<parent>[^=]+)/)?(?P<leaf>[^=/]+)=(?P<hosts>.+?)(?::like=(?P<like>.+))?"
)


@dataclass(frozen=True, slots=True)
class Addition:
    """Hosts that are added to a leaf, which may be new."""

    leaf: str
    hosts: tuple[str, ...]
    parent: str | None = None  # switch above a leaf that is new
    like: str | None = None  # host whose size they have; another one of the leaf by default


def addition_in(text: str) -> Addition:
    """Return the addition that a text of the form ``pod1/leaf05=node[100-108]:like=n1`` means.

    :raises ValueError: saying what was expected
    """
    found = _ADDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"expected {ADDITION}, found {text!r}")
    return Addition(
        found["leaf"], tuple(hostlist.expand(found["hosts"])), found["parent"], found["like"]
    )


def drained(cloud: Cloud, wanted: Iterable[str]) -> Cloud:
    """Return the cloud with some hosts taking no new VMs; the VMs there stay.

    :param wanted: hosts and switches, folded or not
    :raises exceptions.SnapshotError: for a name that is neither, naming similar ones
    """
    hosts = set(cloud.drained)
    for text in wanted:
        for name in _names(cloud, text):
            hosts.update(_below(cloud, name))
    return replace(cloud, drained=frozenset(hosts))


def added(cloud: Cloud, additions: Sequence[Addition]) -> Cloud:
    """Return the cloud with more hosts, each as large as the one it is like, without VMs.

    :raises exceptions.SnapshotError: for a host that is there already, a leaf or parent that
        is not, or no host to be like
    """
    if not additions:
        return cloud
    tree = cloud.topology.to_tree()
    nodes = list(cloud.snapshot.hypervisors)
    for addition in additions:
        like = _like(cloud, addition)
        below = _leaf(tree, addition, cloud.topology)
        for host in addition.hosts:
            if host in cloud.topology or any(host == node.nodename for node in nodes):
                raise exceptions.SnapshotError(f"{addition.leaf}: host {host!r} is there already")
            below.append(host)
            nodes.append(
                replace(
                    cloud.hosts[like][0],
                    host=host,
                    nodename=host,
                    enabled=True,
                    up=True,
                    used=dict.fromkeys(cloud.hosts[like][0].used, 0),
                )
            )
    old = cloud.topology
    try:
        fabric = Topology.from_tree(
            tree,
            levels=old.levels,
            host_processors=old.host_processors,
            details=old.details(),
            remarks=old.remarks,
        )
    except exceptions.TopologyError as failure:
        raise exceptions.SnapshotError(f"--add: {failure}") from failure
    snapshot = replace(
        cloud.snapshot,
        hypervisors=tuple(sorted(nodes, key=lambda node: (node.nodename, node.host))),
    )
    return replace(Cloud.of(snapshot, fabric), drained=cloud.drained, unknown=cloud.unknown)


def _names(cloud: Cloud, text: str) -> list[str]:
    """Return what a text names: one thing as it is written, or a folded list."""
    if text in cloud.topology or _is_switch(cloud.topology, text):
        return [text]
    try:
        return hostlist.expand(text)
    except ValueError as failure:
        raise exceptions.SnapshotError(str(failure)) from failure


def _below(cloud: Cloud, name: str) -> tuple[str, ...]:
    topology = cloud.topology
    if name in topology:
        return (name,)
    if _is_switch(topology, name):
        return topology.hosts_of(name)
    found = tuple(sorted({host for place, host in cloud.name_at.items() if name in place}))
    if not found:
        known = [*topology.hosts, *(switch.name for switch in topology.switches)]
        raise exceptions.SnapshotError(f"there is no host or switch {name!r}{near(name, known)}")
    return found


def _is_switch(topology: Topology, name: str) -> bool:
    try:
        topology.switch_index(name)
    except exceptions.UnknownHostError:
        return False
    return True


def _like(cloud: Cloud, addition: Addition) -> str:
    """Return the host whose size the added ones have."""
    if addition.like is not None:
        found = [host for host in _below(cloud, addition.like) if host in cloud.hosts]
        if not found:
            raise exceptions.SnapshotError(f"Nova has no host {addition.like!r} to be like")
        return found[0]
    if _is_switch(cloud.topology, addition.leaf):
        for host in cloud.topology.hosts_of(addition.leaf):
            if host in cloud.hosts:
                return host
    raise exceptions.SnapshotError(
        f"{addition.leaf}: no host is there that the added ones could be like: give :like=HOST"
    )


def _leaf(tree: dict[str, Any], addition: Addition, topology: Topology) -> list[str]:
    """Return the list of hosts of a leaf in the nested tree, which may be made for it."""
    if _is_switch(topology, addition.leaf):
        if topology.switches[topology.switch_index(addition.leaf)].level > 1:
            raise exceptions.SnapshotError(f"{addition.leaf} is no leaf switch")
        found = _find(tree, addition.leaf)
        assert isinstance(found, list)
        return found
    again = _find(tree, addition.leaf)
    if isinstance(again, list):  # made by another addition
        return again
    parent = addition.parent
    if parent is None and len(topology.roots) == 1:
        parent = topology.roots[0]
    above = None if parent is None else _find(tree, parent)
    if not isinstance(above, dict):
        switches = [switch.name for switch in topology.switches if switch.level > 1]
        raise exceptions.SnapshotError(
            f"{addition.leaf}: expected the switch above a new leaf, as in PARENT/"
            f"{addition.leaf}, found {parent!r}{near(parent or '', switches)}"
        )
    hosts: list[str] = []
    above[addition.leaf] = hosts
    return hosts


def _find(tree: Mapping[str, Any], name: str) -> Any:
    """Return what is below a switch of a nested tree, None where there is no such switch."""
    left: list[Mapping[str, Any]] = [tree]
    while left:
        here = left.pop()
        if name in here:
            return here[name]
        left += [below for below in here.values() if isinstance(below, Mapping)]
    return None
