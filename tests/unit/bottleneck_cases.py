"""Groups with an objective of least bottleneck: the arguments by name, and small random ones."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, Limit
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import Capacities
from tests.unit import small_cases
from tests.unit.fabrics import Case

MOST_HOSTS = 9
MOST_WAYS = 20_000  # to place a group, on one island
WIDE = 10**6  # a rate at which no link decides
TRADEOFFS = [
    None,
    Fraction(0),
    Fraction(0),
    Fraction(1, 10),
    Fraction(1, 10),
    Fraction(3, 10),
    Fraction(1),
]


@dataclass(frozen=True)
class LinkedCase:
    """A case, and the capacities of its links by name of switch and of host."""

    case: Case
    uplinks: Mapping[str, int]
    links: Mapping[str, int]
    tradeoff: Fraction | None = None
    kinds: tuple[str, ...] = field(default=(), compare=False)

    @property
    def bounds_leaves(self) -> bool:
        """Whether the number of leaves has a bound."""
        return self.case.max_leaves is not None or self.case.min_leaves > 0

    def problem(self) -> Problem:
        """Return the problem with its objective."""
        case = self.case
        made = Problem.from_counts(
            topology=case.described,
            capacity=case.capacity,
            members=case.members,
            awaiting=case.count,
            group_id=case.group_id,
        )
        switches = [
            self.uplinks.get(switch.name, WIDE) if switch.parent >= 0 else 0
            for switch in made.topology.switches
        ]
        hosts = [self.links.get(host, WIDE) for host in made.topology.hosts]
        capacities = Capacities(np.array(switches), np.array(hosts))
        objective = LeastBottleneck(capacities, self.tradeoff)
        return replace(made, pack_hosts=case.pack_hosts, objective=objective)

    def answer(self, limit: Limit = NO_LIMIT) -> Plan | Rejection:
        """Return what the planner says."""
        case = self.case
        bounds = Bounds(case.require, None, case.max_leaves, case.min_leaves)
        return solve(self.problem(), case.count, bounds, limit)


def random_case(seed: int) -> LinkedCase:
    """Return a group of at most 12 VMs more on at most 9 hosts, always the same for a seed."""
    draw = random.Random(f"small case of a bottleneck {seed}")
    while True:
        tree, capacity = random_room(draw)
        fabric = Topology.from_tree(tree)
        largest = max(sum(capacity[h] for h in fabric.hosts_of(root)) for root in fabric.roots)
        # Most groups need more than one leaf; some do not fit.
        count = draw.choice(
            [draw.randint(0, largest + 1), *[draw.randint(largest // 4, largest * 3 // 4)] * 3]
        )
        ways = max(
            number_of_ways([capacity[h] for h in fabric.hosts_of(root)], count)
            for root in fabric.roots
        )
        if count <= 12 and ways <= MOST_WAYS:
            break
    members = {}
    if draw.random() < 0.4:
        members = small_cases.random_members(draw, fabric, list(capacity))
    max_leaves = draw.randint(1, 4) if draw.random() < 0.25 else None
    min_leaves = draw.choice([2, 3, 4]) if draw.random() < 0.2 else 0
    case = Case(
        tree=tree,
        capacity=capacity,
        members=members,
        count=count,
        require=draw.choice(fabric.levels) if draw.random() < 0.25 else None,
        max_leaves=max_leaves,
        min_leaves=min_leaves if max_leaves is None else min(min_leaves, max_leaves),
        group_id=f"group-{seed}",
        pack_hosts=draw.random() < 0.75,
    )
    return with_links(draw, case)


def random_room(draw: random.Random) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a fabric of 2 to 4 levels, mostly one island, and the room of each host."""
    most_hosts, most = draw.choice([(3, 1), (3, 3), (2, 4), (2, 6), (1, 4), (1, 6), (1, 6)])
    is_alike = draw.random() < 0.35
    usual = [draw.randint(1, most) for _ in range(draw.randint(1, most_hosts))]
    depth = draw.randint(2, 4)
    capacity: dict[str, int] = {}

    def grow(shape: Any) -> Any:
        if shape is not None:
            return {f"s{next(names)}": grow(below) for below in shape}
        rooms = usual
        if not is_alike or draw.random() < 0.1:
            rooms = [draw.randint(0, most) for _ in range(draw.randint(1, most_hosts))]
        hosts = [f"h{next(names)}" for _ in rooms]
        capacity.update(zip(hosts, rooms, strict=True))
        return hosts

    while True:
        capacity.clear()
        names = small_cases.numbers(draw)
        number = draw.choice([1, 1, 1, 1, 1, 2])
        shapes = [
            small_cases.branch(draw, draw.randint(1, depth) if i else depth) for i in range(number)
        ]
        if not 2 <= small_cases.leaves_of(shapes) <= 6:
            continue
        tree = {f"s{next(names)}": grow(shape) for shape in shapes}
        if len(capacity) <= MOST_HOSTS:
            return tree, capacity


def number_of_ways(rooms: list[int], count: int) -> int:
    """Return in how many ways hosts can take a number of VMs."""
    ways = [1] + [0] * count
    for room in rooms:
        ways = [sum(ways[max(k - room, 0) : k + 1]) for k in range(count + 1)]
    return ways[count]


def with_links(draw: random.Random, case: Case) -> LinkedCase:
    """Return a case with the capacities of its links: alike, alike on a level, or of any size."""
    fabric = case.fabric
    kind = draw.choice(["alike", "alike on a level", "any", "any", "one narrow"])
    by_level = {level: draw.randint(1, 6) for level in range(1, 5)}
    uplinks = {}
    for switch in fabric.switches:
        rates = {
            "alike": 1,
            "alike on a level": by_level[switch.level],
            "any": draw.randint(1, 8),
            "one narrow": draw.choice([1, 20, 20, 20]),
        }
        uplinks[switch.name] = rates[kind]
    of_hosts = draw.choice(["wide", "wide", "alike", "any"])
    usual = draw.randint(1, 3)
    rates_of_hosts = {"wide": WIDE, "alike": usual}
    links = {host: rates_of_hosts.get(of_hosts) or draw.randint(1, 6) for host in fabric.hosts}
    tradeoff = draw.choice(TRADEOFFS)
    return LinkedCase(
        case, uplinks, links, tradeoff, (f"uplinks {kind}", f"links of hosts {of_hosts}")
    )


def traits(linked: LinkedCase) -> Iterator[str]:
    """Yield what is special about a case."""
    yield from small_cases.traits(linked.case)
    yield from linked.kinds
    yield f"tradeoff {linked.tradeoff}"
    case = linked.case
    if any(here and not case.capacity.get(host) for host, here in case.members.items()):
        yield "members on a host without room"
    if max(case.capacity.values(), default=0) > 1:
        yield "hosts of several VMs"


def common_denominator(linked: LinkedCase) -> int:
    """Return the least number that all capacities divide."""
    return math.lcm(*linked.uplinks.values(), *linked.links.values())
