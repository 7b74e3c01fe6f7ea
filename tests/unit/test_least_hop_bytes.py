"""The least cost that a group can have: against brute force, and worked examples."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.planner import least_hop_bytes
from hpc_sched.core.problem import Problem
from hpc_sched.topology import Topology
from tests.unit import fabrics


def least(
    topology: Topology,
    capacity: dict[str, int],
    awaiting: int,
    members: dict[str, int] | None = None,
) -> float:
    return least_hop_bytes(
        Problem.from_counts(
            topology=topology, capacity=capacity, members=members or {}, awaiting=awaiting
        )
    )


def splits(room: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put ``count`` VMs into ``room``."""
    if not room:
        if not count:
            yield ()
        return
    for here in range(min(room[0], count) + 1):
        for rest in splits(room[1:], count - here):
            yield (here, *rest)


def brute_force(group: fabrics.Group) -> float:
    """Return the least cost of all ways to place the group, by hops alone."""
    fabric = group.topology
    hosts = fabric.hosts
    hops = {(a, b): fabrics.hops_by_names(fabric, a, b) for a in hosts for b in hosts}
    best = math.inf
    for split in splits([group.capacity.get(host, 0) for host in hosts], group.awaiting):
        counts = {
            host: group.members.get(host, 0) + new for host, new in zip(hosts, split, strict=True)
        }
        used = [host for host in hosts if counts[host]]
        cost = sum(
            counts[a] * counts[b] * hops[a, b] for i, a in enumerate(used) for b in used[i + 1 :]
        )
        best = min(best, cost)
    return best


EVERYWHERE = dict.fromkeys(fabrics.two_pods().hosts, 1)


@pytest.mark.parametrize(
    ("capacity", "members", "awaiting", "cost"),
    [
        pytest.param(EVERYWHERE, {}, 0, 0, id="nobody costs nothing"),
        pytest.param({}, {}, 0, 0, id="nobody needs no room"),
        pytest.param(EVERYWHERE, {}, 1, 0, id="one VM costs nothing"),
        pytest.param(EVERYWHERE, {}, 2, 1, id="two share a leaf"),
        pytest.param(EVERYWHERE, {}, 4, 2 + 4 * 3, id="four share a pod"),
        pytest.param(EVERYWHERE, {}, 5, 2 + 4 * 3 + 4 * 5, id="the fifth is in the other pod"),
        pytest.param(EVERYWHERE, {}, 9, math.inf, id="nine do not fit"),
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
    capacity: dict[str, int], members: dict[str, int], awaiting: int, cost: float
):
    assert least(fabrics.two_pods(), capacity, awaiting, members) == cost


def test_a_branch_without_a_pod_is_as_far_away_as_another_pod():
    capacity = {"a1": 1, "b1": 1, "c1": 1, "d1": 1}
    assert least(fabrics.lopsided(), capacity, 2) == 3
    assert least(fabrics.lopsided(), {"c1": 1, "d1": 1}, 2) == 5


@pytest.mark.parametrize(
    ("capacity", "members", "awaiting", "cost"),
    [
        pytest.param({"a1": 1, "e1": 1}, {}, 2, math.inf, id="no island holds both"),
        pytest.param({"a1": 1, "e1": 1, "e2": 1}, {}, 2, 1, id="the smaller island holds both"),
        pytest.param({"a2": 1, "e2": 1}, {"e1": 1}, 1, 1, id="on the island of the member"),
        pytest.param({"a1": 9, "a2": 9}, {"e1": 1}, 1, math.inf, id="only away from the member"),
        pytest.param({}, {"a1": 1, "e1": 1}, 0, math.inf, id="members on two islands already"),
        pytest.param({"x": 2, "a1": 1}, {}, 2, 0, id="a host nobody described is an island"),
    ],
)
def test_a_group_is_never_spread_over_islands(
    capacity: dict[str, int], members: dict[str, int], awaiting: int, cost: float
):
    assert least(fabrics.islands(), capacity, awaiting, members) == cost


def test_three_levels_are_seen_where_leaf_by_leaf_is_not_enough():
    # The largest leaf stands alone in its pod; the two of the other pod hold the group together.
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2", "a3"]},
                "pod2": {"leaf2": ["b1", "b2"], "leaf3": ["c1", "c2"]},
            }
        }
    )
    assert least(fabric, dict.fromkeys(fabric.hosts, 1), 4) == 2 + 4 * 3
    alone = {"a1": 1, "a2": 1, "a3": 1, "b1": 1}
    assert hop_bytes_of_counts(topology=fabric, counts=alone) == 3 + 3 * 5


def test_a_fabric_of_a_thousand_hosts_and_a_group_of_128_is_no_burden():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 32 for i in range(32)})
    cost = least(fabric, dict.fromkeys(fabric.hosts, 4), 128)
    # One leaf takes them all, four on each host.
    assert cost == math.comb(128, 2) - 32 * math.comb(4, 2)


@given(fabrics.groups(fabrics.trees(max_hosts=6), max_awaiting=4))
def test_no_placement_costs_less_and_one_costs_as_much(group: fabrics.Group):
    group.topology.check()
    assert least_hop_bytes(group.problem()) == brute_force(group)


@given(fabrics.groups(max_awaiting=6))
def test_more_room_never_costs_more(group: fabrics.Group):
    fabric = group.topology
    more = {host: group.capacity.get(host, 0) + 1 for host in fabric.hosts}
    roomy = fabrics.Group(group.tree, more, group.members, group.awaiting)
    assert least_hop_bytes(roomy.problem()) <= least_hop_bytes(group.problem())


@given(fabrics.groups(max_awaiting=6), st.data())
def test_the_order_of_the_description_changes_no_cost(group: fabrics.Group, data: st.DataObject):
    tree = fabrics.shuffled(data.draw, group.tree)
    other = fabrics.Group(tree, group.capacity, group.members, group.awaiting)
    assert least_hop_bytes(other.problem()) == least_hop_bytes(group.problem())


@given(fabrics.groups(), st.data())
def test_any_way_to_fill_the_room_costs_at_least_as_much(group: fabrics.Group, data: st.DataObject):
    room = list(Counter(group.capacity).elements())
    counts = Counter(group.members)
    counts.update(data.draw(st.permutations(room))[: group.awaiting])
    problem = group.problem()
    if len(room) < group.awaiting:
        assert least_hop_bytes(problem) == math.inf
    else:
        cost = hop_bytes_of_counts(topology=group.topology, counts=counts)
        assert least_hop_bytes(problem) <= cost
