"""Slurm's topology.yaml: several topologies, one tree of which is read."""

import argparse
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from hpc_sched import conf
from hpc_sched.cli.common import sources
from hpc_sched.configuration import topology_options
from hpc_sched.topology import load
from hpc_sched.topology.readers.slurm.slurm_driver import is_yaml
from tests.unit.test_topology_slurm import hops_of, problems_of, read

# The example of Slurm's manual, shortened:
#
#   topo1     sw_root            topo4   west       east
#             /     \                    n1 n2      n3 n4
#           s1       s2
#        node01-02  node03-04
MANUAL = """\
---
- topology: topo1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: topo2
  cluster_default: false
  block:
    block_sizes: [4, 16]
    blocks:
      - block: b1
        nodes: node[01-04]
- topology: topo3
  cluster_default: false
  flat: true
- topology: topo4
  tree: {switches: [{switch: west, nodes: 'n[1-2]'}, {switch: east, nodes: 'n[3-4]'}]}
"""


def test_the_example_of_slurms_manual_is_the_same_tree_in_topology_conf():
    fabric = read(MANUAL)
    same = read(
        "SwitchName=sw_root Switches=s[1-2]\nSwitchName=s1 Nodes=node[01-02]\n"
        "SwitchName=s2 Nodes=node[03-04]\n"
    )
    assert fabric.ancestors("node01") == ("s1", "sw_root")
    assert (fabric.switches, fabric.hosts) == (same.switches, same.hosts)
    assert hops_of(fabric) == hops_of(same)
    assert fabric.remarks == ()


def test_a_tree_is_chosen_by_its_name(tmp_path: Path):
    path = tmp_path / "topology.yaml"
    path.write_text(MANUAL)
    assert load("slurm", path=path, tree="topo4").roots == ("west", "east")
    assert load("slurm", path=path, tree="topo1").roots == ("sw_root",)


def test_the_name_may_be_in_nova_conf(tmp_path: Path):
    path = tmp_path / "topology.yaml"
    path.write_text(MANUAL)
    nova = tmp_path / "nova.conf"
    nova.write_text(
        f"[hpc_sched]\ntopology_driver = slurm\ntopology_name = topo4\ntopology_file = {path}\n"
    )
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    options([], default_config_files=[str(nova)])
    driver, given = topology_options.source(options)
    assert load(driver, **given).roots == ("west", "east")


def test_the_name_may_be_on_the_command_line(tmp_path: Path):
    path = tmp_path / "topology.yaml"
    path.write_text(MANUAL)
    parser = argparse.ArgumentParser()
    sources.add_topology_arguments(parser)
    args = parser.parse_args(["--topology-name", "topo4"])
    assert sources.topology_of(args, str(path)).roots == ("west", "east")
    assert sources.topology_of(parser.parse_args([]), f"slurm:{path}").roots == ("sw_root",)


def one(switches: str, name: str = "t", more: str = "") -> str:
    return f"- topology: {name}\n{more}  tree:\n    switches:\n{switches}"


A = "    - {switch: a, nodes: h1}\n"
B = "    - {switch: b, nodes: h2}\n"


def test_the_only_tree_needs_neither_a_name_nor_a_mark():
    assert read("- topology: f\n  flat: true\n" + one(A)).leaves == ("a",)


def test_of_two_defaults_the_first_is_read_as_slurm_does():
    mark = "  cluster_default: yes\n"
    fabric = read(one(A, "x", mark) + one(B, "y", mark))
    assert fabric.leaves == ("a",)
    assert fabric.remarks == (
        "t.conf:6: topology 'y' is a cluster_default too; the first one, 'x', is read",
    )


def test_what_is_wrong_in_another_tree_does_not_matter():
    assert read(one("    - {switch: a, nodes: 'h[2-1]'}\n", "x") + one(B, "y"), tree="y").leaves


def test_what_slurm_prints_with_all_keys_is_read():
    fabric = read(
        "- topology: t\n  cluster_default: false\n  block: null\n  flat: false\n  ring:\n"
        "  tree:\n    switches:\n    - {switch: top, children: 'a', nodes: ''}\n"
        "    - {switch: a, children: null, nodes: h1}\n"
    )
    assert fabric.ancestors("h1") == ("a", "top")


def test_nodes_and_children_at_once_are_a_leaf_as_slurm_takes_it():
    fabric = read(one(A + "    - {switch: b, nodes: h2, children: a}\n"))
    assert fabric.roots == ("a", "b")
    assert fabric.remarks == ("t.conf:5: switch 'b' has nodes: its children are left out",)


def test_several_spines_are_one():
    fabric = read(one(A + B + "".join(f"    - {{switch: s{i}, children: 'a,b'}}\n" for i in "12")))
    assert fabric.roots == ("s[1-2]",)
    assert fabric.hops("h1", "h2") == 3


@pytest.mark.parametrize("name", ["0123", "yes", "1e3", "2024-01-31"])
def test_a_name_is_what_is_written(name: str):
    fabric = read(one(f"    - {{switch: {name}, nodes: {name}}}\n"))
    assert fabric.leaves == fabric.hosts == (name,)


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        pytest.param(MANUAL, {"tree": "topo9"}, "t.conf: there is no topology 'topo9'; trees in "
                     "the file: topo1, topo4; blocks: topo2", id="an unknown name"),
        pytest.param(MANUAL, {"tree": "topo3"}, "t.conf:19: topology 'topo3': expected a tree or "
                     "blocks, found 'flat'; trees in the file: topo1, topo4; blocks: topo2",
                     id="neither a tree nor blocks"),
        pytest.param(one(A, "x") + one(B, "y"), {}, "t.conf: expected a name (topology_name), a "
                     "topology with cluster_default, or one tree or one of blocks alone; trees in "
                     "the file: x, y; blocks: none", id="two trees and no default"),
        pytest.param("- {topology: f, flat: true}\n", {}, "t.conf: expected a name "
                     "(topology_name), a topology with cluster_default, or one tree or one of "
                     "blocks alone; trees in the file: none; blocks: none", id="no tree"),
        pytest.param("---\n", {}, "t.conf: the file is empty", id="an empty document"),
        pytest.param("topology: t\n", {}, "t.conf:1: expected a list of topologies, found keys "
                     "and values", id="a topology that is no list"),
        pytest.param("- t\n", {}, "t.conf:1: a topology: expected keys (topology, "
                     "cluster_default, tree, block, flat, ring, torus3d), found 't'", id="a text"),
        pytest.param("- {tree: {switches: []}}\n", {}, "t.conf:1: a topology has no name (key "
                     "'topology')", id="no name"),
        pytest.param(one(A) + one(B), {}, "t.conf:5: topology 't' stands twice, first on line 1",
                     id="a name twice"),
        pytest.param("- {topology: t, tree: {switches: []}, flat: true}\n", {}, "t.conf:1: "
                     "topology 't': expected one of tree, block, flat, ring, torus3d, found tree "
                     "and flat", id="two kinds"),
        pytest.param("- {topology: t}\n", {}, "t.conf:1: topology 't': expected one of tree, "
                     "block, flat, ring, torus3d, found none", id="no kind"),
        pytest.param("- {topology: t, cluster_default: perhaps, tree: {}}\n", {}, "t.conf:1: "
                     "topology 't': cluster_default: expected true or false, found 'perhaps'",
                     id="a default that is neither"),
        pytest.param("- {topology: t, tree: {switches: s1}}\n", {}, "t.conf:1: switches of "
                     "topology 't': expected a list, found 's1'", id="switches as a text"),
        pytest.param("- {topology: t, tree: {switches: []}}\n", {}, "t.conf: no switch has nodes",
                     id="no switches"),
        pytest.param("- {topology: t, tree: {switch: []}}\n", {}, "t.conf:1: unknown key 'switch' "
                     "in tree of topology 't'; known: switches", id="an unknown key in the tree"),
        pytest.param("- {topology: t, trees: {}}\n", {}, "t.conf:1: unknown key 'trees' in a "
                     "topology; known: topology, cluster_default, tree, block, flat, ring, "
                     "torus3d", id="an unknown key"),
        pytest.param(one("    - {nodes: h1}\n"), {}, "t.conf:4: a switch has no name (key "
                     "'switch')", id="a switch without a name"),
        pytest.param(one("    - {switch: a, nodes: [h1]}\n"), {}, "t.conf:4: switch 'a': nodes: "
                     "expected text, found a list", id="nodes as a list"),
        pytest.param(one("    - {switch: a, children: b}\n    - {switch: b, children: a}\n"), {},
                     "t.conf:4: cycle: switch 'a' is below itself (a > b > a)", id="a cycle"),
        pytest.param(one("    - {switch: a, nodes: h1, Nodes: h2}\n"), {}, "t.conf:4: unknown key "
                     "'Nodes' in a switch; known: switch, children, nodes", id="keys have a case"),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_line(text: str, options: dict[str, Any], problem: str):
    assert problems_of(text, **options)[0] == problem


def test_a_node_under_two_leaves_belongs_to_the_first():
    fabric = read(one(A + "    - {switch: b, nodes: 'h[1-2]'}\n"))
    assert fabric.hosts_of("b") == ("h2",)
    assert fabric.remarks == (
        "t.conf:5: node 'h1' is under switch 'a' (line 4) and switch 'b': read as under the first "
        "of them",
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- topology: [\n", "not YAML: "),
        ("- topology: " + "[" * 100_000, "nested deeper than 16"),
        ("- topology: a\x00b\n", "not YAML: "),
    ],
)
def test_what_is_not_yaml_is_refused(text: str, error: str):
    assert error in problems_of(text)[0]


@pytest.mark.parametrize(
    ("text", "yaml"),
    [
        ("# c\n\n- topology: t", True),
        ("\ufeff---\n", True),
        ("[{topology: t}]", True),
        ("topology: t", True),
        ("- ", True),
        ("SwitchName=a", False),
        ("# topology: t\nSwitchName=a Nodes=b", False),
        ("Include x", False),
        ("", False),
    ],
)
def test_which_of_the_two_it_is_is_seen_from_the_first_line(text: str, yaml: bool):
    assert is_yaml(text.encode()) == yaml
