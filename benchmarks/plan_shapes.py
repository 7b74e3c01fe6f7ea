"""The shapes of benchmarks/plan.py: fabrics, room on hosts, members, and constraints.

Everything drawn depends on the seed and on the name of what it is drawn for, never on the order
in which shapes are measured.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.fragmentation.price import fragmentation_price
from hpc_sched.core.fragmentation.rates import DEFAULT
from hpc_sched.core.plan import planner
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology import Topology

GROUP = "benchmark"

# Hosts of a leaf, leaves of a pod and so on upwards, for a number of hosts. One root is above.
FABRICS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "three": lambda hosts: (20, 25),
    "one-leaf": lambda hosts: (hosts,),
    "single-flat": lambda hosts: (1,),
    "single-pods": lambda hosts: (1, -(-hosts // 100)),
    "five": lambda hosts: (20, 5, 5, 5),
    "two": lambda hosts: (20,),
}
SWITCHES = ("leaf", "pod", "row", "zone")

# How many more VMs each host takes: a number, or the least and the greatest that are drawn.
FREE = ("1", "8", "0-1", "0-4", "0-64", "1-1000")
MEMBERS = ("none", "tenth")
COUNTS = (1, 64, 512, 4096)
# Percentages: fewer new leaves than without constraints, at least one fewer.
WISHES = ("none", "pod", "1%", "5%", "50%")
# Into what parts the group is divided; not among the wishes that are measured by default.
PARTS = {
    **{f"segment={size}": Parts(size) for size in (8, 16, 32)},
    "balance": Parts(is_balanced=True),
    "segment=8,balance": Parts(8, is_balanced=True),
}
# With the fragmentation price as delivered; not measured by default either.
PRICE = "price"


@dataclass(frozen=True)
class Shape:
    """The names of one group on one fabric, without its constraints."""

    hosts: int
    fabric: str
    free: str
    members: str
    count: int


@dataclass(frozen=True)
class Scene:
    """A fabric with what is free on it, and what a group requests."""

    topology: Topology
    capacity: dict[str, int]
    members: dict[str, int]
    count: int
    constraints: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def problem(self) -> Problem:
        """The values that solve works on."""
        return Problem.from_counts(
            topology=self.topology,
            capacity=self.capacity,
            members=self.members,
            awaiting=self.count,
            group_id=GROUP,
        )

    @cached_property
    def priced_problem(self) -> Problem:
        """The same with the price that the group has where empty hosts are as the emptiest one."""
        room = self.problem.capacity
        empty, size = np.full(len(room), max(room.max(), 1)), self.count + len(self.members)
        price = fragmentation_price(DEFAULT, self.topology, empty, room, size)
        return replace(self.problem, price=price)

    def solve(self) -> Plan | Rejection:
        """Return the answer from the Problem."""
        problem = self.priced_problem if PRICE in self.constraints else self.problem
        bounds = Bounds(
            level=self.constraints.get("require"),
            most_leaves=self.constraints.get("max_leaves"),
            parts=PARTS.get(self.constraints.get("parts", "")),
        )
        return planner.solve(problem, self.count, bounds)

    def plan(self) -> Plan | Rejection:
        """Return the answer from dicts by host name, whose signature has no parts and no price."""
        if self.constraints.keys() & {"parts", PRICE}:
            return self.solve()
        return planner.plan(
            topology=self.topology,
            capacity=self.capacity,
            members=self.members,
            count=self.count,
            group_id=GROUP,
            **self.constraints,
        )

    @property
    def member_leaves(self) -> set[str]:
        """The leaves with members."""
        return {self.topology.leaf_of(host) for host in self.members}


def fabric_of(hosts: int, fabric: str = "three") -> Topology:
    """Return a fabric with a number of hosts; the last switches may have fewer below them."""
    widths = FABRICS[fabric](hosts)
    row: list[Any] = [f"n{i:06}" for i in range(hosts)]
    for name, width in zip(SWITCHES, widths, strict=False):
        parts = [row[i : i + width] for i in range(0, len(row), width)]
        row = [
            (f"{name}{i:06}", part if name == "leaf" else dict(part))
            for i, part in enumerate(parts)
        ]
    return Topology.from_tree(dict(row) if widths == (hosts,) else {"core": dict(row)})


def free_on(topology: Topology, free: str, seed: int) -> dict[str, int]:
    """Return how many more VMs each host takes.

    :raises ValueError: unless ``free`` is a number, or two with a hyphen between them
    """
    low, _, high = free.partition("-")
    first, last = int(low), int(high or low)
    draw = random.Random(f"{seed} free {free}")
    return {host: draw.randint(first, last) for host in topology.hosts}


def members_on(topology: Topology, members: str, seed: int) -> dict[str, int]:
    """Return the members by host: none, or one on a tenth of the leaves, at least on one."""
    if members == "none":
        return {}
    draw = random.Random(f"{seed} members")
    below = [hosts for hosts in topology.leaf_hosts() if hosts]
    leaves = draw.sample(below, max(len(below) // 10, 1))
    return {draw.choice(hosts): 1 for hosts in leaves}


def scene_of(topology: Topology, shape: Shape, seed: int) -> Scene:
    """Return the scene of a shape without constraints. A member takes a place that was drawn."""
    capacity = free_on(topology, shape.free, seed)
    members = members_on(topology, shape.members, seed)
    for host in members:
        capacity[host] = max(capacity[host] - 1, 0)
    return Scene(topology, capacity, members, shape.count)


def require_pod(topology: Topology) -> dict[str, Any] | None:
    """Return the constraint of one pod, None if no level of pods is below the root."""
    return {"require": "pod"} if "pod" in topology.levels[:-1] else None


def bounds(
    wishes: Sequence[str], member_leaves: int, new_leaves: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the bounds on leaves that exclude the plan without constraints, each bound once.

    :param wishes: those of ``WISHES`` to yield; those that are no percentages are ignored
    :param new_leaves: leaves of the plan without constraints that have no members
    """
    seen: set[int] = set()
    for wish in wishes:
        if not wish.endswith("%"):
            continue
        fewer = max(round(new_leaves * int(wish[:-1]) / 100), 1)
        bound = member_leaves + new_leaves - fewer
        if fewer <= new_leaves and bound >= 1 and bound not in seen:
            seen.add(bound)
            yield wish, {"max_leaves": bound}
