"""The topology file of the driver ``yaml``: its grammar, and the errors."""

import math
import os
from pathlib import Path

import pytest
import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology import Topology, load
from hpc_sched.topology.tree import MAX_LEVELS
from tests.broken_topologies import BROKEN, BrokenTopology
from tests.unit.fabrics import check

LOADERS = [
    pytest.param(getattr(yaml, "CSafeLoader", None), id="with libyaml"),
    pytest.param(yaml.SafeLoader, id="without libyaml"),
]

# The example of the documentation:
#
#              core1
#                |
#              pod1
#             /    \
#        leaf01    leaf02
#   node[001-018]  node019 node020 gpu[1-4]
EXAMPLE = """\
levels: [leaf, pod, core]
switches:
- name: core1
  switches:
  - name: pod1
    switches:
    - name: leaf01
      hosts: node[001-018]
      processor: gold-6338
    - name: leaf02
      hosts: [node019, node020, "gpu[1-4]"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "topology.yaml"


def read(path: Path, text: str) -> Topology:
    path.write_text(text)
    fabric = load("yaml", path=path)
    check(fabric)
    return fabric


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_broken_file_is_refused_with_its_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, case: BrokenTopology, loader: type | None
):
    if loader is None:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_nodes, "LOADER", loader)
    path.write_bytes(case.content)
    with pytest.raises(exceptions.TopologyError, match=case.error) as caught:
        load("yaml", path=path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).count(str(path)) == 1


def test_the_table_of_broken_files_has_every_sentence_once():
    sentences = [case.id for case in BROKEN]
    assert len(set(sentences)) == len(sentences)


def test_a_missing_file_is_named(path: Path):
    with pytest.raises(exceptions.TopologyError, match=r"yaml: cannot be read: No such file"):
        load("yaml", path=path)


def test_a_directory_is_no_file(tmp_path: Path):
    with pytest.raises(exceptions.TopologyError, match=r"cannot be read: Is a directory"):
        load("yaml", path=tmp_path)


def test_a_file_that_may_not_be_read_is_named(path: Path):
    path.write_text(EXAMPLE)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(exceptions.TopologyError, match=r"yaml: cannot be read: Permission denied"):
        load("yaml", path=path)


def test_a_path_that_no_file_can_have_is_refused():
    # The second since Python 3.13.
    said = r"cannot be read: (embedded null byte|open: embedded null character in path)"
    with pytest.raises(exceptions.TopologyError, match=said):
        load("yaml", path="a\0b")


def test_the_example_of_the_documentation_is_read(path: Path):
    fabric = read(path, EXAMPLE)
    assert fabric.levels == ("leaf", "pod", "core")
    assert fabric.leaves == ("leaf01", "leaf02")
    assert fabric.hosts_of("leaf01") == tuple(f"node{i:03}" for i in range(1, 19))
    assert fabric.hosts_of("leaf02") == ("node019", "node020", "gpu1", "gpu2", "gpu3", "gpu4")
    assert fabric.processor_of("node001") == "gold-6338"
    assert fabric.processor_of("gpu4") is None


def test_the_file_and_the_nested_switches_it_describes_are_one_fabric(path: Path):
    fabric = read(
        path,
        "switches:\n"
        "- {name: west, switches: [{name: leaf1, hosts: 'a[1-2]'}, {name: leaf2, hosts: b1}]}\n"
        "- {name: east, hosts: [e1]}\n",
    )
    same = Topology.from_tree({"west": {"leaf1": ["a1", "a2"], "leaf2": ["b1"]}, "east": ["e1"]})
    assert (fabric.hosts, fabric.switches, fabric.levels) == (
        same.hosts,
        same.switches,
        same.levels,
    )
    assert (fabric.groups == same.groups).all()


def test_several_switches_at_the_top_are_islands(path: Path):
    fabric = read(path, "switches:\n- {name: a, hosts: [h1]}\n- {name: b, hosts: [h2]}\n")
    assert fabric.roots == ("a", "b")
    assert fabric.hops("h1", "h2") == math.inf


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("0123", id="what YAML reads as an octal number"),
        pytest.param("1e3", id="what YAML reads as a float"),
        pytest.param("off", id="what YAML reads as false"),
        pytest.param("2024-01-31", id="what YAML reads as a day"),
        pytest.param("12:30", id="what YAML reads as a number of base 60"),
        pytest.param("node1.example.org", id="a name with its domain"),
        pytest.param("7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a77", id="the UUID of a bare-metal node"),
    ],
)
def test_a_name_is_what_is_written(path: Path, name: str):
    fabric = read(path, f"switches:\n- name: {name}\n  hosts: [{name}]\n  processor: {name}\n")
    assert fabric.hosts == fabric.leaves == (name,)
    assert fabric.processor_of(name) == name


def test_a_processor_holds_for_all_hosts_below_unless_a_lower_switch_says_otherwise(path: Path):
    fabric = read(
        path,
        "switches:\n- name: core\n  processor: &type gold\n  switches:\n"
        "  - {name: s1, hosts: [h1]}\n  - {name: s2, hosts: [h2], processor: silver}\n"
        "  - {name: s3, hosts: [h3], processor: *type}\n",
    )
    assert [fabric.processor_of(host) for host in fabric.hosts] == ["gold", "silver", "gold"]


def test_hosts_of_a_leaf_may_have_a_processor_of_their_own(path: Path):
    fabric = read(
        path,
        "switches:\n"
        "- name: leaf01\n"
        "  processor: gold-6338\n"
        '  hosts: ["node[001-008]", {name: "node[009-010]", processor: epyc-7763}, {name: gpu1}]\n'
        "- name: leaf02\n"
        "  hosts:\n"
        "  - name: node011\n"
        "    processor: 0123\n"
        "  - node012\n",
    )
    assert fabric.hosts == (*(f"node{i:03}" for i in range(1, 11)), "gpu1", "node011", "node012")
    assert [fabric.processor_of(host) for host in fabric.hosts] == [
        *["gold-6338"] * 8,
        *["epyc-7763"] * 2,
        "gold-6338",
        "0123",
        None,
    ]


def test_a_host_may_be_called_like_its_switch(path: Path):
    fabric = read(path, "switches:\n- {name: n1, hosts: [n1]}\n- {name: n2, hosts: [n2]}\n")
    assert fabric.leaf_of("n1") == "n1"


def test_as_many_levels_as_are_allowed_are_read(path: Path):
    lines = ["switches:"]
    for level in range(MAX_LEVELS):
        lines.append(f"{'  ' * level}- name: s{level}")
        lines.append("  " * level + "  switches:")
    lines[-1] = lines[-1].replace("switches:", "hosts: [h1]")
    assert read(path, "\n".join(lines)).depth == MAX_LEVELS


def test_racks_of_ranges_in_one_text_are_counted_one_after_the_other(path: Path):
    fabric = read(path, "switches:\n- name: s\n  hosts: 'a[1-200],b[1-200],c[1-200]'\n")
    assert len(fabric.hosts) == 600


def test_a_file_of_ten_thousand_hosts_is_read(path: Path):
    leaves = "".join(
        f"- name: leaf{i}\n  hosts: n[{i * 20:05}-{i * 20 + 19:05}]\n" for i in range(500)
    )
    path.write_text(f"switches:\n{leaves}")
    fabric = load("yaml", path=path)
    assert (len(fabric.hosts), len(fabric.leaves)) == (10_000, 500)


RATIOS = """\
levels: [leaf, pod, core]
oversubscription: {leaf: 4, pod: 1.5}
switches:
- name: core1
  switches:
  - {name: pod1, switches: [{name: leaf1, hosts: "a[1-2]"}, {name: leaf2, hosts: b1}]}
  - {name: pod2, switches: [{name: leaf3, hosts: c1}]}
"""


def test_the_oversubscription_of_levels_is_read(path: Path):
    assert read(path, RATIOS).oversubscription == {"leaf": 4.0, "pod": 1.5}
    unnamed = RATIOS.partition("\n")[2]
    assert read(path, unnamed).oversubscription == {"leaf": 4.0, "pod": 1.5}
    assert read(path, EXAMPLE).oversubscription == {}


def test_oversubscription_goes_with_the_fabric_when_hosts_are_renamed_or_added(path: Path):
    fabric = read(path, RATIOS)
    stated = fabric.oversubscription
    assert fabric.renamed({"a1": "z1"}).oversubscription == stated
    assert fabric.including(["new"]).oversubscription == stated
    one = read(path, "oversubscription: {leaf: 2}\nswitches:\n- {name: leaf1, hosts: a1}\n")
    assert one.including(["new"]).oversubscription == {"leaf": 2.0}
