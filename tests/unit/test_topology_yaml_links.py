"""Links in a topology file: uplinks of switches, links of hosts, by level and one by one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.topology import Topology, load
from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.settling import changes
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import slurm_writer, yaml_writer
from tests.ib_dumps import three_levels, two_levels
from tests.unit import fabrics

#            core1
#          /       \
#      pod1         pod2     8 x 400 each, pod2 4
#     /    \          |
#  leaf1  leaf2     leaf3    4 x 100 each, leaf2 2 x 200 and 2 x 100
#  a1-a2  b1 gpu1   c1 c2    1 x 100 each, gpu1 8 x 400, below pod2 1 x 25
FILE = """\
levels: [leaf, pod, core]
uplinks: {leaf: 4 x 100, pod: 8 x 400}
host_links: 1 x 100
switches:
- name: core1
  switches:
  - name: pod1
    switches:
    - {name: leaf1, hosts: "a[1-2]"}
    - name: leaf2
      uplinks: [2 x 100, 2 x 200]
      hosts: [b1, {name: gpu1, links: 8 x 400}]
  - name: pod2
    uplinks: 4 x 400
    host_links: 1 x 25
    switches:
    - {name: leaf3, hosts: "c[1-2]"}
"""


def read(text: str) -> Topology:
    fabric = YamlFileDriver(path="t").parse(Text(text.encode(), "t"))
    fabrics.check(fabric)
    return fabric


def uplinks_of(fabric: Topology) -> dict[str, str]:
    return {one.name: str(one.links.uplinks) for one in fabric.switches if one.links}


def host_links_of(fabric: Topology) -> dict[str, str]:
    return {host: str(links) for host, links in fabric.host_links.items()}


def test_a_switch_has_its_own_uplinks_else_those_of_its_level():
    assert uplinks_of(read(FILE)) == {
        "pod1": "8 x 400",
        "leaf1": "4 x 100",
        "leaf2": "2 x 200 + 2 x 100",
        "pod2": "4 x 400",
        "leaf3": "4 x 100",
    }


def test_a_host_has_its_own_links_else_those_of_the_nearest_switch_that_states_some():
    assert host_links_of(read(FILE)) == {
        **dict.fromkeys(("a1", "a2", "b1"), "1 x 100"),
        "gpu1": "8 x 400",
        "c1": "1 x 25",
        "c2": "1 x 25",
    }


def test_names_of_levels_need_not_be_given():
    text = FILE.partition("\n")[2]
    assert uplinks_of(read(text)) == uplinks_of(read(FILE))


@pytest.mark.parametrize(
    ("written", "cables"),
    [
        ("4 x 100", Cables(((100, 4),))),
        ("4x100", Cables(((100, 4),))),
        ("4", Cables(((None, 4),))),
        ("1 x 2.5", Cables(((2.5, 1),))),
        ("[2 x 100]", Cables(((100, 2),))),
        ("[2, 1 x 100, 2 x 100, 1 x 400]", Cables(((400, 1), (100, 3), (None, 2)))),
    ],
)
def test_cables_are_a_number_and_a_rate(written: str, cables: Cables):
    text = f"switches:\n- name: core\n  switches:\n  - {{name: s, uplinks: {written}, hosts: a}}\n"
    links = read(text).switches[1].links
    assert links == Links(None, cables)


def test_islands_have_no_uplinks_and_leaves_below_them_have():
    text = """\
uplinks: {leaf: 2 x 100}
switches:
- {name: alone, hosts: a}
- {name: core, switches: [{name: leaf1, hosts: b}]}
"""
    assert uplinks_of(read(text)) == {"leaf1": "2 x 100"}


def test_links_go_with_the_fabric_when_hosts_are_renamed_or_added():
    fabric = read(FILE).renamed({"a1": "z1"}).including(["new"])
    assert uplinks_of(fabric) == uplinks_of(read(FILE))
    assert host_links_of(fabric) == {
        {"a1": "z1"}.get(host, host): links for host, links in host_links_of(read(FILE)).items()
    }


def test_a_host_that_does_not_exist_has_no_links():
    with pytest.raises(exceptions.TopologyError, match="host 'x' has links, but no place in the"):
        Topology.from_tree({"s": ["a"]}, host_links={"x": Cables.of([1])})


def test_the_file_is_written_as_a_person_would():
    assert yaml_writer.text_of(read(FILE)) == (
        """\
levels: [leaf, pod, core]
uplinks: {leaf: 4 x 100}
host_links: 1 x 100
switches:
- name: core1
  switches:
  - name: pod1
    uplinks: 8 x 400
    switches:
    - name: leaf1
      hosts: a[1-2]
    - name: leaf2
      uplinks: [2 x 200, 2 x 100]
      hosts:
      - b1
      - {name: "gpu1", links: 8 x 400}
  - name: pod2
    uplinks: 4 x 400
    switches:
    - name: leaf3
      hosts:
      - {name: "c[1-2]", links: 1 x 25}
"""
    )


def test_a_file_of_five_hundred_equal_leaves_states_their_uplinks_once():
    tree = {"core": {f"leaf{i}": [f"n{i}"] for i in range(500)}}
    links = {f"leaf{i}": Links(None, Cables.of([200] * 8)) for i in range(500)}
    fabric = Topology.from_tree(
        tree,
        details=Details(links=links),
        host_links={f"n{i}": Cables.of([100]) for i in range(500)},
    )
    text = yaml_writer.text_of(fabric)
    assert text.startswith(
        "levels: [leaf, pod]\nuplinks: {leaf: 8 x 200}\nhost_links: 1 x 100\nswitches:\n"
    )
    assert text.count("links") == 2
    assert not changes(fabric, read(text))


def test_uplinks_of_a_level_that_has_a_ratio_too_are_written_at_the_switches():
    details = Details(links={f"l{i}": Links(None, Cables.of([100])) for i in (1, 2)})
    tree = {"core": {"l1": ["a"], "l2": ["b"]}}
    fabric = Topology.from_tree(tree, details=details, oversubscription={"leaf": 4})
    assert "uplinks: {" not in yaml_writer.text_of(fabric)
    assert not changes(fabric, read(yaml_writer.text_of(fabric)))


@pytest.mark.parametrize("dump", [two_levels(4, 2, 3, cables=3), three_levels(3, 2, 3)])
def test_a_discovered_fabric_keeps_numbers_and_rates_in_a_file(dump):
    discovered = dump.topology()
    written = read(yaml_writer.text_of(discovered))
    assert uplinks_of(written) == {
        name: text for name, text in uplinks_of(discovered).items() if text != "0"
    }
    assert written.host_links == discovered.host_links
    assert not difference.between(discovered, written)


CABLES = st.lists(
    st.sampled_from([None, 2.5, 56, 100, 400]) | st.floats(0.001, 100_000), min_size=1, max_size=5
).map(Cables.of)


@st.composite
def linked_fabrics(draw: st.DrawFn) -> Topology:
    """Draw trees some of whose switches below others, hosts and levels state links."""
    tree = draw(fabrics.trees(max_islands=3))
    bare = Topology.from_tree(tree)
    few = st.sampled_from([Cables.of([100] * 4), Cables.of([None])])
    lower = [one.name for one in bare.switches if one.parent >= 0]
    kept = st.sampled_from([0.0, 0.5, 1.0])

    def some(names: list[str]) -> dict[str, Cables]:
        share = draw(kept)
        return {
            name: draw(few | CABLES)
            for i, name in enumerate(names)
            if share == 1.0 or (share and i % 2)
        }

    ratios = draw(st.dictionaries(st.sampled_from(bare.levels), st.floats(0.001, 1000)))
    return Topology.from_tree(
        tree,
        details=Details(links={name: Links(None, up) for name, up in some(lower).items()}),
        oversubscription=ratios,
        host_links=some(list(bare.hosts)),
    )


@given(linked_fabrics())
def test_what_is_written_is_read_again(fabric: Topology):
    same = read(yaml_writer.text_of(fabric))
    assert [one.links for one in same.switches] == [one.links for one in fabric.switches]
    assert same.host_links == fabric.host_links
    assert same.oversubscription == fabric.oversubscription
    assert not changes(fabric, same)


def test_slurm_has_no_links_and_the_loss_is_reported():
    text, warnings = slurm_writer.text_of(read(FILE))
    assert warnings == ("uplinks and links of hosts are left out",)
    assert "400" not in text


def test_ten_thousand_hosts_are_read_with_their_links(tmp_path: Path):
    leaves = "".join(
        f"  - {{name: leaf{i}, uplinks: 4 x 100, hosts: 'n[{i * 20:05}-{i * 20 + 19:05}]'}}\n"
        for i in range(500)
    )
    path = tmp_path / "topology.yaml"
    path.write_text(f"host_links: 1 x 25\nswitches:\n- name: core\n  switches:\n{leaves}")
    fabric = load("yaml", path=path)
    assert len(fabric.host_links) == 10_000
    assert len(uplinks_of(fabric)) == 500
