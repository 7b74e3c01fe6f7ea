"""Decisions whose time limit has passed: guarantees hold, and a "no" is proven."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.constraints.server_group_policy import hard_policy, keeps
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan import best_fit as best_fit_module
from hpc_sched.core.plan.best_fit import best_fit
from hpc_sched.core.plan.planner import solve_most, solve_sizes
from hpc_sched.core.plan.problem import LeafCounts, Problem, leaf_sums
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.plan.time_limit import NO_LIMIT, StepLimit, TimeLimit, TimeLimitPassed
from hpc_sched.topology import Topology
from tests.turned_clock import TurnedClock
from tests.unit import fabrics

PASSED = TimeLimit.after(0)


def test_a_limit_passes_when_its_time_is_over(turned_clock: TurnedClock):
    limit = TimeLimit.after(2.5)
    assert not limit.has_passed()
    limit.check()
    turned_clock.turn(2.25)
    assert not limit.has_passed()
    turned_clock.turn(0.25)
    for passed in (limit, TimeLimit.after(0)):
        assert passed.has_passed()
        with pytest.raises(TimeLimitPassed):
            passed.check()


def test_a_limit_of_steps_passes_after_their_number(turned_clock: TurnedClock):
    limit = StepLimit(2)
    for _ in range(2):
        assert not limit.has_passed()
        turned_clock.turn(1e300)
        limit.check()
    assert limit.has_passed()
    with pytest.raises(TimeLimitPassed):
        limit.check()


def test_without_a_limit_no_time_passes(turned_clock: TurnedClock):
    limits = (NO_LIMIT, TimeLimit.after(None))
    turned_clock.turn(1e300)
    for limit in limits:
        assert not limit.has_passed()
        limit.check()


def test_a_plan_after_the_limit_says_so_and_so_does_its_rest():
    problem = fabrics.problem_of(fabrics.two_pods(), awaiting=3)
    plan = solve_sizes(problem, [3], limit=PASSED)
    assert isinstance(plan, Plan)
    assert not plan.is_proven
    rest = plan.after({plan.places[0]: 1}, problem.topology.leaf_of)
    assert rest is not None
    assert not rest.is_proven
    within = solve_sizes(problem, [3])
    assert isinstance(within, Plan)
    assert within.is_proven


def test_the_preferred_level_comes_first_after_the_limit_too():
    problem = fabrics.problem_of(fabrics.two_pods(), Constraints(prefer="pod"))
    plan = solve_sizes(problem, [5, 4], limit=PASSED)
    assert isinstance(plan, Plan)
    assert plan.count == 4
    assert plan.switch in {"pod1", "pod2"}


def test_the_most_that_fits_on_one_island_is_planned_after_the_limit_too():
    plan = solve_most(fabrics.problem_of(fabrics.islands()), 9, PASSED)
    assert isinstance(plan, Plan)
    assert (plan.count, plan.is_proven) == (4, False)


FABRIC = fabrics.two_pods()


@st.composite
def requests(draw: st.DrawFn) -> GroupRequest:
    """Draw a group with or without a policy, on nodes of few services below two pods."""
    nodes = [host for host in FABRIC.hosts if draw(st.integers(0, 3))] or ["a1"]
    places = [(draw(st.sampled_from("xyz")), node) for node in nodes]
    index = np.array([FABRIC.index_of(node) for node in nodes])
    policy = draw(st.sampled_from([None, "affinity", "anti-affinity"]))
    most = draw(st.integers(1, 3)) if policy == "anti-affinity" else None
    on = draw(st.none() | st.sampled_from(places))
    members = np.zeros(len(FABRIC.hosts), dtype=np.int64)
    if on is not None:
        members[FABRIC.index_of(on[1])] = 1
    left = draw(st.integers(1, 4))
    there = {} if on is None else {on: 1}
    return GroupRequest(
        topology=FABRIC,
        tie=TieOrder(FABRIC, draw(st.sampled_from("abc"))),
        host_index=index,
        room=np.array([draw(st.integers(0, 2)) for _ in nodes]),
        members=members,
        left=left,
        awaiting=left + draw(st.integers(0, 2)),
        constraints=Constraints(
            require=draw(st.sampled_from([None, *FABRIC.levels])),
            prefer=draw(st.sampled_from([None, "leaf"])),
            max_leaves=draw(st.none() | st.integers(1, 3)),
        ),
        server_group_policy=policy,
        hard_policy=hard_policy(policy, most, there, places, FABRIC.leaf_index[index]),
    )


@given(requests())
def test_a_decision_after_the_limit_refuses_what_one_without_refuses_and_keeps_the_policy(group):
    exact, quick = group.decide(), group.decide(PASSED)
    assert isinstance(exact, Rejection) == isinstance(quick, Rejection)
    if isinstance(quick, Rejection):
        assert quick == exact
        return
    assert isinstance(exact, Plan)
    assert exact.is_proven
    if quick.count == exact.count:
        assert quick.hop_bytes >= exact.hop_bytes
    constraints, topology = group.constraints, group.topology
    everyone = np.flatnonzero(group.members + group.per_host(group.per_hypervisor(quick)))
    if constraints.bounds.level is not None:
        level = topology.levels.index(constraints.bounds.level)
        assert len(np.unique(topology.groups[level][everyone])) <= 1
    if constraints.bounds.most_leaves is not None:
        assert len(np.unique(topology.leaf_index[everyone])) <= constraints.bounds.most_leaves
    if group.hard_policy is not None:
        assert keeps(group.hard_policy, group.per_hypervisor(quick))


def test_a_plan_that_breaks_the_policy_is_no_reason_for_a_refusal(monkeypatch):
    """Five VMs in two of three leaves, one VM a service; only the best plan may keep that::

             core
          /   |   \\
         a    b    c
        3x   1x   6y      the nodes with their services
        4z   2z   7v
        5w
    """
    topology = Topology.from_tree(
        {"core": {"a": ["3x", "4z", "5w"], "b": ["1x", "2z"], "c": ["6y", "7v"]}}
    )
    a, b = topology.switch_index("a"), topology.switch_index("b")
    places = [(node[1], node) for node in topology.hosts]

    def on_a_and_b(problem: Problem, *arguments: Any) -> LeafCounts:
        room = leaf_sums(problem, problem.capacity)
        if room[a] < 3 or room[b] < 2:
            return best_fit(problem, *arguments)
        return LeafCounts(topology.switch_index("core"), {a: 3, b: 2}, is_proven=False)

    monkeypatch.setattr(best_fit_module, "best_fit", on_a_and_b)
    plans = 0
    for seed in range(8):
        group = GroupRequest(
            topology=topology,
            tie=TieOrder(topology, str(seed)),
            host_index=None,
            room=np.ones(7, dtype=np.int64),
            members=np.zeros(7, dtype=np.int64),
            left=5,
            awaiting=5,
            constraints=Constraints(max_leaves=2),
            server_group_policy="anti-affinity",
            hard_policy=hard_policy("anti-affinity", 1, {}, places, topology.leaf_index),
        )
        exact = group.decide()
        assert group.decide(PASSED) == exact
        plans += isinstance(exact, Plan)
    assert plans
