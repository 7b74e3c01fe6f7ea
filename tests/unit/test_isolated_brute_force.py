"""The plan of an isolated group against every other way to place it."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import StepLimit
from hpc_sched.topology import Topology
from tests.unit import bottleneck_cases
from tests.unit.bottleneck_oracle import BottleneckOracle
from tests.unit.plan_oracle import Array

SEEDS = 20_000
SIZES = [
    600,
    pytest.param(
        SEEDS, marks=pytest.mark.nightly("planner", "twenty thousand exhaustive searches")
    ),
]


def used_by_others(seed: int, topology: Topology) -> Array:
    """Return whether others use the uplinks of each switch: of no root, and of any other one."""
    draw = random.Random(f"used uplinks {seed}")
    share = draw.choice([0.0, 0.2, 0.4, 0.8])
    return np.array(
        [switch.parent >= 0 and draw.random() < share for switch in topology.switches], dtype=bool
    )


def isolated_problem(seed: int) -> tuple[bottleneck_cases.LinkedCase, Problem]:
    linked = bottleneck_cases.random_case(seed)
    problem = linked.problem()
    return linked, replace(problem, objective=Isolation(used_by_others(seed, problem.topology)))


def bounds_of(linked: bottleneck_cases.LinkedCase) -> Bounds:
    case = linked.case
    return Bounds(case.require, None, case.max_leaves, case.min_leaves)


def apart(problem: Problem, oracle: BottleneckOracle, ways: Array) -> Array:
    """Return which plans use no uplink of others. Shape (plans,)."""
    below = (ways + oracle.members) @ oracle.below
    is_used = {
        switch.name: used
        for switch, used in zip(problem.topology.switches, problem.objective.is_used, strict=True)
    }
    forbidden = np.array([is_used[name] for name in oracle.switches], dtype=bool)
    crossing = (below > 0) & (below < oracle.group)
    return ~(crossing & forbidden).any(axis=1)


def differences(seed: int, kinds: Counter[str]) -> Iterator[str]:
    """Yield in what the answer for a random group is wrong."""
    linked, problem = isolated_problem(seed)
    if not linked.case.count:
        return
    oracle = BottleneckOracle(linked)
    ways = oracle.feasible()
    good = ways[apart(problem, oracle, ways)]
    answer = solve(problem, linked.case.count, bounds_of(linked))
    if isinstance(answer, Rejection) or not len(good):
        kinds["isolated rejection" if len(ways) else "rejection"] += 1
        if len(good) or isinstance(answer, Plan):
            yield f"{answer}, expected {len(good)} plans"
        elif answer.is_isolated != (len(ways) > 0):
            yield f"{answer.is_isolated} of {len(ways)} plans that are not isolated"
        return
    by_leaf, costs = good @ oracle.in_leaf, oracle.costs(good)
    best, _ = oracle.first(by_leaf, [("cost", costs)])
    way = [answer.hosts.get(host, 0) for host in oracle.hosts]
    [mine] = np.flatnonzero((good == way).all(axis=1))
    free, _ = oracle.first(ways @ oracle.in_leaf, [("cost", oracle.costs(ways))])
    kinds["plan"] += 1
    kinds["isolation decides"] += not apart(problem, oracle, ways)[free]
    if costs[mine] != costs[best]:
        yield f"cost {costs[mine]}, expected {costs[best]}"
    # Bounds on leaves have an order of equals of their own.
    elif not linked.bounds_leaves and answer.leaves != oracle.named(by_leaf[best]):
        yield f"leaves {answer.leaves}, expected {oracle.named(by_leaf[best])}"


@pytest.mark.parametrize("number", SIZES)
def test_an_isolated_group_has_the_least_cost_of_all_plans_without_uplinks_of_others(number: int):
    kinds: Counter[str] = Counter()
    found = [
        f"seed {seed}: {difference}"
        for seed in range(0, SEEDS, SEEDS // number)
        for difference in differences(seed, kinds)
    ]
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:10])
    assert kinds["plan"] > number / 3
    assert kinds["isolated rejection"] > number / 20
    assert kinds["isolation decides"] > number / 100


def test_the_largest_group_of_a_rejection_is_the_largest_that_has_a_plan():
    checked = 0
    for seed in range(400):
        linked, problem = isolated_problem(seed)
        if linked.bounds_leaves or linked.case.require is not None:
            continue
        answer = solve(problem, linked.case.count)
        if not isinstance(answer, Rejection) or not answer.is_isolated:
            continue
        fits = [
            count
            for count in range(1, int(problem.capacity.sum()) + 1)
            if isinstance(solve(replace(problem, awaiting=count), count), Plan)
        ]
        assert answer.best is not None
        assert answer.best.vms == max(fits, default=0), seed
        checked += 1
    assert checked > 15


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_a_limit_leaves_an_isolated_plan_as_long_as_there_is_any(steps: int):
    for seed in range(60):
        linked, problem = isolated_problem(seed)
        if not linked.case.count:
            continue
        oracle = BottleneckOracle(linked)
        ways = oracle.feasible()
        good = ways[apart(problem, oracle, ways)]
        answer = solve(problem, linked.case.count, bounds_of(linked), StepLimit(steps))
        if isinstance(answer, Plan):
            way = [answer.hosts.get(host, 0) for host in oracle.hosts]
            assert (good == way).all(axis=1).any(), seed
        else:
            # With bounds on leaves besides, a plan may not be found in time.
            assert not len(good) or linked.bounds_leaves, seed


def test_the_uplinks_of_a_group_are_those_above_a_part_of_its_vms():
    """::

               core
            /        \\
          pod1       pod2
         /    \\        |
      leaf1  leaf2   leaf3
      a1 a2  b1 b2   c1 c2
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"]},
                "pod2": {"leaf3": ["c1", "c2"]},
            }
        }
    )

    def used(*groups: dict[str, int]) -> set[str]:
        found = used_uplinks(fabric, groups)
        return {fabric.switches[s].name for s in np.flatnonzero(found)}

    assert used() == set()
    assert used({"a1": 3, "a2": 1}) == set()
    assert used({"a1": 1, "b2": 1}) == {"leaf1", "leaf2"}
    assert used({"a1": 1, "c2": 1}) == {"leaf1", "leaf3", "pod1", "pod2"}
    assert used({"a1": 1, "a2": 1}, {"b1": 1, "a2": 5}) == {"leaf1", "leaf2"}
