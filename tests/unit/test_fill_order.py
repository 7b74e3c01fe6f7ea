"""Single VMs on broken switches: the order against the formula, in fractions.

::

                      core
             /                   \\
           pod1                 pod2
        /    |    \\           /      \\
     leaf1 leaf2 leaf3     leaf4   leaf5       two hosts each: a1 a2, b1 b2, c1 c2, d1 d2, e1 e2
"""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.fragmentation.fill_order import MOST, FillOrder
from hpc_sched.topology import Topology

FABRIC = Topology.from_tree(
    {
        "core": {
            "pod1": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"], "leaf3": ["c1", "c2"]},
            "pod2": {"leaf4": ["d1", "d2"], "leaf5": ["e1", "e2"]},
        }
    }
)
SLOTS = 4


def order(fabric: Topology, room: dict[str, int], slots: int = SLOTS) -> list[list[str]]:
    """Return hosts with this room in the order in which a VM takes them, equal ones together."""
    names = sorted(room)
    hosts = np.array([fabric.index_of(name) for name in names])
    made = FillOrder.of(fabric, hosts, np.full(len(names), slots))
    left = np.array([room[name] for name in names])
    keys = made.keys(left, left < slots).tolist()
    by_key = sorted(zip(keys, names, strict=True))
    return [[name for key, name in by_key if key == wanted] for wanted in sorted({*keys})]


def test_an_empty_fabric_begins_with_the_smaller_pod_where_all_hosts_are_equal():
    found = order(FABRIC, dict.fromkeys(FABRIC.hosts, SLOTS))
    assert found == [["d1", "d2", "e1", "e2"], ["a1", "a2", "b1", "b2", "c1", "c2"]]


def test_a_broken_leaf_comes_before_whole_ones_and_its_fuller_host_first():
    room = dict.fromkeys(FABRIC.hosts, SLOTS) | {"e1": 2, "b1": 3}
    found = order(FABRIC, room)
    assert found[:3] == [["e1"], ["e2"], ["d1", "d2"]]
    assert found[3:] == [["b1"], ["b2"], ["a1", "a2", "c1", "c2"]]


def test_of_leaves_with_the_same_room_that_of_the_fuller_pod_comes_first():
    room = dict.fromkeys(FABRIC.hosts, SLOTS) | {"a1": 1, "d1": 1}
    assert order(FABRIC, room)[:2] == [["d1"], ["d2"]]
    assert order(FABRIC, room | {"b1": 0, "b2": 0, "c1": 0})[:2] == [["b1", "b2"], ["c1"]]


def test_a_host_in_use_comes_before_a_smaller_one_without_vms():
    # Of four slots a1 has one VM; a2 has two slots and none.
    made = FillOrder.of(FABRIC, np.array([0, 1]), np.array([4, 2]))
    keys = made.keys(np.array([3, 2]), np.array([True, False]))
    assert keys[0] < keys[1]


def test_a_fabric_of_two_levels_has_no_price_for_its_root():
    fabric = Topology.from_tree({"spine": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"]}})
    assert order(fabric, {"a1": 4, "a2": 4, "b1": 3, "b2": 4}) == [["b1"], ["b2"], ["a1", "a2"]]


def test_a_leaf_alone_fills_its_fullest_host():
    fabric = Topology.from_tree({"leaf1": ["a1", "a2", "a3"]})
    assert order(fabric, {"a1": 4, "a2": 1, "a3": 3}) == [["a2"], ["a3"], ["a1"]]


def test_a_host_that_the_fabric_does_not_name_is_filled_first():
    fabric = FABRIC.including(["stranger"])
    room = dict.fromkeys(fabric.hosts, SLOTS) | {"a1": 1}
    assert order(fabric, room)[0] == ["stranger"]


def test_absurd_rooms_do_not_overflow():
    fabric = FABRIC.including([f"x{number:03}" for number in range(900)])
    hosts = np.arange(len(fabric.hosts))
    huge = np.full(len(hosts), 1 << 40)
    keys = FillOrder.of(fabric, hosts, huge).keys(huge, huge > 0)
    assert keys.min() >= 0
    assert keys.max() <= (2 * len(hosts) + 1) * (MOST + 1) + MOST


rooms = st.lists(st.integers(0, SLOTS), min_size=10, max_size=10)


@given(rooms, st.sets(st.integers(0, 9), max_size=9))
def test_the_order_is_that_of_the_formula(room, absent):
    """0.1 * room of the leaf / S1 + 0.2 * room of the pod / S2, whatever hosts are candidates."""
    left = {
        host: n
        for i, (host, n) in enumerate(zip(FABRIC.hosts, room, strict=True))
        if i not in absent
    }

    def price(host: str) -> Fraction:
        leaf, pod, _ = FABRIC.ancestors(host)
        below = [sum(left.get(h, 0) for h in FABRIC.hosts_of(switch)) for switch in (leaf, pod)]
        return Fraction(1, 10) * below[0] / (2 * SLOTS) + Fraction(2, 10) * below[1] / (6 * SLOTS)

    wanted = {host: (price(host), left[host] == SLOTS, left[host]) for host in left}
    found = order(FABRIC, left)
    assert sum(map(len, found)) == len(left)
    assert [{wanted[host] for host in equal} for equal in found] == [
        {key} for key in sorted({*wanted.values()})
    ]


@given(rooms, st.permutations(range(10)))
def test_the_order_of_hosts_does_not_matter(room, rows):
    every, left = np.arange(10), np.array(room)
    plain = FillOrder.of(FABRIC, every, np.full(10, SLOTS)).keys(left, left < SLOTS)
    moved = FillOrder.of(FABRIC, every[rows], np.full(10, SLOTS))
    assert moved.keys(left[rows], left[rows] < SLOTS).tolist() == plain[rows].tolist()
