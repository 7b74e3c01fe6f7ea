"""Loads of many plans at once: each switch and host has an interval of the new ranks.

New VMs are ranks in the order of the fabric, and what is below a switch is without a gap there. So
what its ranks send each other is a difference of sums over a square of the matrix of bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.ranks.rank_crossings import (
    highest_load,
    rank_hosts,
    sum_of_loads,
)
from hpc_sched.core.plan.bottleneck.ranks.rank_moves import Moves
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.capacities import Capacities

# Loads are whole numbers of which those of all nodes can be added up in 64 bits.
_BITS = 61
_MOST_CELLS = 300_000  # loads that are computed at once, in some arrays of a few MB


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """What plans cost. Shapes (plans,)."""

    bottleneck: Array  # the highest load of a node
    harm: Array  # sum of the loads of switches, each rounded down
    sharpness: Array  # sum over nodes of the third powers of loads
    hop_bytes: Array  # with one byte between every two VMs
    leaves: Array  # with VMs of the group

    def __getitem__(self, chosen: Array | slice) -> "Measures":
        return Measures(*(getattr(self, each.name)[chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence["Measures"]) -> "Measures":
        """Return the measures of several sets of plans, one after the other."""
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class RankIntervals:
    """A group, its traffic and its places: hosts that may take new VMs, in fabric order.

    Nodes are switches and hosts with a place or a member.
    """

    places: Array  # index in ``topology.hosts``. Shape (places,)
    first: Array  # place. Shape (nodes,)
    last: Array  # the place after the last one. Shape (nodes,)
    members: Array  # shape (nodes,)
    mbps: Array  # capacity, 0 for what counts nothing. Shape (nodes,)
    divisor: Array  # the same, so large for these that their loads are 0. Shape (nodes,)
    unit: int  # of the whole numbers that state loads: this is a byte over one Mb/s
    level: Array  # 0 for hosts. Shape (nodes,)
    hops: Array  # that two VMs below a node cost in Hop-Byte, see _nodes. Shape (nodes,)
    square: Array  # bytes among new ranks below i and below j. Flat, of shape (new + 1, new + 1)
    sent: Array  # bytes that new ranks below i send. Shape (new + 1,)
    received: Array  # shape (new + 1,)
    with_members: Array  # bytes of each row's members with new ranks below i. Shape (rows, new + 1)
    row: Array  # of a node in ``with_members``. Shape (nodes,)
    members_sent: Array  # bytes that leave a node's members, if no other rank is there
    members_received: Array  # the same, into them. Shape (nodes,)

    def measures(self, planned: Array, moves: Moves) -> Measures:
        """Return what a plan costs after each of some moves. O(moves * nodes in use).

        :param planned: new VMs by place. Shape (places,)
        :param moves: at least one
        """
        nodes = self.in_use(planned, moves)
        rows = max(_MOST_CELLS // max(len(nodes), 1), 1)
        ends = _before(planned)
        # Of the highest load of the plan, 16 bits: third powers of all nodes can be added up.
        coarse = max(self._highest(nodes, ends).bit_length() - 16, 0)
        parts = (moves[first : first + rows] for first in range(0, len(moves), rows))
        return Measures.joined([self._measures(nodes, ends, part, coarse) for part in parts])

    def exact(self, planned: Array) -> tuple[Fraction, Fraction]:
        """Return the bottleneck and the harm of a plan, bytes over Mb/s. O(nodes log nodes)."""
        ends, nodes = _before(planned), np.arange(len(self.mbps))
        crossing = self._crossing(nodes, ends[self.first], ends[self.last])
        is_switch = self.level > 0
        harm = sum_of_loads(crossing[is_switch], self.mbps[is_switch])
        return highest_load(crossing, self.mbps), harm

    def loads(self, planned: Array) -> Array:
        """Return the load of each node. Shape (nodes,)."""
        ends, nodes = _before(planned), np.arange(len(self.mbps))
        crossing = self._crossing(nodes, ends[self.first], ends[self.last])
        return crossing * self.unit // self.divisor

    def in_use(self, planned: Array, moves: Moves) -> Array:
        """Return the nodes that have VMs of the group before or after a move."""
        takes = planned > 0
        takes[moves.target.ravel()] = True
        ends = _before(takes.astype(np.int64))
        return np.flatnonzero((ends[self.last] > ends[self.first]) | (self.members > 0))

    def _highest(self, nodes: Array, ends: Array) -> int:
        crossing = self._crossing(nodes, ends[self.first[nodes]], ends[self.last[nodes]])
        return int((crossing * self.unit // self.divisor[nodes]).max(initial=0))

    def _measures(self, nodes: Array, ends: Array, moves: Moves, coarse: int) -> Measures:
        first, last = self.first[nodes], self.last[nodes]
        start, end = (ends[place] + moves.shift(place) for place in (first, last))
        load = self._crossing(nodes, start, end) * self.unit // self.divisor[nodes]
        vms = end - start + self.members[nodes]
        return Measures(
            load.max(1, initial=0),
            load[:, self.level[nodes] > 0].sum(1),
            (np.minimum(load >> coarse, 1 << 16) ** 3).sum(1),
            (vms * (vms - 1) // 2) @ self.hops[nodes],
            (vms[:, self.level[nodes] == 1] > 0).sum(1),
        )

    def _crossing(self, nodes: Array, start: Array, end: Array) -> Array:
        """Return what crosses nodes with new ranks from start to end. Shape of both."""
        size = len(self.sent)
        row = self.row[nodes] * size
        around = self.with_members.ravel()
        inside = (
            self.square[end * (size + 1)]
            + self.square[start * (size + 1)]
            - self.square[end * size + start]
            - self.square[start * size + end]
            + around[row + end]
            - around[row + start]
        )
        out = self.sent[end] - self.sent[start] + self.members_sent[nodes]
        into = self.received[end] - self.received[start] + self.members_received[nodes]
        found: Array = np.maximum(out, into) - inside
        return found


def intervals(
    problem: Problem,
    links: Capacities,
    fabric_order: Array,
    places: Array,
    traffic: Traffic,
    member_hosts: Array | None = None,
) -> RankIntervals:
    """Return the tables of a group. O(ranks ** 2 + nodes * members + hosts * levels).

    :param fabric_order: the hosts, depth first by names. Shape (hosts,)
    :param places: hosts that may take new VMs. Any order
    :param member_hosts: as of :func:`rank_hosts`
    """
    is_place = np.zeros(len(fabric_order), dtype=np.bool_)
    is_place[places] = True
    # Hosts with a place or a member, in the order of the fabric.
    used = fabric_order[(is_place | (problem.members > 0))[fabric_order]]
    nodes = _nodes(problem, links, used)
    placed = np.concatenate([[0], is_place[used].cumsum()])
    position = np.empty_like(fabric_order)
    position[used] = np.arange(len(used))
    no_vms = np.zeros_like(problem.members)
    old = position[rank_hosts(problem.members, no_vms, fabric_order, member_hosts)]
    below = (old >= nodes.start[:, None]) & (old < nodes.end[:, None])
    members = below.sum(1)
    sent, new = traffic.matrix(), slice(len(old), traffic.ranks)
    # Products of floats are fast, and exact: all bytes together are far below 2 ** 53.
    masks, by_old = below[members > 0].astype(np.float64), sent[: len(old)].astype(np.float64)
    around = (masks @ (by_old[:, new] + sent[new, : len(old)].T)).astype(np.int64)
    inside = ((masks @ by_old[:, : len(old)]) * masks).sum(1)
    outward = np.zeros((2, len(members)), dtype=np.int64)
    outward[:, members > 0] = [masks @ sent.sum(axis)[: len(old)] - inside for axis in (1, 0)]
    return RankIntervals(
        places=used[is_place[used]],
        first=placed[nodes.start],
        last=placed[nodes.end],
        members=members,
        mbps=nodes.mbps,
        divisor=np.where(nodes.mbps > 0, nodes.mbps, 1 << 62),
        unit=(1 << _BITS) // max(int(traffic.bytes.sum()) * len(members), 1),
        level=nodes.level,
        hops=nodes.hops,
        square=_before(_before(sent[new, new]).T).ravel(),
        sent=_before(sent.sum(1)[new]),
        received=_before(sent.sum(0)[new]),
        with_members=_before(np.vstack([np.zeros_like(sent[:1, new]), around])),
        row=np.where(members > 0, (members > 0).cumsum(), 0),
        members_sent=outward[0],
        members_received=outward[1],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Hosts, then switches level by level, with the hosts below them. Shapes (nodes,)."""

    start: Array  # the first of the hosts
    end: Array  # the one after the last
    level: Array  # 0 for hosts
    mbps: Array
    hops: Array  # that two VMs below a node cost in Hop-Byte: minus what they save


def _nodes(problem: Problem, links: Capacities, used: Array) -> _Nodes:
    """Return the nodes above some hosts that are in the order of the fabric."""
    topology, index = problem.topology, np.arange(len(used))
    on_host = np.full(len(used), -int(problem.pack_hosts))
    parts = [(index, index + 1, 0 * index, links.hosts[used], on_host)]
    for level, row in enumerate(topology.groups, 1):
        on_path = row[used]
        start = np.flatnonzero(np.diff(on_path, prepend=-1))
        end = np.append(start[1:], len(used))
        # A switch is in the rows of higher levels too where its branch is short.
        here = topology.switch_levels[on_path[start]] == level
        switches = on_path[start[here]]
        above = [topology.switches[s].parent for s in switches.tolist()]
        # As hop_bytes_of_leaves() has it.
        cost = [
            2 * (level - topology.switches[s].level) if s >= 0 else 2 * level - 1 for s in above
        ]
        of_all = np.full(len(switches), level), links.switches[switches], np.array(cost, np.int64)
        parts.append((start[here], end[here], *of_all))
    return _Nodes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _before(numbers: Array) -> Array:
    """Return the sums along the last axis of what is before each number, and of all."""
    zero = np.zeros((*numbers.shape[:-1], 1), dtype=np.int64)
    return np.concatenate([zero, numbers.cumsum(-1)], -1)
