"""The plan by best fit: there is one whenever there is any, and it never beats the exact one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds, level_of
from hpc_sched.core.plan.best_fit import best_fit
from hpc_sched.core.plan.exact.order import Greatest, ScoreWeights
from hpc_sched.core.plan.planner import plan, solve
from hpc_sched.core.plan.problem import Problem, leaf_sums
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import Topology
from tests.unit import fabrics

PASSED = TimeLimit.after(0)


def leaves_of(
    problem: Problem, count: int, level: int = 2, max_leaves: int | None = None
) -> dict[str, int]:
    """Return the new VMs by name of leaf."""
    found = best_fit(problem, count, level, Bounds(most_leaves=max_leaves))
    return {problem.topology.switches[leaf].name: new for leaf, new in found.counts.items()}


def test_the_smallest_leaf_that_holds_the_group_is_taken():
    fabric = fabrics.row_of_leaves({"a": 5, "b": 3, "c": 4})
    assert leaves_of(fabrics.problem_of(fabric), 3) == {"b": 3}
    assert leaves_of(fabrics.problem_of(fabric), 4) == {"c": 4}


def test_a_group_too_large_for_a_leaf_fills_the_largest_leaves():
    fabric = fabrics.row_of_leaves({"a": 5, "b": 3, "c": 4, "d": 2})
    assert leaves_of(fabrics.problem_of(fabric), 7) == {"a": 5, "c": 2}
    assert leaves_of(fabrics.problem_of(fabric), 12) == {"a": 5, "c": 4, "b": 3}


def test_neighbours_are_taken_before_a_larger_leaf_that_is_alone():
    problem = fabrics.problem_of(fabrics.large_leaf_and_neighbours())
    assert leaves_of(problem, 4, level=3) == {"leaf2": 2, "leaf3": 2}


def test_the_leaf_of_the_members_is_used_before_a_larger_one_where_leaves_are_bounded():
    """Two leaves at most::

              core
           /   |   \\
          a    b    c
        6 free 3+8 6 free
    """
    fabric = fabrics.row_of_leaves({"a": 6, "b": 3, "c": 6})
    problem = fabrics.problem_of(fabric, members={"b-00": 8})
    found = leaves_of(problem, 9, max_leaves=2)
    assert found.pop("b") == 3
    assert found in ({"a": 6}, {"c": 6})


def test_no_vm_needs_no_leaf_and_no_plan_is_better():
    found = best_fit(fabrics.problem_of(fabrics.two_leaves()), 0, 2)
    assert (found.counts, found.is_proven) == ({}, True)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, int, Bounds]:
    """Draw a problem, VMs to place, and bounds."""
    group = draw(fabrics.groups(max_awaiting=12))
    hosts = group.topology.hosts
    if draw(st.booleans()):
        # Members on few hosts, or hardly a group could keep its constraints.
        few = draw(st.lists(st.sampled_from(hosts), max_size=3))
        group = replace(group, members=dict(Counter(few)))
    problem = replace(group.problem(), pack_hosts=draw(st.booleans()))
    level = draw(st.sampled_from([None, *problem.topology.levels]))
    most, least = draw(st.none() | st.integers(1, 4)), draw(st.sampled_from([0, 0, 2, 3]))
    return problem, group.awaiting, Bounds(level, None, most, least)


@given(cases())
def test_it_places_each_group_that_the_exact_planner_places_and_keeps_the_constraints(drawn):
    problem, count, bounds = drawn
    topology = problem.topology
    level = level_of(topology, bounds.level)
    exact = fabrics.only_plans(solve(problem, count, bounds))
    found = best_fit(problem, count, level, bounds)
    assert sum(found.counts.values()) == count
    room = leaf_sums(problem, problem.capacity)
    assert all(0 < new <= room[leaf] for leaf, new in found.counts.items())
    assert found.is_proven == (not count)
    member_leaves = set(topology.leaf_index[problem.members > 0].tolist())
    used = np.isin(topology.leaf_index, list(found.counts.keys() | member_leaves))
    below = topology.groups[level - 1]
    assert set(below[used].tolist()) <= {found.top}
    leaves = len(found.counts.keys() | member_leaves)
    assert bounds.most_leaves is None or leaves <= bounds.most_leaves
    assert leaves >= min(bounds.least_leaves, len(member_leaves) + count)
    if member_leaves:
        assert topology.switches[found.top].name == exact.switch


@given(cases())
def test_a_plan_after_the_limit_is_never_better_than_the_exact_one_and_a_no_is_the_same(drawn):
    problem, count, bounds = drawn
    # Without it the planner minimises another cost than Hop-Byte.
    problem = replace(problem, pack_hosts=True)
    exact = solve(problem, count, bounds)
    quick = solve(problem, count, bounds, PASSED)
    if isinstance(exact, Rejection):
        assert quick == exact
        return
    assert isinstance(quick, Plan)
    assert quick.count == exact.count
    assert quick.hop_bytes >= exact.hop_bytes


@pytest.mark.parametrize("fits", [0, 1, 2])
def test_a_group_too_large_for_scores_still_gets_a_plan_within_its_bound(fits, monkeypatch):
    """Eight VMs: two pods of leaves with one host, three leaves allowed where the best uses four.

    ::

               core
             /      \\
          pod1      pod2
         4 leaves  2 leaves
         2 VMs     3 VMs each
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {f"a{number}": [f"a{number}-0"] for number in range(4)},
                "pod2": {f"b{number}": [f"b{number}-0"] for number in range(2)},
            }
        }
    )
    room = {host: 2 if host.startswith("a") else 3 for host in fabric.hosts}
    weights, made = Greatest.weights, 0

    def too_large(*arguments: object, **more: object) -> ScoreWeights:
        nonlocal made
        made += 1
        if made > fits:
            raise OverflowError
        return weights(*arguments, **more)

    monkeypatch.setattr(Greatest, "weights", too_large)
    answer = plan(topology=fabric, capacity=room, members={}, count=8, max_leaves=3)
    assert isinstance(answer, Plan)
    assert (answer.count, len(answer.leaves), answer.is_proven) == (8, 3, False)
