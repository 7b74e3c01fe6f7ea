"""The plan of least bottleneck of a small group: all numbers of VMs on all hosts, key by key.

Written from the definition. Of hpc_sched it uses the names and levels of switches, and the tie
order of switches, only.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tests.unit import fabrics
from tests.unit.bottleneck_cases import LinkedCase, common_denominator
from tests.unit.plan_oracle import Array, Oracle

INT64 = np.iinfo(np.int64).max


@dataclass(frozen=True)
class LeastBottleneck:
    """The best plan of a case, and that of least Hop-Byte."""

    leaves: dict[str, int]  # leaf to new VMs
    bottleneck: Fraction
    cost: int  # of members plus new VMs; without pack_hosts a pair on one host costs 1
    most_harm: Fraction | None  # that the bound allows
    hops_leaves: dict[str, int]
    hops_bottleneck: Fraction  # the least of plans with these numbers of VMs on leaves
    # Whether the best plan without the bound on the harm exceeds it.
    harm_binds: bool
    harm_may_bind: bool  # whether any of the plans that are as good does
    decided_by: tuple[str, ...]


class BottleneckOracle:
    """All plans of a case, as VMs per host. Arrays per host are in the order of ``hosts``."""

    def __init__(self, linked: LinkedCase):
        self.linked, self.case = linked, linked.case
        self.of_leaves = Oracle(linked.case)
        fabric = linked.case.fabric
        self.hosts = fabric.hosts
        self.capacity = [self.case.capacity.get(host, 0) for host in self.hosts]
        self.members = np.array([self.case.members.get(host, 0) for host in self.hosts])
        self.group = int(self.members.sum()) + self.case.count
        leaves = {leaf: i for i, leaf in enumerate(self.of_leaves.leaves)}
        self.in_leaf = np.zeros((len(self.hosts), len(leaves)), dtype=np.int64)
        for i, host in enumerate(self.hosts):
            self.in_leaf[i, leaves[fabric.leaf_of(host)]] = 1
        self.scale = common_denominator(linked)
        # Switches that have another above them: the roots have no uplinks.
        self.switches = [s.name for s in fabric.switches if s.parent >= 0]
        self.below = np.array(
            [[host in set(fabric.hosts_of(name)) for name in self.switches] for host in self.hosts],
            dtype=np.int64,
        ).reshape(len(self.hosts), len(self.switches))
        rates = [linked.uplinks[name] for name in self.switches]
        self.per_uplinks = np.array([self.scale // rate for rate in rates], dtype=np.int64)
        self.per_link = np.array(
            [self.scale // linked.links[host] for host in self.hosts], dtype=np.int64
        )
        assert self.group**2 * self.scale * (len(self.switches) + 1) < INT64

    def best(self) -> LeastBottleneck | None:
        """Return the best plan, or None if none keeps the constraints."""
        ways = self.feasible()
        if not len(ways):
            return None
        by_leaf = ways @ self.in_leaf
        bottlenecks, costs, harms = self.bottlenecks(ways), self.costs(ways), self.harms(ways)
        hops = self.first(by_leaf, [("cost", costs)])[0]
        same = (by_leaf == by_leaf[hops]).all(axis=1)
        free, decided_by = self.first(by_leaf, [("bottleneck", bottlenecks), ("cost", costs)])
        best, most, tradeoff = free, None, self.linked.tradeoff
        harm_binds = harm_may_bind = False
        if tradeoff is not None:
            most = (1 + tradeoff) * int(harms[hops])
            kept = harms <= most.numerator // most.denominator
            equals = (bottlenecks == bottlenecks[free]) & (costs == costs[free])
            harm_binds, harm_may_bind = not kept[free], not kept[equals].all()
        if harm_binds:
            keys = [("bottleneck", bottlenecks[kept]), ("cost", costs[kept])]
            place, decided_by = self.first(by_leaf[kept], keys)
            best = int(np.flatnonzero(kept)[place])
        return LeastBottleneck(
            leaves=self.named(by_leaf[best]),
            bottleneck=Fraction(int(bottlenecks[best]), self.scale),
            cost=int(costs[best]),
            most_harm=None if most is None else most / self.scale,
            hops_leaves=self.named(by_leaf[hops]),
            hops_bottleneck=Fraction(int(bottlenecks[same].min()), self.scale),
            harm_binds=harm_binds,
            harm_may_bind=harm_may_bind,
            decided_by=decided_by,
        )

    def feasible(self) -> Array:
        """Return all plans that keep the constraints, as VMs per host. Shape (plans, hosts)."""
        parts = [np.zeros((0, len(self.hosts)), dtype=np.int64)]
        fabric = self.case.fabric
        for root in fabric.roots:
            inside = set(fabric.hosts_of(root))
            rooms = [
                room if host in inside else 0
                for host, room in zip(self.hosts, self.capacity, strict=True)
            ]
            parts.append(splits(rooms, self.case.count))
        ways = np.unique(np.concatenate(parts), axis=0)
        everyone = ways + self.members
        tops = np.array(self.of_leaves.domains)[self.in_leaf.argmax(axis=1)]
        used = np.array([(everyone[:, tops == top] > 0).any(axis=1) for top in sorted(set(tops))])
        leaves = self.of_leaves.numbers_of_leaves(ways @ self.in_leaf)
        here = np.count_nonzero(self.members @ self.in_leaf)
        most = len(self.hosts) if self.case.max_leaves is None else self.case.max_leaves
        least = min(self.case.min_leaves, int(here) + self.case.count)
        return ways[(used.sum(axis=0) <= 1) & (leaves <= most) & (leaves >= least)]

    def bottlenecks(self, ways: Array) -> Array:
        """Return the greatest crossing by capacity of each plan, times ``scale``."""
        everyone = ways + self.members
        below = everyone @ self.below
        of_hosts = everyone * (self.group - everyone) * self.per_link
        of_switches = below * (self.group - below) * self.per_uplinks
        greatest: Array = np.column_stack([of_hosts, of_switches]).max(axis=1)
        return greatest

    def harms(self, ways: Array) -> Array:
        """Return the sum of crossing by uplinks over the switches of each plan, times ``scale``."""
        below = (ways + self.members) @ self.below
        sums: Array = below * (self.group - below) @ self.per_uplinks
        return sums

    def costs(self, ways: Array) -> Array:
        """Return the Hop-Byte cost of each plan, pair by pair."""
        everyone = ways + self.members
        twice = (everyone @ self.hops * everyone).sum(axis=1) - everyone @ np.diag(self.hops)
        costs: Array = twice // 2
        return costs

    @functools.cached_property
    def hops(self) -> Array:
        """The hops between hosts; 0 between islands, as no plan has VMs on two."""
        on_one_host = 0 if self.case.pack_hosts else 1
        apart = [
            [
                on_one_host if a == b else fabrics.hops_by_names(self.case.fabric, a, b)
                for b in self.hosts
            ]
            for a in self.hosts
        ]
        return np.nan_to_num(np.array(apart, dtype=float), posinf=0).astype(np.int64)

    def first(self, by_leaf: Array, keys: list[tuple[str, Array]]) -> tuple[int, tuple[str, ...]]:
        """Return the first plan by some keys and the order of equals, and the keys that decide.

        A key decides if plans are equal in all before it and differ in it.
        """
        leaves = self.of_leaves
        keys = [*keys, ("leaves", leaves.numbers_of_leaves(by_leaf))]
        for level in range(1, len(leaves.groups) + 1):
            keys.append((f"excess of level {level}", leaves.excess(level, by_leaf)))
        keys.append(("set", leaves.sets(by_leaf)))
        # The counts of leaves in tie order, each as high as can be.
        keys += [("counts", -by_leaf[:, i]) for i in leaves.in_tie_order()]
        left = np.arange(len(by_leaf))
        decided_by = []
        for name, values in keys:
            kept = left[values[left] == values[left].min()]
            if len(kept) < len(left):
                decided_by.append(name)
            left = kept
        return int(left[0]), tuple(dict.fromkeys(decided_by))

    def named(self, counts: Array) -> dict[str, int]:
        """Return the leaves that have VMs, with their number."""
        named = zip(self.of_leaves.leaves, counts.tolist(), strict=True)
        return {leaf: count for leaf, count in named if count}

    def is_feasible(self, hosts: Mapping[str, int]) -> bool:
        """Return whether new VMs on hosts keep the constraints."""
        way = [hosts.get(host, 0) for host in self.hosts]
        return hosts.keys() <= set(self.hosts) and way in self.feasible().tolist()

    def of_plan(self, hosts: Mapping[str, int]) -> tuple[Fraction, Fraction, int]:
        """Return bottleneck, harm and cost of new VMs on hosts."""
        way = np.array([[hosts.get(host, 0) for host in self.hosts]])
        bottleneck, harm = self.bottlenecks(way)[0], self.harms(way)[0]
        cost = int(self.costs(way)[0])
        return Fraction(int(bottleneck), self.scale), Fraction(int(harm), self.scale), cost


def splits(rooms: list[int], count: int) -> Array:
    """Return all ways to place VMs on hosts within their room. Shape (ways, hosts)."""
    ways, left = np.zeros((1, 0), dtype=np.int64), np.array([count])
    after = sum(rooms)
    for room in rooms:
        after -= room
        rows = np.repeat(np.arange(len(ways)), room + 1)
        here = np.tile(np.arange(room + 1), len(ways))
        rest = left[rows] - here
        kept = (rest >= 0) & (rest <= after)
        ways = np.column_stack([ways[rows[kept]], here[kept]])
        left = rest[kept]
    return ways[left == 0]
