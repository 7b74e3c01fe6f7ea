"""The fabric as a tree: levels, hops, padding, newcomers."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core import constraints
from hpc_sched.topology import Topology
from hpc_sched.topology.tree import level_names
from tests.unit import fabrics
from tests.unit.fabrics import check

# Some of these names are in a random fabric.
NAMES = st.lists(st.integers(0, 40).map(lambda n: f"h{n:02}"), max_size=5)


def level_of(topology: Topology, switch: str) -> int:
    return topology.switches[topology.switch_index(switch)].level


def test_a_fabric_lists_hosts_and_leaves_in_the_order_of_its_description():
    fabric = fabrics.two_pods()
    assert fabric.hosts == ("a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2")
    assert fabric.leaves == ("leaf1", "leaf2", "leaf3", "leaf4")
    assert fabric.roots == ("core",)
    assert fabric.depth == 3
    assert repr(fabric) == "<Topology 8 hosts, 4 leaves, depth 3>"


@pytest.mark.parametrize(
    ("a", "b", "hops"),
    [
        pytest.param("a1", "a1", 0, id="one host is no hop away from itself"),
        pytest.param("a1", "a2", 1, id="one leaf is one hop"),
        pytest.param("a1", "b2", 3, id="one pod is up to the pod and down again"),
        pytest.param("a1", "d2", 5, id="two pods are up to the core and down again"),
    ],
)
def test_hops_counts_the_switches_on_the_path(a: str, b: str, hops: int):
    assert fabrics.two_pods().hops(a, b) == hops


def test_a_branch_shorter_than_its_siblings_is_padded_below_their_parent():
    fabric = fabrics.lopsided()
    assert [level_of(fabric, name) for name in ("core", "pod1", "leaf1", "leaf3")] == [3, 2, 1, 1]
    assert fabric.hops("c1", "c2") == 1
    assert fabric.hops("c1", "d1") == fabric.hops("c1", "a1") == 5
    assert fabric.ancestors("c1") == ("leaf3", "core")


def test_between_islands_there_is_no_path():
    fabric = fabrics.islands()
    assert fabric.roots == ("west", "east")
    assert fabric.hops("a1", "e1") == math.inf
    assert fabric.hops("e1", "e2") == 1


def test_a_switch_knows_its_hosts_and_children_on_every_level():
    fabric = fabrics.lopsided()
    assert fabric.hosts_of("core") == fabric.hosts
    assert fabric.hosts_of("pod1") == ("a1", "b1")
    assert fabric.hosts_of("leaf3") == ("c1", "c2")
    assert fabric.children_of("core") == ("pod1", "leaf3", "leaf4")
    assert fabric.children_of("leaf3") == ()
    assert fabric.leaf_of("d2") == "leaf4"


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda t: t.hops("a1", "nope"), id="hops to an unknown host"),
        pytest.param(lambda t: t.leaf_of("nope"), id="the leaf of an unknown host"),
        pytest.param(lambda t: t.ancestors("leaf1"), id="a switch is no host"),
        pytest.param(lambda t: t.hosts_of("nope"), id="the hosts of an unknown switch"),
        pytest.param(lambda t: t.children_of("a1"), id="a host is no switch"),
        pytest.param(lambda t: t.processor_of("nope"), id="the processor of an unknown host"),
    ],
)
def test_an_unknown_name_is_a_lookup_error_that_names_it(ask: Any):
    with pytest.raises(exceptions.UnknownHostError, match="is not in the topology") as caught:
        ask(fabrics.two_leaves())
    assert isinstance(caught.value, LookupError)


def test_the_processor_is_the_one_that_the_nearest_switch_states():
    fabric = Topology.from_tree(
        {"core": {"leaf1": ["a1"], "leaf2": ["b1"]}, "east": ["e1"]},
        processors={"core": "gold", "leaf2": "silver"},
    )
    assert [fabric.processor_of(host) for host in fabric.hosts] == ["gold", "silver", None]


def test_a_hosts_own_processor_goes_before_that_of_its_switches():
    fabric = Topology.from_tree(
        {"core": {"leaf1": ["a1", "a2"], "leaf2": ["b1"]}},
        processors={"leaf1": "gold"},
        host_processors={"a2": "epyc", "b1": "epyc"},
    )
    check(fabric)
    assert [fabric.processor_of(host) for host in fabric.hosts] == ["gold", "epyc", "epyc"]


def test_a_processor_of_a_host_that_the_tree_does_not_have_is_refused():
    with pytest.raises(exceptions.TopologyError, match=r"host 'leaf1' has a processor type, but"):
        Topology.from_tree({"leaf1": ["a1"]}, host_processors={"z": "x", "leaf1": "x", "a1": "x"})


def test_a_fabric_keeps_its_processors_whatever_becomes_of_the_callers_dict():
    types = {"a1": "epyc"}
    fabric = Topology.from_tree({"leaf1": ["a1"]}, host_processors=types)
    types["a1"] = "gold"
    assert fabric.processor_of("a1") == "epyc"


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param({"core": {"leaf1": ["a1", "a2"]}}, id="below a root"),
        pytest.param({"leaf1": ["a1", "a2"]}, id="next to a single leaf"),
        pytest.param({"leaf1": ["a1", "a2"], "leaf2": ["b1"]}, id="next to islands"),
    ],
)
def test_newcomers_change_no_processor_and_have_none(tree: dict[str, Any]):
    fabric = Topology.from_tree(
        tree, processors={"core": "old", "leaf1": "gold"}, host_processors={"a2": "epyc"}
    ).including(["x1"])
    check(fabric)
    assert [fabric.processor_of(host) for host in ("a1", "a2", "x1")] == ["gold", "epyc", None]


@pytest.mark.parametrize(
    ("tree", "levels", "error"),
    [
        pytest.param({}, (), "names no switch", id="an empty tree"),
        pytest.param(["h1"], (), "names no switch", id="a list instead of switches"),
        pytest.param({"core": {}}, (), "'core' has nothing below it", id="an empty switch"),
        pytest.param({"leaf": []}, (), "leaf 'leaf' has no hosts", id="an empty leaf"),
        pytest.param({"leaf": "h1"}, (), "expected switches or a list", id="a text for a list"),
        pytest.param({"leaf": None}, (), "expected switches or a list", id="nothing for a list"),
        pytest.param(
            {"x": {"y": ["h1"]}, "z": {"y": ["h2"]}},
            (),
            "switch 'y' stands twice",
            id="two parents",
        ),
        pytest.param(
            {"y": ["h1"], "z": ["h1"]}, (), "'h1' is under leaf 'y' and leaf 'z'", id="two leaves"
        ),
        pytest.param({"y": ["h"]}, ("a", "b"), "2 names .* depth 1", id="too many level names"),
        pytest.param({"x": {"y": ["h"]}}, ("a",), "1 names .* depth 2", id="too few level names"),
        pytest.param({"x": {"y": ["h"]}}, ("a", "a"), "twice", id="a level name given twice"),
    ],
)
def test_a_wrong_tree_is_refused(tree: Any, levels: tuple[str, ...], error: str):
    with pytest.raises(exceptions.TopologyError, match=error):
        Topology.from_tree(tree, levels=levels)


def test_a_switch_below_itself_is_refused():
    loop: dict[str, Any] = {}
    loop["core"] = loop
    with pytest.raises(exceptions.TopologyError, match="switch 'core' stands twice"):
        Topology.from_tree(loop)


def test_levels_have_default_names_that_the_description_may_replace():
    assert level_names(5) == ("leaf", "pod", "core", "level4", "level5")
    tree = {"x": {"y": ["h"]}}
    assert Topology.from_tree(tree).levels == ("leaf", "pod")
    assert Topology.from_tree(tree, levels=["rack", "room"]).levels == ("rack", "room")


def test_the_arrays_of_a_fabric_are_read_only():
    fabric = fabrics.two_leaves().including(["z9"])
    for array in (fabric.groups, fabric.name_rank, fabric.leaf_index):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("fabric", "hops"),
    [
        pytest.param(fabrics.two_pods(), 5, id="below the root of a tree"),
        pytest.param(Topology.from_tree({"sw": ["a1"]}), 3, id="next to a single leaf"),
    ],
)
def test_a_host_without_a_description_is_a_leaf_of_its_own(fabric: Topology, hops: float):
    grown = fabric.including(["a1", "x2", "x1", "x2"])
    check(grown)
    assert grown.hosts == (*fabric.hosts, "x1", "x2")
    assert grown.leaf_of("x1") == "x1"
    assert grown.hops("x1", "x2") == grown.hops("x1", "a1") == hops
    assert "x1" not in fabric


DEEP = {"west": {"pod": {"leaf1": ["a1"], "leaf2": ["b1"]}}, "unnamed": {"leaf3": ["c1"]}}


@pytest.mark.parametrize(
    ("fabric", "hops"),
    [
        # west            east       unnamed      level 2
        # leaf1 leaf2     |          |     |
        # a1 a2 b1 b2     e1 e2      x1    x2     level 1
        pytest.param(fabrics.islands(), 3, id="islands of two levels"),
        # west           unnamed     unnamed'     level 3
        # pod            |           |     |      level 2, that of the island unnamed
        # leaf1 leaf2    leaf3       |     |
        # a1    b1       c1          x1    x2     level 1
        pytest.param(Topology.from_tree(DEEP), 5, id="islands of three levels"),
        #                            unnamed      level 2, which the description does not have
        # leaf1 leaf2                |     |
        # a1    b1                   x1    x2     level 1
        pytest.param(
            Topology.from_tree({"leaf1": ["a1"], "leaf2": ["b1"]}), 3, id="islands of one leaf"
        ),
    ],
)
def test_hosts_without_a_description_have_one_root_next_to_islands(fabric: Topology, hops: float):
    grown = fabric.including(["x1", "x2"])
    check(grown)
    [root] = set(grown.roots) - set(fabric.roots)
    assert root.startswith("unnamed")
    assert grown.children_of(root) == ("x1", "x2")
    assert (grown.hops("x1", "x2"), grown.hops("x1", "a1")) == (hops, math.inf)
    assert hops == 2 * grown.depth - 1
    assert grown.levels[: fabric.depth] == fabric.levels
    # One more host has the same root.
    again = grown.including(["x0"])
    check(again)
    assert (again.roots, again.levels) == (grown.roots, grown.levels)
    assert again.hops("x0", "x1") == hops


def test_a_newcomer_called_like_a_switch_gets_a_leaf_of_another_name():
    grown = fabrics.two_leaves().including(["core", "leaf1"])
    check(grown)
    assert grown.leaf_of("leaf1") == "leaf1'"
    assert grown.hosts_of("leaf1") == ("a1", "a2")


def test_a_fabric_that_lacks_nothing_is_returned_itself():
    fabric = fabrics.two_leaves()
    assert fabric.including(["a1", "b3"]) is fabric


@given(fabrics.trees(max_islands=3))
def test_every_random_fabric_keeps_its_invariants(tree: dict[str, Any]):
    fabric = Topology.from_tree(tree)
    check(fabric)
    assert sorted(fabric.hosts) == [fabric.hosts[i] for i in np.argsort(fabric.name_rank)]
    for switch in fabric.switches:
        below = {host for host in fabric.hosts if switch.name in fabric.ancestors(host)}
        assert set(fabric.hosts_of(switch.name)) == below


@given(fabrics.trees(max_hosts=12))
def test_hops_is_what_the_lowest_common_switch_says(tree: dict[str, Any]):
    fabric = Topology.from_tree(tree)
    for a, b in product(fabric.hosts, repeat=2):
        assert fabric.hops(a, b) == fabrics.hops_by_names(fabric, a, b)


@given(fabrics.trees(max_hosts=10))
def test_hops_is_symmetric_and_an_ultrametric(tree: dict[str, Any]):
    fabric = Topology.from_tree(tree)
    for a, b in combinations(fabric.hosts, 2):
        assert fabric.hops(a, b) == fabric.hops(b, a) > 0
        for c in fabric.hosts:
            assert fabric.hops(a, b) <= max(fabric.hops(a, c), fabric.hops(c, b))


@given(fabrics.trees(max_hosts=10), NAMES)
def test_newcomers_change_no_distance_between_the_others(tree: dict[str, Any], names: list[str]):
    fabric = Topology.from_tree(tree)
    grown = fabric.including(names)
    check(grown)
    assert all(name in grown for name in names)
    farthest = 2 * grown.depth - 1
    for a, b in combinations(grown.hosts, 2):
        known = (a in fabric) + (b in fabric)
        is_apart = known == 1 and len(fabric.roots) > 1
        expected = fabric.hops(a, b) if known == 2 else math.inf if is_apart else farthest
        assert grown.hops(a, b) == expected
    for name in names:
        fabric = fabric.including([name])
    for a, b in combinations(grown.hosts, 2):
        assert fabric.hops(a, b) == grown.hops(a, b)


def test_a_level_that_an_unknown_host_adds_has_a_name_of_its_own():
    fabric = Topology.from_tree({"sw": ["a"]}, levels=["pod"]).including(["b"])
    check(fabric)
    assert fabric.levels == ("pod", "level2")


@pytest.mark.parametrize(
    ("tree", "levels"),
    [
        pytest.param({"sw": ["a"]}, ["rack"], id="one leaf"),
        pytest.param({"sw": ["a"], "other": ["c"]}, ["pod"], id="islands of leaves"),
        pytest.param({"core": {"sw": ["a"]}}, ["rack", "row"], id="two levels"),
        pytest.param({"core": {"sw": ["a"]}, "other": ["c"]}, [], id="islands"),
    ],
)
def test_a_request_may_state_the_same_levels_whatever_hosts_nova_has(tree, levels):
    fabric = Topology.from_tree(tree, levels=levels)
    grown = fabric.including(["b"])
    assert fabric.request_levels == grown.request_levels == grown.levels
    for name in fabric.request_levels:
        assert constraints.level_of(fabric, name) <= constraints.level_of(grown, name)
