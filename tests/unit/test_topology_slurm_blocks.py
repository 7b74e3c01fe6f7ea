"""Slurm's topology/block: blocks are leaves, and sizes of blocks the levels above."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.topology import Topology
from hpc_sched.topology.readers.slurm import blocks
from tests.unit.test_topology_slurm import problems_of, read

# The example of Slurm's manual:
#
#            block[1-4]
#     /       |       |       \
#  block1  block2  block3  block4
#   1-32    33-64   65-96  97-128
MANUAL = """\
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockName=block3 Nodes=node[65-96]
BlockName=block4 Nodes=node[97-128]
BlockSizes=30,120
"""


def tree_of(fabric: Topology) -> dict[str, tuple[str, ...]]:
    """Return the switches just below each switch, or the hosts of a leaf."""
    return {s.name: fabric.children_of(s.name) or fabric.hosts_of(s.name) for s in fabric.switches}


def test_the_example_of_slurms_manual_is_read():
    fabric = read(MANUAL)
    assert fabric.leaves == ("block1", "block2", "block3", "block4")
    assert fabric.roots == ("block[1-4]",)
    assert [fabric.hops("node1", other) for other in ("node32", "node33", "node128")] == [1, 3, 3]
    assert (fabric.depth, fabric.remarks) == (2, ())


def lines(*nodes: str, sizes: str = "") -> str:
    """Return blocks b1, b2 and so on, some without nodes, and perhaps their sizes."""
    text = "".join(
        f"BlockName=b{i}{f' Nodes={each}' if each else ''}\n" for i, each in enumerate(nodes, 1)
    )
    return text + (f"BlockSizes={sizes}\n" if sizes else "")


def test_what_remains_at_the_end_is_a_block_if_it_is_more_than_the_next_smaller_size():
    #                  fabric
    #           /                 \
    #        b[1-4]              b[5-7]
    #       /      \            /      \
    #   b[1-2]    b[3-4]    b[5-6]      |
    #   b1  b2    b3  b4    b5  b6     b7
    nodes = [f"n{i}" for i in range(1, 8)]
    assert tree_of(read(lines(*nodes, sizes="1,2,4"))) == {
        "fabric": ("b[1-4]", "b[5-7]"),
        "b[1-4]": ("b[1-2]", "b[3-4]"),
        "b[5-7]": ("b[5-6]", "b7"),
        **{"b[1-2]": ("b1", "b2"), "b[3-4]": ("b3", "b4"), "b[5-6]": ("b5", "b6")},
        **{f"b{i}": (f"n{i}",) for i in range(1, 8)},
    }


def test_a_block_without_nodes_keeps_its_place():
    #          b[1-4]               b2 and b3 have no nodes
    #         /      \
    #     b[1-2]    b[3-4]
    #       b1        b4
    fabric = read(lines("h[1-2]", "", "", "h4", sizes="2,4,8"))
    assert tree_of(fabric) == {
        "b[1-4]": ("b[1-2]", "b[3-4]"),
        **{"b[1-2]": ("b1",), "b[3-4]": ("b4",), "b1": ("h1", "h2"), "b4": ("h4",)},
    }
    assert (fabric.hops("h1", "h4"), fabric.remarks) == (5, ())


def test_without_sizes_there_are_those_that_slurm_has():
    fabric = read(lines(*(f"n{i}" for i in range(20))))
    assert [len(fabric.children_of(name)) for name in fabric.ancestors("n0")[1:]] == [2, 2, 2, 2, 2]
    assert fabric.roots == ("fabric",)
    assert fabric.children_of("fabric") == ("b[1-16]", "b[17-20]")
    assert fabric.remarks == (
        "t.conf: no block sizes: 2, 4, 8 and 16 blocks are one on the levels above, as in Slurm",
    )


def test_one_block_is_one_leaf():
    assert tree_of(read(lines("h[1-2]", sizes="2,4"))) == {"b1": ("h1", "h2")}


def test_what_scontrol_prints_is_the_same_tree():
    printed = (
        "BlockName=b1 BlockIndex=0 Nodes=h[1-2] BlockSize=2\n"
        "BlockName=b2 BlockIndex=1 Nodes=h[3-4] BlockSize=2\n"
        "BlockName=b3 BlockIndex=2 Nodes= BlockSize=2\n"
        "BlockName=b4 BlockIndex=3 BlockSize=2\n"
        "BlockName=b5 BlockIndex=4 Nodes=h5 BlockSize=2\n"
        "AggregatedBlock=b[1-4] BlockIndex=5 Nodes=h[1-4] BlockSize=8\n"
        "AggregatedBlock=b[1-5] BlockIndex=6 Nodes=h[1-5] BlockSize=16\n"
    )
    fabric = read(printed)
    assert tree_of(fabric) == tree_of(read(lines("h[1-2]", "h[3-4]", "", "", "h5", sizes="2,8,16")))
    assert fabric.children_of("b[1-5]") == ("b[1-4]", "b5")
    assert fabric.remarks == ()


def test_a_node_of_two_blocks_belongs_to_the_first():
    fabric = read(lines("h[1-2]", "h[2-3]", "h1", sizes="2,4"))
    assert tree_of(fabric) == {
        "b[1-2]": ("b1", "b2"),
        **{"b1": ("h1", "h2"), "b2": ("h3",)},
    }
    assert fabric.remarks == (
        "t.conf:2: node 'h2' is under block 'b1' (line 1) and block 'b2': read as under the first "
        "of them",
        "t.conf:3: node 'h1' is under block 'b1' (line 1) and block 'b3': read as under the first "
        "of them",
        "t.conf:3: block 'b3' has no nodes of its own: left out",
    )


def test_names_of_joined_blocks_are_unique_and_short():
    names = ["fabric", *(f"rack-{chr(97 + i)}-of-hall-{i * i}-x" for i in range(12))]
    text = "".join(f"BlockName={name} Nodes=n{i}\n" for i, name in enumerate(names))
    fabric = read(text + "BlockSizes=1,4\n")
    assert fabric.roots == ("fabric'",)
    assert fabric.children_of("fabric'")[0] == "fabric+3"


# NVIDIA Topograph's output for two of four accelerator domains that are too large for a block.
TOPOGRAPH = """\
# block001=B1
BlockName=block001 Nodes=Node[104-105]
# block002=B1
BlockName=block002 Nodes=Node106
# block003=B3
BlockName=block003 Nodes=Node[301,303]
BlockName=block004
BlockSizes=2,4,8
"""

TOPOGRAPH_YAML = """\
- topology: topo1
  cluster_default: false
  tree:
    switches:
        - switch: IB1
          children: S4
        - switch: IB2
          children: S1
        - switch: S4
          children: S6
        - switch: S1
          children: S[2-3]
        - switch: S6
          nodes: Node[401-403]
        - switch: S2
          nodes: Node[104-105]
        - switch: S3
          nodes: Node[201,205]
- topology: topo2
  cluster_default: false
  block:
    block_sizes:
        - 2
        - 4
    blocks:
        - block: block1
          nodes: Node[301-302]
        - block: block2
          nodes: Node303
        - block: block3
- topology: topo3
  cluster_default: true
  flat: true
"""


def test_what_topograph_writes_is_read():
    fabric = read(TOPOGRAPH)
    assert fabric.leaves == ("block001", "block002", "block003")
    assert [fabric.hops("Node104", other) for other in ("Node105", "Node106", "Node303")] == [
        *(1, 3, 5),
    ]
    assert fabric.remarks == ()
    assert read(TOPOGRAPH_YAML, tree="topo1").roots == ("IB1", "IB2")
    named = read(TOPOGRAPH_YAML, tree="topo2")
    assert tree_of(named) == {
        "block[1-2]": ("block1", "block2"),
        **{"block1": ("Node301", "Node302"), "block2": ("Node303",)},
    }
    assert named.remarks == ()


def test_blocks_of_topology_yaml_are_read_where_they_are_alone_or_the_default():
    block = "block: {block_sizes: [4, 8], blocks: [{block: a, nodes: h1}, {block: b, nodes: h2}]}"
    tree = "tree: {switches: [{switch: s, nodes: h1}]}"
    for text in (
        f"- {{topology: t, {block}}}\n- {{topology: f, flat: true}}\n",
        f"- {{topology: u, {tree}}}\n- {{topology: t, cluster_default: true, {block}}}\n",
    ):
        fabric = read(text)
        assert (fabric.leaves, fabric.roots, fabric.remarks) == (("a", "b"), ("a,b",), ())
    # A tree is preferred.
    assert read(f"- {{topology: t, {block}}}\n- {{topology: u, {tree}}}\n").leaves == ("s",)


A = "BlockName=a Nodes=h1\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(A + "BlockSizes=4,12", "t.conf:2: block sizes: expected 4 times a power of "
                     "two, found '12'", id="three times the base"),
        pytest.param(A + "BlockSizes=4,2", "t.conf:2: block sizes: expected 4 times a power of "
                     "two, found '2'", id="less than the base"),
        pytest.param(A + "BlockSizes=0", "t.conf:2: block sizes: expected numbers from 1, found "
                     "'0'", id="a base of nothing"),
        pytest.param(A + "BlockSizes=1,65536", "t.conf:2: block sizes: expected 1 times a power of "
                     "two, found '65536'", id="a power that Slurm does not have"),
        pytest.param(A + "BlockSizes=four", "t.conf:2: block sizes: expected numbers from 1, found "
                     "'four'", id="a word"),
        pytest.param(A + "BlockSizes=4\nBlockSizes=4", "t.conf:3: BlockSizes stands twice, first "
                     "on line 2", id="sizes twice"),
        pytest.param(A + "BlockName=a Nodes=h2", "t.conf:2: block 'a' stands twice, first on line "
                     "1", id="a block twice"),
        pytest.param(A + "BlockName=b Switches=a", "t.conf:2: block 'b': unknown key 'Switches'; "
                     "known: BlockName, Nodes, BlockIndex, BlockSize", id="switches of a block"),
        pytest.param(A + "BlockName=b Nodes=", "t.conf:2: block 'b': key 'Nodes' has no value",
                     id="no value"),
        pytest.param("BlockName=a\nBlockName=b\nBlockSizes=2,4", "t.conf: no block has nodes",
                     id="the skeleton of Topograph"),
        pytest.param("BlockSizes=4", "t.conf: no block has nodes", id="sizes alone"),
        pytest.param("- {topology: t, block: {blocks: [{nodes: h}]}}", "t.conf:1: a block has no "
                     "name (key 'block')", id="a block without a name"),
        pytest.param("- {topology: t, block: {block_sizes: [4]}}", "t.conf:1: block of topology "
                     "'t' has no blocks (key 'blocks')", id="no blocks"),
        pytest.param("- {topology: t, block: {block_sizes: [4, 5], blocks: [{block: a}]}}",
                     "t.conf:1: block sizes: expected 4 times a power of two, found '5'",
                     id="sizes in topology.yaml"),
        pytest.param("- {topology: t, block: {block_sizes: 4, blocks: []}}", "t.conf:1: "
                     "block_sizes of topology 't': expected a list, found '4'", id="no list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line(text: str, problem: str):
    assert problems_of(text) == (problem,)


def test_more_blocks_than_slurm_counts_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 2)
    assert problems_of(lines("h1", "h2", "h3")) == (
        "t.conf:3: expected at most 2 blocks, found more",
    )


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw the numbers of nodes of blocks, and powers of two above that of a block."""
    counts = draw(st.lists(st.integers(0, 2), min_size=1, max_size=40).filter(any))
    return counts, draw(st.lists(st.integers(1, 6), unique=True, max_size=4))


@given(drawn())
def test_blocks_are_joined_as_slurms_code_joins_them(case: tuple[list[int], list[int]]):
    counts, powers = case
    hosts = [[f"n{i}-{k}" for k in range(count)] for i, count in enumerate(counts)]
    sizes = ",".join(str(3 << power) for power in [0, *powers])
    fabric = read(lines(*(",".join(each) for each in hosts), sizes=sizes))
    found = {frozenset(fabric.hosts_of(s.name)) for s in fabric.switches}
    every = frozenset(host for each in hosts for host in each)
    assert found | {every} == {every, *as_slurm_joins(hosts, sorted({0, *powers}))}


def as_slurm_joins(hosts: list[list[str]], powers: list[int]) -> set[frozenset[str]]:
    """Return the nodes of all blocks as block_record_validate finds them, one block at a time."""
    sizes: list[int] = []
    for power in powers:
        sizes.append(1 << power)
        if 1 << power >= len(hosts):
            break
    records = [list(each) for each in hosts]
    open_: list[list[str] | None] = [None] * len(sizes)
    for i, each in enumerate(hosts):
        for j in range(1, len(sizes)):
            if i % sizes[j]:
                if (current := open_[j]) is not None:
                    current += each
                continue
            left = len(hosts) - i
            if sizes[j] > left and sizes[j - 1] >= left:
                open_[j] = None
            else:
                records.append(current := list(each))
                open_[j] = current
    return {frozenset(record) for record in records if record}
