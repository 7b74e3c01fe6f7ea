"""The part of the fabric that can take VMs of a group, as nodes of the planner's knapsack."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.knapsack import Chain, Digits, Leaf, leaf_table, plus
from hpc_sched.core.plan.leaf_choice import hosts_needed
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import leaf_sums

Array = NDArray[np.int64]


@dataclass(frozen=True)
class GroupTree:
    """Leaves with room and the switches above them, with what the members there save."""

    problem: Problem
    count: int
    everyone: int  # pairs of VMs of the whole group, new ones included
    limit: int | None  # most leaves beside the members'; None where they are not counted
    digits: Digits
    hosts: dict[int, leaf_hosts.LeafHosts]  # by leaf, those with room
    room: Array  # per switch: the capacity of leaves, 0 above
    members: dict[int, int]  # per switch, where there are any
    member_leaves: set[int]
    children: dict[int, list[int]]  # per switch: those below with room
    # Per leaf its weight in the order of sets: those that members use anyway weigh less than
    # any other, for they are in every set.
    bits: dict[int, int]
    _nodes: dict[int, Leaf | Chain] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, count: int, max_leaves: int | None) -> "GroupTree | None":
        """Return the tree, or None where the members already use too many leaves.

        O(hosts log hosts + count * leaves).
        """
        topology = problem.topology
        here = leaf_sums(problem, problem.members)
        room = leaf_sums(problem, problem.capacity)
        member_leaves = set(np.flatnonzero(here).tolist())
        limit = None if max_leaves is None else max_leaves - len(member_leaves)
        if limit is not None and limit < 0:
            return None
        hosts = leaf_hosts.leaf_hosts(problem, count, hosts_needed(problem, count))
        members: dict[int, int] = {}
        for leaf in member_leaves:
            above = leaf
            while above >= 0:
                members[above] = members.get(above, 0) + int(here[leaf])
                above = topology.switches[above].parent
        children: dict[int, list[int]] = {}
        for leaf in hosts:
            below, above = leaf, topology.switches[leaf].parent
            while above >= 0:
                seen = above in children
                children.setdefault(above, []).append(below)
                if seen:
                    break
                below, above = above, topology.switches[above].parent
        in_order = sorted(hosts, key=lambda leaf: int(problem.tie[leaf]))
        free = [leaf for leaf in in_order if leaf not in member_leaves]
        everyone = math.comb(int(here.sum()) + count, 2)
        open_room = room[list(hosts)]
        return cls(
            problem=problem,
            count=count,
            everyone=everyone,
            limit=limit,
            digits=Digits.of(
                saving=(2 * topology.depth - 1) * everyone,
                leaves=min(count, len(free)),
                excess=int(open_room.sum()),
                open_leaves=len(hosts),
            ),
            hosts=hosts,
            room=room,
            members=members,
            member_leaves=member_leaves,
            children=children,
            bits={
                leaf: 1 << place
                for place, leaf in enumerate(
                    reversed([*free, *(leaf for leaf in in_order if leaf in member_leaves)])
                )
            },
        )

    def below(self, top: int) -> Leaf | Chain:
        """Return the node of a switch that holds the whole group."""
        return self._node(top, rise=0)

    def _node(self, switch: int, rise: int) -> Leaf | Chain:
        """Return the node of a switch with what it saves: ``rise`` is up to its parent."""
        if switch not in self._nodes:
            make = self._leaf if switch in self.hosts else self._chain
            self._nodes[switch] = make(switch, rise)
        return self._nodes[switch]

    def _leaf(self, leaf: int, rise: int) -> Leaf:
        count = min(int(self.room[leaf]), self.count)
        saved = leaf_hosts.leaf_gains(self.hosts[leaf], count) + self._saving(leaf, rise, count)
        scores = saved * self.digits.saving
        excess = np.maximum(self.room[leaf] - np.arange(count + 1), 0)
        is_new = leaf not in self.member_leaves
        scores -= np.minimum(excess, self.digits.excess_limit) + is_new * self.digits.leaf
        # Nobody there: neither a leaf used nor capacity left over in it.
        scores[0] = saved[0] * self.digits.saving
        return Leaf(
            index=leaf,
            bit=self.bits[leaf],
            table=leaf_table(scores, has_members=not is_new, limit=self.limit),
        )

    def _chain(self, switch: int, rise: int) -> Leaf | Chain:
        level = self.problem.topology.switches[switch].level
        below = {
            child: self._node(child, level - self.problem.topology.switches[child].level)
            for child in self._worth_looking_at(self.children.get(switch, []))
        }
        leaves = sorted(
            (node for node in below.values() if isinstance(node, Leaf)),
            key=lambda leaf: -leaf.bit,
        )
        switches = sorted(
            (child for child, node in below.items() if isinstance(node, Chain)),
            key=lambda child: int(self.problem.tie[child]),
        )
        nodes: list[Leaf | Chain] = [below[child] for child in switches]
        own = self._saving(switch, rise, self.count) * self.digits.saving
        if not nodes and len(leaves) == 1:
            # A switch above a single leaf is that leaf, a level higher.
            [leaf] = leaves
            return Leaf(leaf.index, leaf.bit, plus(leaf.table, own))
        if not nodes:
            return Chain(leaves, own, self.count, self.limit, in_tie_order=True)
        if leaves:
            nothing = np.zeros_like(own)
            nodes.insert(0, Chain(leaves, nothing, self.count, self.limit, in_tie_order=True))
        return Chain(nodes, own, self.count, self.limit)

    def _worth_looking_at(self, children: list[int]) -> list[int]:
        """Return the children without those leaves that no best plan can need.

        Of leaves that are alike, members included, a best plan uses the first ones in tie
        order. Where filling one saves more with every VM (the saving is convex), at most one
        of them stays partly filled; else each that is used takes at least one VM.
        """
        alike: dict[tuple[int, int, bytes], int] = {}
        kept = []
        for child in sorted(children, key=lambda child: int(self.problem.tie[child])):
            if child in self.hosts:
                gains = self.hosts[child].gains
                room, members = int(self.room[child]), self.members.get(child, 0)
                # Several tables of gains are alike where the bytes of each are.
                kind = (room, members, b"".join(len(g).to_bytes(8) + g.tobytes() for g in gains))
                if kind not in alike:
                    # A leaf is at least one level below its parent: 2 * C(k, 2) at least.
                    convex = len(gains) == 1 and bool((np.diff(gains[0], 2) >= -2).all())
                    alike[kind] = self.count // room + 1 if convex else self.count
                if alike[kind] < 1:
                    continue
                alike[kind] -= 1
            kept.append(child)
        return kept

    def _saving(self, switch: int, rise: int, count: int) -> Array:
        """Return the hops that 0, 1, 2 .. new VMs save by standing under a switch together."""
        everyone = self.members.get(switch, 0) + np.arange(count + 1, dtype=np.int64)
        saving: Array = rise * everyone * (everyone - 1)
        return saving
