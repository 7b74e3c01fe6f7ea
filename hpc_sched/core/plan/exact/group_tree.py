"""The leaves with room for a group and their switches, as nodes of the planner's knapsack.

And the same without leaves and switches that no good plan uses.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves
from hpc_sched.core.plan.exact.leaves.leaf_kinds import (
    Leaves,
    leaves_by_switch,
    saved_by,
    saving,
)
from hpc_sched.core.plan.exact.nodes import Above, Node, Siblings, joined
from hpc_sched.core.plan.exact.order import LeafOrder, ScoreWeights
from hpc_sched.core.plan.maxplus import LOWEST, sums
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import sums_below
from hpc_sched.core.plan.time_limit import Effort

# Sums of the other nodes of one switch: where more are needed nothing is left out.
_MOST = 1 << 20
_FEWEST = 4  # nodes below a switch: with fewer, to join them takes as long


@dataclass(frozen=True)
class GroupTree:
    """Leaves with room and the switches above them, for one group.

    Switches are indices in ``topology.switches``. Savings are those of the new VMs: what the
    members save among themselves is left out.
    """

    problem: Problem
    count: int  # most VMs to place
    effort: Effort
    members: Array  # members below each switch. Shape (switches,)
    order: LeafOrder
    open_leaves: Array  # those with room
    path: Array  # the switches above each of them, by level. Shape (levels, leaves)
    leaves: dict[int, list[Leaves]]  # by the switch just above them, -1 above roots
    switches: dict[int, list[int]]  # by the switch above: those with room just below it
    most: dict[int, int] = field(default_factory=dict)  # VMs below a switch, if not ``count``

    @classmethod
    def of(
        cls, problem: Problem, count: int, effort: Effort, *, is_spread: bool = False
    ) -> "GroupTree":
        """Return the tree for up to ``count`` VMs. O(hosts log hosts + leaves * VMs in a leaf).

        :param is_spread: whether plans may use more leaves than is best, O(VMs) times as long
        """
        topology = problem.topology
        room, members = (
            sums_below(problem, numbers) for numbers in (problem.capacity, problem.members)
        )
        # One host stands for each leaf with room.
        first = np.unique(
            np.where(problem.capacity > 0, topology.leaf_index, -1), return_index=True
        )
        path = topology.groups[:, first[1][first[0] >= 0]]
        above = np.full(path.shape[1], -1)
        switches: dict[int, list[int]] = {}
        for row in path[::-1]:
            above = np.where(row == path[0], above, row)
        for below, upper in itertools.pairwise(path):
            is_edge = (below != upper) & (below != path[0])
            children, of_child = np.unique(below[is_edge], return_index=True)
            parents = upper[is_edge][of_child]
            for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
                switches.setdefault(parent, []).append(child)
        order = LeafOrder.of(problem, room, members > 0, path[0])
        leaves = leaves_by_switch(
            problem, count, order, members, path[0], above, is_spread=is_spread
        )
        return cls(problem, count, effort, members, order, path[0], path, leaves, switches)

    def node(self, switch: int, weights: ScoreWeights) -> Siblings:
        """Return what is below a switch."""
        nodes: list[Node] = [leaves.node(weights) for leaves in self.leaves.get(switch, [])]
        levels = self.problem.topology.switches
        for child in self.switches.get(switch, []):
            below = self.node(child, weights)
            rise = levels[switch].level - levels[child].level
            own = weights.saving * saving(int(self.members[child]), rise, below.together.most)
            nodes.append(Above(child, below, own, self.order.rank_of([child])))
        most = self.most.get(switch, self.count)
        return Siblings(nodes, joined(nodes, most, weights, self.effort))

    def above_leaves(self) -> tuple[Array, int]:
        """Return the hops that all VMs save above each open leaf's switch, and at most anywhere.

        Shape (leaves,).
        """
        levels = np.array([switch.level for switch in self.problem.topology.switches])
        total, most = np.zeros(self.path.shape[1], dtype=np.int64), 0
        for below, upper in itertools.pairwise(self.path):
            rise = np.where(below == self.path[0], 0, levels[upper] - levels[below])
            saved = saved_by(self.count, self.members[below], rise)
            total += saved
            most += int(saved.max())
        return total, most


def with_shares(tree: GroupTree, tops: Array) -> GroupTree:
    """Return a tree without leaves that take no VMs in any plan as good as the best on one leaf.

    Above the leaves no plan saves more than if all VMs were below the same switches. In a leaf a
    VM saves at most a mean of ``most`` hops. So a leaf that has some VMs must save nearly as much
    for each of them, and leaves that save much less for any number of VMs are left out.

    :param tops: the switches that may hold the group
    """
    levels = tree.problem.topology.switches
    [level, *others] = {levels[top].level for top in tops.tolist()}
    if others or level == 1:
        return tree
    is_allowed = np.isin(tree.path[level - 1], tops)
    above, most_above = tree.above_leaves()
    in_leaf = dict(
        zip(tree.open_leaves[is_allowed].tolist(), above[is_allowed].tolist(), strict=True)
    )
    saved: int | None = None
    most = 0.0
    for part in itertools.chain(*tree.leaves.values()):
        gains = _gains(part)
        most = max(most, float((gains[1:] / np.arange(1, len(gains))).max()))
        leaf = part.with_room(tree.count)
        if leaf is not None and leaf.index in in_leaf:
            here = int(leaf.gains[tree.count]) + in_leaf[leaf.index]
            saved = here if saved is None else max(saved, here)
    if saved is None:
        return tree
    # What all VMs together may save less than at most, and a little for rounding.
    spare = most * tree.count - (saved - most_above) + 1
    leaves = {
        switch: kept
        for switch, parts in tree.leaves.items()
        if (kept := [one for part in parts if (one := _with_share(part, most, spare)) is not None])
    }
    return replace(tree, leaves=leaves, switches=_above(tree, leaves))


def _gains(part: Leaves) -> Array:
    return part.first.gains if isinstance(part, EqualLeaves) else part.gains


def _with_share(part: Leaves, most: float, spare: float) -> Leaves | None:
    """Return the leaves that may take a number of VMs, or None."""
    gains = _gains(part)
    vms = np.arange(len(gains))
    shares = np.flatnonzero((most * vms - gains <= spare) & (vms > 0))
    if not len(shares):
        return None
    if isinstance(part, ConvexLeaves):
        is_large = part.rooms >= shares[0]
        return replace(part, leaves=part.leaves[is_large], rooms=part.rooms[is_large])
    return part if isinstance(part, EqualLeaves) else part.up_to(int(shares[-1]))


def _above(tree: GroupTree, leaves: Mapping[int, Sequence[Leaves]]) -> dict[int, list[int]]:
    """Return the switches above some leaves, by the switch above each."""
    upwards = tree.problem.topology.upwards
    used = set(itertools.chain.from_iterable(upwards(switch) for switch in leaves))
    return {
        switch: kept
        for switch, children in tree.switches.items()
        if (kept := [child for child in children if child in used])
    }


def trimmed(tree: GroupTree, switch: int, below: Siblings, least: int) -> GroupTree:
    """Return a tree without what no plan uses that places all VMs below a switch.

    What all other nodes score if one has some VMs is at most what all nodes together score for the
    rest. A node whose best sum with that is too little for each number of VMs is left out.

    :param below: the nodes below the switch
    :param least: the least score of a plan
    """
    leaves, switches, most = dict(tree.leaves), dict(tree.switches), dict(tree.most)

    def trim(above: int, siblings: Siblings, outside: Array) -> None:
        """Leave out nodes; ``outside``: the most that all else scores, by VMs below the switch."""
        if len(siblings.nodes) < _FEWEST and above != switch:
            return
        table = siblings.together.scores[: len(outside)]
        vms = np.flatnonzero(table + outside[: len(table)] >= least)
        longest = max(len(node.scores) for node in siblings.nodes)
        if longest * len(vms) > _MOST:
            return
        # For 0, 1, 2 .. VMs in one node: what the others have, and what is outside.
        rest, _ = sums(table, np.zeros(longest, dtype=np.int64))
        others = (rest[:, vms] + outside[vms]).max(axis=1)
        caps = []
        for node in siblings.nodes:
            used = np.flatnonzero(node.scores + others[: len(node.scores)] >= least)
            caps.append(int(used[-1]) if len(used) else 0)
        own = leaves.get(above, [])
        leaves[above] = [part.up_to(cap) for part, cap in zip(own, caps, strict=False) if cap]
        switches[above] = []
        for node, cap in zip(siblings.nodes, caps, strict=True):
            if isinstance(node, Above) and cap:
                most[node.switch] = cap
                trim(node.switch, node.below, others[: cap + 1] + node.own[: cap + 1])
                if leaves.get(node.switch) or switches.get(node.switch):
                    switches[above].append(node.switch)

    outside = np.full(tree.count + 1, LOWEST >> 1)
    outside[tree.count] = 0
    trim(switch, below, outside)
    return replace(tree, leaves=leaves, switches=switches, most=most)
