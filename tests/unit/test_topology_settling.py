"""Changes of a discovered fabric that are used once they have lasted, each for itself."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.topology import Topology
from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.settling import NOTHING, Waiting, changes, settled
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details
from tests.unit import fabrics

SECONDS = 300


def fabric(**leaves: str) -> Topology:
    """Return leaves below one switch, hosts as letters.

    ::

              core
            /      \\
        leaf1     leaf2
        a  b      c  d
    """
    return Topology.from_tree({"core": {leaf: list(hosts) for leaf, hosts in leaves.items()}})


class Reload:
    """A scheduler that reads its fabric again and again."""

    def __init__(self, first: Topology) -> None:
        self.used = first
        self.waiting: Waiting = NOTHING

    def read(self, now: float, new: Topology) -> dict[str, str]:
        found, self.waiting = settled(self.used, new, self.waiting, now, SECONDS)
        fabrics.check(found)
        if changes(self.used, found):
            self.used = found
        return {host: self.used.leaf_of(host) for host in sorted(self.used.hosts)}


BEFORE = fabric(leaf1="ab", leaf2="cd")
AT_HOME = {"a": "leaf1", "b": "leaf1", "c": "leaf2", "d": "leaf2"}


def test_a_change_that_is_over_soon_moves_nothing():
    scheduler = Reload(BEFORE)
    for now in range(0, 6000, 60):
        flapping = fabric(leaf1="ab", leaf2="c", leaf3="d") if now % 240 else BEFORE
        assert scheduler.read(now, flapping) == AT_HOME, now
    assert scheduler.waiting
    scheduler.read(6000, BEFORE)
    assert not scheduler.waiting


def test_a_change_that_lasts_is_used():
    scheduler = Reload(BEFORE)
    moved = fabric(leaf1="abd", leaf2="c")
    for now in (0, 60, 299):
        assert scheduler.read(now, moved) == AT_HOME
    assert scheduler.read(300, moved) == {**AT_HOME, "d": "leaf1"}
    assert not scheduler.waiting


def test_a_host_that_flaps_holds_up_no_other_change():
    scheduler = Reload(BEFORE)
    for now in range(0, 301, 60):
        new = "be" if now % 120 else "abe"
        found = scheduler.read(now, fabric(leaf1=new, leaf2="cd"))
    assert found == {**AT_HOME, "e": "leaf1"}


def test_a_host_that_moves_on_waits_from_its_last_move():
    scheduler = Reload(fabric(leaf1="ab", leaf2="cd", leaf3="e"))
    at_home = {**AT_HOME, "e": "leaf3"}
    once, again = (
        fabric(leaf1=leaf1, leaf2="c", leaf3=leaf3) for leaf1, leaf3 in (("abd", "e"), ("ab", "de"))
    )
    for now, new in ((1000, once), (1240, again), (1300, again), (1539, again)):
        assert scheduler.read(now, new) == at_home, now
    assert scheduler.read(1540, again) == {**at_home, "d": "leaf3"}
    assert not scheduler.waiting


def test_hosts_that_flap_in_turns_are_not_used_though_something_differs_all_the_time():
    scheduler = Reload(BEFORE)
    for now in range(1020, 2040, 60):
        new = "abe" if now % 120 else "abf"
        assert scheduler.read(now, fabric(leaf1=new, leaf2="cd")) == AT_HOME, now
    assert scheduler.waiting


def test_hosts_that_are_gone_and_new_ones_wait_too():
    scheduler = Reload(BEFORE)
    new = fabric(leaf1="abx", leaf2="d")
    assert scheduler.read(0, new) == AT_HOME
    assert scheduler.read(301, new) == {"a": "leaf1", "b": "leaf1", "x": "leaf1", "d": "leaf2"}


def test_a_leaf_switch_that_restarts_keeps_its_hosts():
    scheduler = Reload(BEFORE)
    for now in range(0, 600, 60):
        assert scheduler.read(now, fabric(leaf1="ab") if now % 120 else BEFORE) == AT_HOME


def test_a_new_leaf_with_its_hosts_comes_after_one_wait():
    scheduler = Reload(BEFORE)
    new = fabric(leaf1="ab", leaf2="cd", leaf3="ef")
    assert scheduler.read(0, new) == AT_HOME
    assert scheduler.read(300, new) == {**AT_HOME, "e": "leaf3", "f": "leaf3"}


def test_hosts_that_are_all_renamed_twice_leave_no_empty_fabric():
    scheduler = Reload(BEFORE)
    scheduler.read(0, fabric(leaf1="wx", leaf2="yz"))
    last = fabric(leaf1="WX", leaf2="YZ")
    for now in range(60, 360, 60):
        assert scheduler.read(now, last) == AT_HOME
    assert scheduler.read(360, last) == {"W": "leaf1", "X": "leaf1", "Y": "leaf2", "Z": "leaf2"}


def test_a_switch_that_flaps_holds_up_no_host_between_leaves():
    pods: dict[str, Any] = {"pod1": {"l1": ["a"]}, "pod2": {"l2": ["b"], "l3": ["c"]}}
    whole = Topology.from_tree({"core": pods})
    torn = Topology.from_tree({"core": {"pod1": {"l1": ["a", "b"]}}, "pod2": {"l3": ["c"]}})
    moved = Topology.from_tree({"core": {"pod1": {"l1": ["a", "b"]}, "pod2": {"l3": ["c"]}}})
    scheduler = Reload(whole)
    for now in range(0, 301, 60):
        found = scheduler.read(now, torn if now % 120 else moved)
    assert found == {"a": "l1", "b": "l1", "c": "l3"}
    assert scheduler.used.roots == ("core",)


def spines(first: int, leaf1: str = "ab", rate: float = 100) -> Topology:
    """Return two leaves below spines, of which the first numbers may be missing."""
    name = f"core[{first}-4]"
    members = tuple(f"core{i}" for i in range(first, 5))
    return Topology.from_tree(
        {name: {"leaf1": list(leaf1), "leaf2": ["c", "d"]}},
        details=Details(members={name: members}, links={"leaf1": Links(400, Cables.of([rate]))}),
    )


def test_names_members_and_links_that_flap_change_nothing():
    scheduler = Reload(spines(1))
    for now in range(0, 900, 60):
        scheduler.read(now, spines(2, rate=75) if now % 180 else spines(1))
        assert not difference.between(spines(1), scheduler.used)
    for now in range(900, 1300, 60):
        scheduler.read(now, spines(2, rate=75))
    assert not difference.between(spines(2, rate=75), scheduler.used)
    assert not scheduler.waiting


def rails(*rates: float, leaf1: str = "ab") -> Topology:
    """Return two leaves, the hosts of which have links of these rates; no rates: not known."""
    described = fabric(leaf1=leaf1, leaf2="cd")
    links = dict.fromkeys(described.hosts, Cables.of(rates)) if rates else {}
    uplinks = {"leaf1": Links(None, Cables.of(rates))} if rates else {}
    return Topology.from_tree(described.to_tree(), details=Details(links=uplinks), host_links=links)


def test_links_that_come_and_go_stay_as_they_are_in_use_when_a_host_is_used():
    scheduler = Reload(rails(100, 100))
    for now in range(0, 901, 60):
        flapping = rails(*([100] if now % 180 else [100, 100]), leaf1="abe")
        found = scheduler.read(now, flapping)
    assert found == {**AT_HOME, "e": "leaf1"}
    assert scheduler.used.host_links["a"] == Cables.of([100, 100])
    assert scheduler.used.details().links["leaf1"].uplinks == Cables.of([100, 100])


def test_links_that_have_changed_for_long_are_used():
    for before, after in (((100, 100), (100,)), ((), (100,)), ((100,), ())):
        scheduler = Reload(rails(*before))
        for now in (0, 60, 299):
            scheduler.read(now, rails(*after))
            assert not changes(rails(*before), scheduler.used)
        scheduler.read(300, rails(*after))
        assert not changes(rails(*after), scheduler.used)
        assert not scheduler.waiting


def merged(first: int, leaf1: str = "ab") -> Topology:
    """Return a fabric whose top switch has one name, whichever of its four members are there."""
    members = tuple(f"spine{i}" for i in range(first, 5))
    return Topology.from_tree(
        fabric(leaf1=leaf1, leaf2="cd").to_tree(), details=Details(members={"core": members})
    )


def test_a_member_of_a_merged_switch_that_comes_back_was_never_gone():
    scheduler = Reload(merged(1))
    for now in range(1020, 2040, 60):
        scheduler.read(now, merged(1 + (now // 60) % 2))
        assert not difference.between(merged(1), scheduler.used), now


def test_a_member_that_is_gone_for_a_short_time_stays_when_a_host_is_used():
    scheduler = Reload(merged(1))
    scheduler.read(1000, merged(1, "abe"))
    scheduler.read(1240, merged(2, "abe"))
    assert scheduler.read(1300, merged(2, "abe")) == {**AT_HOME, "e": "leaf1"}
    assert not difference.between(merged(1, "abe"), scheduler.used)
    scheduler.read(1540, merged(2, "abe"))
    assert not difference.between(merged(2, "abe"), scheduler.used)
    assert not scheduler.waiting


def test_a_spine_that_flaps_holds_up_no_host():
    scheduler = Reload(spines(1))
    for now in range(0, 301, 60):
        found = scheduler.read(now, spines(1 + (now // 60) % 2, "abe"))
    assert found == {**AT_HOME, "e": "leaf1"}
    assert scheduler.used.roots == ("core[1-4]",)


def test_a_new_leaf_below_a_switch_that_is_renamed_comes_after_one_wait():
    scheduler = Reload(spines(1))
    [(name, below)] = spines(2).to_tree().items()
    new = Topology.from_tree({name: {**below, "leaf3": ["e"]}}, details=spines(2).details())
    assert scheduler.read(0, new) == AT_HOME
    assert scheduler.read(300, new) == {**AT_HOME, "e": "leaf3"}
    assert scheduler.used.roots == ("core[2-4]",)


def test_a_fabric_that_stays_the_same_comes_after_one_wait_whatever_was_before():
    scheduler = Reload(Topology.from_tree({"s6": ["a"], "s2": ["b"]}))
    scheduler.read(0, Topology.from_tree({"s2": ["b", "c"]}))
    for now in (100, 200, 300):
        scheduler.read(now, Topology.from_tree({"s6": ["d"]}))
    assert scheduler.read(400, Topology.from_tree({"s6": ["d"]})) == {"d": "s6"}
    assert not scheduler.waiting


def test_processors_ids_members_and_ratios_stay_with_hosts_and_switches_that_wait():
    details = Details(processors={"leaf2": "gold"}, members={"leaf2": ("s1", "s2")})
    tree = BEFORE.to_tree()
    before = Topology.from_tree(
        tree,
        levels=["rack", "row"],
        host_processors={"d": "epyc"},
        details=details,
        host_ids={"d": "uuid-d"},
        oversubscription={"rack": 4},
    )
    found, waiting = settled(before, fabric(leaf1="ab"), NOTHING, 0, SECONDS)
    assert waiting.hosts.keys() == {"c", "d"}
    assert not difference.between(before, found)
    assert (found.host_ids, found.levels) == ({"d": "uuid-d"}, ("rack", "row"))
    assert found.oversubscription == {"rack": 4}
    found, _ = settled(before, replace(fabric(leaf1="ab")), waiting, 300, SECONDS)
    assert found.hosts == ("a", "b")


@given(fabrics.trees(), fabrics.trees(), st.randoms(use_true_random=False))
def test_whatever_changes_the_fabric_in_use_is_whole_and_the_new_one_comes(
    one: dict[str, Any], other: dict[str, Any], chance: random.Random
):
    old, new = Topology.from_tree(one), Topology.from_tree(other)
    scheduler = Reload(old)
    for now in range(0, 600, 60):
        scheduler.read(now, new if chance.random() < 0.7 else old)
    for now in range(600, 901, 60):
        scheduler.read(now, new)
    assert not difference.between(scheduler.used, new)
    assert not scheduler.waiting
