"""Lint: findings in a legal fabric."""

from typing import Any

import pytest

from hpc_sched.topology import Topology
from hpc_sched.topology.compare import lint, uplinks
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details


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
    links = {f"l{i}": Links(400, Cables.of([100 * i])) for i in range(2, 5)}
    uneven = fabric({"l2": 2, "l3": 2, "l4": 2}, details=Details(links=links))
    assert lint.of(uneven) == [
        (lint.LINKS, "leaf oversubscribed from 1:1 to 2:1, no ratio is that of most"),
    ]


def test_switches_with_another_oversubscription_than_most_are_reported():
    links = {f"l{i}": Links(400, Cables.of([200])) for i in range(1, 5)}
    links["l4"] = Links(400, Cables.of([125]))
    links["l3"] = Links(300, Cables.of([150]))  # as much as the others
    even = fabric({"l1": 2, "l2": 2, "l3": 2, "l4": 2}, details=Details(links=links))
    assert lint.of(even) == [
        (lint.LINKS, "leaf oversubscribed 3.2:1, where 3 of 4 are 2:1: l4"),
    ]
    assert lint.oversubscription(even) == {"leaf": 2}


def leaves(cables: dict[str, tuple[int, int]], **down: float) -> Topology:
    """Return leaves with number and rate of their uplinks, and 400 Gb/s down by default."""
    links = {
        leaf: Links(down.get(leaf, 400), Cables.of([rate] * number))
        for leaf, (number, rate) in cables.items()
    }
    return fabric(dict.fromkeys(cables, 2), details=Details(links=links))


def test_leaves_with_half_of_the_usual_uplinks_or_less_are_reported_once():
    found = leaves({"l1": (4, 50), "l2": (4, 50), "l3": (2, 50), "l4": (4, 50), "l5": (2, 50)})
    assert lint.of(found) == [
        (
            lint.UPLINKS,
            "leaf with uplinks of 2 x 50 Gb/s, at most half of the median, 4 x 50 Gb/s: l[3,5]",
        ),
    ]
    assert lint.few_uplinks(found) == [lint.of(found)[0][1]]
    less = leaves({"l1": (4, 50), "l2": (4, 50), "l3": (3, 50)})
    assert [kind for kind, _ in lint.of(less)] == [lint.LINKS]


def test_of_two_leaves_the_one_with_half_of_the_others_uplinks_is_reported():
    assert lint.few_uplinks(leaves({"l1": (4, 100), "l2": (2, 100)})) == [
        "leaf with uplinks of 2 x 100 Gb/s, at most half of the median, 4 x 100 Gb/s: l2"
    ]


def test_a_leaf_with_fewer_uplinks_because_it_has_less_below_is_none():
    cables = {"l1": (4, 50), "l2": (4, 50), "l3": (2, 50)}
    assert lint.few_uplinks(leaves(cables, l3=200)) == []
    assert lint.few_uplinks(leaves(cables)) != []


def test_where_no_rate_is_known_numbers_of_uplinks_are_compared():
    links = {f"l{i}": Links(None, Cables.of([None] * (1 if i == 3 else 4))) for i in range(1, 5)}
    found = fabric(dict.fromkeys(links, 2), details=Details(links=links))
    assert lint.of(found) == [
        (
            lint.UPLINKS,
            "leaf with uplinks of 1 of unknown rate, at most half of the median, "
            "4 of unknown rate: l3",
        ),
    ]


def test_uplinks_of_pods_are_compared_with_those_of_pods():
    tree = {"core": {f"p{i}": {f"l{i}": [f"h{i}"]} for i in range(1, 4)}}
    links = {f"p{i}": Links(800, Cables.of([200] * (1 if i == 2 else 3))) for i in range(1, 4)}
    links |= {f"l{i}": Links(100, Cables.of([100])) for i in range(1, 4)}
    found = Topology.from_tree(tree, details=Details(links=links))
    assert lint.few_uplinks(found) == [
        "pod with uplinks of 1 x 200 Gb/s, at most half of the median, 3 x 200 Gb/s: p2"
    ]


def test_oversubscription_follows_from_the_links_of_hosts_and_switches_below():
    #      core            pods have 2 x 100 and 1 x 50, leaves 1 x 100, hosts 1 x 100 but c
    #    p1     p2
    #  l1  l2   l3
    #  a b c    d
    links = {
        "p1": Links(None, Cables.of([100, 100])),
        "p2": Links(None, Cables.of([50])),
        **{f"l{i}": Links(None, Cables.of([100])) for i in (1, 2, 3)},
    }
    found = Topology.from_tree(
        {"core": {"p1": {"l1": ["a", "b"], "l2": ["c"]}, "p2": {"l3": ["d"]}}},
        details=Details(links=links),
        host_links=dict.fromkeys("abd", Cables.of([100])),
        oversubscription={"leaf": 4, "core": 9},
    )
    ratios = {s.name: r for s, r in zip(found.switches, uplinks.ratios(found), strict=True)}
    assert ratios == {"core": None, "p1": 1, "l1": 2, "l2": None, "p2": 2, "l3": 1}


@pytest.mark.parametrize("links", [{}, {"a": Links(None, Cables.of([None, 100]))}])
def test_a_switch_without_uplinks_of_known_rate_has_the_ratio_of_its_level(links):
    details = Details(links=links)
    found = fabric({"a": 2, "b": 2}, oversubscription={"leaf": 4, "pod": 2}, details=details)
    assert uplinks.ratios(found) == [None, 4, 4]
    assert lint.oversubscription(found) == {"leaf": 4}
    assert lint.of(found) == []


def test_the_oversubscription_of_each_level_is_that_of_most_of_its_switches():
    details = Details(
        links={
            "a": Links(3, Cables.of([2])),
            "b": Links(3, Cables.of([2])),
            "p": Links(6, Cables.of([1])),
            "q": Links(6, Cables.of([0.9999])),
            "core": Links(9, Cables()),
        }
    )
    tree = {"core": {"p": {"a": ["h1"]}, "q": {"b": ["h2"]}}}
    found = Topology.from_tree(tree, details=details)
    assert lint.oversubscription(found) == {"leaf": 1.5, "pod": 6}
    assert lint.of(found) == []


def test_a_fabric_whose_links_are_not_known_has_no_oversubscription():
    assert lint.oversubscription(fabric({"a": 1})) == {}
