"""Topologies written as files: what is read back is the same fabric."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.slurm.slurm_driver import SlurmDriver
from hpc_sched.topology.readers.text_driver import Text, TextDriver
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import slurm_writer, yaml_writer
from tests.unit import fabrics
from tests.unit.fabrics import check, trees
from tests.unit.test_topology_slurm import hops_of


def back(driver: type[TextDriver], text: str) -> Topology:
    fabric = driver(path="t").parse(Text(text.encode(), "t"))
    check(fabric)
    assert fabric.remarks == ()
    return fabric


def through_yaml(fabric: Topology) -> Topology:
    return back(YamlFileDriver, yaml_writer.text_of(fabric))


def through_slurm(fabric: Topology) -> Topology:
    return back(SlurmDriver, slurm_writer.text_of(fabric)[0])


BOTH = pytest.mark.parametrize("through", [through_yaml, through_slurm])
Through = Callable[[Topology], Topology]


def per_leaf(fabric: Topology) -> list[set[str]]:
    return [set(fabric.hosts_of(leaf)) for leaf in fabric.leaves]


# The example of the documentation, with a node for two spines and a leaf of UUIDs:
#
#                    core[1-2]
#                   /         \
#               pod1           pod2
#             /      \           |
#         leaf01     leaf02     l#3
#      node[001-018] gpu[1-4]  two UUIDs
UUIDS = ["7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77", "0123e5c0-3f0c-4c4e-9d4e-0c8a0e1b5a78"]
EXAMPLE = Topology.from_tree(
    {
        "core[1-2]": {
            "pod1": {
                "leaf01": [f"node{i:03}" for i in range(1, 19)],
                "leaf02": ["node019", "node020", "gpu1", "gpu2", "gpu3", "gpu4"],
            },
            "pod2": {"l#3": UUIDS},
        }
    },
    levels=["rack", "row", "hall"],
    host_processors={f"gpu{i}": "epyc 7763" for i in range(1, 5)},
    details=Details(
        processors={"leaf01": "gold-6338", "pod2": "0123"},
        members={"core[1-2]": ("core1", "core2")},
        ids={"core[1-2]": ("0x00000000000000c1", "0x00000000000000c2")},
    ),
    host_ids={"gpu2": "0123e5c0-0000-4c4e-9d4e-0c8a0e1b5a78"},
)


def test_the_example_is_written_as_a_person_would():
    assert yaml_writer.text_of(EXAMPLE) == (
        """\
levels: [rack, row, hall]
switches:
- name: "core[1-2]"
  members: ["core[1-2]"]
  ids: ["0x00000000000000c1", "0x00000000000000c2"]
  switches:
  - name: pod1
    switches:
    - name: leaf01
      processor: gold-6338
      hosts: node[001-018]
    - name: leaf02
      hosts:
      - node[019-020]
      - {name: "gpu1", processor: "epyc 7763"}
      - {name: "gpu2", processor: "epyc 7763", id: "0123e5c0-0000-4c4e-9d4e-0c8a0e1b5a78"}
      - {name: "gpu[3-4]", processor: "epyc 7763"}
  - name: pod2
    processor: "0123"
    switches:
    - name: "l#3"
      hosts: "0123e5c0-3f0c-4c4e-9d4e-0c8a0e1b5a78,7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77"
"""
    )


def test_the_example_is_written_for_slurm_and_losses_are_reported():
    assert slurm_writer.text_of(EXAMPLE) == (
        """\
SwitchName=leaf01 Nodes=node[001-018]
SwitchName=leaf02 Nodes=gpu[1-4],node[019-020]
SwitchName=l-3 Nodes=0123e5c0-3f0c-4c4e-9d4e-0c8a0e1b5a78,7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77
SwitchName=pod1 Switches=leaf[01-02]
SwitchName=pod2 Switches=l-3
# core-1-2 stands for core[1-2]
SwitchName=core-1-2 Switches=pod[1-2]
""",
        (
            "switch 'core[1-2]' is called 'core-1-2' in the file, for Slurm would not take its "
            "name",
            "switch 'l#3' is called 'l-3' in the file, for Slurm would not take its name",
            "names of levels are left out: rack, row, hall",
            "processor types are left out",
            "ids of hosts are left out",
        ),
    )


def test_slurm_gets_brackets_at_the_end_of_names_alone():
    #                       root
    #       /           |          |          \
    #    a-1-x        a-2-x       l8         l9
    #    a-1-x ...    r1n1 ...    n8 ...     m08 ...
    fabric = Topology.from_tree(
        {
            "root": {
                "a-1-x": ["a-1-x", "a-2-x", "a-3"],
                "a-2-x": ["r1n1", "r1n2", "r2n1", "r2n2"],
                "l8": ["n8", "n9", "n10"],
                "l9": ["m08", "m10", "m100", "1" * 20 + "1", "1" * 20 + "2"],
            }
        }
    )
    text = slurm_writer.text_of(fabric)[0]
    assert text == (
        """\
SwitchName=a-1-x Nodes=a-3,a-1-x,a-2-x
SwitchName=a-2-x Nodes=r1n[1-2],r2n[1-2]
SwitchName=l8 Nodes=n[8-10]
SwitchName=l9 Nodes=m[08,10,100],111111111111111111111,111111111111111111112
SwitchName=root Switches=l[8-9],a-1-x,a-2-x
"""
    )
    assert per_leaf(back(SlurmDriver, text)) == per_leaf(fabric)


def test_yaml_keeps_all_but_the_comments():
    same = through_yaml(EXAMPLE)
    assert same.levels == EXAMPLE.levels
    assert [(s.name, s.level, s.processor) for s in same.switches] == [
        (s.name, s.level, s.processor) for s in EXAMPLE.switches
    ]
    assert same.host_processors == EXAMPLE.host_processors
    assert {h: same.processor_of(h) for h in same.hosts} == {
        h: EXAMPLE.processor_of(h) for h in EXAMPLE.hosts
    }
    assert hops_of(same) == hops_of(EXAMPLE)


@pytest.mark.parametrize(
    "fabric",
    [
        fabrics.two_leaves(),
        fabrics.two_pods(),
        fabrics.lopsided(),
        fabrics.islands(),
        fabrics.large_leaf_and_neighbours(),
        Topology.from_tree({"leaf": ["h1", "h2"]}),
        Topology.from_tree({"leaf": ["h1"]}).including(["x1", "x2"]),
        fabrics.two_pods().including(["x1", "x2"]),
        fabrics.islands().including(["x1", "a1'"]),
        EXAMPLE,
    ],
)
@BOTH
def test_what_is_read_back_is_the_same_fabric(through: Through, fabric: Topology):
    same = through(fabric)
    assert same.depth == fabric.depth
    assert hops_of(same) == hops_of(fabric)
    assert per_leaf(same) == per_leaf(fabric)
    assert len(same.roots) == len(fabric.roots)


@given(trees(max_islands=4))
def test_a_tree_is_the_same_after_both(tree):
    fabric = Topology.from_tree(tree)
    for same in (through_yaml(fabric), through_slurm(fabric), through_slurm(through_yaml(fabric))):
        assert hops_of(same) == hops_of(fabric)
        assert per_leaf(same) == per_leaf(fabric)
        assert (same.depth, same.leaves) == (fabric.depth, fabric.leaves)
    assert [s.name for s in through_yaml(fabric).switches] == [s.name for s in fabric.switches]


@pytest.mark.parametrize(
    "name",
    [
        *("0123", "null", "yes", "~", "-", "1e3", "2024-01-31", "#h", "a#2", "a:b", "a:"),
        *("{x}", "'q'", "a\\b", "a=b", "|", ">", "`x`", "schränk", UUIDS[0], "n1.example.org"),
    ],
)
@BOTH
def test_a_host_of_an_odd_name_survives(through: Through, name: str):
    fabric = Topology.from_tree({"top": {"s1": [name, "n1", "n2"], "s2": ["n3"]}})
    same = through(fabric)
    assert per_leaf(same) == per_leaf(fabric)


@pytest.mark.parametrize(
    "name", ["node[1", "node[1]", "n[1-2]", "a b", "@x", "a,b", "x*", "a\nb", "", "a\ud800", "]"]
)
@BOTH
def test_a_host_whose_name_would_be_read_otherwise_is_refused(through: Through, name: str):
    fabric = Topology.from_tree({"s1": ["n1", name]})
    with pytest.raises(exceptions.TopologyError, match="cannot be written"):
        through(fabric)


def test_a_quote_in_a_hosts_name_is_for_yaml_alone():
    fabric = Topology.from_tree({"s1": ['a"b']})
    assert through_yaml(fabric).hosts == ('a"b',)
    with pytest.raises(exceptions.TopologyError, match="character '\"' in host name"):
        slurm_writer.text_of(fabric)


@pytest.mark.parametrize(
    "name", ["spine[01-18]", "a#2", "a b", "null", "0123", "a,b", "- x", "a\nb", "é", "{", "x'"]
)
def test_a_switch_may_have_any_name_in_yaml(name: str):
    fabric = Topology.from_tree({name: {"s": ["n1"]}}, processors={name: name}, levels=["l", name])
    same = through_yaml(fabric)
    assert (same.roots, same.levels, same.processor_of("n1")) == ((name,), ("l", name), name)


@pytest.mark.parametrize("name", ["", " a", "\ud800"])
def test_a_switch_without_a_name_that_yaml_could_hold_is_refused(name: str):
    with pytest.raises(exceptions.TopologyError, match=r"switch .* cannot be written"):
        yaml_writer.text_of(Topology.from_tree({name: ["h"]}))


def test_new_names_of_switches_are_unique():
    long = "x" * 80
    fabric = Topology.from_tree(
        {"a-2": {"a#2": ["h1"], "a 2": ["h2"], "##": ["h3"], long: ["h4"], long + "y": ["h5"]}}
    )
    text, warnings = slurm_writer.text_of(fabric)
    assert back(SlurmDriver, text).leaves == (
        *("a-2-2", "a-2-3", "switch", "x" * 64, "x" * 62 + "-2"),
    )
    assert warnings[0] == (
        "switch 'a#2' is called 'a-2-2' in the file, for Slurm would not take its name"
    )
    assert len(warnings) == 5


def test_members_of_any_name_stay_in_their_comment():
    details = Details(members={"top": ("a\nSwitchName=x", "b\\", "é\u2028- name: y")})
    fabric = Topology.from_tree({"top": {"s": ["h1"]}}, details=details)
    assert through_yaml(fabric).roots == through_slurm(fabric).roots == ("top",)


@BOTH
def test_more_levels_than_are_read_are_not_written(through: Through):
    tree = {"s0": ["h1"]}
    for level in range(1, 33):
        tree = {f"s{level}": tree}
    with pytest.raises(exceptions.TopologyError, match=r"at most 32 levels .* found 33"):
        through(Topology.from_tree(tree))


@BOTH
def test_ten_thousand_hosts_are_written(through: Through):
    fabric = Topology.from_tree(
        {"top": {f"l{i}": [f"r{i}n{j:02}" for j in range(20)] for i in range(500)}}
    )
    assert through(fabric).leaves == fabric.leaves


@given(
    st.dictionaries(
        st.text(max_size=8), st.lists(st.text(max_size=6), min_size=1, max_size=3),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_any_names_come_back_or_are_refused(tree: dict[str, list[str]]):
    hosts = [host for leaf in tree.values() for host in leaf]
    if len(set(hosts)) < len(hosts):
        return
    fabric = Topology.from_tree(tree)
    for through in (through_yaml, through_slurm):
        same = read_or_refused(through, fabric)
        if isinstance(same, str):
            assert "cannot be written" in same
        else:
            assert per_leaf(same) == per_leaf(fabric)
            assert through is through_slurm or same.leaves == fabric.leaves


def read_or_refused(through: Through, fabric: Topology) -> Topology | str:
    try:
        return through(fabric)
    except exceptions.TopologyError as error:
        return str(error)


@given(
    st.dictionaries(
        st.sampled_from(["leaf", "row of racks", "on"]),
        st.floats(0.001, 1000) | st.sampled_from([1, 4, 1.5]),
    )
)
def test_oversubscription_comes_back_from_yaml(ratios: dict[str, float]):
    levels = ("leaf", "row of racks", "on")
    tree = {"core": {"pod": {"leaf1": ["a1"], "leaf2": ["b1"]}}}
    fabric = Topology.from_tree(tree, levels, oversubscription=ratios)
    assert through_yaml(fabric).oversubscription == ratios
    assert ("oversubscription" in yaml_writer.text_of(fabric)) == bool(ratios)


def test_slurm_has_no_oversubscription_and_the_loss_is_reported():
    fabric = Topology.from_tree({"core": {"leaf1": ["a1"]}}, oversubscription={"leaf": 4})
    text, warnings = slurm_writer.text_of(fabric)
    assert warnings == ("the oversubscription of levels is left out",)
    assert "4" not in text
