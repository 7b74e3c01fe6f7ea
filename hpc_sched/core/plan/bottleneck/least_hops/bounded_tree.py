"""The tree of the planner's knapsack with the counts that a bottleneck permits alone.

The bottleneck is a set of counts for each switch by itself. So the plan of least Hop-Byte within
it is the same knapsack: a count outside of a set scores less than any plan can make up for.
"""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.least_hops.pairs_on_hosts import pairs_on_hosts
from hpc_sched.core.plan.exact.group_tree import (
    GroupTree,
    switches_above,
    used_switches,
)
from hpc_sched.core.plan.exact.leaves.convex_leaves import Leaf
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves, saved_by_leaves
from hpc_sched.core.plan.exact.leaves.leaf_kinds import Leaves, saving
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.order import LeafOrder
from hpc_sched.core.plan.time_limit import Effort


@dataclass(frozen=True, slots=True, eq=False)
class Savings:
    """What 0, 1, 2 .. new VMs save in switches and leaves, of each kind, within a bottleneck."""

    counts: AchievableCounts
    pack_hosts: bool
    never: int  # in place of what numbers save that the bottleneck does not permit

    def of_kind(self, kind: int) -> Array:
        """Return the hops that VMs save in a kind of switch. Shape (VMs + 1,)."""
        is_leaf = not self.counts.fabric.kinds[kind].children
        return self.in_leaf(kind) if is_leaf else self.in_switch(kind)

    def in_leaf(self, kind: int) -> Array:
        """Return the hops that VMs save in a leaf and on its hosts. Shape (VMs + 1,)."""
        leaf, permitted = self.counts.fabric.kinds[kind], self.counts.permitted(kind)
        table = np.zeros(len(permitted), dtype=np.int64)
        if self.pack_hosts:
            table = pairs_on_hosts(leaf, self.counts, self.never)[: len(permitted)]
        return np.where(
            permitted, table + saving(leaf.members, leaf.rise, len(table) - 1), self.never
        )

    def in_switch(self, kind: int) -> Array:
        """Return the hops that VMs save in a switch above leaves. Shape (VMs + 1,)."""
        switch, permitted = self.counts.fabric.kinds[kind], self.counts.permitted(kind)
        saved = saving(switch.members, switch.rise, len(permitted) - 1)
        return np.where(permitted, saved, self.never)


def bounded_tree(open_: OpenLeaves, savings: Savings, effort: Effort) -> GroupTree:
    """Return the tree of what a bottleneck permits. O(hosts + switches * VMs)."""
    counts, kind_of = savings.counts, savings.counts.fabric.kind_of
    [used] = np.isin(open_.index, list(kind_of)).nonzero()
    order = LeafOrder.of(open_.problem, open_.room, open_.members > 0, open_.index[used])
    in_order = used[np.argsort(order.place[open_.index[used]])]
    most, own = {}, {}
    switches = switches_above(open_.path[:, used])
    for switch in {child for children in switches.values() for child in children} & kind_of.keys():
        most[switch] = max(counts.of_switch(switch).bit_length() - 1, 0)
        own[switch] = np.full(min(open_.room.item(switch), open_.count) + 1, savings.never)
        saved = savings.in_switch(kind_of[switch])
        own[switch][: len(saved)] = saved
    leaves = _leaves(open_, savings, in_order, order)
    return GroupTree(
        *(open_.problem, open_.count, effort, open_.members, order, open_.index, open_.path),
        *(leaves, used_switches(switches, leaves), most, own),
    )


def _leaves(
    open_: OpenLeaves, savings: Savings, in_order: Array, order: LeafOrder
) -> dict[int, list[Leaves]]:
    """Return the leaves that take VMs by the switch above them, equal ones together."""
    kind_of, tables = savings.counts.fabric.kind_of, dict[int, Array]()
    alike: dict[tuple[int, int, int], list[int]] = {}
    for i in in_order.tolist():
        kind = kind_of[open_.index.item(i)]
        if kind not in tables:
            tables[kind] = savings.in_leaf(kind)
        alike.setdefault((open_.above.item(i), kind, open_.rooms.item(i)), []).append(i)
    found: dict[int, list[Leaves]] = {}
    rows: dict[tuple[int, int], list[Array]] = {}
    for (above, kind, room), same in alike.items():
        index, table = open_.index[same], tables[kind]
        if len(table) < 2:
            continue
        first = Leaf(index.item(0), room, bool(open_.here[same[0]]), table, order)
        leaves: Leaves = first
        if len(same) > 1:
            copies = kind, len(same)
            if copies not in rows:
                rows[copies] = saved_by_leaves(table, len(same), open_.count)
            leaves = EqualLeaves(index, first, rows[copies], open_.count)
        found.setdefault(above, []).append(leaves)
    return found
