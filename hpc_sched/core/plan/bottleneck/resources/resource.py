"""What plans use of a resource of which they may use so much: harm to others, or leaves."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.bottleneck.counts.achievable_counts import AchievableCounts
from hpc_sched.core.plan.bottleneck.counts.group_fabric import GroupFabric
from hpc_sched.core.plan.bottleneck.resources.kind_tables import NEVER, KindTables
from hpc_sched.core.plan.problem import LeafCounts, Problem, leaf_members
from hpc_sched.core.plan.switch_rooms import sums_by_switch
from hpc_sched.core.plan.time_limit import Limit
from hpc_sched.topology.capacities import Capacities

# No sum over switches reaches it: so there is room for a price.
MOST_USED = 1 << 44


class Resource(ABC):
    """What each switch uses depends on the VMs below it alone."""

    most: int  # that new VMs may use

    @abstractmethod
    def used(self, counts: AchievableCounts) -> list[Array]:
        """Return what 0, 1, 2 .. VMs use in each kind of switch, without those below it."""

    @abstractmethod
    def of_plan(self, problem: Problem, new: Mapping[int, int]) -> int:
        """Return what the new VMs of a plan use.

        :param new: leaf to the new VMs there
        """

    def is_enough(self, counts: AchievableCounts, limit: Limit) -> bool:
        """True if a plan within a bottleneck uses no more than it may; one at least is within it.

        O(kinds * children) joins; raises as :class:`KindTables` does.
        """
        fabric = counts.fabric
        values = [
            np.where(counts.permitted(kind), -used, NEVER)
            for kind, used in enumerate(self.used(counts))
        ]
        tables = KindTables(fabric, values, limit)
        least = min(-tables.best(fabric.kind_of[top], fabric.count) for top in counts.tops())
        return least <= self.most


@dataclass(frozen=True, slots=True)
class Leaves(Resource):
    """Leaves without members: at most a number, or, with the sign -1, at least."""

    most: int
    sign: int = 1

    def used(self, counts: AchievableCounts) -> list[Array]:
        """Return the leaves that 0, 1, 2 .. VMs use in each kind of switch."""
        found = []
        for kind, switch in enumerate(counts.fabric.kinds):
            used = np.zeros(counts.below[kind].bit_length(), dtype=np.int64)
            if not switch.children and not switch.members:
                used[1:] = self.sign
            found.append(used)
        return found

    def of_plan(self, problem: Problem, new: Mapping[int, int]) -> int:
        """Return the new leaves of a plan, with the sign."""
        members = leaf_members(problem)
        return self.sign * sum(not members[leaf] for leaf in new)


@dataclass(frozen=True, slots=True, eq=False)
class Harm(Resource):
    """The harm to others, in whole numbers: the sum over switches of crossing by uplinks."""

    most: int
    everyone: int  # VMs of the group
    weights: Array  # of a VM's traffic with another one, by switch. Shape (switches,)
    weight_of: Mapping[int, int]  # capacity of uplinks to the same; 0 for switches not counted
    of_members: int  # harm of the members alone

    @classmethod
    def of(
        cls,
        problem: Problem,
        fabric: GroupFabric,
        capacities: Capacities,
        hops: Mapping[int, int],
        tradeoff: Fraction,
    ) -> "Harm":
        """Return the bound on the harm of plans: that of a plan, and so much more.

        Weights are to each other as the inverse capacities: exactly, by their least common
        multiple, unless sums would become too large; then they are rounded down.

        :param hops: the plan of least Hop-Byte: leaf to the new VMs there
        :param tradeoff: by how much of the harm of this plan that of others may exceed it
        """
        everyone = fabric.everyone
        stated, of_switch = np.unique(capacities.switches, return_inverse=True)
        uplinks = [capacity for capacity in stated.tolist() if capacity]
        most = MOST_USED // (len(of_switch) * max(everyone * everyone // 4, 1))
        unit = min(math.lcm(1, *uplinks), max(most, 1) * min(uplinks, default=1))
        weight_of = {0: 0} | {capacity: max(unit // capacity, 1) for capacity in uplinks}
        weights = np.array([weight_of[capacity] for capacity in stated.tolist()], dtype=np.int64)
        of_members = sum(
            fabric.kinds[kind].members
            * (everyone - fabric.kinds[kind].members)
            * weight_of[fabric.kinds[kind].capacity]
            for kind in fabric.kind_of.values()
        )
        harm = cls(0, everyone, weights[of_switch], weight_of, of_members)
        whole = harm.of_plan(problem, hops) + of_members
        return replace(harm, most=math.floor(whole * (1 + tradeoff)) - of_members)

    def used(self, counts: AchievableCounts) -> list[Array]:
        """Return the harm that 0, 1, 2 .. VMs add in each kind of switch."""
        found = []
        for i, kind in enumerate(counts.fabric.kinds):
            vms = np.arange(counts.below[i].bit_length()) + kind.members
            here = vms * (self.everyone - vms) * self.weight_of[kind.capacity]
            found.append(here - here[:1])
        return found

    def of_plan(self, problem: Problem, new: Mapping[int, int]) -> int:
        """Return the harm that a plan adds. O(hosts + switches)."""
        topology, by_leaf = problem.topology, leaf_members(problem)
        for leaf, vms in new.items():
            by_leaf[leaf] += vms
        below = sums_by_switch(topology.leaf_path, by_leaf[topology.leaf_switches], len(by_leaf))
        return int((below * (self.everyone - below) * self.weights).sum()) - self.of_members


def leaf_bounds(problem: Problem, bounds: Bounds, count: int) -> list[Resource]:
    """Return the bounds on the leaves of a group as resources of its new VMs.

    :param bounds: members' leaves included
    :param count: number of new VMs
    """
    found: list[Resource] = []
    has_members = int((leaf_members(problem) > 0).sum())
    if bounds.most_leaves is not None:
        found.append(Leaves(bounds.most_leaves - has_members))
    if missing := bounds.missing_leaves(has_members, count):
        found.append(Leaves(-missing, sign=-1))
    return found


def used_too_much(
    problem: Problem, resources: Sequence[Resource], found: LeafCounts
) -> list[Resource]:
    """Return the resources of which a plan uses more than it may."""
    return [one for one in resources if one.of_plan(problem, found.counts) > one.most]
