"""Plans of groups with wishes: what is preferred, what is required, how many are planned along."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.constraints import Bounds, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.planner import solve, solve_most, solve_sizes
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import problem_of


def plan_of(problem: Problem, *sizes: int, preferred: int = 0) -> Plan:
    answer = solve_sizes(problem, sizes, preferred)
    assert isinstance(answer, Plan)
    return answer


def refusal_of(problem: Problem, *sizes: int) -> Rejection:
    answer = solve_sizes(problem, sizes)
    assert isinstance(answer, Rejection)
    return answer


def row(topology: Topology, level: str) -> dict[str, int]:
    """Return, per host, the switch that stands for it on a level."""
    groups = topology.groups[topology.levels.index(level)].tolist()
    return dict(zip(topology.hosts, groups, strict=True))


@st.composite
def wished(draw: st.DrawFn, prefer: bool = True) -> Problem:
    """Draw a group with wishes."""
    problem = draw(fabrics.groups(max_awaiting=6)).problem()
    level = st.sampled_from([None, *problem.topology.levels])
    constraints = Constraints(
        require=draw(level),
        prefer=draw(level) if prefer else None,
        max_leaves=draw(st.none() | st.integers(1, 3)),
    )
    return replace(problem, constraints=constraints)


def test_without_wishes_as_many_vms_are_planned_as_possible():
    problem = problem_of(fabrics.two_pods())
    assert plan_of(problem, 9, 5, 3).count == 5
    assert plan_of(problem, 8, 5, 3).count == 8
    assert plan_of(problem, 9, 9, 0).count == 0


def test_what_is_preferred_comes_before_how_many_of_the_others_are_planned_along():
    # Three fit under a pod, but only two under a leaf.
    problem = problem_of(fabrics.two_pods(), Constraints(prefer="leaf"))
    plan = plan_of(problem, 3, 2, 1)
    assert plan.count == 2
    assert plan.switch in fabrics.two_pods().leaves


def test_a_preference_shrinks_no_plan_below_the_size_from_which_it_means_something():
    # Three do not fit under a leaf; a single VM always does.
    problem = problem_of(fabrics.two_pods(), Constraints(prefer="leaf"))
    for preferred in (3, 2):
        plan = plan_of(problem, 3, 1, preferred=preferred)
        assert plan.count == 3
        assert len(plan.leaves) == 2
    assert plan_of(problem, 3, 1, preferred=1).count == 1


def test_one_orphan_no_longer_defeats_a_preference():
    """Three VMs and one that may never be created; the last size is tried with it too."""
    fabric = fabrics.large_leaf_and_neighbours()
    problem = problem_of(fabric, Constraints(prefer="leaf"))
    assert plan_of(problem, 4, 3, preferred=3).leaves == {"leaf1": 3}
    # Without the preference all four are planned for, and they are nearest to each other in pod2.
    assert plan_of(problem, 4, 3, preferred=5).leaves == {"leaf2": 2, "leaf3": 2}


def test_a_single_size_is_preferred_too():
    # Without the preference the pod's last two places would cost as much as any others.
    problem = problem_of(fabrics.two_pods(), Constraints(prefer="leaf"))
    assert plan_of(problem, 2).switch in fabrics.two_pods().leaves


def test_where_what_is_preferred_cannot_be_had_the_plan_is_the_one_without_it():
    fabric = fabrics.two_pods()
    plain = plan_of(problem_of(fabric), 6, 5)
    for level in ("leaf", "pod"):
        assert plan_of(problem_of(fabric, Constraints(prefer=level)), 6, 5) == plain


def test_a_preference_falls_back_to_what_is_required_and_no_further():
    fabric = fabrics.two_pods()
    problem = problem_of(fabric, Constraints(prefer="leaf", require="pod"))
    assert plan_of(problem, 2).switch in fabric.leaves
    assert plan_of(problem, 3).switch in ("pod1", "pod2")
    refusal = refusal_of(problem, 5)
    assert (refusal.count, refusal.bounds.level) == (5, "pod")


def test_members_apart_break_a_preference_but_no_plan():
    problem = problem_of(fabrics.two_pods(), Constraints(prefer="leaf"), members={"a1": 1, "c1": 1})
    assert plan_of(problem, 2).count == 2


def test_the_last_size_is_what_must_fit_and_its_rejection_comes_back():
    problem = problem_of(fabrics.two_pods(), Constraints(require="pod", max_leaves=1))
    refusal = refusal_of(problem, 8, 5, 3)
    assert (refusal.count, refusal.bounds) == (3, Bounds("pod", None, 1))
    assert refusal.best is not None
    assert refusal.best.vms == 2
    assert "group of 3 needs one pod and at most 1 leaf" in refusal.tenant


def test_the_leaves_are_counted_under_the_preferred_switch_as_well():
    fabric = fabrics.two_pods()
    wide = problem_of(fabric, Constraints(prefer="pod", max_leaves=2))
    assert plan_of(wide, 4).switch in ("pod1", "pod2")
    assert len(plan_of(wide, 4).leaves) == 2
    narrow = problem_of(fabric, Constraints(prefer="pod", max_leaves=1))
    assert len(plan_of(narrow, 3, 2).leaves) == 1
    assert refusal_of(narrow, 3).bounds.most_leaves == 1


def test_a_level_that_the_fabric_does_not_have_is_an_error_that_names_those_it_has():
    for constraints in (Constraints(require="rack"), Constraints(prefer="rack")):
        with pytest.raises(exceptions.RequestError, match="'rack': expected one of leaf, pod"):
            solve_sizes(problem_of(fabrics.two_pods(), constraints), [1])


def test_no_size_at_all_is_an_error():
    with pytest.raises(ValueError, match="sizes"):
        solve_sizes(problem_of(fabrics.two_leaves()), [])
    with pytest.raises(ValueError, match="sizes"):
        solve_sizes(problem_of(fabrics.two_leaves(), Constraints(prefer="leaf")), [])


@given(wished(prefer=False), st.data())
def test_preferring_no_less_than_is_required_changes_nothing(problem: Problem, data: st.DataObject):
    levels, required = problem.topology.levels, problem.constraints.bounds.level
    assume(required is not None)
    wider = data.draw(st.sampled_from(levels[levels.index(str(required)) :]))
    both = replace(problem, constraints=problem.constraints.changed(prefer=wider))
    sizes = [problem.awaiting, problem.awaiting // 2]
    assert solve_sizes(both, sizes) == solve_sizes(problem, sizes)


@given(wished(), st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_a_plan_keeps_what_is_required_and_a_refusal_means_that_the_last_size_has_none(
    problem: Problem, sizes: list[int]
):
    sizes = sorted(sizes, reverse=True)
    constraints, fabric = problem.constraints, problem.topology
    answer = solve_sizes(problem, sizes)
    alone = solve(problem, sizes[-1], replace(constraints.bounds, preferred=None))
    if isinstance(answer, Rejection):
        assert answer == alone
        return
    assert isinstance(alone, Plan)
    assert answer.count in sizes
    members = {fabric.hosts[i] for i in problem.members.nonzero()[0].tolist()}
    used = members | set(answer.hosts)
    if constraints.bounds.level is not None:
        assert len({row(fabric, constraints.bounds.level)[host] for host in used}) <= 1
    if constraints.bounds.most_leaves is not None:
        assert len({fabric.leaf_of(host) for host in used}) <= constraints.bounds.most_leaves


@given(wished(), st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(0, 6))
def test_what_is_preferred_is_had_for_the_largest_size_that_can_have_it(
    problem: Problem, sizes: list[int], preferred: int
):
    sizes = sorted(sizes, reverse=True)
    constraints, levels = problem.constraints, problem.topology.levels
    bounds = constraints.bounds
    assume(bounds.preferred is not None)
    narrower = bounds.level is None or levels.index(bounds.preferred) < levels.index(bounds.level)
    assume(narrower)
    with_it = (
        solve(problem, size, replace(bounds, level=bounds.preferred))
        for size in sizes
        if size >= preferred
    )
    first = next((plan for plan in with_it if isinstance(plan, Plan)), None)
    if first is not None:
        assert solve_sizes(problem, sizes, preferred) == first
    else:
        plain = replace(problem, constraints=constraints.changed(prefer=None))
        assert solve_sizes(problem, sizes, preferred) == solve_sizes(plain, sizes)


def test_the_most_that_fit_fill_the_largest_island():
    answer = solve_most(problem_of(fabrics.islands()), 9)
    assert isinstance(answer, Plan)
    assert answer.hosts == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}


def test_the_most_that_fit_stay_on_the_island_of_the_members():
    answer = solve_most(problem_of(fabrics.islands(), members={"e1": 1}), 9)
    assert isinstance(answer, Plan)
    assert answer.hosts == {"e1": 1, "e2": 1}


def test_the_most_that_fit_are_never_more_than_were_asked_for_and_wishes_do_not_count():
    problem = problem_of(fabrics.two_pods(), Constraints(require="leaf", max_leaves=1))
    answer = solve_most(problem, 3)
    assert isinstance(answer, Plan)
    assert answer.count == 3
    assert answer == solve(problem, 3)


def test_the_most_that_fit_are_none_on_a_full_cloud():
    answer = solve_most(problem_of(fabrics.two_leaves(), capacity={}), 4)
    assert isinstance(answer, Plan)
    assert answer.places == ()


def test_members_on_two_islands_leave_no_plan_even_for_the_most_that_fit():
    answer = solve_most(problem_of(fabrics.islands(), members={"a1": 1, "e1": 1}), 2)
    assert isinstance(answer, Rejection)
    assert answer.conflict is not None


@given(fabrics.groups(), st.integers(0, 8))
def test_one_vm_more_than_fit_has_no_plan(group: fabrics.Group, count: int):
    problem = group.problem()
    answer = solve_most(problem, count)
    if isinstance(answer, Rejection):
        assert isinstance(solve(problem, 0), Rejection)
    elif answer.count < count:
        assert isinstance(solve(problem, answer.count + 1), Rejection)


def test_a_vm_that_moves_goes_where_the_most_of_those_that_follow_it_fit():
    """Four must move, and no leaf has room for all::

              core
           /        \\
        leaf1      leaf2
        a (1)      b (3)
    """
    fabric = Topology.from_tree({"core": {"leaf1": ["a"], "leaf2": ["b"]}})
    request = GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, "group"),
        host_index=None,
        room=np.array([1, 3]),
        members=np.array([0, 0]),
        left=1,
        awaiting=4,
        followers=3,
        is_move=True,
        leaving=np.array([3, 0]),
        constraints=Constraints(require="leaf"),
    )
    plan = request.decide()
    assert isinstance(plan, Plan)
    assert plan.hosts == {"b": 3}
    # New VMs of other requests affect the choice of leaf only if all of them fit.
    plan = replace(request, leaving=None, followers=0).decide()
    assert isinstance(plan, Plan)
    assert plan.hosts == {"a": 1}


def test_a_vm_that_moves_stays_with_those_that_follow_it_where_all_have_room():
    """Two must move, all hosts of their leaf but c are down::

              core
           /        \\
        leaf1      leaf2
        a, c (2)   b (2)
    """
    fabric = Topology.from_tree({"core": {"leaf1": ["a", "c"], "leaf2": ["b"]}})
    request = GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, "group"),
        host_index=None,
        room=np.array([0, 2, 2]),
        members=np.array([0, 0, 0]),
        left=1,
        awaiting=2,
        followers=1,
        is_move=True,
        leaving=np.array([1, 0, 0]),
        constraints=Constraints(require="leaf"),
    )
    plan = request.decide()
    assert isinstance(plan, Plan)
    assert plan.hosts == {"c": 2}
    plan = replace(request, room=np.array([0, 1, 2])).decide()
    assert isinstance(plan, Plan)
    assert plan.hosts == {"b": 2}


@pytest.mark.parametrize("is_move", [False, True], ids=["new", "moves"])
def test_leaves_of_hosts_that_are_down_keep_no_bound_at_least(is_move):
    """One member is placed on a, one on b, which is down; two leaves are required::

              core
           /    |    \
        leaf1 leaf2 leaf3
          a     b     c
    """
    fabric = Topology.from_tree({"core": {"leaf1": ["a"], "leaf2": ["b"], "leaf3": ["c"]}})
    request = GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, "group"),
        host_index=None,
        room=np.array([9, 0, 1]),
        members=np.array([1, 0, 0]),
        left=1,
        awaiting=1,
        is_move=is_move,
        leaving=np.array([0, 1, 0]),
        constraints=Constraints(min_leaves=2),
    )
    plan = request.decide()
    assert isinstance(plan, Plan)
    assert plan.places == ("c",)
    assert request.permitted(plan).tolist() == [False, True, True]
    refused = replace(request, room=np.array([9, 0, 0]))
    answer = refused.decide()
    assert isinstance(answer, Rejection)
    assert "at least 2 leaf switches" in refused.refusal(answer).operator
