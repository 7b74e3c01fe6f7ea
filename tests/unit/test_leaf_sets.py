"""Hosts that have lost rails or one of two links stay in their leaf; other hosts do not join it."""

import random
from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology.readers.cabling import cabled_leaves as leaf_sets_module
from hpc_sched.topology.readers.cabling.cabled_leaves import LeafSets
from tests.counted_calls import calls_of
from tests.ib_dumps import Fabric, rails, two_levels


def hosts_on(**groups: str) -> dict[str, list[str]]:
    """Return hosts and their switches: ``AB=3`` hosts on switches A and B are AB-1 to AB-3."""
    return {
        f"{group}-{i}": list(group) for group, count in groups.items() for i in range(int(count))
    }


def grouped(switches: Mapping[str, list[str]]) -> dict[str, dict[str, int]]:
    """Return leaves by their switches, with the number of hosts from each group."""
    found: dict[str, dict[str, int]] = {}
    for leaf, hosts in LeafSets(switches).leaves.items():
        counts = found.setdefault("".join(leaf), {})
        for host in hosts:
            group = host.partition("-")[0]
            counts[group] = counts.get(group, 0) + 1
    return found


@pytest.mark.parametrize(
    ("hosts", "leaves"),
    [
        pytest.param(
            hosts_on(ABCD="18", ABC="1", EFGH="18"),
            {"ABCD": {"ABCD": 18, "ABC": 1}, "EFGH": {"EFGH": 18}},
            id="a host that has lost one rail of four",
        ),
        pytest.param(
            hosts_on(ABCD="18", A="1"), {"ABCD": {"ABCD": 18, "A": 1}}, id="three rails of four"
        ),
        pytest.param(
            hosts_on(ABCD="2", ABC="10"),
            {"ABCD": {"ABCD": 2, "ABC": 10}},
            id="most hosts have lost the same rail",
        ),
        pytest.param(
            hosts_on(ABC="1", BCD="1", ACD="1"),
            {"ABCD": {"ABC": 1, "BCD": 1, "ACD": 1}},
            id="no host has all rails",
        ),
        pytest.param(
            hosts_on(AB="10", A="2", B="3"),
            {"AB": {"AB": 10, "A": 2, "B": 3}},
            id="an MLAG pair with links down on either side",
        ),
        pytest.param(
            hosts_on(AB="1", A="1"),
            {"AB": {"AB": 1, "A": 1}},
            id="an MLAG pair with two hosts, one of which has lost a link",
        ),
        pytest.param(
            hosts_on(AB="2", A="18"),
            {"AB": {"AB": 2, "A": 18}},
            id="servers with a second switch that no other host has",
        ),
        pytest.param(
            hosts_on(AB="2", A="18", B="18"),
            {"A": {"A": 18}, "AB": {"AB": 2}, "B": {"B": 18}},
            id="storage servers on two leaves do not make them one",
        ),
        pytest.param(
            hosts_on(AB="8", A="4", B="4"),
            {"A": {"A": 4}, "AB": {"AB": 8}, "B": {"B": 4}},
            id="nor do half of the hosts",
        ),
        pytest.param(
            hosts_on(AB="18", ABC="1", DE="18", DEC="1"),
            {"AB": {"AB": 18}, "ABC": {"ABC": 1}, "DE": {"DE": 18}, "CDE": {"DEC": 1}},
            id="gateways with a third rail to storage do not change the leaf of the others",
        ),
        pytest.param(
            hosts_on(ABCD="2", ABC="1", BCD="1", ABCDS="1", EFGH="4", EFGHS="1"),
            {
                "ABCD": {"ABCD": 2, "ABC": 1, "BCD": 1},
                "ABCDS": {"ABCDS": 1},
                "EFGH": {"EFGH": 4},
                "EFGHS": {"EFGHS": 1},
            },
            id="half of the hosts have lost a rail next to a gateway",
        ),
        pytest.param(
            hosts_on(AB="17", ABX="1", A="1", X="2"),
            {"ABX": {"AB": 17, "ABX": 1, "A": 1}, "X": {"X": 2}},
            id="a link of an MLAG pair is down next to a host with one more switch",
        ),
        pytest.param(
            hosts_on(AB="18", CD="18", ABCD="1"),
            {"AB": {"AB": 18}, "ABCD": {"ABCD": 1}, "CD": {"CD": 18}},
            id="a server on both planes is not their leaf",
        ),
        pytest.param(
            hosts_on(AM="18", BM="18"),
            {"AM": {"AM": 18}, "BM": {"BM": 18}},
            id="two racks with one management switch",
        ),
        pytest.param(
            hosts_on(ABM="18", CDM="18", AM="1"),
            {"ABM": {"ABM": 18, "AM": 1}, "CDM": {"CDM": 18}},
            id="two racks of MLAG pairs with one management switch",
        ),
        pytest.param(
            hosts_on(ABST="18", CDST="18"),
            {"ABST": {"ABST": 18}, "CDST": {"CDST": 18}},
            id="two racks of MLAG pairs with a pair for storage",
        ),
        pytest.param(
            hosts_on(AST="18", BST="18"),
            {"AST": {"AST": 18}, "BST": {"BST": 18}},
            id="two racks of one switch each with a pair for storage",
        ),
        pytest.param(
            hosts_on(AST="18", BST="18", CST="18", AS="1"),
            {"AST": {"AST": 18, "AS": 1}, "BST": {"BST": 18}, "CST": {"CST": 18}},
            id="three such racks, and a host that has lost a link to the storage",
        ),
        pytest.param(
            hosts_on(AB="3", BC="3", CD="3", DA="3"),
            {"AB": {"AB": 3}, "BC": {"BC": 3}, "CD": {"CD": 3}, "AD": {"DA": 3}},
            id="a ring of switches is not one leaf",
        ),
        pytest.param(
            hosts_on(AB="2", BC="2", CD="2"),
            {"AB": {"AB": 2}, "BC": {"BC": 2}, "CD": {"CD": 2}},
            id="nor a row of switches, each host on half of them: the ends share none",
        ),
        pytest.param(
            hosts_on(AB="5", AC="5", A="1"),
            {"AB": {"AB": 5, "A": 1}, "AC": {"AC": 5}},
            id="of two leaves that fit alike the first by name",
        ),
        pytest.param(
            hosts_on(AB="5", ACD="5", A="1"),
            {"AB": {"AB": 5, "A": 1}, "ACD": {"ACD": 5}},
            id="of two leaves that fit alike the first by name, which has fewer switches",
        ),
    ],
)
def test_hosts_join_the_leaf_where_they_belong(
    hosts: dict[str, list[str]], leaves: dict[str, dict[str, int]]
):
    assert grouped(hosts) == leaves


def test_of_two_leaves_the_larger_one_is_chosen_and_a_remark_says_so():
    hosts = hosts_on(AB="5", AC="6", A="1")
    assert grouped(hosts) == {"AB": {"AB": 5}, "AC": {"AC": 6, "A": 1}}
    remarks = LeafSets(hosts).remarks
    assert remarks == [
        "1 host is not connected to all switches of the leaf: A-0",
        "A-0: connected to A, which could be part of 2 leaves, such as A,C and A,B: the first is "
        "chosen",
    ]


@pytest.mark.parametrize("count", [2, 3, 18])
def test_a_switch_of_its_own_in_each_host_does_not_divide_a_leaf(count: int):
    """
    ::

           leaf1a    leaf1b          leaf2a    leaf2b
             |  \\    /  |             |
            host1      host2         ...
              |          |
           adapter1   adapter2       announce themselves as switches
    """
    hosts = {
        f"rack{rack}host{i}": [f"leaf{rack}a", f"leaf{rack}b", f"adapter{rack}-{i}"]
        for rack in (1, 2)
        for i in range(count)
    }
    leaves = LeafSets(hosts).leaves.values()
    assert sorted({host[:5] for host in leaf} for leaf in leaves) == [{"rack1"}, {"rack2"}]


def leaves_of(fabric: Fabric) -> dict[str, str]:
    topology = fabric.topology()
    return {host: topology.leaf_of(host) for host in topology.hosts}


def without(fabric: Fabric, *pulled: int) -> Fabric:
    cables = [cable for i, cable in enumerate(fabric.cables) if i not in pulled]
    return Fabric(fabric.nodes, fabric.descriptions, cables, fabric.hosts)


def test_each_cable_of_eight_rails_pulled_in_turn_changes_no_leaf():
    fabric = rails(3, 4, 8)
    before = leaves_of(fabric)
    assert len(set(before.values())) == 3
    assert len(fabric.cables) == 3 * 4 * 8 + 3 * 8
    for i in range(len(fabric.cables)):
        assert leaves_of(without(fabric, i)) == before, fabric.cables[i]


@pytest.mark.parametrize("seed", range(10))
def test_cables_pulled_one_after_the_other_change_no_leaf_while_most_rails_are_left(seed: int):
    fabric = rails(3, 6, 8)
    before = leaves_of(fabric)
    order = [i for i, (a, *_) in enumerate(fabric.cables) if "spine" not in a]
    order = [i for i in order if "spine" not in fabric.cables[i][2]]
    random.Random(seed).shuffle(order)
    left = dict.fromkeys(fabric.hosts, 8)
    pulled: list[int] = []
    for i in order:
        host = fabric.cables[i][2].split()[0]
        if left[host] > 5:
            left[host] -= 1
            pulled.append(i)
            after = leaves_of(without(fabric, *pulled))
            groups = {
                tuple(sorted(host for host in after if after[host] == leaf))
                for leaf in after.values()
            }
            wanted = {
                tuple(sorted(host for host in before if before[host] == leaf))
                for leaf in before.values()
            }
            assert groups == wanted, (seed, len(pulled))
    assert set(left.values()) == {5}


def test_each_cable_of_an_mlag_pair_pulled_in_turn_changes_no_leaf():
    fabric = Fabric()
    for rack in range(3):
        for i in range(4):
            fabric.host(f"r{rack}n{i}", f"r{rack}a", f"r{rack}b")
        fabric.link(f"r{rack}a", f"r{rack}b")
        for leaf in "ab":
            for spine in range(2):
                fabric.link(f"r{rack}{leaf}", f"spine{spine}")
    before = leaves_of(fabric)
    for i in range(len(fabric.cables)):
        after = fabric.cables[:i] + fabric.cables[i + 1 :]
        found = leaves_of(Fabric(fabric.nodes, fabric.descriptions, after, fabric.hosts))
        assert found == before, fabric.cables[i]


def test_each_cable_to_a_single_leaf_switch_leaves_the_other_hosts_alone():
    fabric = two_levels(3, 2, 3)
    before = leaves_of(fabric)
    for i in range(len(fabric.cables)):
        after = leaves_of(without(fabric, i))
        assert after.items() <= before.items()


SETS = st.dictionaries(
    st.integers(0, 30).map(lambda i: f"h{i:02}"),
    st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=5, unique=True),
    min_size=1,
)


@given(SETS, st.randoms(use_true_random=False))
def test_every_host_has_one_leaf_with_most_or_all_of_its_switches(
    hosts: dict[str, list[str]], order: random.Random
):
    found = LeafSets(hosts)
    assert sorted(host for one in found.leaves.values() for host in one) == sorted(hosts)
    for leaf, members in found.leaves.items():
        assert list(leaf) == sorted(leaf)
        assert list(members) == sorted(members)
        assert set(leaf) == {switch for host in members for switch in hosts[host]}
        for host in members:
            assert 2 * len(set(hosts[host]) & set(leaf)) > len(hosts[host])
    # Hosts on the same switches are never apart.
    home = {host: leaf for leaf, members in found.leaves.items() for host in members}
    for a, b in combinations(hosts, 2):
        assert set(hosts[a]) != set(hosts[b]) or home[a] == home[b]
    shuffled = list(hosts)
    order.shuffle(shuffled)
    again = LeafSets({host: sorted(hosts[host], reverse=True) for host in shuffled})
    assert (again.leaves, again.remarks) == (found.leaves, found.remarks)


def test_many_different_sets_with_one_switch_in_common_are_refused_in_time(
    monkeypatch: pytest.MonkeyPatch,
):
    hosts = {f"h{i}": ["hub", f"a{i}", f"b{i}"] for i in range(9000)}

    def refused() -> None:
        with pytest.raises(exceptions.TopologyError, match="too many to compare"):
            LeafSets(hosts)

    # Of 40 million pairs; each that is compared is a call at least.
    assert calls_of(refused) < 5_000_000
    monkeypatch.setattr(leaf_sets_module, "MAX_PAIRS", 10**9)
    assert len(LeafSets({host: hosts[host] for host in list(hosts)[:100]}).leaves) == 100
