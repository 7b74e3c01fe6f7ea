"""Trees from levels in a given order, whose names need be unique below one switch only."""

import random

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.level_tree import LevelTree
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.tree import MAX_LEVELS
from tests.unit.fabrics import check


def read(levels: str, *statements: tuple[str, str, str, str], more: str = "") -> Topology:
    """Return the fabric of statements: source, level, switch, hosts; ``more`` hosts have none."""
    tree = LevelTree(Problems("f"), levels.split())
    for source, level, switch, hosts in statements:
        tree.add(level, switch, hosts.split(), source)
    tree.hosts.update(more.split())
    fabric = tree.topology("hosts without rack")
    check(fabric)
    return fabric


def test_the_first_of_given_levels_is_the_leaf_and_nothing_is_inferred():
    #      r        The core has fewer hosts than racks have, and is on top all the same.
    #    k1  k2
    #   c   d
    fabric = read(
        "rack core",
        ("x", "rack", "k1", "a b"),
        ("x", "rack", "k2", "c"),
        ("y", "core", "r", "a"),
        ("y", "core", "r", "c"),
    )
    assert fabric.levels == ("rack", "core")
    assert fabric.roots == ("r",)
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (1, 3)


def test_a_name_below_two_switches_means_two_switches():
    #          fabric
    #       a         b
    #    a/1  2    b/1  3
    #    h1   h2   h3   h4
    fabric = read(
        "rack row",
        *(
            statement
            for host, rack, row in (("h1", "1", "a"), ("h2", "2", "a"), ("h3", "1", "b"))
            for statement in ((host, "rack", rack, host), (host, "row", row, host))
        ),
        ("h4", "rack", "3", "h4"),
        ("h4", "row", "b", "h4"),
    )
    assert fabric.leaves == ("2", "a/1", "3", "b/1")
    assert fabric.hops("h1", "h2") == 3
    assert fabric.hops("h1", "h3") == 5
    assert fabric.remarks == (
        "f: rack '1' is under row 'a' and under row 'b': read as 2 switches, 'a/1', 'b/1'",
    )


def test_names_are_made_unique_from_the_top_however_many_levels_have_the_same_ones():
    #              fabric
    #        x               y
    #    x/a   x/b       y/a   y/b
    #    .../1 and .../2 below each
    hosts = [f"{core}{row}{rack}" for core in "xy" for row in "ab" for rack in "12"]
    given = [
        (host, level, host[at], host)
        for host in hosts
        for at, level in enumerate(("core", "row", "rack"))
    ]
    fabric = read("rack row core", *given)
    assert fabric.ancestors("yb2") == ("y/b/2", "y/b", "y", "fabric")
    assert len(fabric.leaves) == 8
    for seed in range(20):
        random.Random(seed).shuffle(given)
        assert read("rack row core", *given).switches == fabric.switches


def test_a_name_that_is_made_unique_is_not_that_of_another_switch():
    fabric = read(
        "rack row",
        *(
            statement
            for host, rack, row in (("h1", "1", "a"), ("h2", "1", "b"), ("h3", "a/1", "a"))
            for statement in ((host, "rack", rack, host), (host, "row", row, host))
        ),
    )
    assert [fabric.leaf_of(host) for host in ("h1", "h2", "h3")] == ["a/1'", "b/1", "a/1"]


def test_one_statement_about_the_upper_level_is_enough_for_a_switch():
    fabric = read(
        "rack row",
        ("n1", "rack", "1", "a"),
        ("n2", "rack", "1", "b"),
        ("n1", "row", "x", "a"),
    )
    assert fabric.ancestors("b") == ("1", "x")


def test_hosts_of_a_split_switch_that_do_not_say_which_part_they_are_in_are_apart():
    fabric = read(
        "rack row",
        ("n1", "rack", "1", "a"),
        ("n2", "rack", "1", "b"),
        ("n3", "rack", "1", "c"),
        ("n1", "row", "x", "a"),
        ("n2", "row", "y", "b"),
    )
    assert fabric.leaves == ("1", "x/1", "y/1")
    assert fabric.hops("a", "c") == 5
    assert fabric.remarks == (
        "f: rack '1' is under row 'x' and under row 'y': read as 2 switches, 'x/1', 'y/1'; "
        "without row: '1'",
    )


def test_a_switch_that_one_source_has_below_two_others_is_an_error():
    # The aggregate says that both hosts are in one rack, which cannot be in two zones.
    with pytest.raises(exceptions.TopologyError) as caught:
        read(
            "rack zone",
            ("aggregate 'r'", "rack", "1", "a b"),
            ("aggregate 's'", "zone", "az1", "a"),
            ("aggregate 't'", "zone", "az2", "b"),
        )
    assert caught.value.problems == (
        "f: rack '1' is under zone 'az1' (aggregate 's') and under zone 'az2' (aggregate 't')",
    )


def test_a_level_that_some_hosts_lack_is_left_out_above_them():
    fabric = read(
        "rack row core",
        ("n1", "rack", "1", "a"),
        ("n1", "row", "x", "a"),
        ("n1", "core", "c", "a"),
        ("n2", "rack", "2", "b"),
        ("n2", "core", "c", "b"),
        ("n3", "rack", "2", "d"),
        ("n3", "core", "e", "d"),
    )
    assert fabric.hops("a", "b") == 5
    assert fabric.leaf_of("b") == "c/2"
    assert fabric.leaf_of("d") == "e/2"


def test_hosts_of_which_nothing_is_stated_are_leaves_of_their_own_at_the_greatest_distance():
    fabric = read("rack row", ("n", "rack", "1", "a"), ("n", "row", "x", "a"), more="b01 b02")
    assert fabric.hops("a", "b01") == 5
    assert fabric.hops("b01", "b02") == 5
    assert fabric.remarks == ("f: hosts without rack are leaves of their own: b[01-02]",)


def test_many_hosts_without_leaf_are_counted():
    more = " ".join(f"b{i:04}" for i in range(1200))
    [remark] = read("rack", ("n", "rack", "1", "a"), more=more).remarks
    assert remark.endswith(": b[0000-0499] and 700 more")


def test_islands_may_be_the_last_of_given_levels():
    fabric = read(
        "rack island",
        ("n1", "rack", "1", "a"),
        ("n1", "island", "x", "a"),
        ("n2", "rack", "1", "b"),
        ("n2", "island", "y", "b"),
    )
    assert fabric.roots == ("x", "y")
    assert fabric.hops("a", "b") == float("inf")


def test_more_levels_than_any_fabric_has_are_an_error():
    levels = " ".join(f"l{number}" for number in range(MAX_LEVELS + 1))
    with pytest.raises(exceptions.TopologyError, match=r"^f: 33 levels .* 32 at most$"):
        read(levels, ("n", "l0", "1", "a"))
