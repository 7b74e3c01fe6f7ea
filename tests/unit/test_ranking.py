"""The order in which one VM tries the hosts: own slot, other slots, second choices, the rest."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds, Constraints
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import added_hops, move_to_front, plan_order, spare_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import planned


def names(problem: Problem, order) -> list[str]:
    return [problem.topology.hosts[i] for i in order]


def ordered(problem: Problem, plan: Plan, slot: int = 0) -> list[str]:
    return names(problem, plan_order(problem, plan, slot=slot))


def cost(topology: Topology, a: str, b: str, pack_hosts: bool) -> float:
    """Return the hops of the definition, islands joined by one more root."""
    if a == b:
        return 0 if pack_hosts else 1
    return min(fabrics.hops_by_names(topology, a, b), 2 * topology.depth + 1)


def naive_added(problem: Problem, everyone: list[int]) -> list[float]:
    """Return what one VM more costs on each host, pair by pair."""
    fabric = problem.topology
    vms = [host for host, count in zip(fabric.hosts, everyone, strict=True) for _ in range(count)]
    return [sum(cost(fabric, host, vm, problem.pack_hosts) for vm in vms) for host in fabric.hosts]


def everyone_of(problem: Problem, plan: Plan) -> list[int]:
    """Return members plus planned VMs per host."""
    both = zip(problem.topology.hosts, problem.members.tolist(), strict=True)
    return [count + plan.hosts.get(host, 0) for host, count in both]


@st.composite
def plans(draw: st.DrawFn) -> tuple[fabrics.Group, Problem, Plan]:
    """Draw a group that has a plan, packed or spread."""
    group = draw(fabrics.groups(max_awaiting=8))
    problem = replace(group.problem(), pack_hosts=draw(st.booleans()))
    level = draw(st.sampled_from([None, *problem.topology.levels]))
    return group, problem, fabrics.only_plans(solve(problem, group.awaiting, Bounds(level)))


def three_pods() -> Topology:
    """Return a fabric on which a plan leaves second choices of every kind.

    ::

                              core
                /              |              \\
             pod1             pod2            pod3
           /      \\          /    \\             |
        leaf1     leaf2    leaf3  leaf4        leaf5
        a1 a2 a3  b1 b2    c1 c2  d1 d2 d3     e1
    """
    return Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2", "a3"], "leaf2": ["b1", "b2"]},
                "pod2": {"leaf3": ["c1", "c2"], "leaf4": ["d1", "d2", "d3"]},
                "pod3": {"leaf5": ["e1"]},
            }
        }
    )


def test_behind_the_plan_come_its_leaf_then_its_pod_then_the_other_pods_then_full_hosts():
    fabric = three_pods()
    room = dict.fromkeys(fabric.hosts, 1) | {"a3": 2, "b1": 0}
    problem, plan = planned(fabric, 3, capacity=room, members={"a1": 1})
    # One host is nearer than one leaf: a1 takes one VM beside the member, a3 takes two.
    assert plan.places == ("a1", "a3", "a3")
    assert ordered(problem, plan) == [
        *("a1", "a3"),
        "a2",  # 4 hops: under the leaf of all four
        "b2",  # 12 hops: under the pod
        "e1",  # 20 hops, as all others; the leaf with less room left first
        *("c1", "c2"),
        *("d1", "d2", "d3"),
        "b1",
    ]


def test_second_choices_hug_the_members_as_well_as_the_plan():
    fabric = fabrics.two_pods()
    room = dict.fromkeys(["a2", "b1", "b2", "c1", "d1"], 1)
    problem, plan = planned(fabric, 1, capacity=room, members={"a1": 1, "c2": 3})
    assert plan.places == ("c1",)
    assert ordered(problem, plan)[1:5] == ["d1", "a2", "b1", "b2"]


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        pytest.param(0, ["a1", "a2", "b1"], id="the first slot follows the plan"),
        pytest.param(1, ["a2", "a1", "b1"], id="the second begins at its own place, in its leaf"),
        pytest.param(2, ["b1", "a1", "a2"], id="the last goes round"),
        pytest.param(3, ["a1", "a2", "b1"], id="one beyond the plan begins again"),
    ],
)
def test_a_vm_tries_its_own_slot_and_then_the_others_in_turn(slot: int, expected: list[str]):
    fabric = fabrics.two_pods()
    room = dict.fromkeys(["a1", "a2", "b1", "c1", "d1"], 1)
    problem, plan = planned(fabric, 3, capacity=room)
    assert ordered(problem, plan, slot)[:3] == expected


def test_hosts_outside_the_required_switch_come_behind_all_of_its_hosts_however_near():
    # Under pod1 there is room beside the member only; leaf3 of the other branch is as far as
    # leaf2 would be without the requirement.
    fabric = fabrics.lopsided()
    room = dict.fromkeys(["a1", "b1", "c1", "d1"], 1)
    problem, plan = planned(fabric, 1, Constraints(require="pod"), room, {"a1": 1})
    assert plan.switch == "pod1"
    assert ordered(problem, plan)[:2] == ["a1", "b1"]
    assert set(ordered(problem, plan)[2:4]) == {"c1", "d1"}


def test_a_host_that_is_full_is_last_though_it_would_cost_least():
    fabric = fabrics.two_leaves()
    problem, plan = planned(fabric, 1, capacity={"a1": 1, "b1": 1}, members={"a2": 2})
    assert ordered(problem, plan)[:2] == ["a1", "b1"]
    assert ordered(problem, plan)[2:] == ["a2", "b2", "b3"]


def test_a_planned_host_with_room_for_more_is_not_named_twice():
    fabric = fabrics.two_leaves()
    problem, plan = planned(fabric, 2, capacity={"a1": 4, "a2": 4, "b1": 4})
    order = ordered(problem, plan)
    assert sorted(order) == sorted(fabric.hosts)
    assert order[0] == plan.places[0]


def test_of_equal_leaves_the_one_with_less_room_left_and_then_the_first_in_tie_order_comes_next():
    fabric = fabrics.row_of_leaves({"leaf1": 1, "leaf2": 2, "leaf3": 2, "leaf4": 3})
    room = dict.fromkeys(fabric.hosts, 1)
    problem, plan = planned(fabric, 1, capacity=room, group_id="group-1")
    assert [name.partition("-")[0] for name in ordered(problem, plan)] == (
        ["leaf1"] + ["leaf3"] * 2 + ["leaf2"] * 2 + ["leaf4"] * 3
    )


def test_a_group_that_would_rather_spread_takes_the_emptier_host_of_a_leaf_as_second_choice():
    fabric = Topology.from_tree({"sw": ["n1", "n2", "n3"]})
    room = dict.fromkeys(fabric.hosts, 4)
    problem, plan = planned(fabric, 1, capacity=room, members={"n1": 2, "n3": 1})
    assert ordered(problem, plan)[1:] == ["n3", "n2"]
    spread = replace(problem, pack_hosts=False)
    plan = solve(spread, 1)
    assert isinstance(plan, Plan)
    assert ordered(spread, plan) == ["n2", "n3", "n1"]


def test_without_a_plan_hosts_go_by_what_one_vm_costs_beside_the_members():
    fabric = fabrics.two_pods()
    room = dict.fromkeys(["a2", "b1", "c1", "c2"], 1)
    problem = Problem.from_counts(
        topology=fabric, capacity=room, members={"a1": 2, "d1": 1}, awaiting=1
    )
    # 2 * 1 + 5, 2 * 3 + 5, 2 * 5 + 3 hops.
    assert names(problem, spare_order(problem, None))[:4] == ["a2", "b1", "c1", "c2"]


def test_members_on_two_islands_draw_to_the_island_with_more_of_them():
    fabric = fabrics.islands()
    room = dict.fromkeys(["b1", "e2"], 1)
    problem = Problem.from_counts(
        topology=fabric, capacity=room, members={"a1": 3, "e1": 1}, awaiting=1
    )
    # Through a root above both islands: 3 * 3 + 5 hops on b1, 3 * 5 + 1 on e2.
    assert names(problem, spare_order(problem, None))[:2] == ["b1", "e2"]


def test_without_members_or_plan_the_tightest_leaf_comes_first():
    fabric = fabrics.two_leaves()
    problem = Problem.from_counts(
        topology=fabric, capacity=dict.fromkeys(fabric.hosts, 1), members={}, awaiting=1
    )
    assert names(problem, spare_order(problem, None)) == ["a1", "a2", "b1", "b2", "b3"]


def test_the_first_ones_keep_their_turn_and_the_rest_follow_without_them():
    rest = np.arange(5)
    order = move_to_front([3, 1, 3], rest)
    assert order.tolist() == [3, 1, 0, 2, 4]
    assert move_to_front([], rest).tolist() == [0, 1, 2, 3, 4]


@given(fabrics.groups(max_members=3), st.booleans())
def test_the_added_hops_are_the_sum_over_all_pairs(group: fabrics.Group, pack_hosts: bool):
    problem = replace(group.problem(), pack_hosts=pack_hosts)
    found = added_hops(problem, problem.members).tolist()
    assert found == naive_added(problem, problem.members.tolist())


@given(plans(), st.integers(0, 12))
def test_every_host_stands_once_in_the_order(drawn: tuple[fabrics.Group, Problem, Plan], slot: int):
    _, problem, plan = drawn
    assert sorted(ordered(problem, plan, slot)) == sorted(problem.topology.hosts)
    assert sorted(names(problem, spare_order(problem, None))) == sorted(problem.topology.hosts)


@given(plans(), st.integers(0, 12))
def test_the_order_begins_with_the_places_of_the_plan_from_the_slot_on(
    drawn: tuple[fabrics.Group, Problem, Plan], slot: int
):
    _, problem, plan = drawn
    turn = slot % max(plan.count, 1)
    places = list(dict.fromkeys(plan.places[turn:] + plan.places[:turn]))
    assert ordered(problem, plan, slot)[: len(places)] == places


@given(plans())
def test_second_choices_go_by_exact_added_cost_inside_the_switch_then_outside_then_full(
    drawn: tuple[fabrics.Group, Problem, Plan],
):
    _, problem, plan = drawn
    fabric = problem.topology
    inside = set(fabric.hosts_of(plan.switch))
    added = naive_added(problem, everyone_of(problem, plan))
    keys = []
    for host in names(problem, spare_order(problem, plan)):
        i = fabric.index_of(host)
        is_full = int(problem.capacity[i]) - plan.hosts.get(host, 0) <= 0
        keys.append((is_full, host not in inside, added[i]))
    assert keys == sorted(keys)


@given(plans(), st.integers(0, 8), st.data())
def test_the_order_of_the_description_changes_nothing(
    drawn: tuple[fabrics.Group, Problem, Plan], slot: int, data: st.DataObject
):
    group, problem, plan = drawn
    turned = replace(group, tree=fabrics.shuffled(data.draw, group.tree)).problem()
    other = replace(turned, pack_hosts=problem.pack_hosts)
    assert ordered(other, plan, slot) == ordered(problem, plan, slot)
    assert names(other, spare_order(other, None)) == names(problem, spare_order(problem, None))
