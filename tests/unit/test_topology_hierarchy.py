"""Trees made of graphs: exact on fat trees, the smallest ultrametric above distances elsewhere."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology import Topology
from hpc_sched.topology.hierarchy import Leaf, Upper, build
from tests.unit.fabrics import check, hops_by_names


def leaves(count: int) -> list[Leaf]:
    """Return leaves of one host each, host i below leaf i."""
    return [Leaf((f"leaf{i}",), (f"h{i}",)) for i in range(count)]


def near_of(distance: list[list[int]]) -> list[list[int]]:
    """Return, per number of switches, the leaves within that distance, as ``build`` takes them."""
    count = len(distance)
    most = max(max(row) for row in distance)
    return [
        [sum(1 << j for j in range(count) if distance[i][j] <= d) for i in range(count)]
        for d in range(1, most + 1)
    ]


def distances(count: int, **pairs: int) -> list[list[int]]:
    """Return a table of distances: 1 to itself, else as named (``d01=3``), else the largest."""
    most = max(pairs.values(), default=3)
    table = [[1 if i == j else most for j in range(count)] for i in range(count)]
    for name, value in pairs.items():
        i, j = int(name[1]), int(name[2])
        table[i][j] = table[j][i] = value
    return table


def hops(fabric: Topology, i: int, j: int) -> float:
    return fabric.hops(f"h{i}", f"h{j}")


def test_a_fat_tree_with_all_its_spines_has_one_node_for_them():
    #   spine1  spine2
    #     | \  / |          both spines reach both leaves
    #   leaf0  leaf1
    fabric = build(
        leaves(2),
        [[1, 2], [1, 2], [3, 3]],
        [Upper("spine1", 2, 3), Upper("spine2", 2, 3)],
    )
    check(fabric)
    assert fabric.roots == ("spine[1-2]",)
    assert fabric.switches[0].members == ("spine1", "spine2")
    assert hops(fabric, 0, 1) == 3
    assert fabric.remarks == ()


def test_leaves_that_nothing_connects_are_islands():
    fabric = build(leaves(3), [[1, 2, 4], [1, 2, 4], [3, 3, 4]], [Upper("s", 2, 3)])
    assert fabric.roots == ("s", "leaf2")
    assert hops(fabric, 0, 2) == float("inf")


def test_a_graph_that_is_no_tree_is_reported_with_its_worst_pair():
    # leaf0 -3- leaf1 -3- leaf2, but 5 from leaf0 to leaf2
    fabric = build(leaves(3), near_of(distances(3, d01=3, d12=3, d02=5)), [])
    assert [hops(fabric, *pair) for pair in ((0, 1), (0, 2), (1, 2))] == [3, 5, 5]
    assert fabric.remarks == (
        "the fabric is no tree: distances are rounded up to one, at worst from 3 to 5 switches, "
        "between leaf1 and leaf2",
    )


def test_an_even_distance_is_rounded_up():
    fabric = build(leaves(2), near_of(distances(2, d01=2)), [])
    assert hops(fabric, 0, 1) == 3
    assert "from 2 to 3 switches" in fabric.remarks[0]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_hosts_that_share_a_switch_of_several_are_in_different_leaves_all_the_same(rows: int):
    # Two leaves of two rails each that have one rail switch in common: 1 switch on the path.
    rails = [Leaf(("a1", "a2"), ("h0",)), Leaf(("a2", "a3"), ("h1",))]
    fabric = build(rails, [[3, 3]] * rows, [])
    assert fabric.leaves == ("a[1-2]", "a[2-3]")
    assert hops(fabric, 0, 1) == 3
    assert "from 1 to 3 switches" in fabric.remarks[0]


def test_a_leaf_that_reaches_two_unconnected_ones_is_on_the_island_of_one():
    # Two rails without a link: leaf1 has both.
    fabric = build(leaves(3), [[1, 2, 4], [1, 2, 4], [3, 7, 6]], [])
    assert [hops(fabric, *pair) for pair in ((0, 1), (0, 2), (1, 2))] == [3, math.inf, math.inf]
    assert fabric.remarks == (
        "the fabric is no tree: leaf1 and leaf2 are 3 switches apart and on different islands, "
        "for not all that reach the one reach the other",
    )


def test_a_switch_above_a_single_leaf_keeps_its_level():
    #        core              5 switches between the hosts
    #     pod0   pod1
    #    leaf0   leaf1
    fabric = build(
        leaves(2),
        [[1, 2]] * 4 + [[3, 3]],
        [Upper("pod0", 2, 1), Upper("pod1", 2, 2), Upper("core", 3, 3)],
    )
    assert fabric.ancestors("h0") == ("leaf0", "pod0", "core")
    assert hops(fabric, 0, 1) == 5


def test_a_level_without_a_switch_is_filled():
    fabric = build(leaves(2), [[1, 2]] * 4 + [[3, 3]], [])
    check(fabric)
    assert hops(fabric, 0, 1) == 5


def test_switches_of_one_name_are_distinguished():
    fabric = build(leaves(2), [[1, 2], [1, 2], [3, 3]], [Upper("leaf0", 2, 3)])
    assert fabric.roots == ("leaf0#2",)


def test_many_names_are_shortened():
    spines = [Upper(f"switch-{'x' * i}", 2, 3) for i in range(1, 30)]
    fabric = build(leaves(2), [[1, 2], [1, 2], [3, 3]], spines)
    assert fabric.roots == ("switch-x+28",)
    assert len(fabric.switches[0].members) == 29


def test_a_chain_of_more_levels_than_any_fabric_has_is_an_error():
    near = [[1, 2]] * 70 + [[3, 3]]
    with pytest.raises(exceptions.TopologyError, match="36 levels of switches, 32 at most"):
        build(leaves(2), near, [])


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Draw the distances of a connected graph of up to 7 leaves, as switches on the path."""
    count = draw(st.integers(1, 7))
    table = [[0 if i == j else 99 for j in range(count)] for i in range(count)]
    for i in range(1, count):
        j = draw(st.integers(0, i - 1))
        table[i][j] = table[j][i] = draw(st.integers(1, 4))
    for i, j in itertools.combinations(range(count), 2):
        if draw(st.booleans()):
            table[i][j] = table[j][i] = min(table[i][j], draw(st.integers(1, 6)))
    for k, i, j in itertools.product(range(count), repeat=3):
        table[i][j] = min(table[i][j], table[i][k] + table[k][j])
    return [[step + 1 for step in row] for row in table]


def partitions(items: list[int]) -> list[list[list[int]]]:
    """Return every partition of a list."""
    if not items:
        return [[]]
    first, *rest = items
    found = []
    for part in partitions(rest):
        found.append([[first], *part])
        for i in range(len(part)):
            found.append([*part[:i], [first, *part[i]], *part[i + 1 :]])
    return found


@given(graphs())
def test_hops_are_never_below_the_distances_and_no_smaller_ultrametric_is(distance):
    count = len(distance)
    fabric = build(leaves(count), near_of(distance), [])
    check(fabric)
    pairs = list(itertools.combinations(range(count), 2))
    for i, j in pairs:
        assert hops(fabric, i, j) >= distance[i][j]
        assert hops(fabric, i, j) == hops_by_names(fabric, f"h{i}", f"h{j}")
    worst = max((hops(fabric, i, j) - distance[i][j] for i, j in pairs), default=0)
    assert bool(fabric.remarks) == (worst > 0)
    if worst:
        assert any(
            f"from {distance[i][j]} to {hops(fabric, i, j)} switches" in fabric.remarks[0]
            for i, j in pairs
            if hops(fabric, i, j) - distance[i][j] == worst
        )
    # On each level: no coarser partition of what is one below keeps all pairs near enough.
    for level in range(2, fabric.depth + 1):
        below = classes(fabric, level - 1)
        mine = classes(fabric, level)
        for union in partitions(list(range(len(below)))):
            coarser = {frozenset(set().union(*(below[i] for i in part))) for part in union}
            is_above = all(any(mine_ <= other for other in coarser) for mine_ in mine)
            if is_above and coarser != set(mine):
                assert any(
                    distance[i][j] > 2 * level - 1
                    for part in coarser
                    for i, j in itertools.combinations(sorted(part), 2)
                )


def classes(fabric: Topology, level: int) -> list[frozenset[int]]:
    """Return the leaves that are one on a level."""
    found: dict[int, set[int]] = {}
    for i, switch in enumerate(fabric.groups[level - 1].tolist()):
        found.setdefault(switch, set()).add(int(fabric.hosts[i][1:]))
    return sorted((frozenset(part) for part in found.values()), key=min)
