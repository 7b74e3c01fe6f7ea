"""The leaves with room for a group and their switches, as nodes of the planner's knapsack."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.charges import Charges
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves
from hpc_sched.core.plan.exact.leaves.leaf_kinds import Leaves, leaves_by_switch, saving
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.nodes import Above, Node, Siblings, joined
from hpc_sched.core.plan.exact.order import LeafOrder, ScoreWeights
from hpc_sched.core.plan.exact.pruning.branches import Branches
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.time_limit import Effort


@dataclass(frozen=True)
class GroupTree:
    """Leaves with room and the switches above them, for one group.

    Switches are indices in ``topology.switches``. Savings are those of the new VMs: what the
    members save among themselves is left out. With charges they are in parts of a hop, and what
    is left of them.
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
    # By switch: what 0, 1, 2 .. VMs save in it, where that is not the hops alone.
    own: dict[int, Array] = field(default_factory=dict)
    charges: Charges | None = None

    @classmethod
    def of(
        cls,
        leaves: OpenLeaves,
        effort: Effort,
        branches: Branches | None = None,
        *,
        is_spread: bool = False,
    ) -> "GroupTree":
        """Return the tree for up to the VMs of ``leaves``. O(hosts + leaves * VMs in a leaf).

        :param branches: those that are used; None: all
        :param is_spread: whether plans may use more leaves than is best, O(VMs) times as long
        """
        above = leaves.above
        used = np.arange(len(above))
        if branches is not None:
            used = np.flatnonzero(np.isin(above, list(branches.parents)))
        order = LeafOrder.of(leaves.problem, leaves.room, leaves.members > 0, leaves.index[used])
        found = leaves_by_switch(leaves, used, order, is_spread=is_spread)
        if branches is None:
            switches, most = switches_above(leaves.path), {}
        else:
            found, most = _with_share(found, branches), branches.most
            switches = used_switches(branches.children, found)
        return cls(
            *(leaves.problem, leaves.count, effort, leaves.members, order),
            *(leaves.index, leaves.path, found, switches, most),
            charges=leaves.charges,
        )

    def node(self, switch: int, weights: ScoreWeights) -> Siblings:
        """Return what is below a switch."""
        nodes: list[Node] = [leaves.node(weights) for leaves in self.leaves.get(switch, [])]
        levels = self.problem.topology.switches
        for child in self.switches.get(switch, []):
            below = self.node(child, weights)
            vms = below.together.most
            if child in self.own:
                saved = self.own[child][: vms + 1]
            else:
                rise = levels[switch].level - levels[child].level
                saved = saving(int(self.members[child]), rise, vms)
                if self.charges is not None:
                    saved = self.charges.worth(child, saved)
            nodes.append(Above(child, below, weights.saving * saved, self.order.rank_of([child])))
        most = self.most.get(switch, self.count)
        return Siblings(nodes, joined(nodes, most, weights, self.effort))


def switches_above(path: Array) -> dict[int, list[int]]:
    """Return the switches above some leaves, by the switch above each."""
    switches: dict[int, list[int]] = {}
    for below, upper in itertools.pairwise(path):
        is_edge = (below != upper) & (below != path[0])
        children, of_child = np.unique(below[is_edge], return_index=True)
        parents = upper[is_edge][of_child]
        for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
            switches.setdefault(parent, []).append(child)
    return switches


def _with_share(
    found: Mapping[int, Sequence[Leaves]], branches: Branches
) -> dict[int, list[Leaves]]:
    """Return the leaves that may take VMs in a plan of :class:`Branches`, up to their VMs there."""
    leaves = {}
    for switch, parts in found.items():
        others = branches.others.get(switch)
        kept = [_up_to_share(part, others, branches.least) for part in parts]
        if left := [part for part in kept if part is not None]:
            leaves[switch] = left
    return leaves


def _up_to_share(part: Leaves, others: Array | None, least: int) -> Leaves | None:
    """Return leaves for the VMs that one of them may take, or None."""
    if others is None:
        return part
    gains = part.first.gains if isinstance(part, EqualLeaves) else part.gains
    vms = np.flatnonzero(gains + others[: len(gains)] >= least)
    vms = vms[vms > 0]
    if not len(vms):
        return None
    if isinstance(part, ConvexLeaves):
        is_large = part.rooms >= vms[0]
        return replace(part, leaves=part.leaves[is_large], rooms=part.rooms[is_large])
    return part if isinstance(part, EqualLeaves) else part.up_to(int(vms[-1]))


def used_switches(
    children: Mapping[int, Sequence[int]], leaves: Mapping[int, object]
) -> dict[int, list[int]]:
    """Return the switches that are above some leaves, by the switch above each."""
    used = set(leaves)
    # Lowest first: a child is in the mapping before the switch above it.
    for switch, below in children.items():
        if used & set(below):
            used.add(switch)
    return {
        switch: kept
        for switch, below in children.items()
        if (kept := [child for child in below if child in used])
    }
