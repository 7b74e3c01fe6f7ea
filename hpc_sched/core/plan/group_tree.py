"""The leaves with room for a group and their switches, as nodes of the planner's knapsack."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.knapsack import Chain, LeafNode, ScoreWeights, leaf_table, plus
from hpc_sched.core.plan.leaf_choice import hosts_of_needed_leaves
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import leaf_sums


@dataclass(frozen=True)
class GroupTree:
    """Leaves with room, the switches above them, and the members below each.

    Leaves and switches are indices in ``topology.switches``.
    """

    problem: Problem
    count: int  # VMs to place
    pairs: int  # pairs of VMs of the whole group, new ones included
    limit: int | None  # most leaves without the members' leaves; None: not counted
    weights: ScoreWeights
    hosts: dict[int, leaf_hosts.LeafHosts]  # leaf to its hosts with room
    room: Array  # capacity per leaf; 0 for switches above. Shape (switches,)
    members: Counter[int]  # switch to the members below it, if any
    member_leaves: set[int]
    children: dict[int, list[int]]  # switch to those of its children that have room
    # Leaf to its weight in the order of sets of leaves. The members' leaves are in every set, so
    # they weigh less than any other.
    bits: dict[int, int]
    _nodes: dict[int, LeafNode | Chain] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, count: int, max_leaves: int | None) -> "GroupTree | None":
        """Return the tree, None if the members use too many leaves. O(hosts log hosts + tables)."""
        topology = problem.topology
        here = leaf_sums(problem, problem.members)
        room = leaf_sums(problem, problem.capacity)
        member_leaves = set(np.flatnonzero(here).tolist())
        limit = None if max_leaves is None else max_leaves - len(member_leaves)
        if limit is not None and limit < 0:
            return None
        hosts = leaf_hosts.leaf_hosts(problem, count, hosts_of_needed_leaves(problem, count))
        members: Counter[int] = Counter()
        for leaf in member_leaves:
            for switch in topology.upwards(leaf):
                members[switch] += int(here[leaf])
        children: dict[int, list[int]] = {}
        for leaf in hosts:
            for below, above in itertools.pairwise(topology.upwards(leaf)):
                is_new = above not in children
                children.setdefault(above, []).append(below)
                if not is_new:
                    break
        in_order = sorted(hosts, key=lambda leaf: (leaf in member_leaves, int(problem.tie[leaf])))
        pairs = math.comb(int(here.sum()) + count, 2)
        open_room = room[list(hosts)]
        return cls(
            problem=problem,
            count=count,
            pairs=pairs,
            limit=limit,
            weights=ScoreWeights.of(
                saving=(2 * topology.depth - 1) * pairs,
                leaves=min(count, len(hosts.keys() - member_leaves)),
                excess=int(open_room.sum()),
                open_leaves=len(hosts),
            ),
            hosts=hosts,
            room=room,
            members=members,
            member_leaves=member_leaves,
            children=children,
            bits={leaf: 1 << place for place, leaf in enumerate(reversed(in_order))},
        )

    def node(self, switch: int, rise: int = 0) -> LeafNode | Chain:
        """Return the node of a switch, ``rise`` levels below its parent, with its own saving."""
        if switch not in self._nodes:
            make = self._leaf if switch in self.hosts else self._chain
            self._nodes[switch] = make(switch, rise)
        return self._nodes[switch]

    def _leaf(self, leaf: int, rise: int) -> LeafNode:
        count = min(int(self.room[leaf]), self.count)
        saved = leaf_hosts.leaf_gains(self.hosts[leaf], count) + self._saving(leaf, rise, count)
        scores = saved * self.weights.saving
        excess = np.maximum(self.room[leaf] - np.arange(count + 1), 0)
        is_new = leaf not in self.member_leaves
        scores -= np.minimum(excess, self.weights.excess_limit) + is_new * self.weights.leaf
        # Without a new VM the leaf is not used and has no excess.
        scores[0] = saved[0] * self.weights.saving
        return LeafNode(
            index=leaf,
            bit=self.bits[leaf],
            table=leaf_table(scores, has_members=not is_new, limit=self.limit),
        )

    def _chain(self, switch: int, rise: int) -> LeafNode | Chain:
        level = self.problem.topology.switches[switch].level
        below = {
            child: self.node(child, level - self.problem.topology.switches[child].level)
            for child in self.children.get(switch, [])
        }
        leaves = [node for node in below.values() if isinstance(node, LeafNode)]
        leaves.sort(key=lambda leaf: leaf.bit, reverse=True)
        in_order = sorted(below, key=lambda child: int(self.problem.tie[child]))
        nodes = [below[child] for child in in_order if isinstance(below[child], Chain)]
        own = self._saving(switch, rise, self.count) * self.weights.saving
        if not nodes and len(leaves) == 1:
            # A switch with a single leaf adds its saving to the leaf's table.
            [leaf] = leaves
            return LeafNode(leaf.index, leaf.bit, plus(leaf.table, own))
        if not nodes:
            return Chain(leaves, own, self.count, self.limit, in_tie_order=True)
        if leaves:
            nothing = np.zeros_like(own)
            nodes.insert(0, Chain(leaves, nothing, self.count, self.limit, in_tie_order=True))
        return Chain(nodes, own, self.count, self.limit)

    def _saving(self, switch: int, rise: int, count: int) -> Array:
        """Return the hops that members and 0, 1 .. ``count`` new VMs save. Shape (count + 1,)."""
        everyone = self.members[switch] + np.arange(count + 1)
        return rise * everyone * (everyone - 1)
