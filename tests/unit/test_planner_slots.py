"""The order of a plan's places, of which every VM has its slot."""

from dataclasses import replace

import pytest

from hpc_sched.core.plan.planner import plan, solve
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit import fabrics


def places(topology: Topology, count: int, *, now: int, **given: object) -> list[str]:
    """Return the places of a plan of some VMs, of which a number is placed now."""
    problem = fabrics.problem_of(topology, awaiting=count, **given)  # type: ignore[arg-type]
    answer = solve(replace(problem, placing=now), count)
    assert isinstance(answer, Plan)
    return list(answer.places)


def test_the_first_vms_are_placed_in_the_leaf_with_most_of_the_group_members_included():
    free = {"a1": 1, "b1": 1, "b2": 1}
    fabric = fabrics.two_leaves()
    for now in (1, 2, 3):
        found = places(fabric, 3, now=now, capacity=free, members={"a1": 3})
        assert found == ["a1", "b1", "b2"]
        found = places(fabric, 3, now=now, capacity=free, members={"b1": 3})
        assert found[:now] == [["b1"], ["b1", "b2"], ["a1", "b1", "b2"]][now - 1]


@pytest.mark.parametrize("group", range(8))
def test_the_first_half_of_the_slots_is_in_one_pod_where_the_plan_fills_two(group: int):
    """Two pods of 4 leaves of 4 hosts, 32 VMs: all leaves are alike, and the order is the group's.

    ::

                      core
                  /          \\
               pod0          pod1
             /  ..  \\      /  ..  \\
          leaf00..leaf03  leaf10..leaf13
    """
    fabric = Topology.from_tree(
        {
            "core": {
                f"pod{p}": {f"leaf{p}{n}": [f"h{p}{n}{i}" for i in range(4)] for n in range(4)}
                for p in range(2)
            }
        }
    )
    answer = plan(
        topology=fabric,
        capacity=dict.fromkeys(fabric.hosts, 1),
        members={},
        count=32,
        group_id=f"group-{group}",
    )
    assert isinstance(answer, Plan)
    pods = [fabric.ancestors(host)[1] for host in answer.places]
    assert len(set(pods[:16])) == len(set(pods[16:])) == 1
    leaves = [fabric.leaf_of(host) for host in answer.places]
    assert all(len(set(leaves[i : i + 4])) == 1 for i in range(0, 32, 4))


def test_the_branch_with_most_of_the_group_comes_before_the_leaf_with_most_of_it():
    """Nine VMs, one a host: leaf3 holds most of a leaf, pod1 most of a pod.

    ::

                 core
               /      \\
            pod1       pod2
           /    \\       |
        leaf1  leaf2  leaf3
        2 free 3 free 4 free
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2", "b3"]},
                "pod2": {"leaf3": ["c1", "c2", "c3", "c4"]},
            }
        }
    )
    for group in range(8):
        found = [places(fabric, 9, now=now, group_id=f"group-{group}") for now in (3, 5, 6)]
        assert [[fabric.leaf_of(host) for host in some] for some in found] == [
            ["leaf2"] * 3 + ["leaf1"] * 2 + ["leaf3"] * 4,
            ["leaf1"] * 2 + ["leaf2"] * 3 + ["leaf3"] * 4,
            ["leaf1"] * 2 + ["leaf2"] * 3 + ["leaf3"] * 4,
        ]
