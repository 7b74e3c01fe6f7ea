"""The cost, leaves and excess of the best plan of a group, by integer programs for HiGHS.

Reads the description of a group only, and uses nothing of hpc_sched. The new VMs below a node are
counted in unary: its k-th variable is 1 if there are at least k. The k-th VM makes
members + k - 1 pairs there, so the cost, quadratic in VMs, is linear in the variables.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array

OPTIMAL, INFEASIBLE = 0, 2  # status of scipy.optimize.milp


@dataclass
class Node:
    """A switch, or a host (level 0)."""

    level: int
    room: int
    members: int
    children: list["Node"] = field(default_factory=list)
    parent: "Node | None" = None
    variables: range = range(0)  # of the first, second .. new VM
    rate: int = 0  # of the links to the rest of the fabric, where they matter

    @property
    def number(self) -> Counter[int]:
        """The new VMs, as coefficients of variables."""
        return Counter(self.variables)

    @property
    def is_used(self) -> Counter[int]:
        """1 with a new VM, else 0, as coefficients of variables."""
        return Counter(self.variables[:1])

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for nodes that can be exchanged, if they have one parent."""
        below = sorted(child.kind for child in self.children)
        return (self.level, self.room, self.members, self.rate, *below)

    def walk(self) -> Iterator["Node"]:
        """Yield the node and those below it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Price:
    """What free slots of used switches cost, in parts of a hop."""

    parts: int  # of a hop
    slot: Mapping[int, int]  # by level of the switch
    leaf: int  # for each leaf that is used


class Program:
    """The integer program of a group of at least one new VM, and the keys of its plans."""

    def __init__(
        self,
        tree: Mapping[str, Any],
        capacity: Mapping[str, int],
        members: Mapping[str, int],
        count: int,
        *,
        level: int | None = None,
        max_leaves: int | None = None,
        min_leaves: int = 0,
        pack_hosts: bool = True,
        rates: Mapping[str, int] | None = None,
        parts: tuple[int, int, bool] | None = None,
        price: Price | None = None,
    ):
        """Make variables and rows.

        :param parts: VMs of a part, level of the switches of parts, whether they are balanced
        :param rates: of the links of switches and hosts, by name
        :param level: that of which one switch has the whole group; None: the roots
        """

        def node_of(name: str, below: Any) -> Node:
            rate = (rates or {}).get(name, 0)
            if below is None:
                return Node(0, capacity.get(name, 0), members.get(name, 0), rate=rate)
            parts = below if isinstance(below, dict) else dict.fromkeys(below)
            children = [node_of(*each) for each in parts.items()]
            node = Node(
                1 + max(child.level for child in children),
                sum(child.room for child in children),
                sum(child.members for child in children),
                # Without pack_hosts only the room of a leaf matters.
                children if pack_hosts or isinstance(below, dict) else [],
                rate=rate,
            )
            for child in children:
                child.parent = node
            return node

        self.count, self.price = count, price
        self.nodes = [node for each in tree.items() for node in node_of(*each).walk()]
        self.depth = max(node.level for node in self.nodes)
        self.leaves = [node for node in self.nodes if node.level == 1]
        self.size = 0
        for node in self.nodes:
            node.variables = range(self.size, self.size + min(node.room, count))
            self.size = node.variables.stop
        # Coefficients of variables, and the least and the greatest value of the sum.
        self.rows: list[tuple[Mapping[int, int], float, float]] = []
        for node in self.nodes:
            self._add_counts(node)
        self._add_domains(self.switches_of(self.depth if level is None else level))
        # With balanced parts: 1 for the fewest parts below a used switch, by these.
        self.fewest: dict[int, int] = {}
        if parts is not None:
            self._add_parts(*parts)
        if max_leaves is not None:
            used, fixed = self.number_of_leaves()
            self.rows.append((used, 0, max_leaves - fixed))
        if min_leaves:
            used, fixed = self.number_of_leaves()
            self.rows.append((used, min(min_leaves - fixed, count), math.inf))

    def switches_of(self, level: int) -> list[Node]:
        """Return the highest switches of a level or lower, one above each host."""
        return [
            node
            for node in self.nodes
            if 1 <= node.level <= level and (node.parent is None or node.parent.level > level)
        ]

    def _add_parts(self, size: int, level: int, is_balanced: bool) -> None:
        """Permit the numbers of VMs below switches of a level that are parts of a size."""
        switches = self.switches_of(level)
        vms = self.count + sum(node.members for node in switches)
        rest, most = vms % size, -(-vms // size)
        if is_balanced:
            self.fewest = {number: self.size + number - 1 for number in range(1, most + 1)}
            self.size += most
            self.rows.append((Counter(self.fewest.values()), 1, 1))
        last, has_last = Counter[int](), 0
        for node in switches:
            for new in range(len(node.variables) + 1):
                # 1 with this number of new VMs: their first variable less the next one's.
                exactly = Counter({node.variables[new - 1]: 1} if new else {})
                exactly.subtract(node.variables[new : new + 1])
                always, total = int(not new), node.members + new
                if total % size and total % size != rest:
                    self.rows.append((exactly, -always, -always))
                elif total % size:
                    last.update(exactly)
                    has_last += always
                if is_balanced and total:
                    number = -(-total // size)
                    allowed = exactly.copy()
                    for fewest in (number - 1, number):
                        if fewest in self.fewest:
                            allowed[self.fewest[fewest]] -= 1
                    self.rows.append((allowed, -math.inf, -always))
        if rest:
            self.rows.append((last, 1 - has_last, 1 - has_last))

    def _add_counts(self, node: Node) -> None:
        for fewer, more in zip(node.variables, node.variables[1:], strict=False):
            self.rows.append((Counter({fewer: 1, more: -1}), 0, 1))
        if node.children:
            split = node.number
            for child in node.children:
                split.subtract(child.number)
            self.rows.append((split, 0, 0))
        # Of nodes that can be exchanged the first has most VMs: one plan instead of many.
        before: dict[tuple[Any, ...], Node] = {}
        for child in node.children:
            if child.kind in before:
                for more, fewer in zip(before[child.kind].variables, child.variables, strict=True):
                    self.rows.append((Counter({more: 1, fewer: -1}), 0, 1))
            before[child.kind] = child

    def _add_domains(self, domains: list[Node]) -> None:
        with_members = [node for node in domains if node.members]
        chosen: Counter[int] = Counter()
        for node in domains:
            if len(node.variables) < self.count or with_members not in ([], [node]):
                self.rows.append((node.is_used, 0, 0))
            else:
                chosen.update(node.variables[-1:])
                all_or_none = node.is_used
                all_or_none.subtract(node.variables[-1:])
                self.rows.append((all_or_none, 0, 0))
        self.rows.append((chosen, 1, 1))

    def cost(self) -> tuple[Counter[int], int]:
        """Return the Hop-Byte cost: its coefficients, and what the members cost."""
        coefficients: Counter[int] = Counter()
        fixed = 0
        for node in self.nodes:
            # Hops of a pair at a root; below, the hops that a pair saves.
            hops = 2 * node.level - 1 if node.parent is None else -1
            if node.parent is not None and node.level:
                hops = -2 * (node.parent.level - node.level)
            fixed += hops * math.comb(node.members, 2)
            for k, variable in enumerate(node.variables):
                coefficients[variable] = hops * (node.members + k)
        return coefficients, fixed

    def number_of_leaves(self) -> tuple[Counter[int], int]:
        """Return the leaves of new VMs and members: coefficients, and the members' leaves."""
        new: Counter[int] = Counter()
        for leaf in self.leaves:
            if not leaf.members:
                new.update(leaf.is_used)
        return new, sum(leaf.members > 0 for leaf in self.leaves)

    def excess(self, level: int) -> tuple[Counter[int], int]:
        """Return the excess capacity of a level: coefficients, and a constant."""
        rooms: Counter[int] = Counter()
        for node in self.switches_of(level):
            for variable in node.is_used:
                rooms[variable] = node.room
        return rooms, -self.count

    def priced(self) -> tuple[Counter[int], int]:
        """Return the cost with the price of free slots, in parts of a hop."""
        cost, fixed = self.cost()
        if self.price is None:
            return cost, fixed
        price = self.price
        cost = Counter({variable: price.parts * each for variable, each in cost.items()})
        for node in self.nodes:
            if node.level in price.slot and node.parent is not None:
                slot = price.slot[node.level]
                for variable in node.variables:
                    cost[variable] -= slot
                for variable in node.is_used:
                    cost[variable] += slot * node.room + (price.leaf if node.level == 1 else 0)
        return cost, price.parts * fixed

    def in_order(self) -> list[tuple[Counter[int], int]]:
        """Return the keys of plans: coefficients of variables, and a constant."""
        found: list[tuple[Counter[int], int]] = [self.priced(), self.number_of_leaves()]
        if self.fewest:
            found.append((Counter({each: -number for number, each in self.fewest.items()}), 0))
        levels = range(1, self.depth + 1)
        if self.price is not None and self.depth > 1:
            (leaves, leaf), (pods, pod) = self.excess(1), self.excess(2)
            both = Counter({variable: 8 * room for variable, room in leaves.items()})
            both.update(pods)
            found.append((both, 8 * leaf + pod))
            levels = levels[2:]
        return found + [self.excess(level) for level in levels]

    def best(self, keys: int | None = None) -> tuple[int, ...] | None:
        """Return cost, leaves and excess level by level of the best plan; None without a plan.

        With balanced parts minus the fewest below a used switch come behind leaves.

        Each is the optimum of one program; the next program has it as a row.

        :param keys: the number of these, by default all
        """
        found: list[int] = []
        rows = list(self.rows)
        for coefficients, fixed in self.in_order()[:keys]:
            chosen = self._solved(coefficients, rows)
            if chosen is None:
                assert not found
                return None
            value = sum(coefficients[variable] for variable in chosen)
            found.append(value + fixed)
            # All coefficients are whole: what is below value + 1/2 is at most value.
            rows.append((coefficients, -math.inf, value + 0.5))
        return tuple(found)

    def _solved(
        self, objective: Mapping[int, int], rows: list[tuple[Mapping[int, int], float, float]]
    ) -> set[int] | None:
        """Return the variables that are 1 in an optimum, or None if there is no solution."""
        matrix = lil_array((len(rows), self.size))
        for row, (terms, *_) in enumerate(rows):
            matrix[row, list(terms)] = list(terms.values())
        goal = np.zeros(self.size)
        goal[list(objective)] = list(objective.values())
        answer = milp(
            goal,
            integrality=np.ones(self.size),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(
                matrix.tocsr(), [low for _, low, _ in rows], [high for *_, high in rows]
            ),
            options={"mip_rel_gap": 0},
        )
        if answer.status == INFEASIBLE:
            return None
        assert answer.status == OPTIMAL, answer.message
        chosen = set(np.flatnonzero(answer.x > 0.5).tolist())
        # The rounded solution keeps every row, and its value is the optimum.
        assert np.abs(answer.x - np.round(answer.x)).max() < 1e-4
        for terms, low, high in rows:
            assert low <= sum(c for v, c in terms.items() if v in chosen) <= high
        assert round(answer.mip_dual_bound) == sum(objective.get(v, 0) for v in chosen)
        return chosen
