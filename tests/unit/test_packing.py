"""MDOBP: the host whose free resources are shaped like the VM (Gupta2013)."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.ranking import plan_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.sharing import mdobp
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology.model import Topology

SMALL, LARGE = (1, 512), (1, 3072)


def of(
    demand: Sequence[float],
    free: Sequence[Sequence[float]],
    usable: Sequence[float] = (4, 4096),
    members_first: int = 0,
) -> MDOBPInput:
    """Return a packing of hosts that are alike while they are empty."""
    return MDOBPInput(
        demand=np.array(demand, dtype=float),
        free=np.array(free, dtype=float),
        usable=np.array([usable] * len(free), dtype=float),
        members_first=members_first,
    )


def nobody(hosts: int) -> np.ndarray:
    return np.zeros(hosts, dtype=np.int64)


def ordered(chosen: MDOBPInput, members: Sequence[int] | None = None) -> list[int]:
    """Return the hosts, the best first; names are in the order of the hosts."""
    count = len(chosen.free)
    there = nobody(count) if members is None else np.array(members)
    return mdobp.order(chosen, there, np.arange(count)).tolist()


def placed(chosen: MDOBPInput, count: int, capacity: Sequence[int]) -> list[int]:
    hosts = np.arange(len(chosen.free))
    room = np.array(capacity)
    return mdobp.places(chosen, nobody(len(hosts)), hosts, room, hosts, count)


def test_figure_1_of_the_paper_puts_two_small_vms_on_each_host():
    assert placed(of(SMALL, [(4, 4096), (4, 4096)]), 4, [4, 4]) == [0, 1, 0, 1]


def test_the_smallest_angle_wins_over_the_fuller_host():
    # As much memory for each processor as the VM wants: the second host.
    assert ordered(of((1, 1024), [(1, 4096), (4, 4096), (4, 1024)])) == [1, 0, 2]


def test_of_equal_angles_the_fuller_host_comes_first_then_the_name():
    half, quarter, whole = (2, 2048), (1, 1024), (4, 4096)
    assert ordered(of((1, 1024), [whole, half, quarter, half])) == [2, 1, 3, 0]


def test_memory_reserved_for_the_host_does_not_tilt_the_angle():
    # 4 cores; 4 GB of which the host keeps 1: shares of what VMs can have, not of the totals.
    chosen = of((1, 768), [(4, 3072), (2, 1536)], usable=(4, 3072))
    assert ordered(chosen) == [1, 0]


@pytest.mark.parametrize(("members_first", "expected"), [(1, [2, 1, 0]), (-1, [0, 1, 2])])
def test_a_soft_policy_of_the_group_comes_before_the_angle(members_first: int, expected):
    chosen = of((1, 1024), [(4, 1024), (4, 4096), (1, 4096)], members_first=members_first)
    assert ordered(chosen, members=[0, 1, 2]) == expected


def test_a_group_that_would_rather_be_spread_gets_another_host_each_time():
    spread = of(SMALL, [(4, 4096)] * 3, members_first=-1)
    assert placed(spread, 4, [4, 4, 4]) == [0, 1, 2, 0]
    assert placed(replace(spread, members_first=1), 4, [4, 4, 4]) == [0, 0, 0, 0]


def test_a_resource_that_a_host_cannot_give_has_no_share():
    chosen = of((1, 512), [(0, 0), (0, 4096)], usable=(0, 4096))
    assert ordered(chosen) == [1, 0]
    assert ordered(of((0, 0), [(4, 4096), (2, 2048)])) == [1, 0]


def test_cosines_that_differ_in_the_seventh_decimal_are_equal():
    # The second is nearer by 1e-9, the first fuller.
    assert ordered(of((1, 1024), [(2, 2048.1), (4, 4096)])) == [0, 1]


def test_a_plan_takes_the_places_inside_a_leaf_that_mdobp_would_take():
    """Two leaves of two hosts.

    ::

            root
           /    \\
          a      b
        a1 a2  b1 b2
    """
    fabric = Topology.from_tree({"root": {"a": ["a1", "a2"], "b": ["b1", "b2"]}})
    problem = replace(
        Problem.from_counts(
            topology=fabric,
            capacity={"a1": 1, "b1": 4, "b2": 4},
            members={},
            awaiting=4,
        ),
        pack_hosts=False,
        packing=of(SMALL, [(4, 4096)] * 4),
    )
    answer = solve(problem, 4)
    assert isinstance(answer, Plan)
    assert answer.places == ("b1", "b1", "b2", "b2")
    first = [fabric.hosts[i] for i in plan_order(problem, answer, slot=2)]
    assert first[:2] == ["b2", "b1"]
    # Once b1 has one, MDOBP goes on with the rest.
    rest = answer.after({"b1": 1}, fabric.leaf_of)
    assert rest is not None
    assert rest.places == ("b1", "b2", "b2")


# Free processors and memory, room, and attraction.
HOSTS = st.lists(
    st.tuples(
        st.integers(0, 16),
        st.integers(0, 32),
        st.integers(1, 5),
        st.sampled_from([0.0, 0.0, 0.3, 1.2]),
    ),
    min_size=1,
    max_size=6,
)


@given(HOSTS, st.tuples(st.integers(1, 4), st.integers(1, 8)), st.integers(-1, 1))
def test_places_are_those_of_asking_for_the_best_host_vm_by_vm(hosts, demand, members_first):
    free = [(cpu, memory) for cpu, memory, *_ in hosts]
    capacity = [most for _, _, most, _ in hosts]
    attraction = [attracted for *_, attracted in hosts]
    chosen = of(demand, free, usable=(16, 32), members_first=members_first)
    chosen = replace(chosen, attraction=np.array(attraction))
    count = sum(capacity)
    expected: list[int] = []
    taken = [0] * len(hosts)
    for _ in range(count):
        open_ = [i for i in range(len(hosts)) if taken[i] < capacity[i]]
        best = min(
            open_,
            key=lambda i: by_hand(free[i], demand, taken[i], members_first, attraction[i], i),
        )
        expected.append(best)
        taken[best] += 1
    assert placed(chosen, count, capacity) == expected


def by_hand(free, demand, taken, members_first, attraction, name):
    """Return the sort key of a host, written out for two resources."""
    left = [
        max(have - taken * want, 0) / usable
        for have, want, usable in zip(free, demand, (16, 32), strict=True)
    ]
    wants = [want / usable for want, usable in zip(demand, (16, 32), strict=True)]
    lengths = math.hypot(*left) * math.hypot(*wants)
    dot = sum(a * b for a, b in zip(left, wants, strict=True))
    cosine = round(dot / lengths, 6) if lengths else 0.0
    return -members_first * taken, -attraction, -cosine, round(sum(left), 6), name
