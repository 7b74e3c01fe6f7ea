"""Gupta2012's build plan: the published order, and the racks with the least excess capacity."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.classic.build_plan import Selection, build_plan, least_excess
from hpc_sched.core.plan.problem import Problem
from hpc_sched.topology import Topology
from tests.unit import fabrics


def ordered(
    topology: Topology,
    capacity: dict[str, int],
    wanted: int,
    selection: Selection = "largest",
    group_id: str = "",
) -> list[str]:
    """Return the names of the hosts in the order of the build plan."""
    problem = Problem.from_counts(
        topology=topology, capacity=capacity, members={}, awaiting=wanted, group_id=group_id
    )
    return [topology.hosts[i] for i in build_plan(problem, selection)]


def racks_in_order(names: list[str]) -> list[str]:
    """Return the racks of hosts that are called ``<rack>-<number>``, each once."""
    return list(dict.fromkeys(name.partition("-")[0] for name in names))


def racks(rooms: dict[str, int]) -> tuple[Topology, dict[str, int]]:
    """Return racks of one host each and the capacities of the hosts."""
    return fabrics.row_of_leaves(dict.fromkeys(rooms, 1)), {
        f"{rack}-00": room for rack, room in rooms.items()
    }


def best_fit(rooms: dict[str, int], wanted: int, group_id: str = "") -> list[str]:
    """Return the racks in the order of best fit."""
    return racks_in_order(ordered(*racks(rooms), wanted, "best_fit", group_id))


def naive_least_excess(rooms: list[int], wanted: int, tie: list[int]) -> list[int]:
    """Return the best of all sets of racks that hold the VMs; none where there is none."""
    best = None
    for number in range(len(rooms) + 1):
        for chosen in combinations(range(len(rooms)), number):
            total = sum(rooms[rack] for rack in chosen)
            if total >= wanted and all(rooms[rack] for rack in chosen):
                key = (total, number, sorted(tie[rack] for rack in chosen))
                best = min(best or (key, chosen), (key, chosen))
    return list(best[1]) if best else []


def three_racks() -> Topology:
    """Return the racks of the worked example, with what their hosts take.

    ::

                       core
               /        |          \\
            rack1      rack2      rack3
            a1:2 a2:4  b1:1 b2:9  c1:3 c2:4 c3:0
    """
    return Topology.from_tree(
        {"core": {"rack1": ["a1", "a2"], "rack2": ["b1", "b2"], "rack3": ["c1", "c2", "c3"]}}
    )


ROOM = {"a1": 2, "a2": 4, "b1": 1, "b2": 9, "c1": 3, "c2": 4}


@pytest.mark.parametrize(
    ("wanted", "selection", "expected"),
    [
        # Racks hold 6, 10 and 7.
        pytest.param(4, "largest", "b2 b1 c2 c1 c3 a2 a1", id="as published, largest first"),
        pytest.param(16, "largest", "b2 b1 c2 c1 c3 a2 a1", id="whatever is wanted"),
        pytest.param(6, "best_fit", "a2 a1 b2 b1 c2 c1 c3", id="the rack that just holds all"),
        pytest.param(7, "best_fit", "c2 c1 c3 b2 b1 a2 a1", id="one rack, its hosts as ever"),
        pytest.param(8, "best_fit", "b2 b1 c2 c1 c3 a2 a1", id="an excess of 2, no two do better"),
        pytest.param(11, "best_fit", "c2 c1 c3 a2 a1 b2 b1", id="two racks, the larger first"),
        pytest.param(16, "best_fit", "b2 b1 a2 a1 c2 c1 c3", id="two racks without any excess"),
        pytest.param(23, "best_fit", "b2 b1 c2 c1 c3 a2 a1", id="all racks"),
        pytest.param(24, "best_fit", "b2 b1 c2 c1 c3 a2 a1", id="too small, all of them"),
        pytest.param(0, "best_fit", "b2 b1 c2 c1 c3 a2 a1", id="nobody to place"),
    ],
)
def test_the_worked_example(wanted: int, selection: Selection, expected: str):
    assert ordered(three_racks(), ROOM, wanted, selection) == expected.split()


def test_hosts_repeated_by_their_capacity_fill_the_largest_racks_first():
    order = ordered(three_racks(), ROOM, 12)
    build = [host for host in order for _ in range(ROOM.get(host, 0))]
    assert build[:12] == ["b2"] * 9 + ["b1"] + ["c2"] * 2


def test_equal_racks_go_in_tie_order_and_equal_hosts_by_name():
    fabric = fabrics.two_pods()
    order = ordered(fabric, dict.fromkeys(fabric.hosts, 1), 2, group_id="group-1")
    # The tie order of this group is leaf1, leaf3, leaf4, leaf2.
    assert order == ["a1", "a2", "c1", "c2", "d1", "d2", "b1", "b2"]


def test_members_do_not_count():
    fabric = fabrics.two_leaves()
    capacity = {"a1": 1, "b1": 1, "b2": 1}
    problem = Problem.from_counts(topology=fabric, capacity=capacity, members={"a1": 5}, awaiting=1)
    assert fabric.hosts[build_plan(problem)[0]] == "b1"


@pytest.mark.parametrize(
    ("rooms", "wanted", "expected"),
    [
        pytest.param({"a": 16, "b": 5, "c": 3}, 8, {"b", "c"}, id="two with less excess than one"),
        pytest.param({"a": 9, "b": 5, "c": 3}, 8, {"b", "c"}, id="two without against one with 1"),
        pytest.param({"a": 8, "b": 5, "c": 3}, 8, {"a"}, id="one rack beats two as tight"),
        pytest.param({"a": 9, "b": 5, "c": 4}, 8, {"a"}, id="also where both leave one over"),
        pytest.param({"a": 20, "b": 9}, 8, {"b"}, id="of racks that hold all the tightest"),
        pytest.param({"a": 4, "b": 8, "c": 3, "d": 2}, 9, {"a", "c", "d"}, id="three racks"),
        pytest.param({"a": 6, "b": 2, "c": 1, "d": 1}, 8, {"a", "b"}, id="the fewest of equals"),
        pytest.param({"a": 0, "b": 3, "c": 0}, 3, {"b"}, id="full racks do not take part"),
    ],
)
def test_best_fit_begins_with_the_racks_of_least_excess(
    rooms: dict[str, int], wanted: int, expected: set[str]
):
    assert set(best_fit(rooms, wanted, "group-4")[: len(expected)]) == expected


def test_of_equally_good_sets_the_first_in_the_groups_own_order_is_taken():
    rooms = dict.fromkeys([f"r{i}" for i in range(8)], 2)
    firsts = {best_fit(rooms, 2, f"group-{number}")[0] for number in range(32)}
    assert len(firsts) > 4
    assert best_fit(rooms, 2, "group-7") == best_fit(rooms, 2, "group-7")


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=7),
    st.integers(0, 40),
    st.data(),
)
def test_the_racks_are_the_best_of_all_sets(rooms: list[int], wanted: int, data: st.DataObject):
    tie = data.draw(st.permutations(range(len(rooms))))
    found = least_excess(np.array(rooms), wanted, np.array(tie))
    assert sorted(found.tolist()) == naive_least_excess(rooms, wanted, tie)


@given(fabrics.groups(tree=fabrics.flat_trees(), max_awaiting=12), st.data())
def test_best_fit_puts_the_best_set_first_and_keeps_the_published_order_otherwise(
    group: fabrics.Group, data: st.DataObject
):
    problem, fabric = group.problem(), group.topology
    leaves = [fabric.switch_index(leaf) for leaf in fabric.leaves]
    rooms = [
        sum(group.capacity.get(host, 0) for host in fabric.hosts_of(leaf)) for leaf in fabric.leaves
    ]
    best = naive_least_excess(rooms, group.awaiting, problem.tie.ranks[leaves].tolist())
    chosen = {fabric.leaves[i] for i in best}
    published = [fabric.hosts[i] for i in build_plan(problem)]
    expected = [host for host in published if fabric.leaf_of(host) in chosen]
    expected += [host for host in published if fabric.leaf_of(host) not in chosen]
    assert [fabric.hosts[i] for i in build_plan(problem, "best_fit")] == expected


@given(fabrics.groups(max_awaiting=12), st.sampled_from(["largest", "best_fit"]), st.data())
def test_every_host_stands_once_whatever_the_order_of_the_description(
    group: fabrics.Group, selection: Selection, data: st.DataObject
):
    turned = fabrics.Group(
        fabrics.shuffled(data.draw, group.tree), group.capacity, group.members, group.awaiting
    )
    order = [group.topology.hosts[i] for i in build_plan(group.problem(), selection)]
    assert sorted(order) == sorted(group.topology.hosts)
    assert order == [turned.topology.hosts[i] for i in build_plan(turned.problem(), selection)]


@given(fabrics.groups(max_awaiting=0))
def test_the_published_order_is_rack_capacity_then_host_capacity(group: fabrics.Group):
    problem, fabric = group.problem(), group.topology
    tie = {leaf: int(problem.tie.ranks[fabric.switch_index(leaf)]) for leaf in fabric.leaves}

    def key(host: str) -> tuple[int, int, int, str]:
        leaf = fabric.leaf_of(host)
        room = sum(group.capacity.get(name, 0) for name in fabric.hosts_of(leaf))
        return -room, tie[leaf], -group.capacity.get(host, 0), host

    assert [fabric.hosts[i] for i in build_plan(problem)] == sorted(fabric.hosts, key=key)


def test_hosts_that_take_any_number_cost_no_more_than_others():
    # A knapsack over these sums would need terabytes. 20 hosts of 3 VMs each do not hold 64.
    fabric = fabrics.row_of_leaves({f"leaf{i:03}": 20 for i in range(200)})
    small = fabric.hosts_of("leaf007")
    capacity = dict.fromkeys(fabric.hosts, 1 << 20) | dict.fromkeys(small, 3)
    assert not set(ordered(fabric, capacity, 64, "best_fit")[:20]) & set(small)
    assert set(ordered(fabric, capacity, 60, "best_fit")[:20]) == set(small)


def test_many_small_racks_that_hold_a_large_group_together_are_found_without_excess():
    rooms = {f"r{i:03}": 7 + i % 5 for i in range(500)}
    fabric, capacity = racks(rooms)
    order = ordered(fabric, capacity, 512, "best_fit")
    sums = np.cumsum([capacity[name] for name in order])
    assert 512 in sums.tolist()
