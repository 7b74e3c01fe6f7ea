"""The order of the fabric, natural order of names, and the places of a plan in that order."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology import Topology
from hpc_sched.topology.fabric_order import in_fabric_order, natural_key
from tests.unit import fabrics, small_cases
from tests.unit.test_bounds_at_least import request_of
from tests.unit.test_plan_by_service import bare_metal

NAMES = st.text("ab-01279.", max_size=8)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("node2", "node10", id="numbers are numbers"),
        pytest.param("vm-2-10", "vm-10-2", id="the first number comes first"),
        pytest.param("vm-2b", "vm-10a", id="numbers come before the text behind them"),
        pytest.param("r1n9", "r1n10", id="the second number too"),
        pytest.param("node01", "node1", id="of equal numbers the name decides"),
        pytest.param("10", "a1", id="numbers come before texts"),
        pytest.param("n" + "9" * 5000, "n1" + "0" * 5000, id="of any length"),
    ],
)
def test_natural_order(first: str, second: str):
    assert sorted([second, first], key=natural_key) == [first, second]


@given(NAMES, NAMES)
def test_names_that_differ_have_keys_that_differ(one: str, other: str):
    assert (natural_key(one) == natural_key(other)) == (one == other)
    assert (natural_key(one) < natural_key(other)) != (natural_key(other) <= natural_key(one))


def walked(tree: Any) -> Iterator[str]:
    """Yield the hosts of nested switches, depth first by natural order."""
    for name in sorted(tree, key=natural_key):
        if isinstance(tree, dict):
            yield from walked(tree[name])
        else:
            yield name


@given(fabrics.trees(), st.data())
def test_hosts_are_in_the_order_in_which_the_tree_is_walked_whatever_the_order_of_its_description(
    tree: dict[str, Any], data: st.DataObject
):
    fabric = Topology.from_tree(fabrics.shuffled(data.draw, tree))
    chosen = data.draw(st.lists(st.integers(0, len(fabric.hosts) - 1)))
    expected = [host for host in walked(tree) for i in chosen if fabric.hosts[i] == host]
    assert [fabric.hosts[i] for i in in_fabric_order(fabric, chosen)] == expected


def test_leaves_and_hosts_that_the_description_does_not_name_are_in_the_order_of_their_names():
    """u3 and u10 are leaves of their own below the root.

    ::

                core
            /    |     \\
          t20    t3     u3, u10
        n10 n9  n1 n2
    """
    fabric = Topology.from_tree({"core": {"t20": ["n10", "n9"], "t3": ["n1", "n2"]}})
    fabric = fabric.including(["u10", "u3"])
    order = in_fabric_order(fabric, range(len(fabric.hosts)))
    assert [fabric.hosts[i] for i in order] == ["n1", "n2", "n9", "n10", "u3", "u10"]


def is_ordered(topology: Topology, places: Any) -> bool:
    """True if places are in the order of the fabric."""
    hosts = [topology.index_of(host) for host in places]
    return hosts == in_fabric_order(topology, hosts)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, int, Bounds, TimeLimit]:
    """Draw a group that is planned in any way: exactly or not, packed, spread or by MDOBP."""
    group = draw(fabrics.groups(max_awaiting=10))
    problem = replace(group.problem(), pack_hosts=draw(st.booleans()))
    if not problem.pack_hosts and draw(st.booleans()):
        usable = np.array([[4.0, 4096.0]] * len(problem.topology.hosts))
        drawn = draw(st.lists(st.integers(0, 4), min_size=len(usable), max_size=len(usable)))
        free = usable * np.array(drawn)[:, None] / 4
        packing = MDOBPInput(np.array([1.0, 512.0]), free, usable)
        problem = replace(problem, packing=packing)
    level = draw(st.sampled_from([None, *problem.topology.levels]))
    bounds = Bounds(level, None, draw(st.sampled_from([None, 2, 3])), draw(st.sampled_from([0, 2])))
    limit = draw(st.sampled_from([NO_LIMIT, TimeLimit.after(0)]))
    return problem, group.awaiting, bounds, limit


@given(problems())
def test_the_places_of_a_plan_are_in_the_order_of_the_fabric_however_it_is_made(drawn: Any):
    problem, count, bounds, limit = drawn
    answer = fabrics.only_plans(solve(problem, count, bounds, limit))
    assert is_ordered(problem.topology, answer.places)
    assert answer.hosts == Counter(answer.places)
    leaves = list(map(problem.topology.leaf_of, answer.places))
    assert (list(answer.leaves), answer.leaves) == (list(dict.fromkeys(leaves)), Counter(leaves))


@given(problems())
def test_which_places_are_taken_first_does_not_depend_on_how_many_are(drawn: Any):
    problem, count, bounds, limit = drawn
    whole = fabrics.only_plans(solve(problem, count, bounds, limit))
    before = Counter[str]()
    for now in range(count + 1):
        plan = fabrics.only_plans(solve(replace(problem, placing=now), count, bounds, limit))
        assert plan.hosts == whole.hosts
        assert is_ordered(problem.topology, plan.places[:now])
        assert is_ordered(problem.topology, plan.places[now:])
        first = Counter(plan.places[:now])
        assert first >= before
        before = first


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_a_plan_on_bare_metal_is_in_the_order_of_the_fabric(policy: str):
    planned = 0
    for seed in range(150):
        request = bare_metal(seed, policy).request()
        plan = request.decide()
        if isinstance(plan, Plan) and not request.constraints.bounds.least_leaves:
            planned += plan.count > 1
            assert is_ordered(request.topology, plan.places), f"seed {seed}"
    assert planned > 10


def test_with_a_bound_at_least_one_place_on_each_leaf_that_is_missing_comes_first():
    """Single creates use the leaves that are missing first; all others are in order behind them."""
    planned = 0
    for seed in range(400):
        case = small_cases.random_case(seed)
        request = request_of(case, left=1)
        plan = request.decide()
        if not case.min_leaves or not isinstance(plan, Plan):
            continue
        topology, used = request.topology, set(map(case.fabric.leaf_of, +Counter(case.members)))
        new = min(max(case.min_leaves - len(used), 0), plan.count)
        first = plan.places[:new]
        assert is_ordered(topology, first), f"seed {seed}"
        assert is_ordered(topology, plan.places[new:]), f"seed {seed}"
        assert len(used | set(map(topology.leaf_of, first))) == len(used) + new, f"seed {seed}"
        planned += new > 1
    assert planned > 20


def test_a_request_that_creates_the_whole_group_is_in_order_with_a_bound_at_least_too():
    planned = 0
    for seed in range(400):
        case = small_cases.random_case(seed)
        plan = request_of(case, left=case.count).decide()
        if case.min_leaves and isinstance(plan, Plan):
            planned += 1
            assert is_ordered(case.fabric, plan.places), f"seed {seed}"
    assert planned > 60


def test_vms_placed_one_after_the_other_take_what_they_take_at_once_whatever_their_slots():
    """Each takes the first of its own slots; the rest of the plan is for the others."""
    walked = 0
    for seed in range(600):
        case, dice = small_cases.random_case(seed), random.Random(seed)
        left = dice.randint(1, max(case.count, 1))
        request = request_of(case, left=left)
        plan = request.decide()
        if not isinstance(plan, Plan) or not plan.count:
            continue
        # Others of the group may be before them, and more than the plan has places for.
        slot, topology = dice.randrange(2 * plan.count), request.topology
        hosts = []
        while request.left:
            [host, *_] = request.host_order(plan, slot).tolist()
            hosts.append(host)
            request = request.after(np.bincount([host], minlength=len(request.room)))
            rest = plan.after({topology.hosts[host]: 1}, topology.leaf_of)
            assert rest is not None, f"seed {seed}"
            plan = rest
        assert hosts == in_fabric_order(topology, hosts), f"seed {seed}"
        walked += left > 1
    assert walked > 200


def test_vms_that_land_elsewhere_in_their_leaves_stay_in_order_by_leaf():
    """Some hosts lose a claim: their VM takes the next host, and what is left is planned again."""
    elsewhere = 0
    for seed in range(600):
        case, dice = small_cases.random_case(seed), random.Random(seed)
        request = request_of(case, left=case.count)
        plan = request.decide()
        if not isinstance(plan, Plan) or len(plan.leaves) < 2:
            continue
        topology, left, found, losses = request.topology, Counter(plan.leaves), [], 0
        # No VM lands in another leaf than planned, and no plan has others.
        while request.left and isinstance(plan, Plan) and Counter(plan.leaves) == left:
            order = request.host_order(plan, 0).tolist()
            wanted, is_lost = order[0], dice.random() < 0.3
            if is_lost:
                request = request.among(np.arange(len(request.room)) != order.pop(0))
            host = next(i for i in (*order, wanted) if request.room[i] or i == wanted)
            if host == wanted and is_lost:
                break
            if topology.leaf_index[host] != topology.leaf_index[wanted]:
                break
            losses += is_lost
            found.append(topology.leaf_of(topology.hosts[host]))
            left = +(left - Counter(found[-1:]))
            request = request.after(np.bincount([host], minlength=len(request.room)))
            rest = plan.after({topology.hosts[host]: 1}, topology.leaf_of)
            plan = request.decide() if is_lost or rest is None else rest
        hosts = [topology.hosts_of(leaf)[0] for leaf in found]
        assert is_ordered(topology, hosts), f"seed {seed}"
        elsewhere += losses > 0 and len(set(found)) > 1
    assert elsewhere > 20
