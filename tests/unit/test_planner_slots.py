"""The order of a plan's places, of which every VM has its slot."""

import pytest

from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology
from tests.unit import fabrics


def test_the_slots_begin_in_the_leaf_with_most_of_the_group_members_included():
    free = {"a1": 1, "b1": 1, "b2": 1}
    answer = plan(topology=fabrics.two_leaves(), capacity=free, members={"a1": 3}, count=3)
    assert isinstance(answer, Plan)
    assert answer.places == ("a1", "b1", "b2")


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
        free = dict.fromkeys(fabric.hosts, 1)
        answer = plan(
            topology=fabric, capacity=free, members={}, count=9, group_id=f"group-{group}"
        )
        assert isinstance(answer, Plan)
        assert list(answer.leaves) == ["leaf2", "leaf1", "leaf3"]
