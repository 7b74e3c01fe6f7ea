"""The best plan of a small group: all numbers of VMs on all leaves, compared key by key.

Of hpc_sched it uses the names and levels of switches and the tie order of switches only.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpc_sched.core.plan.tie_order import TieOrder
from tests.unit import fabrics
from tests.unit.fabrics import Case

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Best:
    """The best plan of a case."""

    leaves: dict[str, int]  # leaf to new VMs
    cost: int  # of members plus new VMs; without pack_hosts a pair on one host costs 1
    leaves_of_group: int  # members' leaves included
    top: str | None  # the switch of the required level above the group; None if it has no VM
    # The keys in which plans differ that are equal in all keys before.
    decided_by: tuple[str, ...]


class Oracle:
    """The order of all plans of a case. Arrays per leaf are in the order of ``leaves``."""

    def __init__(self, case: Case):
        self.case = case
        fabric = case.fabric
        self.leaves = fabric.leaves
        hosts = [fabric.hosts_of(leaf) for leaf in self.leaves]
        level = {switch.name: switch.level for switch in fabric.switches}
        self.above = [fabric.ancestors(below[0]) for below in hosts]
        # Per level, bottom up: the highest switch of that level or lower above each leaf.
        self.groups = [
            [[name for name in path if level[name] <= most][-1] for path in self.above]
            for most in range(1, fabric.depth + 1)
        ]
        rank = TieOrder(fabric, case.group_id).ranks
        self.tie = {switch.name: int(rank[s]) for s, switch in enumerate(fabric.switches)}
        per_host = [
            [(case.capacity.get(host, 0), case.members.get(host, 0)) for host in below]
            for below in hosts
        ]
        self.room = np.array([sum(room for room, _ in below) for below in per_host])
        self.members = np.array([sum(here for _, here in below) for below in per_host])
        # Leaves without members by tie, then those with members by tie.
        self.leaf_key = [
            (bool(here), self.tie[leaf])
            for leaf, here in zip(self.leaves, self.members, strict=True)
        ]
        # Hops within a leaf: as between two hosts. No plan spans islands: their hops do not count.
        apart = [
            [1 if a is b else fabrics.hops_by_names(fabric, a[0], b[0]) for b in hosts]
            for a in hosts
        ]
        self.hops = np.nan_to_num(np.array(apart, dtype=float), posinf=0).astype(np.int64)
        self.pairs_on_hosts = np.array([most_pairs(below, case.count) for below in per_host])
        if not case.pack_hosts:
            self.pairs_on_hosts[:] = 0

    def best(self) -> Best | None:
        """Return the best plan, or None if none keeps the constraints."""
        ways = self.feasible()
        if not len(ways):
            return None
        keys = [("cost", self.priced_costs), ("leaves", self.numbers_of_leaves)]
        if self.case.parts is not None and self.case.parts.is_balanced and self.case.count:
            keys.append(("parts below a switch", self.fewest_below))
        levels = range(1, len(self.groups) + 1)
        if self.case.price is not None and len(levels) > 1:
            keys.append(("excess of leaves and pods", self.weighted_excess))
            levels = levels[2:]
        keys += [
            (f"excess of level {level}", functools.partial(self.excess, level)) for level in levels
        ]
        decided_by = []
        for name, key in [*keys, ("set", self.sets)]:
            values = key(ways)
            kept = ways[values == values.min()]
            if len(kept) < len(ways):
                decided_by.append(name)
            ways = kept
        if len(ways) > 1:
            decided_by.append("counts")
        order = self.in_tie_order()
        way = max(ways.tolist(), key=lambda counts: [counts[i] for i in order])
        new = dict(zip(self.leaves, way, strict=True))
        everyone = np.flatnonzero(self.members + way)
        return Best(
            leaves={leaf: count for leaf, count in new.items() if count},
            cost=int(self.costs(np.array([way]))[0]),
            leaves_of_group=len(everyone),
            top=self.domains[everyone[0]] if len(everyone) else None,
            decided_by=tuple(decided_by),
        )

    @property
    def domains(self) -> list[str]:
        """The switch above each leaf of which one must hold the whole group."""
        if self.case.require is None:
            return self.groups[-1]
        return self.groups[self.case.fabric.levels.index(self.case.require)]

    def feasible(self) -> Array:
        """Return all plans that keep the constraints, as VMs per leaf. Shape (plans, leaves)."""
        with_members = {self.domains[i] for i in np.flatnonzero(self.members)}
        parts = [np.zeros((0, len(self.leaves)), dtype=np.int64)]
        for domain in dict.fromkeys(self.domains):
            if with_members <= {domain}:
                inside = np.flatnonzero((np.array(self.domains) == domain) & (self.room > 0))
                splits = compositions(self.case.count, len(inside))
                splits = splits[(splits <= self.room[inside]).all(axis=1)]
                part = np.zeros((len(splits), len(self.leaves)), dtype=np.int64)
                part[:, inside] = splits
                parts.append(part)
        ways = np.concatenate(parts)
        leaves, here = self.numbers_of_leaves(ways), np.count_nonzero(self.members)
        most = len(self.leaves) if self.case.max_leaves is None else self.case.max_leaves
        # A VM can add one leaf; members stay where they are.
        least = min(self.case.min_leaves, here + self.case.count)
        return ways[(leaves <= most) & (leaves >= least) & self.are_in_parts(ways)]

    def parts_below(self, ways: Array) -> Array:
        """Return the VMs below each switch of parts, members included. Shape (plans, switches)."""
        parts = self.case.parts
        assert parts is not None
        level = 1 if parts.level is None else self.case.fabric.levels.index(parts.level) + 1
        groups = np.array(self.groups[level - 1])
        everyone = ways + self.members
        return np.stack([everyone[:, groups == name].sum(1) for name in set(groups)], axis=1)

    def are_in_parts(self, ways: Array) -> npt.NDArray[np.bool_]:
        """Return which plans have the parts that are required: one of them may be smaller."""
        parts = self.case.parts
        if parts is None or not self.case.count:
            return np.ones(len(ways), dtype=np.bool_)
        below = self.parts_below(ways)
        kept: npt.NDArray[np.bool_] = np.count_nonzero(below % parts.size, axis=1) <= 1
        if parts.is_balanced:
            numbers = -(-below // parts.size)
            least = np.where(numbers > 0, numbers, 10**6).min(axis=1)
            kept &= numbers.max(axis=1) - least <= 1
        return kept

    def fewest_below(self, ways: Array) -> Array:
        """Return minus the fewest parts below a used switch of a balanced group."""
        parts = self.case.parts
        assert parts is not None
        numbers = -(-self.parts_below(ways) // parts.size)
        fewest: Array = -np.where(numbers > 0, numbers, 10**6).min(axis=1)
        return fewest

    def costs(self, ways: Array) -> Array:
        """Return the Hop-Byte cost of each plan: over leaves pair by pair, less pairs on hosts."""
        everyone = ways + self.members
        between_leaves = (everyone @ (self.hops - np.diag(np.diag(self.hops))) * everyone).sum(1)
        below_leaf = (everyone * (everyone - 1) * np.diag(self.hops)).sum(1)
        on_hosts = self.pairs_on_hosts[np.arange(len(self.leaves)), ways].sum(1)
        costs: Array = (between_leaves + below_leaf) // 2 - on_hosts
        return costs

    def priced_costs(self, ways: Array) -> Array:
        """Return what each plan costs with the price of free slots, in parts of a hop.

        A part is 2^-p of a hop, with p = 26 - 2 * bits of the number of VMs. Each rate n^2 * a / S,
        and n^2 * a / 20 of a leaf, is a whole number of parts.
        """
        price, count = self.case.price, self.case.count
        if price is None:
            return self.costs(ways)
        parts = 1 << max(26 - 2 * count.bit_length(), 6)
        total = self.costs(ways) * parts
        switches = {switch.name: switch for switch in self.case.fabric.switches}
        by_level = {
            1: (price.rates.leaf, price.leaf_slots),
            2: (price.rates.pod, price.pod_slots),
        }
        for name, switch in switches.items():
            if switch.level > 2 or switch.parent < 0:
                continue
            rate, slots = by_level[switch.level]
            below = np.array([name in path for path in self.above])
            new = ways[:, below].sum(axis=1)
            free = np.where(new > 0, self.room[below].sum() - new, 0)
            total += round(parts * rate * count**2 / slots) * free
            if switch.level == 1:
                total += round(parts * rate * count**2 / 20) * (new > 0)
        return total

    def weighted_excess(self, ways: Array) -> Array:
        """Return eight times the excess of leaves, and that of pods."""
        return 8 * self.excess(1, ways) + self.excess(2, ways)

    def numbers_of_leaves(self, ways: Array) -> Array:
        """Return the leaves of each plan's group, members' leaves included."""
        return np.count_nonzero(ways + self.members, axis=1)

    def excess(self, level: int, ways: Array) -> Array:
        """Return the room that each plan leaves in those switches of a level that it uses."""
        groups = self.groups[level - 1]
        total = np.full(len(ways), -self.case.count)
        for switch in set(groups):
            below = np.array([switch == group for group in groups])
            total += (ways[:, below] > 0).any(axis=1) * self.room[below].sum()
        return total

    def sets(self, ways: Array) -> Array:
        """Return the leaves of each plan as bits, negative; the first leaf is the highest bit."""
        places = sorted(range(len(self.leaves)), key=self.leaf_key.__getitem__, reverse=True)
        bits = np.zeros(len(self.leaves), dtype=np.int64)
        bits[places] = 1 << np.arange(len(places))
        return -((ways > 0) @ bits)

    def in_tie_order(self) -> list[int]:
        """Return the leaves in the order of sets of leaves."""
        return sorted(range(len(self.leaves)), key=lambda i: self.leaf_key[i])


def most_pairs(hosts: list[tuple[int, int]], most: int) -> list[int]:
    """Return the most pairs of VMs that one leaf can have on one host with 0 .. ``most`` new VMs.

    0 for more VMs than the hosts take.

    :param hosts: capacity and members of each host
    """
    best = {0: 0}
    for room, here in hosts:
        after: dict[int, int] = {}
        for new, pairs in best.items():
            for more in range(min(room, most - new) + 1):
                gain = pairs + math.comb(here + more, 2)
                after[new + more] = max(after.get(new + more, 0), gain)
        best = after
    return [best.get(new, 0) for new in range(most + 1)]


@functools.cache
def compositions(count: int, parts: int) -> Array:
    """Return all ways to write a number as a sum of parts from 0. Shape (ways, parts)."""
    if parts == 0:
        return np.zeros((int(not count), 0), dtype=np.int64)
    blocks = []
    for first in range(count + 1):
        rest = compositions(count - first, parts - 1)
        blocks.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(blocks)


def pair_by_pair(case: Case, everyone: dict[str, int], on_one_host: int = 0) -> float:
    """Return the Hop-Byte cost by the definition of hops."""
    fabric = case.fabric
    cost: float = sum(on_one_host * math.comb(count, 2) for count in everyone.values())
    for (a, here), (b, there) in itertools.combinations(everyone.items(), 2):
        cost += here * there * fabrics.hops_by_names(fabric, a, b)
    return cost
