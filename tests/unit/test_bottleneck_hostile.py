"""Plans of least bottleneck for sizes, capacities and limits that no site has."""

import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hpc_sched.core.constraints import UNBOUND, Bounds
from hpc_sched.core.plan.bottleneck.counts.least_bottleneck import least_bottleneck
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT, Limit, StepLimit
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import Capacities
from tests import cpu_guard
from tests.unit import bottleneck_cases
from tests.unit.bottleneck_oracle import BottleneckOracle

MOST_SECONDS, MOST_BYTES = 20, 200 << 20


def pods(number: int, leaves: int, hosts: int) -> Topology:
    """Return three full levels, as many leaves below each pod, as many hosts below each leaf."""
    return Topology.from_tree(
        {
            "core": {
                f"p{p}": {
                    f"p{p}-l{leaf}": [f"p{p}-l{leaf}-h{host}" for host in range(hosts)]
                    for leaf in range(leaves)
                }
                for p in range(number)
            }
        }
    )


def always(number: int) -> Callable[[int], int]:
    return lambda index: number


def drawn(most: int) -> Callable[[int], int]:
    return lambda index: (index * 2654435761 >> 7) % most


def problem_of(
    topology: Topology,
    *,
    room: Callable[[int], int],
    count: int,
    uplinks: Callable[[int], int],
    links: Callable[[int], int],
    tradeoff: Fraction | None = None,
    members: Mapping[str, int] | None = None,
) -> Problem:
    """Return a problem; room and capacities by index."""
    made = Problem.from_counts(
        topology=topology,
        capacity={host: room(i) for i, host in enumerate(topology.hosts)},
        members=members or {},
        awaiting=count,
    )
    of_switches = [
        uplinks(i) if switch.parent >= 0 else 0 for i, switch in enumerate(topology.switches)
    ]
    of_hosts = [links(i) for i in range(len(topology.hosts))]
    capacities = Capacities(np.array(of_switches), np.array(of_hosts))
    return replace(made, objective=LeastBottleneck(capacities, tradeoff))


def within_limits(
    problem: Problem, bounds: Bounds = UNBOUND, limit: Limit = NO_LIMIT
) -> Plan | Rejection:
    """Return the answer, after an assertion that it took bounded time and memory.

    No more memory than 200 MB, or than the plan of least Hop-Byte where that takes more.
    """
    tracemalloc.start()
    try:
        with cpu_guard.ends(MOST_SECONDS):
            answer = solve(problem, problem.awaiting, bounds, limit)
        peak = tracemalloc.get_traced_memory()[1]
        if peak >= MOST_BYTES:
            tracemalloc.reset_peak()
            solve(replace(problem, objective=None), problem.awaiting, bounds, limit)
            assert peak <= tracemalloc.get_traced_memory()[1] * 1.05
    finally:
        tracemalloc.stop()
    if isinstance(answer, Plan):
        assert_valid(problem, answer)
    return answer


def assert_valid(problem: Problem, answer: Plan) -> None:
    """Assert that a plan has all VMs, and keeps the room."""
    topology = problem.topology
    assert sum(answer.hosts.values()) == problem.awaiting == len(answer.places)
    assert Counter(answer.places) == answer.hosts
    for host, vms in answer.hosts.items():
        assert 1 <= vms <= problem.capacity[topology.index_of(host)]


SMALL = pods(4, 4, 8)
FEW_HUGE = pods(4, 8, 4)
TENTH = Fraction(1, 10)
CASES: dict[str, Callable[[], Problem]] = {
    "huge capacities": lambda: problem_of(
        SMALL, room=always(1), count=50, uplinks=always(10**9), links=always(10**9), tradeoff=TENTH
    ),
    "capacities without a common divisor": lambda: problem_of(
        SMALL,
        room=drawn(3),
        count=40,
        uplinks=lambda i: 10**9 - 7 * i - 1,
        links=lambda i: 10**9 - 3 * i,
        tradeoff=TENTH,
    ),
    "a narrow link next to a wide one": lambda: problem_of(
        SMALL, room=always(2), count=100, uplinks=lambda i: 1 if i % 3 else 10**9, links=always(1)
    ),
    "a million VMs": lambda: problem_of(
        pods(2, 2, 4), room=always(1 << 17), count=1 << 20, uplinks=always(100), links=always(10)
    ),
    "a million VMs with a trade-off": lambda: problem_of(
        pods(2, 2, 4),
        room=always(1 << 17),
        count=1 << 20,
        uplinks=always(100),
        links=always(10),
        tradeoff=TENTH,
    ),
    "more than a thousand leaves": lambda: problem_of(
        pods(20, 55, 1),
        room=lambda i: 1 + i % 3,
        count=128,
        uplinks=lambda i: 100 + i % 5,
        links=always(10),
        tradeoff=TENTH,
    ),
    "all links of another capacity": lambda: problem_of(
        pods(6, 60, 1),
        room=always(1),
        count=200,
        uplinks=lambda i: 10_000 + i,
        links=lambda i: 1_000 + i,
    ),
    "a single leaf": lambda: problem_of(
        Topology.from_tree({"leaf": [f"h{i}" for i in range(300)]}),
        room=lambda i: 1 + i % 9,
        count=200,
        uplinks=always(1),
        links=lambda i: 10 + i % 97,
    ),
    "hosts with room for all, and a member behind a narrow link": lambda: problem_of(
        FEW_HUGE,
        room=lambda i: 2000 + i % 3,
        count=2000,
        uplinks=always(1000),
        links=lambda i: 1000 if i else 1,
        members={"p0-l0-h0": 10, "p1-l0-h0": 1, "p2-l0-h0": 5},
    ),
    "thousands of VMs with a trade-off": lambda: problem_of(
        pods(8, 8, 16),
        room=drawn(11),
        count=2500,
        uplinks=lambda i: [400, 800, 300][i % 3],
        links=always(100),
        tradeoff=Fraction(1, 20),
    ),
    "members that are worse than any plan": lambda: problem_of(
        SMALL,
        room=always(2),
        count=64,
        uplinks=always(3),
        links=always(1),
        tradeoff=Fraction(0),
        members={"p0-l0-h0": 100, "p1-l0-h0": 3},
    ),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.ci] * ("million" in case)) for case in CASES],
)
def test_any_size_has_a_valid_plan_in_bounded_time_and_memory(case: str):
    assert isinstance(within_limits(CASES[case]()), Plan)


def test_members_that_break_all_bounds_are_a_rejection():
    problem = CASES["members that are worse than any plan"]()
    for bounds in (Bounds("leaf"), Bounds("pod"), Bounds(None, None, 1)):
        assert isinstance(within_limits(problem, bounds), Rejection)
    assert isinstance(within_limits(problem, Bounds(None, None, 2)), Plan | Rejection)


@pytest.mark.parametrize("count", [0, 1])
def test_a_group_of_no_more_than_one_vm_has_the_plan_of_least_hop_byte(count: int):
    problem = problem_of(
        SMALL, room=drawn(3), count=count, uplinks=drawn(7), links=always(1), tradeoff=TENTH
    )
    assert solve(problem, count) == solve(replace(problem, objective=None), count)


@pytest.mark.parametrize("capacities", [range(10_000, 10_400), range(1, 10**9, 10**7), [7]])
def test_few_bottlenecks_are_tried_however_many_capacities_there_are(capacities: Sequence[int]):
    tried, bound = [], Fraction(2_345, 11)

    def is_possible(bottleneck: Fraction) -> bool:
        tried.append(bottleneck)
        return bottleneck >= bound

    found = least_bottleneck(500, capacities, is_possible)
    all_ = (Fraction(k * (500 - k), c) for c in capacities for k in range(1, 251))
    assert found == min(filter(bound.__le__, all_), default=Fraction(250 * 250, min(capacities)))
    assert len(tried) <= 2.5 * math.log2(250 * len(capacities)) + 2


def test_a_valid_plan_comes_back_whatever_the_step_at_which_the_limit_passes():
    seen = Counter[str]()
    for seed in range(40):
        linked = bottleneck_cases.random_case(seed)
        within = linked.answer()
        oracle = BottleneckOracle(linked)
        best = oracle.best()
        if best is None:
            assert linked.answer(StepLimit(0)) == within
            continue
        for steps in range(10_000):
            limit = StepLimit(steps)
            answer = linked.answer(limit)
            assert isinstance(answer, Plan)
            assert oracle.is_feasible(answer.hosts), (seed, steps)
            bottleneck, harm, cost = oracle.of_plan(dict(answer.hosts))
            if answer.is_proven:
                assert (bottleneck, cost) == (best.bottleneck, best.cost), (seed, steps)
                assert best.most_harm is None or harm <= best.most_harm, (seed, steps)
            seen[f"proven: {answer.is_proven}"] += 1
            if not limit.has_passed():
                break
        assert answer == within
    assert min(seen.values()) >= 50, seen
