"""The exact plan: worked examples, and arguments that cannot be used."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hpc_sched import exceptions
from hpc_sched.core.classic.listing_1 import listing1
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology
from tests.unit import fabrics


def worked(
    topology: Topology,
    capacity: Mapping[str, int],
    count: int,
    members: Mapping[str, int] | None = None,
    **constraints: Any,
) -> Plan | Rejection:
    return plan(
        topology=topology, capacity=capacity, members=members or {}, count=count, **constraints
    )


EVERYWHERE = dict.fromkeys(fabrics.two_pods().hosts, 1)


@pytest.mark.parametrize(
    ("capacity", "members", "count", "cost"),
    [
        pytest.param(EVERYWHERE, {}, 0, 0, id="nobody costs nothing"),
        pytest.param({}, {}, 0, 0, id="nobody needs no room"),
        pytest.param(EVERYWHERE, {}, 1, 0, id="one VM costs nothing"),
        pytest.param(EVERYWHERE, {}, 2, 1, id="two share a leaf"),
        pytest.param(EVERYWHERE, {}, 4, 2 + 4 * 3, id="four share a pod"),
        pytest.param(EVERYWHERE, {}, 5, 2 + 4 * 3 + 4 * 5, id="the fifth is in the other pod"),
        pytest.param(EVERYWHERE, {}, 9, None, id="nine do not fit"),
        pytest.param({"a1": 4, "b1": 4}, {}, 4, 0, id="four share a host"),
        pytest.param({"d2": 1}, {"a1": 1}, 1, 5, id="where there is room, however far"),
        pytest.param(EVERYWHERE, {"a1": 1, "d1": 1}, 0, 5, id="members alone have their cost"),
        pytest.param(
            {"a2": 1, "b1": 1, "c1": 1},
            {"a1": 1},
            2,
            1 + 3 + 3,
            id="as near to the member as can be",
        ),
        pytest.param(
            {"a2": 1, "b1": 2}, {"a1": 1}, 2, 3 + 3, id="two on one host, though one fits nearer"
        ),
    ],
)
def test_worked_examples_on_three_levels(
    capacity: dict[str, int], members: dict[str, int], count: int, cost: float | None
):
    answer = worked(fabrics.two_pods(), capacity, count, members)
    assert (answer.hop_bytes if isinstance(answer, Plan) else None) == cost


def test_nobody_to_place_is_an_empty_plan_with_the_cost_of_the_members():
    answer = worked(fabrics.two_pods(), EVERYWHERE, 0, {"a1": 1, "b1": 1})
    assert answer == Plan(hosts={}, places=(), leaves={}, hop_bytes=3, switch="core")


def test_a_branch_without_a_pod_is_as_far_away_as_another_pod():
    near = worked(fabrics.lopsided(), {"a1": 1, "b1": 1, "c1": 1, "d1": 1}, 2)
    far = worked(fabrics.lopsided(), {"c1": 1, "d1": 1}, 2)
    assert isinstance(near, Plan)
    assert isinstance(far, Plan)
    assert (near.hop_bytes, set(near.hosts)) == (3, {"a1", "b1"})
    assert (far.hop_bytes, set(far.hosts)) == (5, {"c1", "d1"})


def test_a_leaf_beside_the_pods_counts_as_a_pod_of_its_own():
    # c1 and c2 stand under leaf3, which hangs at the core.
    answer = worked(fabrics.lopsided(), {"a1": 1, "c1": 1, "c2": 1, "d1": 1}, 2, require="pod")
    assert isinstance(answer, Plan)
    assert (answer.switch, set(answer.hosts)) == ("leaf3", {"c1", "c2"})
    assert isinstance(worked(fabrics.lopsided(), {"c1": 1, "d1": 1}, 2, require="pod"), Rejection)


@pytest.mark.parametrize(
    ("capacity", "members", "count", "cost"),
    [
        pytest.param({"a1": 1, "e1": 1}, {}, 2, None, id="no island holds both"),
        pytest.param({"a1": 1, "e1": 1, "e2": 1}, {}, 2, 1, id="the smaller island holds both"),
        pytest.param({"a2": 1, "e2": 1}, {"e1": 1}, 1, 1, id="on the island of the member"),
        pytest.param({"a1": 9, "a2": 9}, {"e1": 1}, 1, None, id="only away from the member"),
        pytest.param({}, {"a1": 1, "e1": 1}, 0, None, id="members on two islands already"),
        pytest.param(
            dict.fromkeys(fabrics.islands().hosts, 1), {}, 5, None, id="larger than every island"
        ),
        pytest.param({"x": 2, "a1": 1}, {}, 2, 0, id="on a host outside the description"),
        pytest.param({"x": 1, "y": 1, "a1": 1}, {}, 2, 3, id="on two of them"),
        pytest.param({"x": 1, "a1": 1}, {}, 2, None, id="never on one of them and an island"),
        pytest.param({"x": 1, "y": 1, "a1": 1, "b1": 1}, {}, 3, None, id="nor on two of them"),
    ],
)
def test_a_group_is_never_spread_over_islands(
    capacity: dict[str, int], members: dict[str, int], count: int, cost: float | None
):
    answer = worked(fabrics.islands(), capacity, count, members)
    assert (answer.hop_bytes if isinstance(answer, Plan) else None) == cost


@pytest.mark.parametrize(("require", "fits"), [("pod", True), ("leaf", False)])
def test_hosts_outside_the_description_share_a_switch_of_the_highest_level_alone(require, fits):
    # west, east and the root of x and y are on the level pod.
    answer = worked(fabrics.islands(), {"x": 1, "y": 1}, 2, require=require)
    assert isinstance(answer, Plan) == fits


def test_the_plan_sees_that_two_leaves_are_neighbours_where_listing_1_takes_the_largest():
    """Four VMs, one a host."""
    fabric = fabrics.large_leaf_and_neighbours()
    free = dict.fromkeys(fabric.hosts, 1)
    answer = worked(fabric, free, 4)
    assert isinstance(answer, Plan)
    assert set(answer.hosts) == {"b1", "b2", "c1", "c2"}
    assert answer.hop_bytes == 2 + 4 * 3
    weights = listing1(topology=fabric, capacity=free, members={}, awaiting=4)
    assert max(weights, key=weights.__getitem__) == "leaf1"
    alone = {"a1": 1, "a2": 1, "a3": 1, "b1": 1}
    assert hop_bytes_of_counts(topology=fabric, counts=alone) == 3 + 3 * 5


def test_of_equal_costs_the_plan_that_leaves_whole_leaves_whole_is_taken():
    """Two VMs, one a host; leaf2 has just the room.

    ::

                 core
               /   |   \\
          leaf1  leaf2  leaf3
          3 free 2 free 4 free
    """
    fabric = fabrics.row_of_leaves({"leaf1": 3, "leaf2": 2, "leaf3": 4})
    for group in range(20):
        free = dict.fromkeys(fabric.hosts, 1)
        answer = worked(fabric, free, 2, group_id=f"group-{group}")
        assert isinstance(answer, Plan)
        assert answer.leaves == {"leaf2": 2}


def test_the_leaf_of_a_member_has_no_say_in_the_order_of_equal_plans():
    """Two VMs beside the member of m: one there and one in x, or both in y; 2 * 3 + 1 hops each.

    ::

                   core
               /    |    \\
              m     x     y
           m1 m2   x1   y1 y2
    """
    fabric = Topology.from_tree({"core": {"m": ["m1", "m2"], "x": ["x1"], "y": ["y1", "y2"]}})
    free = {"m2": 1, "x1": 1, "y1": 1, "y2": 1}
    seen = set()
    for group in range(20):
        tie = TieOrder(fabric, f"group-{group}").ranks
        x_first = tie[fabric.switch_index("x")] < tie[fabric.switch_index("y")]
        answer = worked(fabric, free, 2, {"m1": 1}, group_id=f"group-{group}")
        assert isinstance(answer, Plan)
        assert answer.hop_bytes == 7
        assert answer.leaves == ({"m": 1, "x": 1} if x_first else {"y": 2})
        seen.add(bool(x_first))
    assert seen == {True, False}


def test_of_equal_costs_the_plan_on_fewer_leaves_is_taken():
    """Four VMs, one a host: 6 * 3 hops in pod1, 3 * 1 + 3 * 5 with three of them in pod2.

    ::

                   core
               /          \\
             pod1         pod2
          /  |  |  \\        |
         l1  l2 l3 l4       l5
         a1  b1 c1 d1    e1 e2 e3
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"l1": ["a1"], "l2": ["b1"], "l3": ["c1"], "l4": ["d1"]},
                "pod2": {"l5": ["e1", "e2", "e3"]},
            }
        }
    )
    answer = worked(fabric, dict.fromkeys(fabric.hosts, 1), 4)
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == 18
    assert sorted(answer.leaves.values()) == [1, 3]
    assert answer.leaves["l5"] == 3


def test_a_bound_on_leaves_is_kept_where_more_leaves_would_cost_less():
    """Three VMs, one a host: pod1 costs 9, the two leaves of pod2 and pod3 cost 11.

    ::

                      core
              /         |        \\
            pod1       pod2      pod3
          / | \\         |         |
         l1 l2 l3       l4        l5
         a1 b1 c1      d1 d2      e1
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"l1": ["a1"], "l2": ["b1"], "l3": ["c1"]},
                "pod2": {"l4": ["d1", "d2"]},
                "pod3": {"l5": ["e1"]},
            }
        }
    )
    free = dict.fromkeys(fabric.hosts, 1)
    for bound, cost, leaves in ((3, 9, 3), (2, 11, 2)):
        answer = worked(fabric, free, 3, max_leaves=bound)
        assert isinstance(answer, Plan)
        assert (answer.hop_bytes, len(answer.leaves)) == (cost, leaves)
    assert isinstance(worked(fabric, free, 3, max_leaves=1), Rejection)
    # The leaf of a member is one of them.
    assert isinstance(worked(fabric, {"d1": 1, "a1": 1}, 1, {"b1": 1}, max_leaves=1), Rejection)


def test_a_host_that_the_topology_does_not_name_is_a_leaf_at_the_root():
    free = {"a1": 1, "x": 1}
    answer = worked(fabrics.two_pods(), free, 2)
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == 5
    assert answer.leaves == {"leaf1": 1, "x": 1}
    assert isinstance(worked(fabrics.two_pods(), free, 2, require="pod"), Rejection)
    assert isinstance(worked(fabrics.two_pods(), free, 1, {"y": 1}), Plan)


@pytest.mark.parametrize("capacity", [{"n1": 2}, {"n1": 1, "x": 1}], ids=["one leaf", "two"])
def test_a_level_above_the_only_leaf_is_one_whether_or_not_a_host_is_next_to_it(capacity):
    # x is a leaf of its own, with a switch of level 2 above both.
    fabric = Topology.from_tree({"sw": ["n1"]})
    with pytest.raises(exceptions.RequestError, match=r"'core': expected one of leaf, pod$"):
        worked(fabric, capacity, 2, require="core")
    answer = worked(fabric, capacity, 2, require="pod")
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == (0 if len(capacity) == 1 else 3)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({"capacity": {"a1": -1}}, "capacity of host 'a1'", id="capacity below 0"),
        pytest.param({"members": {"a1": -1}}, "members of host 'a1'", id="members below 0"),
        pytest.param({"count": -1}, "negative: -1", id="count below 0"),
        pytest.param({"max_leaves": 0}, "max_leaves is 0: expected at least 1", id="no leaf"),
        pytest.param(
            {"require": "rack"},
            r"no level 'rack': expected one of leaf, pod, core$",
            id="a level that is none of leaf, pod, core",
        ),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], error: str):
    good: dict[str, Any] = {"capacity": EVERYWHERE, "members": {}, "count": 2}
    with pytest.raises(ValueError, match=error):
        plan(topology=fabrics.two_pods(), **(good | arguments))


def test_a_count_of_numpy_is_a_number_like_any_other():
    fabric = fabrics.row_of_leaves({"a": 5, "b": 3, "c": 4})
    capacity = dict.fromkeys(fabric.hosts, 1)
    plans = [
        plan(topology=fabric, capacity=capacity, members={}, count=count)
        for count in (7, np.int64(7))
    ]
    assert plans[0] == plans[1]
