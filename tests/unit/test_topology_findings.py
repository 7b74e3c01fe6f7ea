"""Lint: findings in a legal fabric."""

from typing import Any

from hpc_sched.topology import Topology
from hpc_sched.topology.compare import lint
from hpc_sched.topology.tree import Details, Links


def fabric(sizes: dict[str, int], **parts: Any) -> Topology:
    """Return leaves of these sizes below one switch."""
    return Topology.from_tree(
        {"core": {leaf: [f"{leaf}-h{i}" for i in range(size)] for leaf, size in sizes.items()}},
        **parts,
    )


def test_an_even_tree_has_nothing_to_look_at():
    assert lint.of(fabric({"a": 4, "b": 4, "c": 4})) == []


def test_one_leaf_is_a_fabric():
    assert lint.of(Topology.from_tree({"leaf": ["h1"]})) == []


def test_leaves_of_one_host_each_are_alike():
    assert lint.of(fabric({"a": 1, "b": 1})) == []


def test_a_leaf_with_one_host_among_larger_ones_is_reported():
    assert lint.of(fabric({"a": 4, "b": 1, "c": 4})) == [
        (lint.SINGLE, "1 leaf has a single host: b"),
    ]
    assert lint.of(fabric({"l1": 4, "l2": 1, "l3": 1, "l4": 4})) == [
        (lint.SINGLE, "2 leaves have a single host: l[2-3]"),
    ]


def test_leaves_with_more_or_fewer_hosts_than_most_are_reported_by_size():
    sizes = {"l1": 4, "l2": 4, "l3": 4, "l4": 4, "l5": 3, "l6": 5, "l7": 3}
    assert lint.of(fabric(sizes)) == [
        (lint.SIZE, "2 leaves with 3 hosts, where 4 of 7 have 4: l[5,7]"),
        (lint.SIZE, "1 leaf with 5 hosts, where 4 of 7 have 4: l6"),
    ]


def test_where_no_size_is_that_of_most_none_is_odd():
    assert lint.of(fabric({"a": 2, "b": 3, "c": 5})) == [
        (lint.SIZE, "leaves have from 2 to 5 hosts, no number is that of most"),
    ]


def test_islands_are_reported_with_their_hosts_largest_first():
    tree = {"a": ["h1"], "b": {"b1": ["h2"], "b2": ["h3"]}}
    assert lint.of(Topology.from_tree(tree)) == [
        (lint.ISLANDS, "2 islands, with no link between them (hosts): b (2), a (1)"),
    ]


def test_of_many_islands_the_largest_are_named():
    [found] = lint.of(Topology.from_tree({f"i{i}": [f"h{i}"] for i in range(9)}))
    assert found[1].endswith("i0 (1), i1 (1), i2 (1), i3 (1), i4 (1) and 4 more")
    assert found[1].startswith("9 islands")


#           core
#         /      \
#       pod      leaf3
#     /     \
#  leaf1   leaf2
def test_a_leaf_directly_below_the_core_is_reported_where_others_have_a_pod():
    tree = {"core": {"pod": {"leaf1": ["a"], "leaf2": ["b"]}, "leaf3": ["c"]}}
    assert lint.of(Topology.from_tree(tree)) == [
        (lint.LEVELS, "directly below core core, with no pod between: leaf3"),
    ]


def test_where_no_oversubscription_is_that_of_most_one_sentence_has_their_range():
    links = {f"l{i}": Links(400, 100 * i) for i in range(1, 5)}
    uneven = fabric({"l1": 2, "l2": 2, "l3": 2, "l4": 2}, details=Details(links=links))
    assert lint.of(uneven) == [
        (lint.LINKS, "leaf oversubscribed from 1:1 to 4:1, no ratio is that of most"),
    ]


def test_switches_with_another_oversubscription_than_most_are_reported():
    links = {f"l{i}": Links(400, 200) for i in range(1, 5)}
    links["l4"] = Links(400, 100)
    links["l3"] = Links(300, 150)  # as much as the others
    even = fabric({"l1": 2, "l2": 2, "l3": 2, "l4": 2}, details=Details(links=links))
    assert lint.of(even) == [
        (lint.LINKS, "leaf oversubscribed 4:1, where 3 of 4 are 2:1: l4"),
    ]
    assert lint.oversubscription(even) == {"leaf": 2}


def test_the_oversubscription_of_each_level_is_that_of_most_of_its_switches():
    details = Details(
        links={
            "a": Links(3, 2),
            "b": Links(3, 2),
            "p": Links(6, 1),
            "q": Links(6, 0.9999),
            "core": Links(9, 0),
        }
    )
    tree = {"core": {"p": {"a": ["h1"]}, "q": {"b": ["h2"]}}}
    found = Topology.from_tree(tree, details=details)
    assert lint.oversubscription(found) == {"leaf": 1.5, "pod": 6}
    assert lint.of(found) == []


def test_a_fabric_whose_links_are_not_known_has_no_oversubscription():
    assert lint.oversubscription(fabric({"a": 1})) == {}
