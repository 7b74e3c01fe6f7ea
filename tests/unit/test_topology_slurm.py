"""Slurm's topology.conf: its grammar, its meaning, and the errors."""

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from hpc_sched import exceptions
from hpc_sched.topology import Topology, hostlist, load
from hpc_sched.topology.readers.slurm import switch_graph
from hpc_sched.topology.readers.slurm.slurm_driver import SlurmDriver
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.writers import slurm_writer
from tests import cpu_guard
from tests.counted_calls import calls_of
from tests.unit.fabrics import check, trees


def read(text: str | bytes, **options: Any) -> Topology:
    """Return the fabric of a text, called t.conf in errors."""
    content = text.encode() if isinstance(text, str) else text
    fabric = SlurmDriver(path="t.conf", **options).parse(Text(content, "t.conf"))
    check(fabric)
    return fabric


def problems_of(text: str | bytes, **options: Any) -> tuple[str, ...]:
    with pytest.raises(exceptions.TopologyError) as caught:
        read(text, **options)
    return caught.value.problems


# The first example of Slurm's topology guide:
#
#             s6
#          /      \
#        s4        s5
#       /  \      /  \
#      s0  s1    s2  s3
#    tux0-1 ...     tux6-7
GUIDE = """\
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-1]
SwitchName=s1 Nodes=tux[2-3]
SwitchName=s2 Nodes=tux[4-5]
SwitchName=s3 Nodes=tux[6-7]
SwitchName=s4 Switches=s[0-1]
SwitchName=s5 Switches=s[2-3]
SwitchName=s6 Switches=s[4-5]
"""


def test_the_example_of_slurms_guide_is_read(tmp_path: Path):
    path = tmp_path / "topology.conf"
    path.write_text(GUIDE)
    fabric = load("slurm", path=path)
    assert fabric.hosts == tuple(f"tux{i}" for i in range(8))
    assert fabric.leaves == ("s0", "s1", "s2", "s3")
    assert fabric.ancestors("tux0") == ("s0", "s4", "s6")
    assert [fabric.hops("tux0", other) for other in ("tux1", "tux2", "tux4")] == [1, 3, 5]
    assert fabric.remarks == ()


def test_a_fat_tree_with_all_its_spines_is_the_tree_with_one(tmp_path: Path):
    # The second example of the guide: s4 to s7 each connect the leaves s0 to s3.
    leaves = "".join(f"SwitchName=s{i} Nodes=tux[{4 * i}-{4 * i + 3}]\n" for i in range(4))
    spines = "".join(f"SwitchName=s{i} Switches=s[0-3] LinkSpeed=1800\n" for i in range(4, 8))
    fabric = read(leaves + spines)
    assert fabric.roots == ("s[4-7]",)
    assert fabric.switches[0].members == ("s4", "s5", "s6", "s7")
    assert hops_of(fabric) == hops_of(read(leaves + "SwitchName=top Switches=s[0-3]\n"))
    assert fabric.remarks == ()


def test_three_levels_of_a_fat_tree_with_every_link_have_their_hops():
    #     c1   c2   c3   c4        c1, c2 above a1 and a3; c3, c4 above a2 and a4
    #     a1   a2   a3   a4
    #      \ x /     \ x /
    #     l1  l2    l3  l4
    fabric = read(
        "SwitchName=c1 Switches=a1,a3\nSwitchName=c2 Switches=a1,a3\nSwitchName=c3 Switches=a2,a4\n"
        "SwitchName=c4 Switches=a[2,4]\n"
        "SwitchName=a1 Switches=l1,l2\nSwitchName=a2 Switches=l2,l1\n"
        "SwitchName=a3 Switches=l3,l4\nSwitchName=a4 Switches=l[3-4]\n"
        "SwitchName=l1 Nodes=h1\nSwitchName=l2 Nodes=h2\n"
        "SwitchName=l3 Nodes=h3\nSwitchName=l4 Nodes=h4\n"
    )
    assert fabric.ancestors("h1") == ("l1", "a[1-2]", "c[1-4]")
    assert [fabric.hops("h1", other) for other in ("h2", "h3", "h4")] == [3, 5, 5]


def test_leaves_are_in_the_order_of_the_file_and_hosts_in_that_of_the_line():
    fabric = read("SwitchName=b Nodes=n9,n[3-4],n1\nSwitchName=a Nodes=n2\n")
    assert fabric.leaves == ("b", "a")
    assert fabric.hosts == ("n9", "n3", "n4", "n1", "n2")


def test_the_order_of_the_file_is_kept_where_parents_interleave():
    #        p           q          the file has b, q, d, a, c, p
    #      /   \       /   \
    #     b     a     d     c
    text = (
        "SwitchName=b Nodes=h1\nSwitchName=q Switches=c,d\nSwitchName=d Nodes=h2\n"
        "SwitchName=a Nodes=h3\nSwitchName=c Nodes=h4\nSwitchName=p Switches=a,b\n"
    )
    fabric = read(text)
    assert fabric.leaves == ("b", "a", "d", "c")
    assert {s.name: s.order for s in fabric.switches} == {
        "b": 0, "q": 1, "d": 2, "a": 3, "c": 4, "p": 5
    }  # fmt: skip
    written, _ = slurm_writer.text_of(fabric)
    assert re.findall("SwitchName=(.)", written) == ["b", "d", "a", "c", "q", "p"]
    assert slurm_writer.text_of(read(written))[0] == written
    # Where no parents interleave, the order of the tree is that of the file.
    assert {s.order for s in read(GUIDE).switches} == {0}


def test_of_several_spines_the_last_has_the_place():
    # a and b below s1 and s4, c and d below s2 and s3: Slurm takes the last of equal roots.
    fabric = read(
        "SwitchName=a Nodes=h1\nSwitchName=c Nodes=h3\nSwitchName=b Nodes=h2\n"
        "SwitchName=d Nodes=h4\nSwitchName=s1 Switches=a,b\nSwitchName=s2 Switches=c,d\n"
        "SwitchName=s3 Switches=c,d\nSwitchName=s4 Switches=a,b\n"
    )
    assert {s.name: s.order for s in fabric.switches if s.parent < 0} == {
        "s[1,4]": 7,
        "s[2-3]": 6,
    }


def test_switches_without_a_common_root_are_islands():
    fabric = read("SwitchName=a Nodes=h1\nSwitchName=b Nodes=h2\nSwitchName=c Nodes=h3\n"
                  "SwitchName=top Switches=a,b\n")  # fmt: skip
    assert fabric.roots == ("top", "c")
    assert fabric.hops("h1", "h2") == 3
    assert fabric.hops("h1", "h3") == math.inf


def test_spines_that_reach_some_leaves_each_connect_them_all_and_that_is_reported():
    #   s1      s2
    #  /  \    /  \
    # a    b  b    c
    fabric = read(
        "SwitchName=a Nodes=h1\nSwitchName=b Nodes=h2\nSwitchName=c Nodes=h3\n"
        "SwitchName=s1 Switches=a,b\nSwitchName=s2 Switches=b,c\n"
    )
    assert [fabric.hops("h1", "h2"), fabric.hops("h1", "h3"), fabric.hops("h2", "h3")] == [3, 5, 5]
    assert fabric.remarks[0] == (
        "t.conf:1: switch 'a' and switch 'c' have no switch above both and are connected by way "
        "of others: one level is added above all"
    )
    assert "from 3 to 5 switches, between b and c" in fabric.remarks[1]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("switchname=a NODES=h[1-2]", id="keys in any case"),
        pytest.param("  SwitchName = a\tNodes =h[1-2]  ", id="blanks and tabs around"),
        pytest.param("SwitchName=a Nodes=h[1-2] # Nodes=h3", id="a comment behind"),
        pytest.param("SwitchName=a Nodes=h[1-2]#,h3", id="a comment without a blank"),
        pytest.param("# \\\nSwitchName=a Nodes=h[1-2]", id="a comment does not go on"),
        pytest.param("SwitchName=a \\\nNodes=h[1-2]", id="a line that goes on"),
        pytest.param("SwitchName=a \\  \n  Nodes=h[1\\\n-2]", id="a line that goes on twice"),
        pytest.param("SwitchName=a \\ # leaf\nNodes=h[1-2]", id="a comment in between"),
        pytest.param("SwitchName=a Nodes=h[1-2] \\", id="a line that goes on after the end"),
        pytest.param("SwitchName=a Nodes=h[1-2]\r\n\r\n", id="CRLF"),
        pytest.param("\ufeffSwitchName=a Nodes=h[1-2]", id="a byte order mark"),
        pytest.param('SwitchName="a" Nodes="h1, h2"', id="quotes and blanks in them"),
        pytest.param("SwitchName=a Nodes=h1,,h2,", id="commas too many, as Slurm reads them"),
        pytest.param("SwitchName=a Nodes= h[1-2]", id="a blank behind the sign"),
        pytest.param("SwitchName=\\a Nodes=h[1\\-2]", id="needless escapes"),
        pytest.param("SwitchName=a Level=0 LinkSpeed=1 Nodes=h[1-2]", id="what scontrol prints"),
        pytest.param("SwitchName=a Nodes=h[1-2] LinkSpeed=UNLIMITED", id="a speed in words"),
        pytest.param("\n\n\t\nSwitchName=a Nodes=h[1-2]", id="empty lines"),
    ],
)
def test_one_leaf_written_in_many_ways(text: str):
    fabric = read(text)
    assert (fabric.leaves, fabric.hosts, fabric.remarks) == (("a",), ("h1", "h2"), ())


def test_escaped_hashes_and_backslashes_are_themselves():
    fabric = read("SwitchName=a\\#2 Nodes=h\\\\1 # a comment")
    assert (fabric.leaves, fabric.hosts) == (("a#2",), ("h\\1",))


def test_a_line_of_many_escaped_hashes_is_read_once():
    def problem(number: int) -> None:
        (found,) = problems_of("SwitchName=a Nodes=" + "\\#" * number)
        assert found.startswith("t.conf:1: switch 'a': expected a name of at most 255 characters")

    few = calls_of(lambda: problem(10_000))
    assert calls_of(lambda: problem(40_000)) < 4.5 * few < 250_000
    with cpu_guard.ends():
        problem(1_000_000)


def test_several_prefixes_on_a_line_are_read():
    fabric = read("SwitchName=a Nodes=cn[001-018],gpu[1-4],login1\n")
    assert len(fabric.hosts) == 23
    assert fabric.hosts[17:20] == ("cn018", "gpu1", "gpu2")


def test_what_scontrol_prints_with_all_nodes_below_each_switch_is_read():
    fabric = read(
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-3]\n"
        "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=tux[4-7]\n"
        "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=\n"
        "SwitchName=s4 Level=1 LinkSpeed=1 Nodes=tux[0-7] Switches=s[0-2]\n"
    )
    assert fabric.roots == ("s4",)
    assert fabric.hops("tux0", "tux7") == 3
    assert fabric.remarks == ("t.conf:3: switch 's2' has neither nodes nor switches: left out",)


def test_a_pod_without_nodes_is_left_out():
    #        r
    #      /   \
    #     p     q     t
    #    / \    |    / \
    #   a   b   e   e   f      e and f have no nodes, as Slurm allows
    fabric = read(
        "SwitchName=a Nodes=h1\nSwitchName=b Nodes=h2\nSwitchName=e\nSwitchName=f\n"
        "SwitchName=p Switches=a,b\nSwitchName=q Switches=e\n"
        "SwitchName=r Switches=p,q\nSwitchName=t Switches=e,f\n"
    )
    assert [switch.name for switch in fabric.switches] == ["r", "p", "a", "b"]
    assert fabric.hops("h1", "h2") == 3
    assert fabric.remarks[2:] == (
        "t.conf:6: switch 'q' lists switch 'e', but no node is below: left out",
        "t.conf:8: switch 't' lists switch 'e' (and 1 more), but no node is below: left out",
    )
    (problem,) = problems_of("SwitchName=e\nSwitchName=q Switches=e\n")
    assert problem == "t.conf: no switch has nodes"


@pytest.mark.parametrize(
    ("nodes", "reported"),
    [
        ("tux[0-3]", "reaches node 'tux4' (and 3 more) and does not name it"),
        ("tux[0-8]", "names node 'tux8' and does not reach it"),
    ],
)
def test_what_scontrol_would_not_print_is_refused(nodes: str, reported: str):
    assert problems_of(
        "SwitchName=s0 Nodes=tux[0-3]\nSwitchName=s1 Nodes=tux[4-7]\n"
        f"SwitchName=s4 Level=1 Nodes={nodes} Switches=s[0-1]\n"
    ) == (f"t.conf:3: switch 's4' {reported}",)


LEAF = "SwitchName=a Nodes=h1\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # No fabric at all.
        pytest.param("", "t.conf: no switch has nodes", id="an empty file"),
        pytest.param("# none\n\n", "t.conf: no switch has nodes", id="comments alone"),
        pytest.param("SwitchName=a\n", "t.conf: no switch has nodes", id="a switch without nodes"),
        pytest.param(
            b"SwitchName=a\nNodes=\xff\n", "t.conf:2: expected UTF-8, found byte 0xff", id="Latin-1"
        ),
        # Lines.
        pytest.param(
            LEAF + "Switch a\n", "t.conf:2: expected key=value, found 'Switch a'", id="no pair"
        ),
        pytest.param(
            "SwitchName=a Nodes=h1 h2", "t.conf:1: expected key=value, found 'h2'", id="a blank"
        ),
        pytest.param(
            "Nodes=h1 SwitchName=a",
            "t.conf:1: expected SwitchName or BlockName first, found 'Nodes'",
            id="another key first",
        ),
        pytest.param(
            "SwitchName=a Node=h1",
            "t.conf:1: switch 'a': unknown key 'Node'; known: SwitchName, Nodes, Switches, "
            "LinkSpeed, Level",
            id="an unknown key",
        ),
        pytest.param(
            "SwitchName=a SwitchName=b",
            "t.conf:1: switch 'a': key 'SwitchName' stands twice",
            id="two switches on a line",
        ),
        pytest.param(
            "SwitchName=a Nodes=h1 nodes=h2",
            "t.conf:1: switch 'a': key 'Nodes' stands twice",
            id="a key twice",
        ),
        pytest.param(
            "SwitchName=a Nodes=",
            "t.conf:1: switch 'a': key 'Nodes' has no value",
            id="a key without value at the end",
        ),
        pytest.param(
            "SwitchName=a Nodes= Switches=b",
            "t.conf:1: switch 'a': key 'Nodes' has no value",
            id="a key without value before another",
        ),
        pytest.param(
            "SwitchName= Nodes=h1",
            "t.conf:1: key 'SwitchName' has no value",
            id="a switch without a name",
        ),
        pytest.param(
            'SwitchName=a Nodes=""',
            "t.conf:1: switch 'a': key 'Nodes' has no value",
            id="empty quotes",
        ),
        pytest.param(
            'SwitchName=a Nodes="h1',
            "t.conf:1: switch 'a': key 'Nodes': expected a value, or one in quotes, found '\"h1'",
            id="a quote that is not closed",
        ),
        pytest.param(
            "SwitchName=a Nodes=,",
            "t.conf:1: switch 'a': expected names of nodes, found none",
            id="commas alone",
        ),
        pytest.param(
            "SwitchName=a Nodes=h1 LinkSpeed=fast",
            "t.conf:1: switch 'a': LinkSpeed: expected a number, found 'fast'",
            id="a speed that is none",
        ),
        pytest.param(
            "SwitchName=a Nodes=h1 Level=leaf",
            "t.conf:1: switch 'a': Level: expected a number, found 'leaf'",
            id="a level that is none",
        ),
        pytest.param(
            LEAF + "SwitchName=b Nodes=h2 Switches=a",
            "t.conf:2: switch 'b': expected Nodes of a leaf or Switches below, found both",
            id="nodes and switches",
        ),
        pytest.param(
            LEAF + "BlockName=b Nodes=h2",
            "t.conf:2: BlockName in a file with SwitchName: expected switches (topology/tree) or "
            "blocks (topology/block), found both",
            id="blocks after switches",
        ),
        pytest.param(
            "blocksizes=4,8\n" + LEAF,
            "t.conf:2: SwitchName in a file with BlockSizes: expected switches (topology/tree) or "
            "blocks (topology/block), found both",
            id="switches after sizes of blocks",
        ),
        pytest.param(
            "RingName=r Nodes=h[1-4]",
            "t.conf:1: key 'RingName' of topology/ring: expected switches (topology/tree) or "
            "blocks (topology/block)",
            id="rings",
        ),
        pytest.param(
            "include /etc/slurm/more.conf\n" + LEAF,
            "t.conf:1: Include: expected all switches in one file, found one that is included",
            id="an included file",
        ),
        # Ranges.
        pytest.param(
            "SwitchName=a Nodes=h[4-1]",
            "t.conf:1: switch 'a': bad range '4-1' in 'h[4-1]': it ends before it begins",
            id="a range backwards",
        ),
        pytest.param(
            "SwitchName=a Nodes=n[1-999999999]",
            "t.conf:1: switch 'a': 'n[1-999999999]' expands to 999999999 host names; "
            "at most 1000000",
            id="a huge range",
        ),
        pytest.param(
            "SwitchName=a Nodes=h[1-2",
            "t.conf:1: switch 'a': bad range in 'h[1-2': a bracket without its partner",
            id="a bracket that is not closed",
        ),
        pytest.param(
            "SwitchName=a Nodes=@all",
            "t.conf:1: switch 'a': character '@' in host name '@all'",
            id="a node group",
        ),
        pytest.param(
            f"SwitchName=a Nodes={'h' * 300}",
            "t.conf:1: switch 'a': expected a name of at most 255 characters, found 300",
            id="a name that is too long",
        ),
        # The graph.
        pytest.param(
            LEAF + "SwitchName=b Switches=b",
            "t.conf:2: cycle: switch 'b' is below itself (b > b)",
            id="a switch that lists itself",
        ),
        pytest.param(
            LEAF + "SwitchName=b Switches=c,a\nSwitchName=c Switches=d\nSwitchName=d Switches=b",
            "t.conf:2: cycle: switch 'b' is below itself (b > c > d > b)",
            id="switches that list each other",
        ),
        pytest.param(
            LEAF + "SwitchName=b Switches=a,x[1-2]",
            "t.conf:2: switch 'b' lists switch 'x1' (and 1 more), which no line defines",
            id="a dangling name",
        ),
        pytest.param(
            LEAF + "SwitchName=a Nodes=h2",
            "t.conf:2: switch 'a' stands twice, first on line 1",
            id="a switch defined twice",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str | bytes, problem: str):
    assert problems_of(text) == (problem,)


def test_every_problem_is_reported_and_not_the_first_alone():
    found = problems_of(
        "SwitchName=a Nodes=h[1-\nSwitchName=b Node=h2\nSwitchName=c Switches=zz\n"
        "SwitchName=d Nodes=h4\nSwitchName=d Nodes=h5\n"
    )
    assert [line.split(":")[1] for line in found] == ["2", "5", "1", "3"]


def test_at_most_a_hundred_problems_are_reported():
    assert len(problems_of("nonsense\n" * 5000)) == 100


def test_a_cycle_and_a_dangling_name_are_both_reported():
    assert problems_of(LEAF + "SwitchName=b Switches=c,x\nSwitchName=c Switches=b\n") == (
        "t.conf:2: switch 'b' lists switch 'x', which no line defines",
        "t.conf:2: cycle: switch 'b' is below itself (b > c > b)",
    )


def test_two_cycles_are_two_problems():
    assert problems_of(
        LEAF + "SwitchName=b Switches=c\nSwitchName=c Switches=b\n"
        "SwitchName=d Switches=e\nSwitchName=e Switches=d\n"
    ) == (
        "t.conf:2: cycle: switch 'b' is below itself (b > c > b)",
        "t.conf:4: cycle: switch 'd' is below itself (d > e > d)",
    )


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        pytest.param(
            "SwitchName=a Nodes=h1,h[1-2]",
            "t.conf:1: switch 'a': node 'h1' stands twice in the list",
            id="a node twice in a line",
        ),
        pytest.param(
            LEAF + "SwitchName=b Nodes=h[0-3]",
            "t.conf:2: node 'h1' is under switch 'a' (line 1) and switch 'b': read as under the "
            "first of them",
            id="a node under two switches",
        ),
        pytest.param(
            LEAF + "SwitchName=b Switches=a,a",
            "t.conf:2: switch 'b': switch 'a' stands twice in the list",
            id="a switch twice in a line",
        ),
        pytest.param(
            LEAF + "SwitchName=b",
            "t.conf:2: switch 'b' has neither nodes nor switches: left out",
            id="a switch without keys",
        ),
        pytest.param(
            LEAF + "SwitchName=b\nSwitchName=c Switches=a,b",
            "t.conf:2: switch 'b' has neither nodes nor switches: left out",
            id="an empty switch and a leaf",
        ),
        pytest.param(
            LEAF * 2,
            "t.conf:2: switch 'a' stands on line 1 already, the same",
            id="a line repeated",
        ),
        pytest.param(
            "SwitchName=a[1-2] Nodes=h1",
            "t.conf:1: switch 'a[1-2]': a switch's own name is not unfolded",
            id="a range in a switch's own name",
        ),
    ],
)
def test_what_is_only_redundant_is_remarked(text: str, remark: str):
    fabric = read(text)
    assert fabric.remarks == (remark,)
    assert "h1" in fabric.hosts


def test_a_node_under_two_leaves_belongs_to_the_first_of_the_file():
    #        top
    #      /  |  \
    #     b   a   c        below "only": c alone
    #    h3  h1  (h3)      h3 is listed by b, a and c
    fabric = read(
        "SwitchName=top Switches=a,b,c\nSwitchName=only Switches=c\n"
        "SwitchName=b Nodes=h[3-5]\nSwitchName=a Nodes=h[1-4]\nSwitchName=c Nodes=h3,h5\n"
    )
    assert (fabric.leaves, fabric.roots) == (("b", "a"), ("top",))
    assert fabric.hosts_of("b") == ("h3", "h4", "h5")
    assert fabric.hosts_of("a") == ("h1", "h2")
    assert fabric.remarks == (
        "t.conf:4: node 'h3' (and 1 more) is under switch 'b' (line 3) and switch 'a': read as "
        "under the first of them",
        "t.conf:5: node 'h3' (and 1 more) is under switch 'b' (line 3) and switch 'c': read as "
        "under the first of them",
        "t.conf:5: switch 'c' has no nodes of its own: left out",
        "t.conf:2: switch 'only' lists switch 'c', but no node is below: left out",
    )


def test_what_slurm_prints_for_a_node_under_two_leaves_is_read():
    fabric = read(
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=h[1-2]\n"
        "SwitchName=b Level=0 LinkSpeed=1 Nodes=h[2-3]\n"
        "SwitchName=c Level=1 LinkSpeed=1 Nodes=h[1-2] Switches=a\n"
        "SwitchName=d Level=1 LinkSpeed=1 Nodes=h[2-3] Switches=b\n"
        "SwitchName=e Level=2 LinkSpeed=1 Nodes=h[1-3] Switches=c,d\n"
    )
    assert fabric.hops("h1", "h3") == 5
    assert fabric.hosts_of("b") == ("h3",)


def test_a_name_of_a_topology_says_nothing_to_topology_conf():
    assert read(LEAF, tree="west").remarks == (
        "t.conf: topology 'west' is asked for, but topology.conf has no names",
    )


def hops_of(fabric: Topology) -> dict[tuple[str, str], float]:
    return {pair: fabric.hops(*pair) for pair in itertools.combinations(sorted(fabric.hosts), 2)}


def lines_of(tree: dict[str, Any]) -> str:
    """Return a topology.conf of nested switches, those above first."""
    lines = []
    for name, below in tree.items():
        if isinstance(below, dict):
            lines.append(f"SwitchName={name} Switches={','.join(below)}\n{lines_of(below)}")
        else:
            lines.append(f"SwitchName={name} Nodes={','.join(below)}\n")
    return "".join(lines)


@given(trees(max_islands=4))
def test_a_tree_has_the_hops_of_the_same_switches_nested(tree: dict[str, Any]):
    same = Topology.from_tree(tree)
    fabric = read(lines_of(tree))
    assert hops_of(fabric) == hops_of(same)
    assert (fabric.depth, fabric.leaves, fabric.hosts) == (same.depth, same.leaves, same.hosts)
    assert sorted((s.name, s.level) for s in fabric.switches) == sorted(
        (s.name, s.level) for s in same.switches
    )
    assert fabric.remarks == ()


def test_ten_thousand_hosts_below_twenty_spines_are_read():
    fabric = read(
        "".join(f"SwitchName=l{i} Nodes=n[{i * 20}-{i * 20 + 19}]\n" for i in range(500))
        + "".join(f"SwitchName=s{i} Switches=l[0-499]\n" for i in range(20))
    )
    assert (len(fabric.hosts), len(fabric.leaves), fabric.depth) == (10_000, 500, 2)


# Hostile inputs: each is refused, or read, within seconds.
def chain(count: int, first: str = "SwitchName=s0 Nodes=n0\n") -> str:
    return first + "".join(f"SwitchName=s{i} Switches=s{i - 1}\n" for i in range(1, count))


def test_a_chain_of_a_hundred_thousand_switches_is_refused():
    assert problems_of(chain(100_000)) == (
        "t.conf:100000: switch 's99999' is on level 100000: expected at most 32 levels of switches",
    )


@pytest.mark.ci
def test_a_ring_of_a_hundred_thousand_switches_is_a_cycle_with_a_short_text():
    [problem] = problems_of(chain(100_000, "SwitchName=s0 Switches=s99999\n"))
    assert problem.startswith("t.conf:1: cycle: switch 's0' is below itself (s0 > s99999 > ")
    assert problem.endswith("> ... > s0)")
    assert len(problem) < 400


def test_as_many_levels_as_are_allowed_are_read():
    assert read(chain(32)).depth == 32


@pytest.mark.ci
def test_twenty_thousand_leaves_in_a_row_are_read():
    fabric = SlurmDriver(path="t.conf").parse(
        Text(
            "".join(
                f"SwitchName=l{i} Nodes=n{i}\nSwitchName=s{i} Switches=l{i},l{(i + 1) % 20_000}\n"
                for i in range(20_000)
            ).encode(),
            "t.conf",
        )
    )
    assert fabric.depth == 3
    assert fabric.hops("n0", "n1") == 3


@pytest.mark.ci
def test_twenty_thousand_leaves_with_many_parents_of_no_order_are_refused():
    lists = (",".join(f"l{(i * 7919 + j * j) % 20_000}" for j in range(20)) for i in range(20_000))
    text = "".join(f"SwitchName=l{i} Nodes=n{i}\n" for i in range(20_000))
    text += "".join(f"SwitchName=s{i} Switches={listed}\n" for i, listed in enumerate(lists))
    assert problems_of(text) == (
        "t.conf: 20000 leaf switches with too many different switches above to compare",
    )


def test_more_names_than_any_fabric_has_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hostlist, "MAX_NAMES", 2000)
    nodes = "".join(f"SwitchName=s{i} Nodes=x{i}y[1-900]\n" for i in range(3))
    assert problems_of(nodes)[-1] == (
        "t.conf:3: switch 's2': 'x2y[1-900]' expands to 900 host names, together with those before "
        "2700; at most 2000"
    )
    # No list has more switches than a file has lines.
    assert problems_of(LEAF + "SwitchName=s Switches=x[1-2001]\n") == (
        "t.conf:2: switch 's': 'x[1-2001]' expands to 2001 switch names; at most 2000",
    )


def test_each_spine_may_list_all_leaves_in_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch):
    #  s0 ... s9, each above all
    #  l0 ... l9
    #  n0 ... n9
    leaves = [f"l{i}" for i in range(10)]
    text = "".join(f"SwitchName=l{i} Nodes=n{i}\n" for i in range(10)) + "".join(
        f"SwitchName=s{i} Switches={','.join(leaves[i:] + leaves[:i])}\n" for i in range(10)
    )
    monkeypatch.setattr(hostlist, "MAX_NAMES", 20)
    assert read(text).summary() == "10 hosts, 10 leaves, depth 2"
    monkeypatch.setattr(switch_graph, "MAX_LISTED", 99)
    assert problems_of(text) == (
        "t.conf:20: switch 's9': 'l9,l0,l1,l2,l3,l4,l5,l6,l7,l8' expands to 10 switch names, "
        "together with those before 100; at most 99",
    )
