"""Positive interference: pairs that gain attract each other, and never outweigh the leaf."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import plan_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.sharing import mdobp
from hpc_sched.core.sharing.cache_interference import Application, InterferenceIndex, attraction
from hpc_sched.core.sharing.mdobp import MDOBPInput
from tests.unit import fabrics


def index(*rows: tuple[str, str, float, float]) -> InterferenceIndex:
    """Return the index of rows as its file has them."""
    return InterferenceIndex(
        {
            pair: speed
            for a, b, one, other in rows
            for pair, speed in (((a, b), one), ((b, a), other))
        }
    )


def vm(name: str | None, group: str | None = "others", app_class: str = "sync") -> Application:
    return Application(app_class, name, 0.0, group)


# What the index says.


def test_lu_and_changa_gain_what_the_paper_measured():
    # Gupta2013, Figure 2a: 120 % more, and next to nothing less.
    found = index(("LU.C", "ChaNGa", 2.2, 0.98))
    assert found.attracting("LU.C", 0.1) == {"ChaNGa": pytest.approx(1.2)}
    assert found.attracting("ChaNGa", 0.1) == {"LU.C": pytest.approx(1.2)}
    assert found.attracting(None, 0.1) == found.attracting("EP.B", 0.1) == {}


@pytest.mark.parametrize(
    ("speeds", "tolerance", "gain"),
    [
        pytest.param((2.2, 1.0), 0.1, 1.2, id="one gains"),
        pytest.param((1.3, 1.2), 0.1, 0.5, id="both gain"),
        pytest.param((1.0, 1.0), 0.0, None, id="nothing changes"),
        pytest.param((1.02, 1.04), 0.1, None, id="a gain below the tolerance is noise"),
        pytest.param((1.1, 1.0), 0.1, 0.1, id="a gain of just the tolerance"),
        pytest.param((2.2, 0.91), 0.1, 1.2, id="a loss below the tolerance is noise"),
        pytest.param((2.2, 0.9), 0.1, None, id="a loss of just the tolerance"),
        pytest.param((2.2, 0.99), 0.0, None, id="any loss, where none is tolerated"),
        pytest.param((0.5, 0.5), 1.0, None, id="both lose, and much is tolerated"),
    ],
)
def test_a_pair_attracts_if_one_gains_and_none_loses(speeds, tolerance, gain):
    found = index(("A", "B", *speeds)).attracting("A", tolerance)
    assert found == ({} if gain is None else {"B": pytest.approx(gain)})


def test_an_application_may_attract_its_own_kind_in_other_groups():
    assert index(("A", "A", 1.2, 1.2)).attracting("A", 0.1) == {"A": pytest.approx(0.4)}


def test_a_pair_that_is_known_from_one_side_only_attracts_nothing():
    assert InterferenceIndex({("A", "B"): 2.0}).attracting("A", 0.1) == {}


SPEEDS = st.floats(0.01, 10.0)
ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("ABC"), SPEEDS, SPEEDS), max_size=5
)


@given(ROWS, st.floats(0.0, 1.0))
def test_what_is_kept_apart_never_attracts_and_attraction_is_mutual(rows, tolerance):
    found = index(*rows)
    apart = found.bad_company(tolerance)
    for name in found.applications:
        gains = found.attracting(name, tolerance)
        assert not set(gains) & apart.get(name, frozenset())
        assert all(gain > 0 for gain in gains.values())
        for other, gain in gains.items():
            assert found.attracting(other, tolerance)[name] == gain


# What a host's VMs say.


def test_each_application_of_others_counts_once():
    gains = {"ChaNGa": 1.2, "EP.B": 0.3}
    there = [vm("ChaNGa"), vm("ChaNGa"), vm("ChaNGa", "more"), vm("IS.B"), vm(None)]
    assert attraction(vm("LU.C", "mine"), there, gains) == pytest.approx(1.2)
    assert attraction(vm("LU.C", "mine"), [*there, vm("EP.B")], gains) == pytest.approx(1.5)
    assert attraction(vm("LU.C", "mine"), [], gains) == 0.0


def test_vms_of_the_own_group_do_not_attract():
    gains = {"ChaNGa": 1.2}
    assert attraction(vm("LU.C", "mine"), [vm("ChaNGa", "mine")], gains) == 0.0
    # Without a group nobody belongs to it.
    assert attraction(vm("LU.C", None), [vm("ChaNGa", None)], gains) == pytest.approx(1.2)


# What MDOBP makes of it.


def test_bad_company_of_other_groups_ends_the_attraction_of_a_host():
    gains, bad = {"ChaNGa": 1.2}, {"IS.B"}
    both = [vm("ChaNGa"), vm("IS.B")]
    assert attraction(vm("LU.C", "own"), both, gains) == 1.2
    assert attraction(vm("LU.C", "own"), both, gains, bad) == 0.0
    assert attraction(vm("LU.C", "own"), [both[0], vm("IS.B", "own")], gains, bad) == 1.2


def of(free: Sequence[Sequence[float]], attracted: Sequence[float] | None = None) -> MDOBPInput:
    return MDOBPInput(
        demand=np.array([1.0, 1024.0]),
        free=np.array(free, dtype=float),
        usable=np.array([(4.0, 4096.0)] * len(free)),
        attraction=None if attracted is None else np.array(attracted),
    )


def order(packing: MDOBPInput, members: Sequence[int] = ()) -> list[int]:
    count = len(packing.free)
    there = np.array(members or [0] * count)
    return mdobp.order(packing, there, np.arange(count)).tolist()


def test_attraction_comes_before_the_angle_and_the_greatest_first():
    crooked, straight = (4, 1024), (4, 4096)
    assert order(of([crooked, straight, crooked])) == [1, 0, 2]
    assert order(of([crooked, straight, crooked], [0.1, 0.0, 1.2])) == [2, 0, 1]


def test_a_soft_policy_of_the_group_comes_before_attraction():
    hosts = [(4, 4096)] * 3
    spread = replace(of(hosts, [1.2, 0.0, 0.0]), members_first=-1)
    assert order(spread, [1, 1, 0]) == [2, 0, 1]
    assert order(replace(spread, members_first=1), [1, 2, 0]) == [1, 0, 2]


def test_attractions_that_differ_in_the_seventh_decimal_are_equal():
    assert order(of([(4, 4096), (2, 2048)], [1.2000000001, 1.2])) == [1, 0]


@given(fabrics.groups(), st.data())
def test_the_leaves_of_a_plan_are_the_same_with_any_attraction(group, data):
    """Nor does it change the order of the leaves in which one more VM is tried."""
    free = group.problem()
    count = len(free.topology.hosts)
    numbers = st.lists(st.floats(0.0, 5.0), min_size=count, max_size=count)
    problem = replace(free, pack_hosts=False, packing=of([(4, 4096)] * count))
    assume(group.awaiting > 0)
    plain = solve(problem, group.awaiting)
    attracted = replace(problem, packing=of([(4, 4096)] * count, data.draw(numbers)))
    found = solve(attracted, group.awaiting)
    assert isinstance(found, Plan) == isinstance(plain, Plan)
    if not isinstance(plain, Plan) or not isinstance(found, Plan):
        return
    assert found.leaves == plain.leaves
    assert by_leaf(problem, found) == by_leaf(problem, plain)
    for slot in range(group.awaiting):
        assert leaves_in_order(attracted, found, slot) == leaves_in_order(problem, plain, slot)


def by_leaf(problem: Problem, answer: Plan) -> Counter[str]:
    return Counter(problem.topology.leaf_of(host) for host in answer.places)


def leaves_in_order(problem: Problem, answer: Plan, slot: int) -> list[int]:
    """Return the leaves by the first of their hosts with room in the order for one VM."""
    hosts = plan_order(problem, answer, slot=slot)
    leaves = problem.topology.leaf_index[hosts[problem.capacity[hosts] > 0]]
    return list(dict.fromkeys(leaves.tolist()))
