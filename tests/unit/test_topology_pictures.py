"""Pictures of fabrics: SVG and Graphviz."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.topology import Topology
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import dot, svg, svg_layout

SVG = "{http://www.w3.org/2000/svg}"

#            core
#          /      \
#       pod1        leaf3
#      /    \       n7 n8
#  leaf1  leaf2
#  n1-n4  n5 n6
TREE: dict[str, Any] = {
    "core": {
        "pod1": {"leaf1": ["n1", "n2", "n3", "n4"], "leaf2": ["n5", "n6"]},
        "leaf3": ["n7", "n8"],
    }
}
ODD_NAMES = ['a"b', "<b>&'", "tab\tname", "nul\0", "back\\", "\ud800", "\N{SNOWMAN}", "x" * 300]


def fat_tree(pods: int, leaves: int, hosts: int) -> Topology:
    """Return pods of leaves of hosts, the same number on each level."""
    return Topology.from_tree(
        {
            "core": {
                f"pod{p}": {
                    f"leaf{p}-{i}": [f"node{p}-{i}-{h:03}" for h in range(hosts)]
                    for i in range(leaves)
                }
                for p in range(pods)
            }
        }
    )


def drawn(topology: Topology, **options: Any) -> ET.Element:
    return ET.fromstring(svg.text_of(topology, **options))


def squares(picture: ET.Element, *states: str) -> list[ET.Element]:
    return [
        found
        for found in picture.iter(f"{SVG}rect")
        if found.get("class") in states and found.find(f"{SVG}title") is not None
    ]


def texts(picture: ET.Element) -> list[str]:
    return [found.text or "" for found in picture.iter(f"{SVG}text")]


def test_every_host_is_a_square_with_its_name():
    topology = Topology.from_tree(TREE, processors={"pod1": "gold"})
    names = [square.findtext(f"{SVG}title") for square in squares(drawn(topology), "host")]
    assert names == [f"n{i}, gold" for i in range(1, 7)] + ["n7", "n8"]


def test_levels_switches_counts_and_folded_hosts_are_written():
    assert texts(drawn(Topology.from_tree(TREE), title="prod")) == [
        "prod: 8 hosts, 3 leaves, depth 3",
        *("leaf", "pod", "core"),
        *("leaf1", "4", "n[1-4]"),
        *("leaf2", "2", "n[5-6]"),
        *("pod1", "6 hosts", "2 leaves"),
        *("leaf3", "2", "n[7-8]"),
        *("core", "8 hosts", "3 leaves"),
    ]


def test_a_branch_without_a_pod_is_connected_by_a_line():
    places = svg_layout.of(Topology.from_tree(TREE))
    [(x, y, width)] = places.lines
    core, leaf3 = places.boxes[-1], places.boxes[-2]
    assert x == core.x + core.width
    assert x + width == leaf3.x
    assert leaf3.y < y < leaf3.y + leaf3.height


def test_states_are_shown_and_counted_in_the_legend():
    states = {"n1": svg.GROUP, "n2": svg.USED, "n3": svg.FREE, "n4": svg.FREE}
    picture = drawn(Topology.from_tree(TREE), states=states, notes={"n1": "2 VMs"})
    counted = Counter(
        square.get("class") for square in squares(picture, svg.GROUP, svg.USED, svg.FREE, svg.OFF)
    )
    assert counted == {svg.GROUP: 1, svg.USED: 1, svg.FREE: 2, svg.OFF: 4}
    assert texts(picture)[1:5] == [
        "free (2)",
        "this group (1)",
        "other VMs (1)",
        "disabled, down or unknown to Nova (4)",
    ]
    told = [square.findtext(f"{SVG}title") for square in squares(picture, svg.GROUP, svg.FREE)]
    assert told == ["n1, 2 VMs", "n3, free", "n4, free"]
    # A host that is off is crossed out as well: colour alone is not enough.
    assert len([path for path in picture.iter(f"{SVG}path") if path.get("class") == "x"]) == 4 + 1


def test_without_a_group_the_legend_has_none():
    picture = drawn(Topology.from_tree(TREE), states={"n1": svg.FREE})
    assert not [text for text in texts(picture) if "group" in text]


def test_tooltips_have_the_members_and_links_of_a_node():
    details = Details(
        members={"core": ("s1", "s2")},
        links={"leaf3": Links(400, Cables.of([100, 100]))},
        processors={"pod1": "g"},
    )
    picture = drawn(Topology.from_tree(TREE, details=details))
    titles = [found.text or "" for found in picture.iter(f"{SVG}title")]
    assert "core (core)\nstands for 2 switches: s[1-2]\n8 hosts\n3 leaves" in titles
    assert "leaf3 (leaf)\nlinks: 400 Gb/s down, 2 x 100 Gb/s up\n2 hosts: n[7-8]" in titles
    assert "pod1 (pod)\nprocessor: g\n6 hosts\n2 leaves" in titles


def test_names_of_any_letters_make_a_picture_that_can_be_read():
    tree = {name: {f"leaf {name}": [f"host {name}"]} for name in ODD_NAMES}
    picture = drawn(Topology.from_tree(tree), title="<&>")
    assert len(squares(picture, "host")) == len(ODD_NAMES)


def test_no_text_is_wider_than_its_box():
    names = {"core": {"x" * 100: ["h" * 100], "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 50: ["h2"]}}
    topology = Topology.from_tree(names, levels=("l" * 100, "p" * 100))
    places = svg_layout.of(topology)
    cuts = [text for text in texts(drawn(topology)) if "\N{HORIZONTAL ELLIPSIS}" in text]
    assert len(cuts) == 5  # two levels, two leaves, and the hosts of one
    for text in cuts:
        assert svg_layout.width_of(text, 9) <= max(box.width for box in places.boxes)
    titles = "".join(found.text or "" for found in drawn(topology).iter(f"{SVG}title"))
    assert "x" * 100 in titles


def test_long_names_that_differ_at_their_ends_differ_in_the_picture():
    names = [f"A09-P1-IBLEAF-[01-04]-{number:02}" for number in range(1, 9)]
    picture = drawn(Topology.from_tree({"spine": {name: ["h" + name] for name in names}}))
    assert {f"-{number:02}" for number in range(1, 9)} <= {text[-3:] for text in texts(picture)}


def overlap(a: svg_layout.Box, b: svg_layout.Box) -> bool:
    return (
        a.x < b.x + b.width
        and b.x < a.x + a.width
        and a.y < b.y + b.height
        and b.y < a.y + a.height
    )


@st.composite
def trees(draw: st.DrawFn) -> Topology:
    """Trees with branches of different length, islands and leaves of different size."""
    numbers = iter(range(10_000))

    def switch(depth: int) -> Any:
        if depth == 0 or draw(st.integers(0, 2)) == 0:
            return [f"h{next(numbers)}" for _ in range(draw(st.integers(1, 40)))]
        return {f"s{next(numbers)}": switch(depth - 1) for _ in range(draw(st.integers(1, 5)))}

    return Topology.from_tree(
        {f"s{next(numbers)}": switch(3) for _ in range(draw(st.integers(1, 3)))}
    )


@given(trees())
def test_boxes_do_not_overlap_and_are_next_to_the_switch_above(topology: Topology):
    places = svg_layout.of(topology)
    by_switch = {box.switch: box for box in places.boxes}
    assert sorted(by_switch) == list(range(len(topology.switches)))
    boxes = list(places.boxes)
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if overlap(a, b)]
    for box in boxes:
        assert box.x >= 0
        assert box.x + box.width <= places.width
        assert box.y >= 0
        assert box.y + box.height <= places.height
        switch = topology.switches[box.switch]
        if switch.level > 1:
            assert box.x == places.columns[switch.level - 1]
        if switch.parent >= 0:
            above = by_switch[switch.parent]
            assert above.x + above.width < box.x
            assert above.y <= box.y
            assert box.y + box.height <= above.y + above.height


@given(trees())
def test_cells_are_inside_their_leaf(topology: Topology):
    places = svg_layout.of(topology)
    sizes = Counter(topology.leaf_index.tolist())
    for box in places.boxes:
        if topology.switches[box.switch].level == 1:
            rows = -(-sizes[box.switch] // places.cells)
            assert svg_layout.HEADING + rows * places.cell <= box.height
            assert places.cells * places.cell <= box.width - 2 * svg_layout.PADDING


@pytest.mark.parametrize(
    ("pods", "leaves", "hosts", "widest", "highest"),
    [(1, 2, 2, 500, 300), (4, 14, 18, 1600, 1000), (20, 25, 20, 4200, 2700)],
    ids=["4 hosts", "1,000 hosts", "10,000 hosts"],
)
def test_a_picture_has_about_the_shape_of_a_page(pods, leaves, hosts, widest, highest):
    picture = drawn(fat_tree(pods, leaves, hosts))
    width, height = int(picture.get("width", 0)), int(picture.get("height", 0))
    assert width <= widest
    assert height <= highest


def test_the_heading_and_the_legend_fit_into_a_small_picture():
    picture = drawn(Topology.from_tree({"leaf": ["h"]}), title="T" * 80, states={})
    assert int(picture.get("width", 0)) > svg_layout.width_of("T" * 80, 14)


def test_the_same_fabric_is_the_same_picture():
    assert svg.text_of(fat_tree(2, 3, 4)) == svg.text_of(fat_tree(2, 3, 4))


def test_a_picture_needs_nothing_from_elsewhere():
    text = svg.text_of(fat_tree(2, 2, 2), states={})
    assert "<script" not in text
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_the_graph_has_a_node_a_switch_and_an_edge_a_link():
    details = Details(
        members={"core": ("s1", "s2")}, links={"leaf3": Links(400, Cables.of([100, 100]))}
    )
    assert dot.text_of(Topology.from_tree(TREE, details=details)) == (
        "graph topology {\n"
        '  node [shape=box, style=filled, fillcolor="#e8eef2", fontname="monospace"];\n'
        '  edge [color="#888888", fontname="monospace", fontsize=10];\n'
        '  s0 [label="core", tooltip="core (core)\\nstands for s[1-2]"];\n'
        '  s1 [label="pod1", tooltip="pod1 (pod)"];\n'
        '  s2 [label="leaf1\\n4: n[1-4]", tooltip="leaf1 (leaf)\\nn[1-4]", fillcolor="#fafafa"];\n'
        '  s3 [label="leaf2\\n2: n[5-6]", tooltip="leaf2 (leaf)\\nn[5-6]", fillcolor="#fafafa"];\n'
        '  s4 [label="leaf3\\n2: n[7-8]", tooltip="leaf3 (leaf)\\nn[7-8]", fillcolor="#fafafa"];\n'
        "  { rank=same; s0; }\n"
        "  { rank=same; s1; }\n"
        "  { rank=same; s2; s3; s4; }\n"
        "  s0 -- s1;\n"
        "  s1 -- s2;\n"
        "  s1 -- s3;\n"
        '  s0 -- s4 [label="2 x 100 Gb/s"];\n'
        "}\n"
    )


def test_a_label_of_many_hosts_is_cut_and_the_tooltip_is_not():
    hosts = [f"h{i * 7}" for i in range(60)]
    text = dot.text_of(Topology.from_tree({"leaf": hosts}))
    [label] = re.findall(r'label="leaf\\n60: ([^"]*)"', text)
    assert len(label) == dot.MAX_LABEL
    assert label.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert "413]" in text


def test_graphviz_reads_names_of_any_letters():
    tree = {name: {f"leaf {name}": [f"host {name}"]} for name in ODD_NAMES if name != "\ud800"}
    text = dot.text_of(Topology.from_tree(tree))
    assert '"a\\"b"' in text
    assert '"back\\\\"' in text
    program = shutil.which("dot")
    if program is None:
        pytest.skip("Graphviz is not installed")
    read = subprocess.run(
        [program, "-Tplain"], input=text.encode(), capture_output=True, check=True
    )
    nodes = [line for line in read.stdout.decode().splitlines() if line.startswith("node ")]
    assert len(nodes) == 2 * len(tree)
