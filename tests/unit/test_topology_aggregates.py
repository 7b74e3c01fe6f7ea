"""Trees from the metadata of host aggregates."""

from dataclasses import dataclass, field

import pytest

from hpc_sched import exceptions
from hpc_sched.core.extra_spec_names import EXTRA_SPECS
from hpc_sched.core.processors import processor
from hpc_sched.topology import Topology
from hpc_sched.topology.readers import aggregate_tree
from tests.unit.fabrics import check


@dataclass(frozen=True)
class Aggregate:
    name: str
    hosts: tuple[str, ...]
    metadata: dict[str, str] = field(default_factory=dict)


def statement(name: str, hosts: str, **levels: str) -> Aggregate:
    """Return an aggregate of hosts, separated by blanks, that names their switches."""
    metadata = {f"hpc:{level}": switch for level, switch in levels.items()}
    return Aggregate(name, tuple(hosts.split()), metadata)


def read(*given: Aggregate) -> Topology:
    fabric = aggregate_tree.topology_of(given)
    check(fabric)
    return fabric


def test_leaves_without_pods_hang_below_one_root():
    #      fabric
    #   l1       l2
    #  a  b       c
    fabric = read(statement("one", "a b", leaf="l1"), statement("two", "c", leaf="l2"))
    assert fabric.leaves == ("l1", "l2")
    assert fabric.roots == ("fabric",)
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (1, 3)
    assert fabric.levels == ("leaf", "pod")


def test_pods_may_be_named_by_aggregates_of_their_own():
    #        fabric
    #     p1       p2
    #   l1  l2     l3
    #   a   b      c
    fabric = read(
        statement("r1", "a", leaf="l1"),
        statement("r2", "b", leaf="l2"),
        statement("r3", "c", leaf="l3"),
        statement("row1", "a b", pod="p1"),
        statement("row2", "c", pod="p2"),
    )
    assert fabric.ancestors("a") == ("l1", "p1", "fabric")
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (3, 5)
    assert fabric.levels == ("leaf", "pod", "core")


def test_one_aggregate_may_say_all_its_levels_and_one_host_is_enough_for_its_leaf():
    fabric = read(
        statement("r1", "a b", leaf="l1", pod="p1"),
        statement("r2", "c", leaf="l2"),
        statement("one host", "c", pod="p1"),
    )
    assert fabric.roots == ("p1",)
    assert fabric.hosts_of("p1") == ("a", "b", "c")


def test_other_names_of_levels_are_ordered_by_how_many_switches_they_have():
    fabric = read(
        *(
            statement(f"r{i}", f"h{i}", leaf=f"l{i}", rack=f"k{i // 2}", hall=f"x{i // 4}")
            for i in range(8)
        )
    )
    assert fabric.levels == ("leaf", "rack", "hall", "level4")
    assert fabric.hops("h0", "h1") == 3
    assert fabric.hops("h0", "h2") == 5
    assert fabric.hops("h0", "h7") == 7


def test_a_level_that_holds_several_of_another_is_above_it_though_it_has_more_switches():
    #        fabric
    #      /    |   \
    #     c1    c2   c3
    #    /  \   |    |
    #   p1  p2  |    |
    #   l1  l2  l3   l4
    fabric = read(
        statement("r1", "a", leaf="l1", pod="p1", core="c1"),
        statement("r2", "b", leaf="l2", pod="p2", core="c1"),
        statement("r3", "c", leaf="l3", core="c2"),
        statement("r4", "d", leaf="l4", core="c3"),
    )
    assert fabric.levels == ("leaf", "pod", "core", "level4")
    assert [fabric.hops("a", other) for other in "bcd"] == [5, 7, 7]


def test_a_level_may_have_the_name_that_the_one_above_it_would_get():
    fabric = read(
        statement("r1", "a", leaf="l1", pod="p1", level4="x1"),
        statement("r2", "b", leaf="l2", pod="p2", level4="x2"),
    )
    assert fabric.levels == ("leaf", "pod", "level4", "level5")
    assert fabric.hops("a", "b") == 7


def test_islands_are_not_connected():
    fabric = read(
        statement("r1", "a", leaf="l1", island="i1"), statement("r2", "b", leaf="l2", island="i2")
    )
    assert fabric.roots == ("i1", "i2")
    assert fabric.hops("a", "b") == float("inf")


def test_a_host_with_a_pod_alone_is_a_leaf_of_its_own_and_that_is_reported():
    fabric = read(statement("r1", "a b", leaf="l1"), statement("row", "a b c01 c02", pod="p1"))
    assert fabric.leaf_of("c01") == "c01"
    assert fabric.hops("c01", "c02") == 3
    assert fabric.remarks == (
        "hosts in no aggregate with hpc:leaf are leaves of their own: c[01-02]",
    )


def test_pods_alone_have_their_hosts_at_the_distance_of_a_pod():
    fabric = read(statement("row1", "a b", pod="p1"), statement("row2", "c", pod="p2"))
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (3, 5)


def test_a_switch_named_like_another_on_a_higher_level_is_renamed():
    fabric = read(statement("r1", "a", leaf="x", pod="x"), statement("r2", "x", leaf="y", pod="x"))
    assert fabric.leaves == ("x", "y")
    assert fabric.roots == ("pod x",)


def test_a_level_that_nothing_is_below_just_there_keeps_its_distance():
    # The pod has no core, the core no pod: leaf l2 is three levels below the top all the same.
    fabric = read(
        statement("r1", "a b", leaf="l1", pod="p1"),
        statement("r2", "c", leaf="l2", core="c1"),
        statement("r3", "d", leaf="l3", core="c1"),
        statement("r4", "e", leaf="l4", pod="p2"),
    )
    assert fabric.hops("c", "d") == 5
    assert fabric.ancestors("c") == ("l2", "l2-pod", "c1", "fabric")
    assert fabric.levels[:3] == ("leaf", "pod", "core")


def test_other_keys_with_the_prefix_are_no_levels():
    fabric = read(
        statement("r1", "a", leaf="l1", processor="gold", cache_score="1", app_class="sync"),
        Aggregate("other", ("b",), {"availability_zone": "nova", "leaf": "l7"}),
    )
    assert fabric.hosts == ("a",)
    assert fabric.depth == 1


def test_the_order_of_aggregates_and_hosts_does_not_matter():
    given = [
        statement("r1", "a b", leaf="l1", pod="p1"),
        statement("r2", "c d", leaf="l2", pod="p1"),
        statement("r3", "e", leaf="l3", pod="p2"),
    ]
    turned = [Aggregate(one.name, one.hosts[::-1], one.metadata) for one in given[::-1]]
    assert read(*given).switches == read(*turned).switches
    assert read(*given).hosts == read(*turned).hosts


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        pytest.param(
            [statement("r1", "a b", leaf="l1"), statement("r2", "b c", leaf="l2")],
            ["host 'b' is under leaf 'l1' (aggregate 'r1') and under leaf 'l2' (aggregate 'r2')"],
            id="a host under two leaves",
        ),
        pytest.param(
            [
                statement("r1", "a b", leaf="l1"),
                statement("x", "a", pod="p1"),
                statement("y", "b", pod="p2"),
            ],
            ["leaf 'l1' is under pod 'p1' (aggregate 'x') and under pod 'p2' (aggregate 'y')"],
            id="a leaf under two pods",
        ),
        pytest.param(
            [
                statement("r1", "a", leaf="l1", pod="p1", core="c1"),
                statement("r2", "b", leaf="l2", pod="p1", core="c2"),
                statement("r3", "c", leaf="l3", pod="p2", core="c2"),
            ],
            ["pod 'p1' is under core 'c1' (aggregate 'r1') and under core 'c2' (aggregate 'r2')"],
            id="a pod under two cores",
        ),
        pytest.param(
            [statement("r1", "a", leaf=" "), statement("r2", "b", **{"": "l2"})],
            [
                "aggregate 'r1': hpc:leaf: expected the name of a switch",
                "aggregate 'r2': hpc:: expected the name of a level",
            ],
            id="empty names",
        ),
        pytest.param(
            [statement("r1", "", leaf="l1"), statement("r2", "a")],
            [
                "no host aggregate with hosts has metadata hpc:leaf: set it, or choose another "
                "topology_driver"
            ],
            id="no statement about a host",
        ),
        pytest.param(
            [],
            [
                "no host aggregate with hosts has metadata hpc:leaf: set it, or choose "
                "another topology_driver"
            ],
            id="no aggregate",
        ),
    ],
)
def test_all_contradictions_are_reported(given, problems):
    with pytest.raises(exceptions.TopologyError) as caught:
        aggregate_tree.topology_of(given)
    assert list(caught.value.problems) == problems


def test_more_levels_than_any_fabric_has_are_an_error():
    metadata = {f"hpc:level{number}": "x" for number in range(40)}
    with pytest.raises(exceptions.TopologyError, match=r"41 levels .* 32 at most"):
        aggregate_tree.topology_of([Aggregate("r1", ("a",), metadata)])


def test_ten_thousand_hosts_in_a_thousand_leaves_are_read_at_once():
    given = [
        statement(
            f"r{leaf}",
            " ".join(f"h{leaf}-{i}" for i in range(10)),
            leaf=f"l{leaf}",
            pod=f"p{leaf // 50}",
        )
        for leaf in range(1000)
    ]
    fabric = read_unchecked(given)
    assert (len(fabric.hosts), len(fabric.leaves), fabric.depth) == (10000, 1000, 3)


def read_unchecked(given: list[Aggregate]) -> Topology:
    return aggregate_tree.topology_of(given)


def test_no_extra_spec_and_no_processor_type_is_a_level():
    keys = {spec.name for spec in EXTRA_SPECS} | {processor.METADATA}
    assert {f"{aggregate_tree.PREFIX}{name}" for name in aggregate_tree.NOT_LEVELS} == keys


KEYS = {"leaf": "rack", "pod": "row", "core": "availability_zone"}


def keyed(name: str, hosts: str, **metadata: str) -> Aggregate:
    return Aggregate(name, tuple(hosts.split()), metadata)


def test_any_keys_of_metadata_name_the_levels():
    #              fabric
    #        az1           az2
    #     a       b         c
    #   a/1  2   b/1        3
    #   h1  h2   h3         h4
    given = [
        keyed("r1", "h1", rack="1", row="a", **{"hpc:leaf": "other"}),
        keyed("r2", "h2", rack="2", row="a", ssd="true"),
        keyed("r3", "h3", rack="1", row="b"),
        keyed("r4", "h4", rack="3", row="c"),
        keyed("zone 1", "h1 h2 h3", availability_zone="az1"),
        keyed("zone 2", "h4", availability_zone="az2"),
    ]
    fabric = aggregate_tree.topology_of(given, KEYS)
    check(fabric)
    assert fabric.ancestors("h1") == ("a/1", "a", "az1", "fabric")
    assert fabric.levels == ("leaf", "pod", "core", "level4")
    assert [fabric.hops("h1", other) for other in ("h2", "h3", "h4")] == [3, 5, 7]
    assert aggregate_tree.topology_of(given[::-1], KEYS).switches == fabric.switches


def test_a_rack_that_an_aggregate_has_in_two_zones_is_an_error():
    given = [
        keyed("r1", "a b", rack="1"),
        keyed("z1", "a", availability_zone="az1"),
        keyed("z2", "b", availability_zone="az2"),
    ]
    with pytest.raises(exceptions.TopologyError) as caught:
        aggregate_tree.topology_of(given, {"leaf": "rack", "pod": "availability_zone"})
    assert list(caught.value.problems) == [
        "leaf '1' is under pod 'az1' (aggregate 'z1') and under pod 'az2' (aggregate 'z2')"
    ]


def test_a_host_in_two_aggregates_of_one_key_is_an_error_only_if_they_differ():
    same = [keyed("r1", "a b", rack="1"), keyed("r2", "b", rack="1 ")]
    assert aggregate_tree.topology_of(same, {"leaf": "rack"}).leaves == ("1",)
    with pytest.raises(exceptions.TopologyError) as caught:
        aggregate_tree.topology_of([*same, keyed("r3", "b", rack="2")], {"leaf": "rack"})
    assert list(caught.value.problems) == [
        "host 'b' is under leaf '1' (aggregate 'r1') and under leaf '2' (aggregate 'r3')"
    ]


def test_a_key_that_no_aggregate_has_is_an_error_and_a_host_without_it_a_remark():
    given = [keyed("r1", "a", rack="1"), keyed("none", "", row="x"), keyed("z", "a b", zone="z")]
    with pytest.raises(exceptions.TopologyError) as caught:
        aggregate_tree.topology_of(given, KEYS)
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        f"no host aggregate with hosts has metadata {key} ([hpc_sched] topology_aggregate_key, "
        f"level {level})"
        for key, level in (("row", "pod"), ("availability_zone", "core"))
    ]
    fabric = aggregate_tree.topology_of(given, {"leaf": "rack", "pod": "zone"})
    assert fabric.remarks == ("hosts in no aggregate with rack are leaves of their own: b",)
