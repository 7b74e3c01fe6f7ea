"""Inside a leaf: which hosts take the VMs; and groups whose numbers are large."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.plan.leaf_hosts import leaf_gains, leaf_hosts, open_hosts, places
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit import fabrics

MOST_PER_HOST = 1 << 20


def one_leaf(
    capacity: dict[str, int], members: dict[str, int] | None = None, pack_hosts: bool = True
) -> Problem:
    """Return a group on the hosts of one leaf.

    ::

             sw
           /  |  \\
         n1  n2  ...
    """
    problem = Problem.from_counts(
        topology=Topology.from_tree({"sw": sorted({*capacity, *(members or {})})}),
        capacity=capacity,
        members=members or {},
        awaiting=sum(capacity.values()),
    )
    return replace(problem, pack_hosts=pack_hosts)


def filled(problem: Problem, count: int) -> list[str]:
    """Return the names of the hosts of ``count`` VMs in the only leaf, in order."""
    [hosts] = open_hosts(problem, [0]).values()
    return [problem.topology.hosts[i] for i in places(problem, hosts, count)]


@pytest.mark.parametrize(
    ("capacity", "members", "expected"),
    [
        pytest.param(
            {"n1": 1, "n2": 4, "n3": 2}, {}, ["n2"] * 4 + ["n3"] * 2, id="the largest host first"
        ),
        pytest.param(
            {"n1": 4, "n2": 3, "n3": 2}, {}, ["n1"] * 4 + ["n3"] * 2, id="the rest where it fits"
        ),
        pytest.param({"n1": 8, "n2": 7, "n3": 6}, {}, ["n3"] * 6, id="all where they fit best"),
        pytest.param({"n2": 6, "n1": 6}, {}, ["n1"] * 6, id="of equal hosts the first by name"),
        pytest.param(
            {"n1": 3, "n2": 3, "n3": 2},
            {"n3": 4},
            ["n3"] * 2 + ["n1"] * 3 + ["n2"],
            id="beside members, though other hosts are larger",
        ),
        pytest.param(
            {"n1": 6, "n2": 1},
            {"n2": 3},
            ["n1"] * 6,
            id="away from members where more pairs meet there",
        ),
        pytest.param(
            {"n1": 4, "n2": 4, "n3": 2},
            {"n2": 1},
            ["n2"] * 4 + ["n3"] * 2,
            id="the fullest host leads",
        ),
    ],
)
def test_six_vms_in_one_leaf(
    capacity: dict[str, int], members: dict[str, int], expected: list[str]
):
    assert filled(one_leaf(capacity, members), 6) == expected


@pytest.mark.parametrize(
    ("capacity", "members", "expected"),
    [
        pytest.param(
            {"n1": 4, "n2": 4, "n3": 4}, {}, ["n1", "n2", "n3", "n1"], id="in turn, by name"
        ),
        pytest.param(
            {"n1": 4, "n2": 4, "n3": 4},
            {"n1": 2, "n2": 1},
            ["n3", "n2", "n3", "n1"],
            id="the host with the fewest members each time",
        ),
        pytest.param({"n1": 1, "n2": 4}, {}, ["n1", "n2", "n2", "n2"], id="until a host is full"),
    ],
)
def test_four_vms_that_would_rather_be_spread(
    capacity: dict[str, int], members: dict[str, int], expected: list[str]
):
    assert filled(one_leaf(capacity, members, pack_hosts=False), 4) == expected


def splits(room: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put ``count`` VMs into ``room``."""
    for split in itertools.product(*(range(most + 1) for most in room)):
        if sum(split) == count:
            yield split


HOSTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=5).filter(
    lambda hosts: any(room for room, _ in hosts)
)


@st.composite
def leaves(draw: st.DrawFn, pack_hosts: bool = True) -> tuple[Problem, int]:
    """Draw a leaf of up to 5 hosts, some with members, and how many VMs it is to take."""
    drawn = draw(HOSTS)
    names = draw(st.permutations([f"n{i}" for i in range(len(drawn))]))
    capacity = {name: room for name, (room, _) in zip(names, drawn, strict=True)}
    has_members = draw(st.booleans())
    members = {name: here for name, (_, here) in zip(names, drawn, strict=True) if has_members}
    count = draw(st.integers(1, sum(capacity.values())))
    return one_leaf(capacity, members, pack_hosts), count


def pairs_on_one_host(problem: Problem, new: Any) -> int:
    """Return how many pairs the new VMs make with each other and with members on one host."""
    before = problem.members.tolist()
    return sum(math.comb(m + k, 2) - math.comb(m, 2) for m, k in zip(before, new, strict=True))


@given(leaves())
def test_no_way_to_fill_a_leaf_brings_more_vms_together(drawn: tuple[Problem, int]):
    problem, count = drawn
    taken = Counter(filled(problem, count))
    new = [taken[host] for host in problem.topology.hosts]
    assert sum(new) == count
    assert all(k <= room for k, room in zip(new, problem.capacity.tolist(), strict=True))
    best = max(pairs_on_one_host(problem, s) for s in splits(problem.capacity.tolist(), count))
    assert pairs_on_one_host(problem, new) == best


@given(leaves())
def test_the_gains_of_a_leaf_are_the_pairs_that_can_be_had(drawn: tuple[Problem, int]):
    problem, count = drawn
    [hosts] = leaf_hosts(problem, count, np.arange(len(problem.capacity))).values()
    room = problem.capacity.tolist()
    assert leaf_gains(hosts, count).tolist() == [
        max(pairs_on_one_host(problem, split) for split in splits(room, vms))
        for vms in range(count + 1)
    ]


@given(leaves())
def test_an_empty_group_fills_the_fewest_hosts_and_wastes_least_on_the_last(
    drawn: tuple[Problem, int],
):
    problem, count = drawn
    problem = replace(problem, members=np.zeros_like(problem.members))
    taken = Counter(filled(problem, count))
    room = dict(zip(problem.topology.hosts, problem.capacity.tolist(), strict=True))
    fewest = min(sum(k > 0 for k in split) for split in splits(list(room.values()), count))
    assert len(taken) == fewest
    part_filled = [host for host in taken if taken[host] < room[host]]
    assert len(part_filled) <= 1
    for host in part_filled:
        others = [room[other] for other in room if other not in taken]
        assert not any(taken[host] <= other < room[host] for other in others)


@given(leaves(), st.booleans())
def test_the_places_come_host_by_host_with_the_most_of_the_group_first(
    drawn: tuple[Problem, int], has_few: bool
):
    problem, count = drawn
    chosen = filled(problem, min(count, 3) if has_few else count)
    runs = [host for host, _ in itertools.groupby(chosen)]
    assert len(runs) == len(set(runs))
    taken = Counter(chosen)
    here = dict(zip(problem.topology.hosts, problem.members.tolist(), strict=True))
    totals = [here[host] + taken[host] for host in runs]
    assert totals == sorted(totals, reverse=True)


@given(leaves(pack_hosts=False))
def test_a_group_that_would_rather_be_spread_makes_the_fewest_pairs_on_one_host(
    drawn: tuple[Problem, int],
):
    problem, count = drawn
    taken = Counter(filled(problem, count))
    new = [taken[host] for host in problem.topology.hosts]
    assert sum(new) == count
    assert all(k <= room for k, room in zip(new, problem.capacity.tolist(), strict=True))
    least = min(pairs_on_one_host(problem, s) for s in splits(problem.capacity.tolist(), count))
    assert pairs_on_one_host(problem, new) == least


@given(leaves(pack_hosts=False))
def test_nothing_is_gained_on_one_host_by_a_group_that_would_rather_be_spread(
    drawn: tuple[Problem, int],
):
    problem, count = drawn
    [hosts] = leaf_hosts(problem, count, np.arange(len(problem.capacity))).values()
    assert leaf_gains(hosts, count).tolist() == [0] * (count + 1)


def test_ten_thousand_vms_on_hosts_that_take_a_million_each_do_not_overflow():
    """Every host takes everyone; those of leaf3 have least to spare, but there is a member.

    ::

                           core
               /            |            \\
            leaf1         leaf2         leaf3
          40 * 2**20  40 * (2**20 - 1)  40 * (2**20 - 2)
    """
    fabric = fabrics.row_of_leaves({"leaf1": 40, "leaf2": 40, "leaf3": 40})
    capacity = {
        host: MOST_PER_HOST - number
        for number, leaf in enumerate(fabric.leaves)
        for host in fabric.hosts_of(leaf)
    }
    apart = plan(topology=fabric, capacity=capacity, members={}, count=10_000)
    assert isinstance(apart, Plan)
    assert (apart.leaves, apart.hop_bytes) == ({"leaf3": 10_000}, 0)
    [member] = fabric.hosts_of("leaf1")[:1]
    beside = plan(topology=fabric, capacity=capacity, members={member: 1}, count=10_000)
    assert isinstance(beside, Plan)
    assert (beside.hosts, beside.hop_bytes) == ({member: 10_000}, 0)


def test_ten_thousand_vms_fill_the_leaf_with_large_hosts_and_then_the_other():
    """Only both leaves together hold everyone; a host takes 1 VM in leaf1 and 100 in leaf2.

    ::

                 core
               /      \\
            leaf1     leaf2
           6000 * 1   60 * 100
    """
    fabric = fabrics.row_of_leaves({"leaf1": 6_000, "leaf2": 60})
    capacity = dict.fromkeys(fabric.hosts_of("leaf1"), 1)
    capacity |= dict.fromkeys(fabric.hosts_of("leaf2"), 100)
    answer = plan(topology=fabric, capacity=capacity, members={}, count=10_000)
    assert isinstance(answer, Plan)
    assert answer.leaves == {"leaf2": 6_000, "leaf1": 4_000}
    assert answer.hop_bytes == (
        math.comb(4_000, 2) + math.comb(6_000, 2) - 60 * math.comb(100, 2) + 3 * 4_000 * 6_000
    )
