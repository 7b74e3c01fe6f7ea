"""The switches that may have VMs in a plan that saves as much as a known one.

Down the tree goes what all else saves at most, for each number of VMs below a switch. Where that
and the bound on what they save there are together too little, nothing is below the switch.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.pruning.filled_domains import Filled, filled_switch
from hpc_sched.core.plan.exact.pruning.saving_bounds import SavingBounds
from hpc_sched.core.plan.maxplus import LOWEST, sums
from hpc_sched.core.plan.time_limit import Limit

# Sums of a bound at one switch: where more are needed all below it is kept.
_MOST = 1 << 16
# With fewer leaves, or fewer below one switch in the mean, to look for what is not used takes as
# long as to use it.
_FEW, _FEW_BELOW = 16, 4


def outside_one(table: Array, outside: Array, least: int, longest: int, most: int) -> Array | None:
    """Return the most that all else saves if one node below a switch has 0, 1, 2 .. VMs.

    What all other nodes save is at most what all nodes together save for the rest of the VMs.
    None where that takes too many sums. Shape (longest,).

    :param table: the most that 0, 1, 2 .. VMs save below the switch
    :param outside: the most that all else saves if 0, 1, 2 .. VMs are below it
    :param least: what a plan saves at least
    :param longest: of the tables of the nodes
    :param most: sums that may be made
    """
    table = table[: len(outside)]
    vms = np.flatnonzero(table + outside[: len(table)] >= least)
    if longest * len(vms) > most:
        return None
    rest, _ = sums(table, np.zeros(longest, dtype=np.int64))
    others: Array = (rest[:, vms] + outside[vms]).max(axis=1, initial=LOWEST >> 1)
    return others


@dataclass(frozen=True)
class Branches:
    """The parts of the tree that a good plan may use. Switches are indices in the topology."""

    least: int  # what plans save at least
    # Used switches by the one above; a switch comes after those below it.
    children: dict[int, list[int]] = field(default_factory=dict)
    parents: set[int] = field(default_factory=set)  # those just above leaves that may be used
    most: dict[int, int] = field(default_factory=dict)  # VMs below a switch, if not all
    # By parent: the most that all else saves if one of its leaves has 0, 1, 2 .. VMs. Those of
    # which all leaves are used are missing.
    others: dict[int, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class BranchSearch:
    """The bounds by which parts of the tree are left out, for plans below some switches."""

    tables: SavingBounds
    tops: Array  # the switches of the required level with room for all VMs
    filled: Filled  # a plan that is easy to find

    @classmethod
    def of(cls, leaves: OpenLeaves, level: int, tops: Array, limit: Limit) -> "BranchSearch | None":
        """Return the search, or None where it takes as long as to use any part of the tree.

        O(leaves log leaves).

        :param level: of the switch that must hold all VMs
        :raises TimeLimitPassed: if the limit passes
        """
        # Where a leaf is a top, plans on it alone are others.
        if len(leaves.index) < _FEW or (leaves.levels[tops] == 1).any():
            return None
        if leaves.has_few_below(_FEW_BELOW) and not (leaves.rooms >= leaves.count).any():
            return None
        allowed = np.flatnonzero(leaves.are_below(tops, level))
        filled = filled_switch(leaves, level, allowed)
        return cls(SavingBounds.of(leaves, allowed, limit), tops, filled)

    def used(self, known: int | None = None) -> Branches:
        """Return what plans use that save as much as a known one. O(switches * VMs).

        :param known: the hops that a plan saves, less what all pairs cost through the top; None:
            those of the filled one
        :raises TimeLimitPassed: if the limit passes
        """
        leaves, tables = self.tables.open, self.tables
        found = Branches(self.filled.saved if known is None else known)
        for top in self.tops.tolist():
            outside = np.full(leaves.count + 1, LOWEST >> 1)
            hops = (2 * int(leaves.levels[top]) - 1) * math.comb(leaves.vms_of_group, 2)
            outside[-1] = -leaves.scale * hops
            if leaves.charges is not None:
                topology = leaves.problem.topology
                outside[-1] -= leaves.charges.from_top(topology, top, leaves.count)
            _trim(tables, top, outside, found)
        return found

    def promising(self, found: Branches) -> int:
        """Return the used switch, on the level of the filled one, below which most may be saved."""
        levels, count = self.tables.open.levels, self.tables.open.count
        saved = {
            switch: self.tables.above(switch).item(count)
            for switch, most in found.most.items()
            if most == count and levels[switch] == levels[self.filled.switch]
        }
        return max(saved, key=lambda switch: (saved[switch], -switch), default=self.filled.switch)


def _trim(tables: SavingBounds, switch: int, outside: Array, found: Branches) -> bool:
    """Note what is used below a switch; return whether anything is.

    :param outside: the most that all else saves if 0, 1, 2 .. VMs are below it
    """
    tables.limit.check()
    children = tables.children.get(switch, [])
    longest = max(map(len, map(tables.above, children)), default=0)
    longest = max(longest, tables.most_of_leaf.get(switch, -1) + 1)
    others = outside_one(tables.below(switch), outside, found.least, longest, _MOST)
    if others is None:
        _keep(tables, switch, found)
        return True
    used = []
    for child in children:
        table = tables.above(child)
        vms = np.flatnonzero(table + others[: len(table)] >= found.least)
        if not len(vms) or not vms[-1]:
            continue
        most = int(vms[-1])
        rest = others[: most + 1] + tables.own(child)[: most + 1]
        if _trim(tables, child, rest, found):
            found.most[child] = most
            used.append(child)
    found.children[switch] = used
    has_leaves = switch in tables.most_of_leaf and (others[1:] > LOWEST >> 2).any()
    if has_leaves:
        found.parents.add(switch)
        found.others[switch] = others
    return bool(used) or bool(has_leaves)


def _keep(tables: SavingBounds, switch: int, found: Branches) -> None:
    """Note all leaves and switches below a switch as used."""
    children = tables.children.get(switch, [])
    for child in children:
        _keep(tables, child, found)
    found.children[switch] = children
    if switch in tables.most_of_leaf:
        found.parents.add(switch)
