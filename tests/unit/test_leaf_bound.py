"""The most leaves of a group, where no price of a leaf leads to just as many."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hpc_sched.core.plan.exact.bound import leaf_bound
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit.fabrics import Case
from tests.unit.plan_oracle import Oracle

# The room of leaves per pod, VMs, and the most leaves.
Shape = tuple[tuple[tuple[int, ...], ...], int, int]

SHAPES: list[Shape] = [
    (((3, 1), (2, 1, 1, 1)), 5, 3),
    (((2,), (2,), (1, 1, 1, 1, 1)), 5, 4),
    (((2, 2), (3, 1, 1, 1)), 7, 4),
    (((2,), (2,), (2, 1, 1, 1, 1)), 6, 4),
    (((2, 2), (2, 1, 1, 1, 1)), 7, 5),
    (((3, 2), (3, 1, 1, 1)), 6, 3),
    (((3, 1, 1), (2, 2, 1, 1)), 7, 4),
]


def case_of(shape: Shape) -> Case:
    """Return VMs that each fill a host of some pods, on a number of leaves at most."""
    pods, count, max_leaves = shape
    tree: dict[str, Any] = {
        f"pod{p}": {
            f"leaf{p}-{n}": [f"h{p}-{n}-{i}" for i in range(room)] for n, room in enumerate(rooms)
        }
        for p, rooms in enumerate(pods)
    }
    hosts = [host for pod in tree.values() for leaf in pod.values() for host in leaf]
    return Case(
        tree={"core": tree},
        capacity=dict.fromkeys(hosts, 1),
        members={},
        count=count,
        max_leaves=max_leaves,
    )


def without_a_price() -> Case:
    """Return five VMs on three leaves at most: 32 hops, with two leaves 34, with four 28.

    At a price of 2 or less four leaves are best, at 4 or more two; three leaves are at none.

    ::

                    core
                 /        \\
              pod0          pod1
             /    \\      /  |  |  \\
            3      1    2   1  1   1     hosts, one VM each
    """
    return case_of(SHAPES[0])


def costs_by_leaves(case: Case) -> dict[int, int]:
    """Return the least cost of plans on each number of leaves, by brute force."""
    oracle = Oracle(replace(case, max_leaves=None))
    ways = oracle.feasible()
    costs, leaves = oracle.costs(ways), oracle.numbers_of_leaves(ways)
    return {int(n): int(costs[leaves == n].min()) for n in np.unique(leaves)}


def is_best_at_a_price(costs: dict[int, int], leaves: int) -> bool:
    """True if there is a price of a leaf at which no other number of leaves is better."""
    cost = costs[leaves]
    # More leaves must not pay at the price, and fewer neither.
    least = max([Fraction(cost - costs[n], n - leaves) for n in costs if n > leaves], default=0)
    most = [Fraction(costs[n] - cost, leaves - n) for n in costs if n < leaves]
    return all(least <= price for price in most)


def planned(case: Case) -> Plan:
    answer = case.answer()
    assert isinstance(answer, Plan)
    return answer


def test_a_plan_that_is_best_at_no_price_is_found():
    case = without_a_price()
    assert costs_by_leaves(case).items() >= {(2, 34), (3, 32), (4, 28)}
    answer, best = planned(case), Oracle(case).best()
    assert best is not None
    assert (answer.leaves, answer.hop_bytes, len(answer.leaves)) == (best.leaves, 32, 3)
    assert answer.is_proven


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_other_plan_within_the_most_leaves_is_better(shape: Shape):
    case = case_of(shape)
    costs = costs_by_leaves(case)
    assert is_best_at_a_price(costs, min(costs))
    assert not is_best_at_a_price(costs, shape[2])
    answer, best = planned(case), Oracle(case).best()
    assert best is not None
    assert (answer.leaves, answer.hop_bytes) == (best.leaves, best.cost)
    assert answer.is_proven


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_with_no_effort_left_the_plan_keeps_to_the_most_leaves_and_is_not_proven(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
):
    case = case_of(shape)
    monkeypatch.setattr(leaf_bound, "_SUMS", 0)
    monkeypatch.setattr(leaf_bound, "_SUMS_TO_LIST", 0)
    answer, best = planned(case), Oracle(case).best()
    assert best is not None
    assert not answer.is_proven
    assert answer.count == case.count
    assert len(answer.leaves) <= shape[2]
    assert answer.hop_bytes >= best.cost


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_with_any_effort_the_plan_is_proven_only_if_it_is_the_best_one(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
):
    case = case_of(shape)
    best = Oracle(case).best()
    assert best is not None
    proven = []
    for sums in range(0, 300_000, 1000):
        monkeypatch.setattr(leaf_bound, "_SUMS", 0)
        monkeypatch.setattr(leaf_bound, "_SUMS_TO_LIST", sums)
        answer = planned(case)
        assert len(answer.leaves) <= shape[2]
        proven.append(answer.is_proven)
        assert not answer.is_proven or answer.leaves == best.leaves
    # Little effort is not enough, more is.
    assert proven == sorted(proven)
    assert {False, True} == set(proven)


@pytest.mark.parametrize("group_id", "abcdef")
def test_of_equal_plans_on_two_islands_the_one_with_less_excess_is_found(group_id: str):
    """Seven VMs on three leaves at most: 4 and 3 on either island, which leaves room on one only.

    ::

              core0                 core1
             /     \               /     \
         pod0-0    pod0-1      pod1-0    pod1-1
            |     /  |  \         |     /  |  \
            4    1   1   4        4    1   1   3     VMs, one host a leaf
    """
    islands = [((4,), (1, 1, 4)), ((4,), (1, 1, 3))]
    rooms = {
        (i, p, n): room
        for i, pods in enumerate(islands)
        for p, leaves in enumerate(pods)
        for n, room in enumerate(leaves)
    }
    tree: dict[str, Any] = {}
    for i, p, n in rooms:
        pods = tree.setdefault(f"core{i}", {})
        pods.setdefault(f"pod{i}-{p}", {})[f"leaf{i}-{p}-{n}"] = [f"h{i}-{p}-{n}"]
    case = Case(
        tree=tree,
        capacity={f"h{i}-{p}-{n}": room for (i, p, n), room in rooms.items()},
        members={},
        count=7,
        max_leaves=3,
        group_id=group_id,
    )
    answer, best = planned(case), Oracle(case).best()
    assert best is not None
    assert answer.leaves == best.leaves == {"leaf1-0-0": 4, "leaf1-1-2": 3}


@pytest.mark.parametrize("most", [107, 106, 105, 104, 103])
def test_a_plan_that_is_not_proven_uses_the_leaves_that_it_may(most: int, monkeypatch):
    """Six equal pods; on 109 leaves the cost is 2,175,131, and no price leads to 104 or 105.

    ::

                    core
                 /   ...  \\
              pod 1       pod 6
        10 leaves of hosts for 4, 4 and 4 VMs
        20 leaves for 7 and 2
        20 leaves for 4 and 4
    """
    monkeypatch.setattr(leaf_bound, "_SUMS", 0)
    monkeypatch.setattr(leaf_bound, "_SUMS_TO_LIST", 50_000)
    kinds = [(4, 4, 4)] * 10 + [(7, 2)] * 20 + [(4, 4)] * 20
    room: dict[str, int] = {}
    tree: dict[str, dict[str, list[str]]] = {}
    for pod in range(6):
        tree[f"pod{pod}"] = {}
        for number, hosts in enumerate(kinds):
            names = [f"h{pod}-{number}-{i}" for i in range(len(hosts))]
            tree[f"pod{pod}"][f"leaf{pod}-{number}"] = names
            room.update(zip(names, hosts, strict=True))
    answer = plan(
        topology=Topology.from_tree({"core": tree}),
        capacity=room,
        members={},
        count=1024,
        max_leaves=most,
    )
    assert isinstance(answer, Plan)
    assert len(answer.leaves) == most
    assert answer.hop_bytes < 1.06 * 2_175_131
