"""Listing 1 of Dudina2013: the worked examples, the order of hosts, and the slots."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.classic import listing_1
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import check


def ordered(problem: Problem, slot: int = 0, spread: bool = False) -> list[str]:
    """Return the names of the hosts, best first."""
    order = listing_1.host_order(replace(problem, pack_hosts=not spread), slot=slot)
    return [problem.topology.hosts[i] for i in order]


def one_by_one(group: fabrics.Group, spread: bool = False) -> list[str]:
    """Return the hosts of VMs that are placed in turn, each seeing those before it."""
    capacity, members = Counter(group.capacity), Counter(group.members)
    places = []
    for left in range(group.awaiting, 0, -1):
        state = fabrics.Group(group.tree, dict(capacity), dict(members), left)
        host = ordered(state.problem(), spread=spread)[0]
        if not capacity[host]:
            break
        capacity[host] -= 1
        members[host] += 1
        places.append(host)
    return places


def weights(
    topology: Topology, capacity: dict[str, int], members: dict[str, int], awaiting: int
) -> dict[str, int]:
    return listing_1.listing1(
        topology=topology, capacity=capacity, members=members, awaiting=awaiting
    )


def free(topology: Topology, *leaves: str) -> dict[str, int]:
    """Return room for one VM on every host, or on those of some leaves."""
    return {host: 1 for leaf in leaves or topology.leaves for host in topology.hosts_of(leaf)}


@pytest.mark.parametrize(
    ("capacity", "members", "awaiting", "expected"),
    [
        # The larger leaf has 3 hosts, so maxsize is 3: weight = first * 4 + second.
        pytest.param({}, {}, 4, {"leaf1": 0, "leaf2": 0}, id="no room and no members"),
        pytest.param({"a1": 1, "b1": 2}, {}, 4, {"leaf1": 4, "leaf2": 8}, id="room alone"),
        pytest.param({"a1": 9, "b1": 2}, {}, 2, {"leaf1": 8, "leaf2": 8}, id="no more than awaits"),
        pytest.param({}, {"a1": 2}, 4, {"leaf1": 2 * 4 + 2, "leaf2": 0}, id="members alone"),
        pytest.param(
            {"a2": 1, "b1": 3},
            {"a1": 2},
            3,
            {"leaf1": 3 * 4 + 2, "leaf2": 3 * 4},
            id="a draw on first",
        ),
        pytest.param({"a1": 5}, {"b1": 1}, 0, {"leaf1": 0, "leaf2": 4 + 1}, id="nobody awaits"),
        pytest.param(
            {}, {"a1": 7, "b1": 1}, 1, {"leaf1": 7 * 8 + 7, "leaf2": 8 + 1}, id="members over hosts"
        ),
    ],
)
def test_the_weight_is_first_times_one_scale_plus_second(
    capacity: dict[str, int], members: dict[str, int], awaiting: int, expected: dict[str, int]
):
    assert weights(fabrics.two_leaves(), capacity, members, awaiting) == expected


def test_a_leaf_of_forty_hosts_that_holds_three_never_beats_one_of_eight_that_holds_four():
    fabric = fabrics.row_of_leaves({"large": 40, "small": 8})
    large, small = fabric.hosts_of("large"), fabric.hosts_of("small")
    for standing in range(4):
        capacity = dict.fromkeys(large[: 3 - standing], 1) | dict.fromkeys(small[:4], 1)
        members = dict.fromkeys(large[10 : 10 + standing], 1)
        found = weights(fabric, capacity, members, 4)
        assert found["large"] < found["small"]
        problem = Problem.from_counts(
            topology=fabric, capacity=capacity, members=members, awaiting=4
        )
        assert ordered(problem)[:4] == list(small[:4])


def test_three_members_in_a_leaf_with_five_free_hosts_get_the_next_five_there():
    tree = {"core": {s: [f"{s}{i}" for i in range(8)] for s in ("x", "y", "z")}}
    members = {"y0": 1, "y1": 1, "y2": 1}
    capacity = {host: 1 for leaf in tree["core"].values() for host in leaf if host not in members}
    group = fabrics.Group(tree, capacity, members, 5)
    assert one_by_one(group) == ["y3", "y4", "y5", "y6", "y7"]
    assert ordered(group.problem())[-3:] == ["y0", "y1", "y2"]


def test_of_two_leaves_that_hold_the_group_the_one_with_less_to_spare_leads():
    fabric = fabrics.row_of_leaves({"four": 4, "six": 6, "five": 5})
    problem = Problem.from_counts(topology=fabric, capacity=free(fabric), members={}, awaiting=4)
    assert [name.partition("-")[0] for name in ordered(problem)] == (
        ["four"] * 4 + ["five"] * 5 + ["six"] * 6
    )


def test_inside_a_leaf_the_fewest_hosts_are_filled_and_equal_ones_go_by_name():
    fabric = Topology.from_tree({"sw": ["n4", "n1", "n3", "n2", "n5"]})
    problem = Problem.from_counts(
        topology=fabric,
        capacity={"n1": 1, "n2": 4, "n3": 2, "n4": 2, "n5": 0},
        members={},
        awaiting=2,
    )
    assert ordered(problem) == ["n3", "n4", "n2", "n1", "n5"]


def test_a_group_that_would_rather_spread_gets_the_hosts_with_fewest_members_first():
    fabric = Topology.from_tree({"sw": ["n1", "n2", "n3"]})
    problem = Problem.from_counts(
        topology=fabric,
        capacity={"n1": 4, "n2": 4, "n3": 4},
        members={"n1": 2, "n2": 1},
        awaiting=1,
    )
    assert ordered(problem, spread=True) == ["n3", "n2", "n1"]
    assert ordered(problem) == ["n1", "n2", "n3"]


def test_the_last_place_goes_to_the_host_that_fits_it_whatever_the_leaves_before_took():
    # One place is left for leaf b: beside the two members, not on the host with most room.
    tree = {"core": {"a": ["a1"], "b": ["b1", "b2"]}}
    group = fabrics.Group(tree, {"a1": 4, "b1": 1, "b2": 4}, {"a1": 4, "b1": 2}, 5)
    assert [ordered(group.problem(), slot)[0] for slot in range(5)] == ["a1"] * 4 + ["b1"]


@pytest.mark.parametrize(
    ("capacity", "members", "awaiting", "error"),
    [
        pytest.param({"a1": -1}, {}, 1, "capacity of host 'a1'", id="capacity below 0"),
        pytest.param({}, {"a1": -1}, 1, "members of host 'a1'", id="members below 0"),
        pytest.param({}, {}, -1, "awaiting is negative", id="awaiting below 0"),
    ],
)
def test_a_negative_number_is_refused(
    capacity: dict[str, int], members: dict[str, int], awaiting: int, error: str
):
    with pytest.raises(ValueError, match=error):
        weights(fabrics.two_leaves(), capacity, members, awaiting)


@given(fabrics.groups())
def test_weights_order_leaves_by_first_and_then_by_second(group: fabrics.Group):
    fabric = group.topology
    found = weights(fabric, group.capacity, group.members, group.awaiting)
    assert list(found) == list(fabric.leaves)
    points = {}
    for leaf in fabric.leaves:
        second = sum(group.members.get(host, 0) for host in fabric.hosts_of(leaf))
        room = sum(group.capacity.get(host, 0) for host in fabric.hosts_of(leaf))
        points[leaf] = (second + min(room, group.awaiting), second)
    for a in fabric.leaves:
        for b in fabric.leaves:
            assert (found[a] < found[b]) == (points[a] < points[b])


@given(fabrics.groups(), st.booleans(), st.data())
def test_every_host_stands_once_in_the_order_and_the_full_ones_last(
    group: fabrics.Group, spread: bool, data: st.DataObject
):
    slot = data.draw(st.integers(0, group.awaiting + 3))
    names = ordered(group.problem(), slot, spread)
    assert sorted(names) == sorted(group.topology.hosts)
    takes = [group.capacity.get(name, 0) > 0 for name in names]
    assert takes == sorted(takes, reverse=True)


@given(fabrics.groups(), st.booleans(), st.data())
def test_the_order_of_the_description_and_of_the_dicts_changes_nothing(
    group: fabrics.Group, spread: bool, data: st.DataObject
):
    def turned(counts: dict[str, int]) -> dict[str, int]:
        return {host: counts[host] for host in data.draw(st.permutations(list(counts)))}

    other = fabrics.Group(
        fabrics.shuffled(data.draw, group.tree),
        turned(group.capacity),
        turned(group.members),
        group.awaiting,
    )
    check(other.topology)
    slot = data.draw(st.integers(0, group.awaiting))
    assert ordered(other.problem(), slot, spread) == ordered(group.problem(), slot, spread)
    assert weights(other.topology, other.capacity, other.members, other.awaiting) == weights(
        group.topology, group.capacity, group.members, group.awaiting
    )


@given(fabrics.groups(max_capacity=5, max_awaiting=20), st.booleans())
def test_all_slots_together_are_the_places_of_vms_placed_one_by_one(
    group: fabrics.Group, spread: bool
):
    room = sum(group.capacity.values())
    slots = [ordered(group.problem(), slot, spread)[0] for slot in range(min(group.awaiting, room))]
    taken = Counter(slots)
    assert all(taken[host] <= group.capacity.get(host, 0) for host in taken)
    assert slots == one_by_one(group, spread)


@given(fabrics.groups(max_awaiting=4), st.integers(0, 12))
def test_a_slot_beyond_the_last_place_begins_again_at_the_first(group: fabrics.Group, slot: int):
    places = max(1, min(group.awaiting, sum(group.capacity.values())))
    assert ordered(group.problem(), slot) == ordered(group.problem(), slot % places)


@given(fabrics.groups(fabrics.flat_trees(), max_capacity=1, max_members=0, max_awaiting=12))
def test_on_two_levels_an_empty_group_reaches_the_least_cost_vm_by_vm(group: fabrics.Group):
    room = sum(group.capacity.values())
    group = fabrics.Group(group.tree, group.capacity, {}, min(group.awaiting, room))
    cost = hop_bytes_of_counts(topology=group.topology, counts=Counter(one_by_one(group)))
    assert cost == solve(group.problem(), group.awaiting).hop_bytes


def drawn_problem(dice: random.Random) -> Problem:
    """Return a group with members on a fabric of two or three levels, more or less full."""
    hosts = (f"n{number:02}" for number in itertools.count())
    tree: dict[str, dict[str, list[str]]] = {}
    for pod in range(dice.randint(1, 3)):
        tree[f"pod{pod}"] = {
            f"leaf{pod}{leaf}": list(itertools.islice(hosts, dice.randint(1, 5)))
            for leaf in range(dice.randint(1, 4))
        }
    fabric = Topology.from_tree({"core": tree} if dice.random() < 0.7 else tree["pod0"])
    most = dice.choice((1, 2, 6))
    members = dice.random() < 0.6
    problem = Problem.from_counts(
        topology=fabric,
        capacity={host: dice.randint(0, most) for host in fabric.hosts},
        members={host: dice.choice((0, 0, 1, 3)) for host in fabric.hosts if members},
        awaiting=dice.randint(0, 20),
        group_id=str(dice.random()),
    )
    if dice.random() < 0.5:
        return problem
    return replace(problem, pack_hosts=False)


def test_a_group_that_is_placed_leaf_by_leaf_stands_where_it_would_vm_by_vm():
    dice, full, mixed = random.Random(5), 0, 0
    for number in range(1000):
        problem = drawn_problem(dice)
        capacity, members, turns = problem.capacity.copy(), problem.members.copy(), []
        for left in range(problem.awaiting, 0, -1):
            now = replace(problem, capacity=capacity, members=members, awaiting=left)
            host = int(listing_1.host_order(now)[0])
            if not capacity[host]:
                break
            capacity[host] -= 1
            members[host] += 1
            turns.append(host)
        assert listing_1.group_places(problem) == turns, number
        full += len(turns) < problem.awaiting
        mixed += len(set(problem.topology.leaf_index[turns].tolist())) > 1
    # Some have no room for all, and many fill more than one leaf.
    assert full > 50
    assert mixed > 200
