"""Where one VM may be so that it, and those that follow it, keep the constraints of the group."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Constraints, level_of
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import hosts_of_one
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology.model import Topology

#          core1            core2
#        /       \            |
#     leaf1     leaf2       leaf3
#     a b       c d         e f
ISLANDS = Topology.from_tree(
    {"core1": {"leaf1": ["a", "b"], "leaf2": ["c", "d"]}, "core2": {"leaf3": ["e", "f"]}}
)


def keeps(problem: Problem, vms: dict[int, int]) -> bool:
    """True if VMs on hosts, with the members, keep the bounds and are on one island."""
    topology, bounds = problem.topology, problem.constraints.bounds
    used = sorted({*vms, *np.flatnonzero(problem.members).tolist()})
    group = topology.groups[level_of(topology, bounds.level) - 1]
    leaves = set(topology.leaf_index[used].tolist())
    return len(set(group[used].tolist())) <= 1 and (
        bounds.most_leaves is None or len(leaves) <= bounds.most_leaves
    )


def by_brute_force(problem: Problem, count: int) -> list[bool]:
    hosts = range(len(problem.topology.hosts))
    found = []
    for own in hosts:
        room = problem.capacity.copy()
        if count > 1:
            room[own] -= 1
        rests = itertools.combinations_with_replacement(hosts, count - 1)
        found.append(
            bool((room >= 0).all())
            and any(
                all(rest.count(host) <= room[host] for host in rest)
                and keeps(problem, {own: 1, **dict.fromkeys(rest, 1)})
                for rest in rests
            )
        )
    return found


@given(
    capacity=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    members=st.lists(st.sampled_from([0, 0, 0, 1]), min_size=6, max_size=6),
    count=st.integers(1, 4),
    require=st.sampled_from([None, "leaf", "pod"]),
    most=st.sampled_from([None, 1, 2]),
)
def test_a_vm_may_be_where_it_and_its_followers_keep_the_constraints(
    capacity: list[int], members: list[int], count: int, require: str | None, most: int | None
):
    problem = Problem(
        topology=ISLANDS,
        capacity=np.array(capacity),
        members=np.array(members),
        awaiting=count,
        tie=TieOrder(ISLANDS, "group"),
        constraints=Constraints(require=require, max_leaves=most),
    )
    if not keeps(problem, {}):
        return
    found = hosts_of_one(problem, count)
    expected = by_brute_force(problem, count)
    has_room = problem.capacity > 0
    for host in range(len(found)):
        if count == 1 or (has_room[host] and not problem.members.any()):
            assert found[host] == expected[host]
        elif has_room[host] and expected[host]:
            # Members fix the switch: which of them can follow is seen when they move.
            assert found[host]


@pytest.mark.parametrize("constraints", [Constraints(require="leaf"), Constraints()])
def test_a_vm_that_nobody_follows_may_be_below_any_switch(constraints: Constraints):
    request = GroupRequest(
        topology=ISLANDS,
        tie=TieOrder(ISLANDS, "group"),
        host_index=None,
        room=np.array([1, 1, 1, 0, 1, 1]),
        members=np.zeros(6, dtype=np.int64),
        left=1,
        awaiting=1,
        constraints=constraints,
    )
    plan = request.decide()
    assert isinstance(plan, Plan)
    assert request.permitted(plan).all()
    # With another one to follow only where there is room for both, wherever the plan is.
    moving = replace(request, awaiting=2, followers=1, is_move=True)
    plan = moving.decide()
    assert isinstance(plan, Plan)
    allowed = [host for host, is_in in zip("abcdef", moving.permitted(plan), strict=True) if is_in]
    # Without constraints it is never refused.
    assert allowed == (list("abef") if constraints.bind_place else list("abcdef"))
