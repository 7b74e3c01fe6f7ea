"""hpc-sched explain on plans by hops, by bottleneck and of isolated groups."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hpc_sched import digests
from hpc_sched.cli import main
from hpc_sched.topology import Topology, canonical_text, load
from tests.unit.recorded_groups import Group, Links

#                    core
#       /        |         |        \
#    leaf1     leaf2     leaf3     leaf4     4 hosts of one VM each, links of 100 Gb/s
#
# Each leaf has an uplink of 100 Gb/s.
FABRIC = """\
levels: [leaf, core]
uplinks: {leaf: 1 x 100}
switches:
- name: core
  switches:
  - {name: leaf1, hosts: "n[01-04]"}
  - {name: leaf2, hosts: "n[05-08]"}
  - {name: leaf3, hosts: "n[09-12]"}
  - {name: leaf4, hosts: "n[13-16]"}
"""
LEAVES = [f"leaf{i}" for i in range(1, 5)]


@pytest.fixture
def path(tmp_path) -> str:
    path = tmp_path / "topology.yaml"
    path.write_text(FABRIC)
    return str(path)


def record(path: str, links: Links | None = None, count: int = 8, digest: str = "") -> Any:
    """Return the record of a group's decision on the fabric."""
    topology = load("yaml", path=path)
    places = [(host, host) for host in topology.hosts]
    ones = [1] * len(places)
    made = Group(topology, places, ones, ones, {}, count, count, links=links).record()
    digest = digest or digests.of(canonical_text.lines_of(topology))
    return {**made, "scheduler": {"host": "ctl", "version": "1", "topology": digest}}


def explained(capsys, made: Any, tmp_path: Path, *arguments: str) -> str:
    log = tmp_path / "decisions.json"
    log.write_text(json.dumps(made) + "\n")
    code = main.main(["explain", "job", "--decision-log", str(log), *arguments])
    out = capsys.readouterr().out
    assert code == 0
    return out


def test_a_plan_by_hops_is_compared_with_what_bottleneck_would_have_chosen(path, tmp_path, capsys):
    out = explained(capsys, record(path, count=9), tmp_path, "--topology", path)
    # 4 + 4 + 1 VMs send 20 pairs out of a leaf, 48 of all; 3 + 3 + 3 send 18 and 54.
    assert (
        "  bottleneck  hpc:objective=bottleneck would have chosen: Hop-Byte 90 (6 more), 3 leaves, "
        "bottleneck 0.90 times, harm 1.12 times\n"
    ) in out


def test_a_plan_by_hops_may_be_as_good_as_the_least_bottleneck(path, tmp_path, capsys):
    # With 8 VMs the least bottleneck would do 42 / 32 of the harm, more than 1.3 times.
    out = explained(capsys, record(path), tmp_path, "--topology", path)
    assert "hpc:objective=bottleneck would have chosen a plan that is as good\n" in out


def test_it_is_data_too(path, tmp_path, capsys):
    out = explained(capsys, record(path, count=9), tmp_path, "--topology", path, "--json")
    assert json.loads(out)["counterfactual"]["by_bottleneck"] == {
        "hop_bytes": 90,
        "more": 6,
        "leaves": 3,
        "bottleneck": 0.9,
        "harm": 1.125,
        "is_proven": True,
    }


@pytest.mark.parametrize("text", [FABRIC.replace("uplinks: {leaf: 1 x 100}\n", ""), FABRIC])
def test_nothing_is_said_where_uplinks_are_not_known(path, tmp_path, capsys, text):
    other = tmp_path / "other.yaml"
    other.write_text(text)
    arguments = ("--topology", str(other)) if text != FABRIC else ()
    for made in (record(path), record(str(other))):
        assert "hpc:objective" not in explained(capsys, made, tmp_path, *arguments)


def test_nothing_is_said_of_a_record_by_another_topology(path, tmp_path, capsys):
    made = record(path, digest="00000000")
    assert "hpc:objective" not in explained(capsys, made, tmp_path, "--topology", path)


def by_bottleneck(tradeoff: Fraction | None = Fraction(1)) -> Links:
    topology = Topology.from_tree({"core": {leaf: [f"{leaf}-1"] for leaf in LEAVES}})
    return Links(tradeoff, dict.fromkeys([switch.name for switch in topology.switches], 100))


def test_a_plan_by_bottleneck_is_shown_with_links_and_what_hops_would_have(path, tmp_path, capsys):
    out = explained(capsys, record(path, by_bottleneck()), tmp_path)
    lines = [line.strip() for line in out.splitlines()]
    [asked] = [line for line in lines if line.startswith("asked")]
    assert asked.endswith("objective=bottleneck, bottleneck_tradeoff=1")
    [links] = [line for line in lines if line.startswith("links")]
    # 12 pairs of 8 VMs that send 1/7 GB each: 8 * 12 / 7 Gb at 100 Mb/s.
    assert links.endswith("bottleneck 137.1 s, harm 548.6 s, if each VM sends 1 GB")
    [without] = [line for line in lines if line.startswith("without")]
    assert without == (
        "without     hpc:objective=bottleneck: Hop-Byte 60 (16 less), 2 leaves, "
        "bottleneck 1.33 times, harm 0.67 times"
    )


def test_why_not_of_a_plan_by_bottleneck_speaks_of_the_bottleneck(path, tmp_path, capsys):
    made = record(path, by_bottleneck(Fraction(0)))
    out = explained(capsys, made, tmp_path, "--why-not", "leaf4")
    assert "leaf4: a plan with it does more harm to others than bottleneck_tradeoff allows" in out


def test_a_refused_isolated_group_is_shown_with_the_uplinks_of_others(path, tmp_path, capsys):
    out = explained(capsys, record(path, Links(used=tuple(LEAVES[:3]))), tmp_path)
    assert "uplinks that no other isolated group uses" in out
    assert "  links       uplinks that other isolated groups use: leaf[1-3]\n" in out
    assert "hpc:objective=isolated: 8 VMs in 2 leaves, Hop-Byte 60" in out


def test_what_isolation_costs_is_shown_in_hop_byte(path, tmp_path, capsys):
    # Of 6 VMs 4 would be in leaf1, and 2 in another leaf.
    made = record(path, Links(used=("leaf1", "leaf2")), count=6)
    assert "cost nothing: hpc:objective=isolated" in explained(capsys, made, tmp_path)


def test_a_topology_that_cannot_be_read_is_an_error(path, tmp_path, capsys):
    log = tmp_path / "decisions.json"
    log.write_text(json.dumps(record(path, count=9)) + "\n")
    missing = str(tmp_path / "missing.yaml")
    arguments = ["explain", "job", "--decision-log", str(log), "--topology", missing]
    assert main.main(arguments) == 1
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (FABRIC.replace("uplinks: {leaf: 1 x 100}\n", ""), "the topology states no uplinks"),
        (FABRIC.replace("leaf4", "leaf5"), "a decision was made with another topology"),
    ],
    ids=["no uplinks", "another one"],
)
def test_a_named_topology_that_says_nothing_of_bottlenecks_is_noted(
    path, tmp_path, capsys, text, note
):
    other = tmp_path / "other.yaml"
    other.write_text(text)
    log = tmp_path / "decisions.json"
    log.write_text(json.dumps(record(path, count=9)) + "\n")
    arguments = ["explain", "job", "--decision-log", str(log), "--topology", str(other)]
    assert main.main(arguments) == 0
    out, err = capsys.readouterr()
    assert "would have chosen" not in out
    assert f"note: {note}" in err


def test_the_trade_off_is_that_of_nova_conf(path, tmp_path, capsys):
    # The plan with less bottleneck does 1.12 times the harm.
    conf = tmp_path / "nova.conf"
    conf.write_text("[hpc_sched]\nbottleneck_tradeoff = 0.1\n")
    made = record(path, count=9)
    out = explained(capsys, made, tmp_path, "--topology", path, "--config-file", str(conf))
    assert "would have chosen a plan that is as good" in out
    assert "would have chosen: Hop-Byte 90" in explained(capsys, made, tmp_path, "--topology", path)
