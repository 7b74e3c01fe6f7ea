"""A time limit that passes in the middle of a plan, at each look at the clock."""

import math
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

from hpc_sched.clock import SystemClock
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan import best_fit as best_fit_module
from hpc_sched.core.plan import planner
from hpc_sched.core.plan.exact.bound.leaf_bound import LeafBound
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import TimeLimit
from tests.turned_clock import installed
from tests.unit import small_cases
from tests.unit.fabrics import Case
from tests.unit.plan_oracle import Oracle
from tests.unit.test_leaf_bound import SHAPES, case_of


class Clock(SystemClock):
    """A clock that jumps beyond the limit after a number of looks of the thread that made it.

    Threads that tests before this one have left behind may look at the clock as well.
    """

    def __init__(self, looks: float):
        self.looks, self.seen = looks, 0
        self._thread = threading.get_ident()

    def monotonic(self) -> float:  # type: ignore[override]
        if threading.get_ident() != self._thread:
            return super().monotonic()
        self.seen += 1
        return 0.0 if self.seen <= self.looks else 2.0


def planned(case: Case, clock: Clock) -> Plan:
    """Return the plan of a case whose limit passes after some looks at the clock."""
    problem = Problem.from_counts(
        topology=case.described,
        capacity=case.capacity,
        members=case.members,
        awaiting=case.count,
        group_id=case.group_id,
    )
    with installed(clock):
        answer = planner.solve(
            replace(problem, pack_hosts=case.pack_hosts, packing=case.packing),
            case.count,
            Bounds(case.require, None, case.max_leaves, case.min_leaves),
            TimeLimit(1.0),
        )
    assert isinstance(answer, Plan)
    return answer


def check_constraints(case: Case, answer: Plan) -> None:
    """Assert that a plan places all VMs and keeps the constraints of its case."""
    assert answer.count == sum(answer.hosts.values()) == case.count
    assert all(0 < new <= case.capacity[host] for host, new in answer.hosts.items())
    fabric, everyone = case.fabric, case.together(answer.hosts)
    level = fabric.depth if case.require is None else fabric.levels.index(case.require) + 1
    tops = {int(fabric.groups[level - 1][fabric.index_of(host)]) for host in everyone}
    assert {fabric.switches[top].name for top in tops} <= {answer.switch}
    leaves = {fabric.leaf_of(host) for host in everyone}
    assert case.max_leaves is None or len(leaves) <= case.max_leaves
    here = {fabric.leaf_of(host) for host, count in case.members.items() if count}
    assert len(leaves) >= min(case.min_leaves, len(here) + case.count)


def check_each_look(case: Case) -> int:
    """Check the plans of a case for a limit at each look at the clock; return the looks."""
    best = Oracle(case).best()
    assert best is not None
    endless = Clock(math.inf)
    exact = planned(case, endless)
    assert (exact.leaves, exact.is_proven) == (best.leaves, True)
    for looks in range(endless.seen):
        answer = planned(case, Clock(looks))
        check_constraints(case, answer)
        assert not answer.is_proven or answer.hop_bytes == exact.hop_bytes
    assert planned(case, Clock(endless.seen)) == exact
    return endless.seen


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_limit_in_each_stage_of_a_bound_on_leaves(
    shape: tuple[tuple[tuple[int, ...], ...], int, int],
):
    """Without a bound, at each price, while plans are listed, and where the plan is made."""
    assert check_each_look(case_of(shape)) > 15


def test_a_limit_in_each_stage_of_random_groups():
    looks = []
    for seed in range(0, 20_000, 40):
        case = small_cases.random_case(seed)
        best = Oracle(case).best()
        if case.count and best is not None:
            looks.append(check_each_look(case))
    # Most groups have joins of tables to look at the clock between.
    assert len(looks) > 200
    assert sum(number > 5 for number in looks) > 50


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_plan_within_the_bound_is_kept_once_one_is_known(
    shape: tuple[tuple[tuple[int, ...], ...], int, int], monkeypatch: pytest.MonkeyPatch
):
    """From the first price on there is such a plan, and best fit is not needed."""
    case = case_of(shape)
    best_fit, improve = best_fit_module.best_fit, LeafBound._improve
    with_best_fit: list[int] = []
    known: list[int] = []

    def counted(*arguments: Any) -> LeafCounts:
        # The bound on leaves begins with a plan by best fit too.
        if sys._getframe(1).f_globals["__name__"].endswith("least_hop_byte"):
            with_best_fit.append(clock.looks)
        return best_fit(*arguments)

    def begun(*arguments: Any) -> bool:
        known.append(clock.seen)
        return improve(*arguments)

    monkeypatch.setattr(best_fit_module, "best_fit", counted)
    monkeypatch.setattr(LeafBound, "_improve", begun)
    clock = Clock(math.inf)
    planned(case, clock)
    [first] = known
    for looks in range(clock.seen):
        clock = Clock(looks)
        planned(case, clock)
    assert with_best_fit == list(range(first))
