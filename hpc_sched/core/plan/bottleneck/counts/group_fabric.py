"""What the counts of a group depend on below a switch, each kind of switch and host once.

Two leaves with the same room, members and capacities permit the same counts at the same cost.
Hundreds of leaves are mostly a few kinds, so that tables and sets are made once for each kind.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.topology.capacities import Capacities


class HostKind(NamedTuple):
    """A host as counts depend on it."""

    room: int  # VMs, at most those to place
    members: int
    capacity: int  # of its own links, in one direction


class Kind(NamedTuple):
    """A switch as counts depend on it; equal switches are one kind."""

    members: int
    capacity: int  # of its uplinks, in one direction; 0: not counted
    rise: int  # levels to the switch above it; 0 for a root
    hosts: tuple[tuple[HostKind, int], ...]  # of a leaf, with their number
    children: tuple[tuple[int, int], ...]  # of another switch: kinds, with their number
    # The same for equal kinds of any fabric, whatever the order of its switches and hosts.
    digest: bytes


@dataclass(frozen=True, slots=True, eq=False)
class GroupFabric:
    """The switches below a top that have room for a group, or members of it."""

    count: int  # VMs to place
    everyone: int  # the members and these
    tops: tuple[int, ...]  # switches of which one must hold all of them, in topology.switches
    kinds: tuple[Kind, ...]  # children before the switches above them
    kind_of: Mapping[int, int]  # switch, in topology.switches, to its kind
    below: Mapping[int, tuple[int, ...]]  # switch to those just below it, by index

    @classmethod
    def of(
        cls, problem: Problem, count: int, capacities: Capacities, tops: Array, level: int
    ) -> "GroupFabric":
        """Return the fabric below some tops. O(hosts log hosts + switches).

        :param capacities: of all uplinks and hosts' links
        :param level: the highest of the tops, see ``Topology.groups``
        """
        topology = problem.topology
        switches, is_top_of = topology.switches, np.zeros(len(topology.switches), dtype=np.bool_)
        is_top_of[tops] = True
        hosts = _hosts_by_leaf(problem, count, capacities, is_top_of[topology.groups[level - 1]])
        members = sums_below(problem, problem.members)
        below = _tree(problem, hosts, set(tops.tolist()))
        found: list[Kind] = []
        kinds: dict[bytes, int] = {}
        kind_of: dict[int, int] = {}
        for switch in itertools.chain.from_iterable(_upwards(below, top) for top in tops.tolist()):
            parent = switches[switch].parent
            kind = _kind(
                Counter(kind_of[child] for child in below[switch]),
                found,
                members=members.item(switch),
                capacity=0 if is_top_of[switch] else capacities.switches.item(switch),
                rise=0 if parent < 0 else switches[parent].level - switches[switch].level,
                hosts=tuple(hosts.get(switch, ())),
            )
            kind_of[switch] = kinds.setdefault(kind.digest, len(kinds))
            if len(found) < len(kinds):
                found.append(kind)
        everyone = int(problem.members.sum()) + count
        return cls(count, everyone, tuple(tops.tolist()), tuple(found), kind_of, below)

    def children_of(self, kind: int) -> list[int]:
        """Return the kind of each child of a kind, in an order of its own."""
        children = self.kinds[kind].children
        return [child for child, number in children for _ in range(number)]

    def capacities(self) -> set[int]:
        """Return all capacities of uplinks and hosts' links."""
        of_hosts = {host.capacity for kind in self.kinds for host, _ in kind.hosts}
        return of_hosts | self.uplinks()

    def uplinks(self) -> set[int]:
        """Return all capacities of uplinks."""
        return {kind.capacity for kind in self.kinds if kind.capacity}


def _kind(
    children: Mapping[int, int],
    known: Sequence[Kind],
    *,
    members: int,
    capacity: int,
    rise: int,
    hosts: tuple[tuple[HostKind, int], ...],
) -> Kind:
    in_order = sorted(children.items(), key=lambda child: known[child[0]].digest)
    parts = [(known[child].digest, number) for child, number in in_order]
    digest = hashlib.blake2b(repr((members, capacity, rise, hosts, parts)).encode(), digest_size=16)
    return Kind(members, capacity, rise, hosts, tuple(in_order), digest.digest())


def _hosts_by_leaf(
    problem: Problem, count: int, capacities: Capacities, is_below: Array
) -> dict[int, list[tuple[HostKind, int]]]:
    """Return the kinds of hosts with room or members, with their numbers, by leaf."""
    [hosts] = (is_below & ((problem.capacity > 0) | (problem.members > 0))).nonzero()
    room = np.minimum(problem.capacity[hosts], count)
    keys = problem.topology.leaf_index[hosts], room, problem.members[hosts]
    columns = np.stack([*keys, capacities.hosts[hosts]])
    columns = columns[:, np.lexsort(columns[::-1])]
    is_new = np.ones(len(hosts), dtype=np.bool_)
    is_new[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    [first] = is_new.nonzero()
    numbers = np.diff(first, append=len(hosts))
    found: dict[int, list[tuple[HostKind, int]]] = {}
    for (leaf, *kind), number in zip(columns[:, first].T.tolist(), numbers.tolist(), strict=True):
        found.setdefault(leaf, []).append((HostKind(*kind), number))
    return found


def _tree(
    problem: Problem, leaves: Mapping[int, object], tops: set[int]
) -> dict[int, tuple[int, ...]]:
    """Return the switches just below each switch from some tops down to some leaves."""
    switches = problem.topology.switches
    below: dict[int, set[int]] = {top: set() for top in tops}
    for leaf in leaves:
        child = leaf
        below.setdefault(leaf, set())
        while child not in tops:
            parent = switches[child].parent
            is_known = parent in below
            below.setdefault(parent, set()).add(child)
            if is_known:
                break
            child = parent
    return {switch: tuple(sorted(children)) for switch, children in below.items()}


def _upwards(below: Mapping[int, tuple[int, ...]], top: int) -> Iterator[int]:
    """Yield a switch and all below it, each after those below it."""
    for child in below[top]:
        yield from _upwards(below, child)
    yield top
