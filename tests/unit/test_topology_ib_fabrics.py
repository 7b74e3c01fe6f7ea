"""Fabrics of every shape, discovered: hops are the switches on shortest paths, or just above."""

import math
import random
from dataclasses import replace
from itertools import combinations, pairwise, product

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology import Topology
from hpc_sched.topology.hierarchy import Leaf, build
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.readers.cabling import cabled_leaves as leaf_sets
from tests.ib_dumps import Fabric, from_links, rails, read, state, three_levels, two_levels
from tests.unit.fabrics import check


def leaf_switches(fabric: Fabric, topology: Topology, host: str) -> list[str]:
    """Return the switches of a host's leaf that most hosts of it are connected to."""
    leaf = topology.switches[topology.switch_index(topology.leaf_of(host))]
    rails = [set(fabric.hosts[other]) for other in topology.hosts_of(leaf.name)]
    return [
        switch
        for switch in leaf.members or (leaf.name,)
        if 2 * sum(switch in own for own in rails) > len(rails)
    ]


def check_hops(fabric: Fabric, topology: Topology) -> float:
    """Assert that hops are never below the distances; return the worst error, see remarks."""
    check(topology)
    assert set(topology.hosts) == set(fabric.hosts)
    # Hosts that have lost rails count as if they had all those of their leaf.
    fabric = replace(
        fabric, hosts={host: leaf_switches(fabric, topology, host) for host in fabric.hosts}
    )
    worst = 0.0
    pairs = set()
    torn = False
    for (a, b), switches in fabric.distances().items():
        hops = topology.hops(a, b)
        if topology.leaf_of(a) == topology.leaf_of(b):
            assert hops == switches == 1
        assert hops >= switches
        if hops == math.inf != switches:
            torn = True
        elif hops != switches:
            if hops - switches > worst:
                worst, pairs = hops - switches, set()
            if hops - switches == worst:
                pairs.add((int(switches), int(hops)))
    assert any("on different islands" in remark for remark in topology.remarks) == torn
    said = [remark for remark in topology.remarks if "rounded up" in remark]
    if not worst:
        assert said == []
    else:
        [sentence] = said
        assert any(f"at worst from {a} to {b} switches" in sentence for a, b in pairs)
    return worst


@pytest.mark.parametrize(
    ("fabric", "depth", "leaves"),
    [
        pytest.param(two_levels(4, 2, 8), 2, 4, id="two levels"),
        pytest.param(two_levels(4, 2, 3, cables=3), 2, 4, id="parallel links"),
        pytest.param(two_levels(1, 0, 3), 1, 1, id="a single switch"),
        pytest.param(three_levels(4, 3, 2), 3, 12, id="three levels"),
        pytest.param(three_levels(3, 1, 2), 3, 3, id="pods of a single leaf"),
        pytest.param(rails(3, 4, 4), 2, 3, id="rails, each with its own spine"),
    ],
)
def test_on_fat_trees_hops_are_the_switches_on_the_shortest_path(
    fabric: Fabric, depth: int, leaves: int
):
    topology = fabric.topology()
    assert check_hops(fabric, topology) == 0
    assert (topology.depth, len(topology.leaves)) == (depth, leaves)
    assert topology.remarks == ()


def test_four_levels_are_four_levels():
    fabric = Fabric()
    for super_pod, pod, leaf in product(range(2), repeat=3):
        name = f"{super_pod}{pod}{leaf}"
        fabric.host(f"n{name}", f"leaf{name}")
        fabric.link(f"leaf{name}", f"spine{super_pod}{pod}")
    for super_pod, pod in product(range(2), repeat=2):
        fabric.link(f"spine{super_pod}{pod}", f"core{super_pod}")
    for super_pod in range(2):
        fabric.link(f"core{super_pod}", "top")
    topology = fabric.topology()
    assert check_hops(fabric, topology) == 0
    assert topology.ancestors("n000") == ("leaf000", "spine00", "core0", "top")


def test_the_same_fabric_written_as_a_tree_has_the_same_hops():
    fabric = three_levels(3, 2, 2).topology()
    written = Topology.from_tree(
        {
            "cores": {
                f"pod{pod}": {
                    f"leaf{pod}{leaf}": [f"p{pod}l{leaf}n{i}" for i in range(2)]
                    for leaf in range(2)
                }
                for pod in range(3)
            }
        }
    )
    assert set(fabric.hosts) == set(written.hosts)
    for a, b in combinations(fabric.hosts, 2):
        assert fabric.hops(a, b) == written.hops(a, b)


def test_spines_side_by_side_are_one_node():
    topology = two_levels(3, 4, 1).topology()
    assert topology.roots == ("spine[1-4]",)
    assert topology.switches[0].members == ("spine1", "spine2", "spine3", "spine4")


def test_the_leaf_of_hosts_with_rails_has_their_leaf_switches_as_members():
    topology = rails(2, 3, 4).topology()
    leaf = topology.switches[topology.switch_index(topology.leaf_of("g1n2"))]
    assert leaf.members == ("g1r0", "g1r1", "g1r2", "g1r3")
    assert topology.hosts_of(leaf.name) == ("g1n0", "g1n1", "g1n2")


def test_a_host_with_one_rail_less_is_in_the_leaf_of_the_others():
    fabric = rails(2, 3, 4)
    fabric.host("lame", "g0r0", "g0r1", "g0r2")
    topology = fabric.topology()
    assert check_hops(fabric, topology) == 0
    assert topology.hosts_of(topology.leaf_of("lame")) == ("g0n0", "g0n1", "g0n2", "lame")
    remark = "1 host is not connected to all switches of the leaf: lame"
    assert topology.remarks == (remark,)


@pytest.mark.parametrize("pod", [0, 1])
def test_a_host_with_one_more_rail_to_the_core_brings_its_leaf_no_closer(pod: int):
    """Pods with two leaves of two rails; a host of ``pod`` is connected to a core switch too."""
    fabric = Fabric()
    for p, leaf, i in product(range(2), range(2), range(4)):
        core = ["core0"] if (p, leaf, i) == (pod, 0, 0) else []
        fabric.host(f"p{p}l{leaf}n{i}", f"p{p}l{leaf}a", f"p{p}l{leaf}b", *core)
    for p, spine, leaf, rail in product(range(2), range(2), range(2), "ab"):
        fabric.link(f"p{p}l{leaf}{rail}", f"p{p}spine{spine}")
    for p, spine, core in product(range(2), range(2), range(2)):
        fabric.link(f"p{p}spine{spine}", f"core{core}")
    topology = fabric.topology()
    assert check_hops(fabric, topology) == 0
    assert topology.leaf_of(f"p{pod}l0n0") == topology.leaf_of(f"p{pod}l0n1")
    assert topology.hops("p0l0n1", "p0l1n1") == topology.hops("p1l0n1", "p1l1n1") == 3
    assert topology.hops("p0l0n1", "p1l0n1") == topology.hops("p0l1n1", "p1l1n1") == 5


def test_parts_without_a_link_are_islands():
    fabric = two_levels(2, 2, 2)
    fabric.host("far1", "west")
    fabric.host("far2", "east")
    fabric.link("west", "middle")
    fabric.link("middle", "east")
    topology = fabric.topology()
    assert check_hops(fabric, topology) == 0
    assert len(topology.roots) == 2
    assert topology.hops("far1", "n001") == float("inf")


def test_a_host_on_a_spine_makes_it_a_leaf_switch():
    fabric = two_levels(3, 2, 2)
    fabric.host("login", "spine1")
    topology = fabric.topology()
    assert topology.leaf_of("login") == "spine1"
    # 2 switches from the spine to a leaf, which no tree has: leaf to leaf 3 are kept.
    assert check_hops(fabric, topology) == 1
    assert topology.hops("n001", "n003") == 3
    assert topology.roots == ("spine2",)


def test_hosts_on_the_only_spine_leave_the_tree_its_height():
    fabric = two_levels(3, 1, 2)
    fabric.host("login", "spine1")
    assert check_hops(fabric, fabric.topology()) == 1


@pytest.mark.parametrize("spines", [1, 2, 3])
def test_a_leaf_switch_without_hosts_spoils_neither_names_nor_levels(spines: int):
    fabric = two_levels(3, spines, 2)
    wanted = fabric.topology()
    for spine in range(1, spines + 1):
        fabric.link("empty", f"spine{spine}")
    fabric.link("empty", "further")
    found = fabric.topology()
    assert found.switches == wanted.switches


def test_a_leaf_switch_whose_hcas_have_no_names_is_no_spine():
    fabric = two_levels(3, 2, 2)
    wanted = fabric.topology()
    for spine in ("spine1", "spine2"):
        fabric.link("unnamed", spine)
    for i in range(2):
        fabric.hca(f"hca{i}", "MT4129 ConnectX7   Mellanox Technologies", "unnamed")
    found = fabric.topology()
    assert found.switches == wanted.switches
    assert "HCAs without the name of a host, which count for none: 2" in found.remarks[0]


def test_a_core_above_a_single_pod_is_left_out():
    fabric = two_levels(2, 2, 1)
    for spine in ("spine1", "spine2"):
        fabric.link(spine, "core1")
        fabric.link(spine, "core2")
    assert fabric.topology().roots == ("spine[1-2]",)


def dragonfly(groups: int, routers: int) -> Fabric:
    """Return groups of routers that are all linked in a group, with one link to each other group.

    Every router carries a host.
    """
    hosts = {f"g{g}r{r}h": [f"g{g}r{r}"] for g, r in product(range(groups), range(routers))}
    links = [
        (f"g{g}r{a}", f"g{g}r{b}")
        for g in range(groups)
        for a, b in combinations(range(routers), 2)
    ]
    for g, h in combinations(range(groups), 2):
        links.append((f"g{g}r{h % routers}", f"g{h}r{g % routers}"))
    return from_links(links, hosts)


def torus(*sizes: int) -> Fabric:
    """Return switches in a grid that closes at its ends, a host on each."""
    grid = networkx.grid_graph(dim=sizes, periodic=True)
    grid = networkx.relabel_nodes(
        grid, {node: node if len(sizes) > 1 else (node,) for node in grid}
    )
    name = {node: "s" + "-".join(map(str, node)) for node in grid}
    hosts = {f"h{name[node]}": [name[node]] for node in grid}
    return from_links([(name[a], name[b]) for a, b in grid.edges], hosts)


@pytest.mark.parametrize(
    "fabric",
    [
        pytest.param(dragonfly(5, 4), id="dragonfly"),
        pytest.param(torus(5, 4), id="torus"),
        pytest.param(torus(3, 3, 4), id="torus of three dimensions"),
        pytest.param(torus(9), id="ring"),
        pytest.param(
            from_links(
                [("a", "s1"), ("s1", "s2"), ("s2", "b"), ("a", "c")],
                {"h1": ["a"], "h2": ["b"], "h3": ["c"]},
            ),
            id="spines in a row",
        ),
    ],
)
def test_elsewhere_hops_are_above_the_distances_and_the_worst_error_is_reported(fabric: Fabric):
    assert check_hops(fabric, fabric.topology()) > 0


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Draw any graph of some switches with hosts of one or two rails."""
    count = draw(st.integers(1, 9))
    switch = st.integers(0, count - 1)
    fabric = Fabric()
    for i in range(count):
        fabric.switch(f"s{i}")
    for i in range(draw(st.integers(1, 7))):
        found = draw(st.lists(switch, min_size=1, max_size=2, unique=True))
        fabric.host(f"h{i}", *(f"s{s}" for s in found))
    for a, b in draw(st.lists(st.tuples(switch, switch), max_size=16)):
        fabric.link(f"s{a}", f"s{b}")  # to itself and twice, too
    return fabric


@settings(deadline=None)
@given(fabrics())
def test_whatever_the_graph_hops_are_never_below_the_distances(fabric: Fabric):
    check_hops(fabric, fabric.topology())


@settings(deadline=None)
@given(fabrics(), st.randoms(use_true_random=False))
def test_the_order_of_the_dump_does_not_matter(fabric: Fabric, order: random.Random):
    assert state(fabric.topology(order=order)) == state(fabric.topology())


@settings(deadline=None)
@given(fabrics())
def test_one_side_of_each_cable_is_enough(fabric: Fabric):
    assert state(fabric.topology(kinds="S")) == state(fabric.topology())


def test_a_chain_longer_than_any_tree_is_refused_in_linear_time():
    # s0 - s1 - s2 - ... - s9999, a host on each
    count = 10_000
    chain = from_links(
        ((f"s{i}", f"s{i + 1}") for i in range(count - 1)),
        {f"h{i}": [f"s{i}"] for i in range(count)},
    )
    with pytest.raises(
        exceptions.TopologyError,
        match=r"\Adump: 10000 switches on the shortest path between 's0' and 's9999', 63 at most: "
        "there is no tree",
    ):
        chain.topology()


@pytest.mark.parametrize(("switches", "fits"), [(63, True), (64, False), (100, False)])
def test_the_longest_path_is_that_of_the_highest_tree(switches: int, fits: bool):
    # The search begins at s000, in the middle, from where no end is too far.
    inside_out = sorted(range(switches), key=lambda i: abs(i - switches // 2))
    chain = [f"s{inside_out.index(i):03}" for i in range(switches)]
    fabric = from_links(pairwise(chain), {"a": [chain[0]], "b": [chain[-1]], "c": ["s000"]})
    if fits:
        assert fabric.topology().hops("a", "b") == switches
    else:
        with pytest.raises(exceptions.TopologyError, match=r"switches on the shortest path .* 63"):
            fabric.topology()


def test_a_ring_of_switches_without_hosts_costs_nothing():
    fabric = two_levels(2, 1, 1)
    ring = [f"r{i}" for i in range(5000)]
    for a, b in zip(ring, [*ring[1:], "spine1"], strict=True):
        fabric.link(a, b)
    fabric.link("spine1", "r0")
    assert fabric.topology().roots == ("spine1",)


def test_more_leaves_than_masks_can_be_held_for_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leaf_sets, "MAX_LEAVES", 3)
    with pytest.raises(exceptions.TopologyError, match=r"at most 3 leaf switches .*, found 4\Z"):
        two_levels(4, 1, 1).topology()
    assert len(two_levels(3, 1, 1).topology().leaves) == 3


def test_links_of_leaves_and_spines_in_gbits():
    # 3 hosts at 200 Gb/s below 2 leaves, 2 cables of 100 Gb/s from each to each of 2 spines.
    fabric = Fabric()
    for leaf in ("leaf1", "leaf2"):
        for i in range(3):
            fabric.host(f"{leaf}n{i}", leaf)
        for spine in ("spine1", "spine2"):
            fabric.link(leaf, spine, rate="4xEDR", cables=2)
    fabric.hca("sharp", "Mellanox Technologies Aggregation Node", "spine1", "4xHDR")
    fabric.hca("storage", "SFA14K controller 1", "spine1", "4xHDR")
    topology = fabric.topology()
    [leaf1] = [switch for switch in topology.switches if switch.name == "leaf1"]
    assert leaf1.links is not None
    assert (leaf1.links.down, leaf1.links.up) == (600, 400)
    assert leaf1.links.oversubscription == 1.5
    assert leaf1.links.uplinks == Cables.of([100] * 4)
    assert set(topology.host_links.values()) == {Cables.of([200])}
    spines = topology.switches[0]
    assert spines.name == "spine[1-2]"
    assert spines.links is not None
    assert (spines.links.down, spines.links.up) == (800, 0)


def test_uplinks_of_two_rates_are_kept_and_those_of_merged_switches_added():
    #        core1        core2       spine1: 1 x 400 to core1; spine2: 2 x 200 to core1, 1 to core2
    #       |     \\        |
    #     spine1   spine2           pods are leaf1 with leaf2, and leaf3 below spine3
    #      ||  \\   /|   \\
    #     leaf1    leaf2   ...       leaf1: 2 x 100, 1 x 200; leaf2: 2 x 100 to each
    fabric = Fabric()
    for number in (1, 2, 3):
        fabric.host(f"n{number}", f"leaf{number}")
    fabric.link("leaf1", "spine1", rate="4xEDR", cables=2)
    fabric.link("leaf1", "spine2", rate="4xHDR")
    for spine in ("spine1", "spine2"):
        fabric.link("leaf2", spine, rate="4xEDR", cables=2)
    fabric.link("leaf3", "spine3", rate="4xEDR", cables=5)
    fabric.link("spine1", "core1", rate="4xNDR")
    fabric.link("spine2", "core1", rate="4xHDR", cables=2)
    fabric.link("spine2", "core2", rate="4xHDR")
    for core in ("core1", "core2"):
        fabric.link("spine3", core, rate="4xNDR")
    topology = fabric.topology()
    found = {one.name: one.links.uplinks for one in topology.switches if one.links}
    assert found["leaf1"] == Cables.of([100, 100, 200])
    assert found["leaf2"] == Cables.of([100] * 4)
    assert found["leaf3"] == Cables.of([100] * 5)
    assert found["spine[1-2]"] == Cables.of([400, 200, 200, 200])
    assert found["spine3"] == Cables.of([400, 400])
    assert found["core[1-2]"] == Cables()


def test_links_between_switches_of_one_height_are_uplinks_where_there_are_no_others():
    #     spine === core        3 x 100 between them; leaf3 is directly below the core
    #     /   \      \
    #  leaf1  leaf2  leaf3      leaf1 and leaf2 are linked too, next to their links to the spine
    fabric = Fabric()
    for number in (1, 2, 3):
        fabric.host(f"n{number}", f"leaf{number}")
    for leaf in ("leaf1", "leaf2"):
        fabric.link(leaf, "spine", rate="4xHDR")
    fabric.link("leaf1", "leaf2", rate="4xHDR")
    fabric.link("leaf3", "core", rate="4xEDR", cables=5)
    fabric.link("spine", "core", rate="4xEDR", cables=3)
    topology = fabric.topology()
    found = {one.name: one.links.uplinks for one in topology.switches if one.links}
    assert found["spine"] == found["core"] == Cables.of([100] * 3)
    assert found["leaf1"] == found["leaf2"] == Cables.of([200])
    assert found["leaf3"] == Cables.of([100] * 5)


def test_a_node_that_only_fills_a_level_has_the_uplinks_of_what_is_below_it():
    #        core
    #       /    \      core is three links from a leaf below spine, one from leaf2
    #    spine    |
    #    leaf1  leaf2
    leaves = [
        Leaf(["leaf1"], ["a"], Links(100, Cables.of([50, 50]))),
        Leaf(["leaf2"], ["b"], Links(200, Cables.of([25]))),
    ]
    near = [[1, 2]] * 4 + [[3, 3]]
    found = build(leaves, near, [])
    padded = {one.name: one.links for one in found.switches}
    assert padded["leaf1-level2"] == Links(100, Cables.of([50, 50]))
    assert padded["leaf2-level2"] == Links(25, Cables.of([25]))


def test_a_leaf_without_named_hosts_only_adds_what_its_hcas_carry():
    fabric = two_levels(2, 1, 1)
    fabric.hca("unnamed", "MT4123 ConnectX6   Mellanox Technologies", "leaf1", "4xNDR")
    fabric.hca("sharp", "Mellanox Technologies Aggregation Node", "leaf1", "4xNDR")
    topology = fabric.topology()
    links = {switch.name: switch.links for switch in topology.switches}
    assert links["leaf1"] is not None
    assert links["leaf2"] is not None
    assert (links["leaf1"].down, links["leaf2"].down) == (600, 200)


@pytest.mark.parametrize(
    ("rate", "gbits"),
    [
        ("1xSDR", 2.5),
        ("4xDDR", 20),
        ("4xQDR", 40),
        ("4xFDR10", 40),
        ("4xFDR", 56),
        ("12xEDR", 300),
        ("2xHDR", 100),
        ("4xNDR", 400),
        ("8xXDR", 1600),
    ],
)
def test_width_and_speed_are_a_data_rate(rate: str, gbits: float):
    fabric = Fabric()
    fabric.switch("leaf")
    fabric.hca("n1 HCA-1", "n1 HCA-1", "leaf", rate)
    for text in (fabric.text(), fabric.text().replace(rate, f"{rate} s=4 w=2 v=3")):
        links = read(text).switches[0].links
        assert links is not None
        assert (links.down, links.up) == (gbits, 0)


@pytest.mark.parametrize("rate", ["4x???", "??NDR", "", "4xWDR"])
def test_where_the_rate_of_a_host_is_unknown_so_is_the_sum_but_not_the_uplinks(rate: str):
    fabric = two_levels(2, 1, 1)
    fabric.hca("n9 HCA-1", "n9 HCA-1", "leaf1", rate)
    topology = fabric.topology()
    links = {switch.name: switch.links for switch in topology.switches}
    assert links["leaf1"] == Links(None, Cables.of([200]))
    assert links["leaf2"] == Links(200, Cables.of([200]))
    assert links["spine1"] == Links(400, Cables())
    assert topology.host_links["n9"] == Cables.of([None])
