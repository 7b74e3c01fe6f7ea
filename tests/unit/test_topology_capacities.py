"""Capacities of uplinks and of hosts' links: by what is stated, and as a plain version has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import LinkDefaults, capacities
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details
from tests import cpu_guard
from tests.counted_calls import calls_of
from tests.unit import fabrics

#            core
#          /      \
#       pod1       leaf3      directly below the core
#      /    \      e f
#  leaf1  leaf2
#  a b    c d
TREE = {"core": {"pod1": {"leaf1": ["a", "b"], "leaf2": ["c", "d"]}, "leaf3": ["e", "f"]}}
NONE = LinkDefaults()


def by_name(topology: Topology, defaults: LinkDefaults = NONE) -> dict[str, float]:
    """Return the capacities in Gb/s of switches and hosts."""
    found = capacities(topology, defaults)
    assert found.switches.dtype == found.hosts.dtype == np.int64
    names = (*(switch.name for switch in topology.switches), *topology.hosts)
    rates = (*found.switches.tolist(), *found.hosts.tolist())
    return {name: rate / 1000 for name, rate in zip(names, rates, strict=True)}


def up(*rates: float | None) -> Links:
    return Links(None, Cables.of(rates))


def test_where_nothing_is_stated_uplinks_carry_what_is_below():
    found = by_name(Topology.from_tree(TREE))
    assert found == {
        **dict.fromkeys("abcdef", 100),
        **dict.fromkeys(("leaf1", "leaf2", "leaf3"), 200),
        "pod1": 400,
        "core": 0,
    }


def test_a_ratio_holds_for_its_level_whatever_is_above():
    found = by_name(Topology.from_tree(TREE), LinkDefaults({"leaf": 4, "pod": 2, "core": 9}, 25))
    assert found["leaf1"] == found["leaf3"] == 50 / 4
    assert found["pod1"] == 25 / 2
    assert (found["core"], found["a"]) == (0, 25)


def test_the_ratio_of_a_description_holds_before_that_of_the_options():
    stated = Topology.from_tree(TREE, oversubscription={"leaf": 2})
    found = by_name(stated, LinkDefaults({"leaf": 8, "pod": 2}))
    assert (found["leaf1"], found["pod1"]) == (100, 100)


def test_stated_uplinks_hold_before_ratios_and_ratios_count_them():
    details = Details(links={"leaf1": up(100, 25), "leaf3": up(400)})
    stated = Topology.from_tree(TREE, details=details, oversubscription={"leaf": 2, "pod": 3})
    found = by_name(stated)
    assert (found["leaf1"], found["leaf2"], found["leaf3"]) == (125, 100, 400)
    assert found["pod1"] == 75


def test_uplinks_of_unknown_rate_and_none_at_all_state_nothing():
    details = Details(links={"leaf1": up(100, None), "leaf2": up(), "core": up()})
    found = by_name(Topology.from_tree(TREE, details=details), LinkDefaults({"leaf": 2}))
    assert (found["leaf1"], found["leaf2"], found["core"]) == (100, 100, 0)


def test_links_of_hosts_are_counted_below_their_leaf():
    links = {"a": Cables.of([400] * 8), "b": Cables.of([None])}
    found = by_name(Topology.from_tree(TREE, host_links=links), LinkDefaults({"leaf": 2}, 50))
    assert (found["a"], found["b"], found["c"]) == (3200, 50, 50)
    assert (found["leaf1"], found["leaf2"]) == (1625, 50)


def test_a_host_that_is_not_described_is_a_leaf_with_its_own_link_for_uplink():
    for tree, roots in ((TREE, ["core"]), (TREE["core"], ["pod1", "unnamed"])):
        fabric = Topology.from_tree(tree).including(["x", "y"])
        found = by_name(fabric, LinkDefaults({"leaf": 4}, 40))
        index = fabric.leaf_index[[fabric.index_of("x"), fabric.index_of("y")]]
        assert [fabric.switches[s].name for s in index] == ["x", "y"]
        assert capacities(fabric, LinkDefaults({"leaf": 4}, 40)).switches[index].tolist() == [
            40_000,
            40_000,
        ]
        assert [found[root] for root in roots] == [0] * len(roots)
        assert found["leaf1"] == 20


def test_the_only_leaf_of_a_fabric_has_no_uplinks():
    assert by_name(Topology.from_tree({"leaf": ["a"]})) == {"leaf": 0, "a": 100}


def test_a_capacity_is_one_at_least():
    found = capacities(Topology.from_tree(TREE), LinkDefaults({"leaf": 1000, "pod": 9}, 0.0001))
    assert found.hosts.tolist() == [1] * 6
    assert set(found.switches.tolist()) == {0, 1}


def test_equal_switches_have_equal_capacities_whatever_the_ratio():
    tree = {"core": {f"p{p}": {f"l{p}-{i}": [f"n{p}-{i}-{h}" for h in range(7)] for i in range(9)}
                     for p in range(5)}}  # fmt: skip
    found = by_name(Topology.from_tree(tree), LinkDefaults({"leaf": 3, "pod": 1.7}, 12.345))
    assert len({found[f"p{p}"] for p in range(5)}) == 1
    assert len({rate for name, rate in found.items() if name.startswith("l")}) == 1


def plain(topology: Topology, defaults: LinkDefaults) -> tuple[dict[str, int], dict[str, int]]:
    """Return capacities of switches and hosts, one by one from the bottom up."""
    hosts = {}
    for host in topology.hosts:
        own = topology.host_links.get(host)
        rate = own.rate if own is not None and own.rate else defaults.host_rate
        hosts[host] = max(round(rate * 1000), 1)
    switches: dict[str, int] = {}
    for switch in sorted(topology.switches, key=lambda one: one.level):
        below = [switches[name] for name in topology.children_of(switch.name)]
        if switch.level == 1:
            below = [hosts[host] for host in topology.hosts_of(switch.name)]
        level = topology.levels[switch.level - 1]
        ratio = topology.oversubscription.get(level, defaults.oversubscription.get(level, 1))
        if (
            switch.level == 1
            and topology.hosts.index(topology.hosts_of(switch.name)[0]) >= topology.described
        ):
            ratio = 1
        stated = switch.links.uplinks.rate if switch.links else None
        rate = stated * 1000 if stated else sum(below) / ratio
        switches[switch.name] = max(round(rate), 1)
    roots = dict.fromkeys(topology.roots, 0)
    return switches | roots, hosts


@st.composite
def described(draw: st.DrawFn) -> Topology:
    tree = draw(fabrics.trees(max_islands=3))
    bare = Topology.from_tree(tree)
    cables = st.lists(st.sampled_from([None, 25, 100, 400]), max_size=3).map(Cables.of)
    names = st.sampled_from([switch.name for switch in bare.switches])
    hosts = st.sampled_from(bare.hosts)
    ratios = st.dictionaries(st.sampled_from(bare.levels), st.sampled_from([0.5, 2, 3, 8]))
    links = draw(st.dictionaries(names, cables))
    return Topology.from_tree(
        tree,
        details=Details(links={name: Links(None, one) for name, one in links.items()}),
        host_links=draw(st.dictionaries(hosts, cables)),
        oversubscription=draw(ratios),
    ).including(draw(st.sampled_from([[], ["new1"], ["new1", "new2"]])))


@given(
    described(),
    st.dictionaries(st.sampled_from(["leaf", "pod", "core"]), st.sampled_from([1, 2, 7])),
    st.sampled_from([0.0001, 10, 100]),
)
def test_capacities_are_those_of_a_plain_version(
    topology: Topology, ratios: dict[str, float], rate: float
):
    defaults = LinkDefaults(ratios, rate)
    found, (switches, hosts) = capacities(topology, defaults), plain(topology, defaults)
    assert found.hosts.tolist() == [hosts[host] for host in topology.hosts]
    assert found.switches.tolist() == [switches[one.name] for one in topology.switches]


#   core, 50 pods, 11 leaves each: 601 switches
def large(*, is_stated: bool) -> Topology:
    leaves = [(pod, leaf) for pod in range(50) for leaf in range(11)]
    tree = {
        "core": {
            f"p{pod}": {
                f"l{pod}-{leaf}": [f"n{pod}-{leaf}-{host}" for host in range(18)]
                for leaf in range(11)
            }
            for pod in range(50)
        }
    }
    if not is_stated:
        return Topology.from_tree(tree)
    links = {f"l{pod}-{leaf}": up(*[100] * (4 + leaf % 2)) for pod, leaf in leaves}
    hosts = {f"n{p}-{i}-{h}": Cables.of([100] * 2) for p, i in leaves for h in range(18)}
    return Topology.from_tree(tree, details=Details(links=links), host_links=hosts)


@pytest.mark.parametrize("is_stated", [False, True])
def test_each_of_ten_thousand_hosts_costs_a_few_calls(is_stated: bool):
    topology = large(is_stated=is_stated)
    assert len(topology.hosts) == 9900
    assert len(topology.switches) == 601
    # Calls do not tell how long those of NumPy take: some milliseconds in all.
    with cpu_guard.ends(1.0):
        calls = calls_of(lambda: capacities(topology, LinkDefaults({"leaf": 2})))
    assert calls < (4 * (9900 + 601) if is_stated else 3 * 601)
