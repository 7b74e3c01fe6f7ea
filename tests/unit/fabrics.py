"""Fabrics that the unit tests share, strategies that make random ones, and plain oracles."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from hpc_sched.core.constraints import NO_CONSTRAINTS, Bounds, Constraints
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.plan.planner import plan, solve, solve_sizes
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology import Topology


def check(topology: Topology) -> None:
    """Assert every invariant of a topology's structure."""
    assert topology.groups.shape == (len(topology.levels), len(topology.hosts))
    assert topology.depth == max(switch.level for switch in topology.switches)
    for s, switch in enumerate(topology.switches):
        assert topology._switch_index[switch.name] == s
        assert switch.parent < 0 or topology.switches[switch.parent].level > switch.level
        if s == topology.unnamed_root:
            assert (switch.level, switch.parent) == (topology.depth, -1)
        elif switch.level > 1:
            below = [c.level for c in topology.switches if c.parent == s]
            assert switch.level == 1 + max(below)
    assert topology.host_processors.keys() <= topology._host_index.keys()
    for i, host in enumerate(topology.hosts):
        assert topology._host_index[host] == i
        above = [topology.switch_index(name) for name in topology.ancestors(host)]
        for level in range(1, topology.depth + 1):
            highest = [s for s in above if topology.switches[s].level <= level][-1]
            assert topology.groups[level - 1, i] == highest


def two_leaves() -> Topology:
    """Return the smallest fabric with a choice.

    ::

              core
             /    \\
          leaf1  leaf2
          a1 a2  b1 b2 b3
    """
    return Topology.from_tree({"core": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2", "b3"]}})


def two_pods() -> Topology:
    """Return three full levels.

    ::

                   core
                /        \\
            pod1          pod2
           /    \\        /    \\
        leaf1  leaf2  leaf3  leaf4
        a1 a2  b1 b2  c1 c2  d1 d2
    """
    return Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"]},
                "pod2": {"leaf3": ["c1", "c2"], "leaf4": ["d1", "d2"]},
            }
        }
    )


def lopsided() -> Topology:
    """Return a fabric whose branches are of different length.

    ::

        level 3            core
                          /  |  \\
        level 2       pod1   |   |
                     /    \\  |   |
        level 1  leaf1 leaf2 |  leaf4
                  a1    b1   |   d1 d2
                           leaf3
                           c1 c2
    """
    return Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1"], "leaf2": ["b1"]},
                "leaf3": ["c1", "c2"],
                "leaf4": ["d1", "d2"],
            }
        }
    )


def islands() -> Topology:
    """Return two fabrics without a link between them, of different depth.

    ::

            west            east
           /    \\          e1 e2
        leaf1  leaf2
        a1 a2  b1 b2
    """
    return Topology.from_tree(
        {"west": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"]}, "east": ["e1", "e2"]}
    )


def large_leaf_and_neighbours() -> Topology:
    """Return a leaf that is alone in its pod, and two smaller ones that are neighbours.

    ::

                 core
               /      \\
            pod1        pod2
             |        /    \\
            leaf1   leaf2  leaf3
          a1 a2 a3  b1 b2  c1 c2
    """
    return Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2", "a3"]},
                "pod2": {"leaf2": ["b1", "b2"], "leaf3": ["c1", "c2"]},
            }
        }
    )


def row_of_leaves(sizes: Mapping[str, int]) -> Topology:
    """Return leaves of the given sizes below one switch; hosts are called ``<leaf>-<number>``.

    ::

                 core
               /   |   \\
          leaf a  ...  leaf z
          a-00 a-01 ...
    """
    return Topology.from_tree(
        {"core": {leaf: [f"{leaf}-{i:02}" for i in range(count)] for leaf, count in sizes.items()}}
    )


def problem_of(
    topology: Topology,
    constraints: Constraints = NO_CONSTRAINTS,
    capacity: Mapping[str, int] | None = None,
    members: Mapping[str, int] | None = None,
    *,
    awaiting: int | None = None,
    group_id: str = "",
) -> Problem:
    """Return a problem; by default every host takes one VM, and as many VMs want a place."""
    free = dict.fromkeys(topology.hosts, 1) if capacity is None else capacity
    made = Problem.from_counts(
        topology=topology,
        capacity=free,
        members=members or {},
        awaiting=sum(free.values()) if awaiting is None else awaiting,
        group_id=group_id,
    )
    return replace(made, constraints=constraints)


def planned(topology: Topology, count: int, *args: Any, **kwargs: Any) -> tuple[Problem, Plan]:
    """Return a problem as :func:`problem_of` makes it, and its plan."""
    problem = problem_of(topology, *args, awaiting=count, **kwargs)
    answer = solve_sizes(problem, [count])
    assert isinstance(answer, Plan)
    return problem, answer


def only_plans(answer: Plan | Rejection) -> Plan:
    """Return the plan of what hypothesis has drawn; cases without one are drawn again."""
    assume(isinstance(answer, Plan))
    assert isinstance(answer, Plan)
    return answer


@dataclass(frozen=True)
class Group:
    """The arguments of a problem, by host name."""

    tree: dict[str, Any]
    capacity: dict[str, int]
    members: dict[str, int]
    awaiting: int

    @property
    def topology(self) -> Topology:
        return Topology.from_tree(self.tree)

    def problem(self) -> Problem:
        return Problem.from_counts(
            topology=self.topology,
            capacity=self.capacity,
            members=self.members,
            awaiting=self.awaiting,
        )


@dataclass(frozen=True)
class Case:
    """The arguments of one plan, all by name."""

    tree: dict[str, Any]
    capacity: dict[str, int]
    members: dict[str, int]
    count: int
    require: str | None = None
    max_leaves: int | None = None
    min_leaves: int = 0
    group_id: str = ""
    pack_hosts: bool = True
    packing: MDOBPInput | None = None  # rows in the order of the fabric's hosts
    price: FragmentationPrice | None = None
    parts: Parts | None = None

    @cached_property
    def described(self) -> Topology:
        return Topology.from_tree(self.tree)

    @cached_property
    def fabric(self) -> Topology:
        """The fabric with the hosts that only the counts name."""
        return self.described.including([*self.capacity, *self.members])

    def answer(self) -> Plan | Rejection:
        if self.pack_hosts and not self.min_leaves and self.price is None and self.parts is None:
            return plan(
                topology=self.described,
                capacity=self.capacity,
                members=self.members,
                count=self.count,
                require=self.require,
                max_leaves=self.max_leaves,
                group_id=self.group_id,
            )
        problem = Problem.from_counts(
            topology=self.described,
            capacity=self.capacity,
            members=self.members,
            awaiting=self.count,
            group_id=self.group_id,
        )
        return solve(
            replace(problem, pack_hosts=self.pack_hosts, packing=self.packing, price=self.price),
            self.count,
            Bounds(self.require, None, self.max_leaves, self.min_leaves, self.parts),
        )

    def together(self, new: Mapping[str, int]) -> dict[str, int]:
        """Return members plus new VMs by host, without hosts that have none."""
        return dict(+(Counter(self.members) + Counter(new)))


# A number is a leaf with as many hosts, a list a switch with what is below it.
_SHAPES = st.recursive(
    st.integers(1, 4), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=6
)


@st.composite
def trees(draw: st.DrawFn, max_islands: int = 2, max_hosts: int = 24) -> dict[str, Any]:
    """Draw nested switches: unbalanced, with several roots, and names in no order."""
    shapes = draw(
        st.lists(_SHAPES, min_size=1, max_size=max_islands).filter(
            lambda shapes: hosts_in(shapes) <= max_hosts
        )
    )
    numbers = draw(st.permutations(range(hosts_in(shapes))))
    hosts = iter([f"h{number:02}" for number in numbers])
    switches = iter(range(1000))

    def grow(shape: Any) -> Any:
        if isinstance(shape, int):
            return [next(hosts) for _ in range(shape)]
        return {f"s{next(switches)}": grow(below) for below in shape}

    tree: dict[str, Any] = grow(shapes)
    return tree


def hosts_in(shape: Any) -> int:
    """Return the number of hosts of a drawn shape."""
    return shape if isinstance(shape, int) else sum(hosts_in(below) for below in shape)


def flat_trees(max_leaves: int = 4, max_hosts: int = 5) -> st.SearchStrategy[dict[str, Any]]:
    """Draw two levels: leaves below one switch."""
    return st.lists(st.integers(1, max_hosts), min_size=1, max_size=max_leaves).map(
        lambda sizes: {
            "core": {f"s{s}": [f"h{s}{i}" for i in range(size)] for s, size in enumerate(sizes)}
        }
    )


@st.composite
def groups(
    draw: st.DrawFn,
    tree: st.SearchStrategy[dict[str, Any]] | None = None,
    max_capacity: int = 3,
    max_members: int = 2,
    max_awaiting: int = 6,
) -> Group:
    """Draw a group on a random fabric; some hosts are full, some do not stand in the dicts."""
    nested = draw(tree if tree is not None else trees())
    hosts = Topology.from_tree(nested).hosts

    def counts(most: int) -> dict[str, int]:
        drawn = draw(st.lists(st.integers(-1, most), min_size=len(hosts), max_size=len(hosts)))
        return {host: count for host, count in zip(hosts, drawn, strict=True) if count >= 0}

    return Group(
        tree=nested,
        capacity=counts(max_capacity),
        members=counts(max_members) if draw(st.booleans()) else {},
        awaiting=draw(st.integers(0, max_awaiting)),
    )


def shuffled(draw: st.DrawFn, tree: Any) -> Any:
    """Return the same nested switches with switches and hosts in another order."""
    if isinstance(tree, dict):
        return {name: shuffled(draw, tree[name]) for name in draw(st.permutations(list(tree)))}
    return draw(st.permutations(tree))


def hops_by_names(topology: Topology, a: str, b: str) -> float:
    """Return hops as the definition says: from the lowest switch that both have above them."""
    if a == b:
        return 0
    levels = {switch.name: switch.level for switch in topology.switches}
    common = [levels[name] for name in topology.ancestors(a) if name in topology.ancestors(b)]
    return 2 * min(common) - 1 if common else math.inf


def naive_hop_bytes(topology: Topology, hosts: Iterable[str]) -> float:
    """Return the sum of hops over all pairs of VMs, given the host of each."""
    return sum(hops_by_names(topology, a, b) for a, b in combinations(hosts, 2))
