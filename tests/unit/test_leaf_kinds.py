"""Leaves that are put together: the same tables and the same way as of single leaves."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.convex_leaves import ConvexLeaves, Leaf
from hpc_sched.core.plan.exact.leaves.equal_leaves import EqualLeaves
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.near_scores import Wanted
from hpc_sched.core.plan.exact.nodes import Node, joined
from hpc_sched.core.plan.exact.order import Greatest, ScoreWeights, Way
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.time_limit import Effort
from hpc_sched.topology import Topology

Class = ConvexLeaves | EqualLeaves
# The capacity and the members of each host of a leaf.
Hosts = Sequence[tuple[int, int]]

KINDS = ["one host", "hosts of one VM", "alike", "alike"]
MEMBERS = st.sampled_from([0, 0, 0, 1, 2])


@st.composite
def kinds(draw: st.DrawFn, kind: str) -> list[Hosts]:
    """Draw leaves that are put together: of one host, of hosts for one VM each, or all alike."""
    here, number = draw(MEMBERS), draw(st.integers(2, 5))
    if kind == "one host":
        return [[(draw(st.integers(1, 5)), here)] for _ in range(number)]
    if kind == "hosts of one VM":
        full = [(0, draw(MEMBERS))]
        return [[(1, 0)] * draw(st.integers(1, 5)) + full for _ in range(number)]
    # Of few numbers, so that ways are often equally good.
    hosts = draw(st.lists(st.tuples(st.integers(1, 4), MEMBERS), min_size=2, max_size=4))
    return [hosts for _ in range(number)]


@st.composite
def groups(draw: st.DrawFn, kind: str) -> tuple[Problem, int]:
    """Draw leaves of one kind or two, maybe with a pod next to these, and a number of VMs.

    ::

                   core
             /    |   ..  \\
          leaf  leaf    (pod)
         hosts  hosts     |
                        (leaf)
    """
    leaves = draw(kinds(kind))
    if draw(st.booleans()):
        leaves += draw(st.sampled_from(KINDS).flatmap(kinds))
    names = draw(st.permutations(range(len(leaves))))
    tree: dict[str, Any] = {}
    capacity, members = {}, {}
    for name, hosts in zip(names, leaves, strict=True):
        tree[f"leaf{name}"] = [f"h{name}-{i}" for i in range(len(hosts))]
        for host, (room, here) in zip(tree[f"leaf{name}"], hosts, strict=True):
            capacity[host], members[host] = room, here
    if draw(st.booleans()):
        # The leaves are two levels below the core.
        tree["pod"] = {"other": ["full"]}
    count = draw(st.integers(1, min(sum(capacity.values()), 25)))
    problem = Problem.from_counts(
        topology=Topology.from_tree({"core": tree}),
        capacity=capacity,
        members=members,
        awaiting=count,
        group_id=draw(st.sampled_from("abcdef")),
    )
    has_equal = kind == "alike"
    return replace(problem, pack_hosts=has_equal or draw(st.booleans())), count


@st.composite
def classes(draw: st.DrawFn) -> tuple[Class, int, ScoreWeights]:
    """Draw leaves that the planner has put together, VMs, and the weights of a score."""
    kind = draw(st.sampled_from(KINDS))
    problem, count = draw(groups(kind))
    tree = GroupTree.of(OpenLeaves.of(problem, count), Effort())
    found = [part for parts in tree.leaves.values() for part in parts]
    wanted = EqualLeaves if kind == "alike" else ConvexLeaves
    together = [part for part in found if isinstance(part, wanted)]
    assume(together)
    everyone = int(problem.members.sum()) + count
    bounds = Greatest(
        saved=5 * everyone * everyone,
        leaves=min(count, len(problem.topology.leaves)),
        excess=int(problem.capacity.sum()),
    )
    hops = draw(st.just(1) | st.integers(1, bounds.leaves))
    price = draw(st.just(0) | st.integers(0, 40) | st.just(bounds.saved + 1))
    return draw(st.sampled_from(together)), count, bounds.weights(Fraction(price, hops))


def single_leaves(part: Class) -> list[Leaf]:
    """Return the leaves of a class, each for itself."""
    if isinstance(part, EqualLeaves):
        return [replace(part.first, index=int(leaf)) for leaf in part.leaves]
    return [
        Leaf(int(leaf), int(room), part.has_members, part.gains[: int(room) + 1], part.order)
        for leaf, room in zip(part.leaves, part.rooms, strict=True)
    ]


def one_by_one(part: Class, count: int, weights: ScoreWeights) -> Node:
    """Return the leaves of a class as nodes of their own, side by side."""
    nodes = [leaf.node(weights) for leaf in single_leaves(part)]
    return joined(nodes, count, weights, Effort())


def in_order(way: Way) -> list[tuple[int, ...]]:
    return [tuple(used) for used in sorted(way.used_leaves())]


@given(classes())
def test_leaves_together_have_the_table_of_the_leaves_one_by_one(
    drawn: tuple[Class, int, ScoreWeights],
):
    part, count, weights = drawn
    expected = one_by_one(part, count, weights).scores
    assert part.node(weights).scores.tolist() == expected.tolist()


@given(classes())
def test_the_first_way_is_that_of_the_leaves_one_by_one(drawn: tuple[Class, int, ScoreWeights]):
    part, count, weights = drawn
    together, apart = part.node(weights), one_by_one(part, count, weights)
    for vms, score in enumerate(together.scores.tolist()):
        assert together.score(vms) == apart.score(vms) == score
        way, expected = together.way(vms, score), apart.way(vms, score)
        assert in_order(way) == in_order(expected)
        assert way.rank == expected.rank


@given(classes(), st.data())
def test_ways_near_the_best_are_those_of_the_leaves_one_by_one(
    drawn: tuple[Class, int, ScoreWeights], data: st.DataObject
):
    """A way is left out only where another with fewer leaves saves as much."""
    part, count, weights = drawn
    together, apart = part.node(weights), one_by_one(part, count, weights)
    numbers = st.lists(st.integers(0, len(together.scores) - 1), min_size=1, unique=True)
    vms = np.array(sorted(data.draw(numbers)))
    spare = data.draw(st.integers(0, 40)) * weights.saving
    wanted = Wanted(vms, together.scores[vms] - spare)
    near, expected = together.near(wanted), apart.near(wanted)
    ways = set(zip(near.vms.tolist(), near.scores.tolist(), strict=True))
    for number, score in zip(expected.vms.tolist(), expected.scores.tolist(), strict=True):
        if (number, score) in ways:
            way = together.way(number, score)
            assert in_order(way) == in_order(apart.way(number, score))
        else:
            leaves = int(weights.leaves(np.array(score)))
            saved = weights.saved(np.array(score), np.array(leaves))
            assert any(
                weights.leaves(other) <= leaves
                and weights.saved(other, weights.leaves(other)) >= saved
                for other in near.at(number)
            )
    assert ways <= set(zip(expected.vms.tolist(), expected.scores.tolist(), strict=True))


@given(classes())
def test_a_class_has_the_first_of_its_smallest_leaves_with_room_for_all(
    drawn: tuple[Class, int, ScoreWeights],
):
    part, count, _ = drawn
    leaves = [leaf for leaf in single_leaves(part) if leaf.room >= count]
    found = part.with_room(count)
    if found is None or not leaves:
        assert (found, leaves) == (None, [])
        return
    first = min(leaves, key=lambda leaf: (leaf.room, int(leaf.order.place[leaf.index])))
    assert (found.index, found.room) == (first.index, first.room)
    assert found.gains[count] == first.gains[count]
