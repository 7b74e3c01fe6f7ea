"""Differences between two descriptions of a fabric."""

import itertools
import math
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.topology import Topology
from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.difference import Change, HopChange
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details

#            core
#          /      \
#       pod1        pod2
#      /    \      /    \
#  leaf1  leaf2  leaf3  leaf4
#  n1 n2  n3 n4  n5 n6  n7 n8
TREE: dict[str, Any] = {
    "core": {
        "pod1": {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]},
        "pod2": {"leaf3": ["n5", "n6"], "leaf4": ["n7", "n8"]},
    }
}


def fabric(tree: dict[str, Any] = TREE, **parts: Any) -> Topology:
    return Topology.from_tree(tree, **parts)


def test_a_fabric_does_not_differ_from_itself():
    found = difference.between(fabric(), fabric())
    assert not found
    assert found.sentences() == ()
    assert found.summary() == "no difference"


def test_the_order_of_the_description_is_no_difference():
    turned = {
        "core": {
            "pod2": {"leaf4": ["n8", "n7"], "leaf3": ["n5", "n6"]},
            "pod1": {"leaf2": ["n4", "n3"], "leaf1": ["n1", "n2"]},
        }
    }
    assert not difference.between(fabric(), fabric(turned))


def test_a_leaf_that_is_gone_takes_its_hosts_along():
    less = {"core": {"pod1": TREE["core"]["pod1"], "pod2": {"leaf3": ["n5", "n6"]}}}
    gone = difference.between(fabric(), fabric(less))
    assert gone.hosts == (Change(("n7", "n8"), "leaf4", None),)
    assert gone.switches == (Change(("leaf4",), "pod2", None),)
    assert gone.sentences() == ("hosts gone from leaf4: n[7-8]", "switch gone from pod2: leaf4")
    assert gone.summary() == "hosts gone: n[7-8]; switches gone: leaf4"
    back = difference.between(fabric(less), fabric())
    assert back.sentences() == ("hosts new at leaf4: n[7-8]", "switch new at pod2: leaf4")
    assert back.summary() == "hosts new: n[7-8]; switches new: leaf4"


def test_hosts_that_change_places_have_moved_and_so_have_their_distances():
    tree = {
        "core": {
            "pod1": {"leaf1": ["n1", "n5"], "leaf2": ["n3", "n4"]},
            "pod2": {"leaf3": ["n2", "n6"], "leaf4": ["n7", "n8"]},
        }
    }
    found = difference.between(fabric(), fabric(tree))
    assert found.hosts == (
        Change(("n2",), "leaf1", "leaf3"),
        Change(("n5",), "leaf3", "leaf1"),
    )
    assert not found.switches
    assert found.sentences() == (
        "host moved from leaf1 to leaf3: n2",
        "host moved from leaf3 to leaf1: n5",
        "hops: 1 became 5 for 2 pairs of hosts",
        "hops: 3 became 5 for 4 pairs of hosts",
        "hops: 5 became 1 for 2 pairs of hosts",
        "hops: 5 became 3 for 4 pairs of hosts",
    )
    assert found.summary() == "hosts moved: n[2,5]; hops changed: 12 pairs of hosts"


def test_a_switch_with_the_same_hosts_and_another_name_is_renamed():
    tree = {
        "core": {
            "west": {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"]},
            "pod2": {"leaf3": ["n5", "n6"], "sw4": ["n7", "n8"]},
        }
    }
    found = difference.between(fabric(), fabric(tree))
    assert found == difference.Difference(
        renamed=(Change(("sw4",), "leaf4", "sw4"), Change(("west",), "pod1", "west"))
    )
    assert found.sentences() == (
        "switch renamed: leaf4 is now sw4",
        "switch renamed: pod1 is now west",
    )
    assert found.summary() == "switches renamed: sw4,west"


def test_a_renamed_leaf_that_lost_a_host_is_known_by_the_others():
    tree = {"core": {"pod1": TREE["core"]["pod1"], "pod2": {"leaf3": ["n5", "n6"], "sw4": ["n8"]}}}
    found = difference.between(fabric(), fabric(tree))
    assert found.renamed == (Change(("sw4",), "leaf4", "sw4"),)
    assert found.hosts == (Change(("n7",), "sw4", None),)


def test_of_switches_with_the_same_hosts_the_lower_one_gets_the_lower_name():
    found = difference.between(
        fabric({"a": {"b": ["n1"]}, "c": ["n2"]}), fabric({"x": {"y": ["n1"]}, "c": ["n2"]})
    )
    assert found.renamed == (Change(("x",), "a", "x"), Change(("y",), "b", "y"))


def test_two_leaves_that_swap_their_names_swap_their_hosts():
    found = difference.between(
        fabric({"s": {"a": ["n1"], "b": ["n2"]}}), fabric({"s": {"a": ["n2"], "b": ["n1"]}})
    )
    assert found.sentences() == ("host moved from a to b: n1", "host moved from b to a: n2")


def test_a_leaf_that_hangs_elsewhere_has_moved_with_its_hosts():
    tree = {
        "core": {
            "pod1": {"leaf1": ["n1", "n2"]},
            "pod2": {"leaf2": ["n3", "n4"], "leaf3": ["n5", "n6"], "leaf4": ["n7", "n8"]},
        }
    }
    found = difference.between(fabric(), fabric(tree))
    assert found.switches == (Change(("leaf2",), "pod1", "pod2"),)
    assert found.hops == (HopChange(4, 3, 5), HopChange(8, 5, 3))


def test_a_fabric_that_falls_apart_has_infinite_hops():
    tree = dict(TREE["core"])
    found = difference.between(fabric(), fabric(tree))
    assert found.hops == (HopChange(16, 5, math.inf),)
    assert found.sentences() == (
        "switch gone from the top: core",
        "switches moved from core to the top: pod[1-2]",
        "levels: leaf, pod, core became leaf, pod",
        "hops: 5 became infinite for 16 pairs of hosts",
    )
    assert difference.between(fabric(tree), fabric()).hops == (HopChange(16, math.inf, 5),)


def test_another_name_of_a_level_is_a_difference():
    found = difference.between(fabric(), fabric(levels=("leaf", "row", "core")))
    assert found.sentences() == ("levels: leaf, pod, core became leaf, row, core",)
    assert found.summary() == "levels: leaf, row, core"


def test_changed_processors_are_reported_folded():
    found = difference.between(
        fabric(processors={"pod1": "gold"}),
        fabric(processors={"pod1": "gold", "leaf2": "epyc", "leaf3": "epyc"}),
    )
    assert found.sentences() == (
        "processor of n[3-4]: gold became epyc",
        "processor of n[5-6]: unknown became epyc",
    )
    assert found.summary() == "processors changed: n[3-6]"


def test_members_and_links_of_a_merged_switch_are_compared():
    old = Details(members={"core": ("s1", "s2")}, links={"core": Links(800, Cables())})
    new = Details(members={"core": ("s1", "s3")}, links={"core": Links(400, Cables())})
    found = difference.between(fabric(details=old), fabric(details=new))
    assert found.sentences() == (
        "members of core: s[1-2] became s[1,3]",
        "links of core: 800 Gb/s down, 0 up became 400 Gb/s down, 0 up",
    )


def test_members_that_differ_late_in_a_long_list_are_a_difference_on_one_line():
    names = [f"s{i * 7919 % 10007}-{'xyz'[i % 3]}" for i in range(300)]
    members = [tuple(sorted([*names, last])) for last in ("zz1", "zz2")]
    old, new = (fabric(details=Details(members={"core": one})) for one in members)
    found = difference.between(old, new)
    assert [change.names for change in found.members] == [("core",)]
    [sentence] = found.sentences()
    assert sentence.startswith("members of core: ")
    assert len(sentence) < 1000


def test_links_that_one_description_alone_states_are_no_difference():
    known = Details(members={"core": ("s1", "s2")}, links={"core": Links(800, Cables())})
    assert not difference.between(fabric(details=known), fabric())
    assert not difference.between(fabric(), fabric(details=known))


def linked(
    down: float | None, *rates: float | None, ratio: float | None = None, host: float | None = None
) -> Topology:
    """Return the fabric with uplinks of leaf1, a ratio of leaves and the links of n1 and n2."""
    return fabric(
        details=Details(links={"leaf1": Links(down, Cables.of(rates))} if rates else {}),
        oversubscription={} if ratio is None else {"leaf": ratio},
        host_links={} if host is None else dict.fromkeys(("n1", "n2"), Cables.of([host])),
    )


def test_changed_uplinks_links_of_hosts_and_ratios_are_reported():
    old = linked(200, 100, 100, ratio=4, host=100)
    new = linked(200, 200, ratio=2, host=25)
    found = difference.between(old, new)
    assert found.sentences() == (
        "links of leaf1: 200 Gb/s down, 2 x 100 up became 200 Gb/s down, 1 x 200 up",
        "host links of n[1-2]: 1 x 100 became 1 x 25",
        "oversubscription of leaf: 4:1 became 2:1",
    )
    assert found.summary() == (
        "links changed: leaf1; host links changed: n[1-2]; oversubscription changed: leaf"
    )


def test_what_one_description_alone_states_of_links_is_no_difference_unless_it_is_asked_for():
    stated = linked(200, 100, 100, ratio=4, host=100)
    for pair in ((stated, fabric()), (fabric(), stated)):
        assert not difference.between(*pair)
    assert difference.between(fabric(), stated, one_sided=True).sentences() == (
        "links of leaf1: unknown became 200 Gb/s down, 2 x 100 up",
        "host links of n[1-2]: unknown became 1 x 100",
        "oversubscription of leaf: unknown became 4:1",
    )
    assert difference.between(stated, fabric(), one_sided=True).sentences()[0] == (
        "links of leaf1: 200 Gb/s down, 2 x 100 up became unknown"
    )


def test_rates_that_one_description_alone_states_are_no_difference_but_numbers_are():
    known, numbers = linked(200, 100, 100), linked(None, None, None)
    assert not difference.between(known, numbers)
    assert difference.between(known, numbers, one_sided=True)
    assert difference.between(linked(200, 100), numbers).sentences() == (
        "links of leaf1: 1 up became 2 up",
    )
    assert not difference.between(linked(None, 100), linked(200, 100))


def test_fabrics_without_a_common_host_have_no_common_hops():
    found = difference.between(fabric(), fabric({"x": ["m1"]}))
    assert found.summary() == (
        "hosts gone: n[1-8]; hosts new: m1; switches gone: core,leaf[1-4],pod[1-2]; "
        "switches new: x; levels: leaf"
    )


def test_a_summary_is_bounded_and_still_counts():
    names = [f"host-{i * 7}-{i}x" for i in range(400)]
    old = fabric({"core": {f"leaf{i * 3}": [name] for i, name in enumerate(names)}})
    summary = difference.between(old, fabric({"elsewhere": ["n1"]})).summary()
    assert len(summary) <= difference.MAX_SUMMARY
    assert "... (400)" in summary
    assert "hosts new: n1" in summary


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Hosts scattered over two or three levels, some of them left out."""
    leaves: dict[str, list[str]] = {}
    for i in range(draw(st.integers(1, 8))):
        leaf = draw(st.sampled_from(["a", "b", "c", "d", "-"]))
        if leaf != "-":
            leaves.setdefault(leaf, []).append(f"n{i}")
    leaves = leaves or {"a": ["n0"]}
    tree: dict[str, Any] = {}
    for leaf, hosts in leaves.items():
        above = draw(st.sampled_from(["", "p", "q"]))
        if above:
            tree.setdefault(above, {})[leaf] = hosts
        else:
            tree[leaf] = hosts
    return fabric({"top": tree} if draw(st.booleans()) else tree)


@given(fabrics(), fabrics())
def test_hop_changes_are_those_of_all_pairs(old: Topology, new: Topology):
    counted = Counter(
        (old.hops(a, b), new.hops(a, b))
        for a, b in itertools.combinations([host for host in old.hosts if host in new], 2)
        if old.hops(a, b) != new.hops(a, b)
    )
    found = difference.between(old, new).hops
    assert {(change.old, change.new): change.pairs for change in found} == counted


@given(fabrics(), fabrics())
def test_the_way_back_has_as_many_changes(old: Topology, new: Topology):
    there, back = difference.between(old, new), difference.between(new, old)
    assert bool(there) == bool(back)
    assert sum(len(c.names) for c in there.hosts) == sum(len(c.names) for c in back.hosts)
    assert {(one.new, one.old) for one in there.renamed} == {
        (one.old, one.new) for one in back.renamed
    }
    assert len(there.summary()) <= difference.MAX_SUMMARY
