"""The leaves with room for a group and their switches, as nodes of the planner's knapsack."""

import itertools
from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.effort import Effort
from hpc_sched.core.plan.exact.leaves.leaf_kinds import (
    Leaves,
    leaves_by_switch,
    saved_by,
    saving,
)
from hpc_sched.core.plan.exact.nodes import Above, Node, Siblings, joined
from hpc_sched.core.plan.exact.order import LeafOrder, ScoreWeights
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import sums_below


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
            saved = saving(int(self.members[child]), rise, below.together.most)
            rank = self.order.rank_of([child])
            nodes.append(Above(child, below, weights.saving * saved, rank))
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
