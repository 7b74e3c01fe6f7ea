"""hpc-sched fits --frontier and the options on objectives and links; the cloud is a file.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod. A host takes
one VM of the flavor ``full``. With leaves 4 : 1 the uplinks of a leaf carry what one host does.
"""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.snapshots import FABRIC, flavor, group, saved, server
from tests.test_fits import fits

FULL = flavor("full", 16)
APART = flavor("apart", 16, objective="isolated")
SLIM = ("--oversubscription", "leaf=4")


@pytest.fixture
def empty(tmp_path) -> str:
    flavors = [FULL, APART, flavor("loose", 16, app_class="async")]
    return saved(tmp_path, flavors=flavors, topology=FABRIC)


def frontier(capsys, *arguments: str) -> list[dict]:
    """Return the rows as JSON."""
    code, out, _ = fits(capsys, *arguments, "--frontier", "-f", "json")
    assert code == 0
    return json.loads(out)


def test_each_plan_of_a_frontier_has_a_row_with_what_it_does_to_links(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8")
    hops, *others = frontier(capsys, *arguments, *SLIM)
    # 4 of 8 VMs send 4/7 GB each out of their leaf, at 100 Gb/s; the pod is not left.
    assert hops == {
        "Objective": "hops",
        "Tradeoff": None,
        "Bottleneck": pytest.approx(16 / 7 * 8 / 100),
        "Bottleneck ratio": 1.0,
        "Hop-Byte": 60,
        "Hop-Byte ratio": 1.0,
        "Harm": pytest.approx(2 * 16 / 7 * 8 / 100),
        "Harm ratio": 1.0,
        "Leaves": 2,
        "Most VMs": 4,
        "Fewest VMs": 4,
        "Chosen": True,
    }
    assert {row["Objective"] for row in others} == {"bottleneck"}
    assert others[-1]["Bottleneck ratio"] == pytest.approx(12 / 16)
    assert (others[-1]["Leaves"], others[-1]["Most VMs"], others[-1]["Fewest VMs"]) == (4, 2, 2)
    falling = [row["Bottleneck"] for row in (hops, *others)]
    assert falling == sorted(falling, reverse=True)


def test_the_table_has_the_sentence_on_the_chosen_plan_and_what_the_columns_are(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8", "--frontier", *SLIM)
    code, out, err = fits(capsys, *arguments)
    first, *_, before_last, last = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith("fits: 8 VMs on 8 hosts in 2 leaf switches under pod")
    assert before_last.startswith("If each VM sends 1 GB, the same to all others: bottleneck is")
    assert last.startswith("Ratios are to the plan of least Hop-Byte.")


def test_without_uplinks_one_sentence_says_what_is_assumed(empty, capsys):
    code, _, err = fits(
        capsys, "--snapshot", empty, "--flavor", "full", "--count", "8", "--frontier"
    )
    assert code == 0
    assert err == (
        "note: no uplinks are stated, so 1 : 1 is assumed: state uplinks or oversubscription in "
        "the topology, uplink_oversubscription in nova.conf, or --oversubscription\n"
    )


def test_a_level_that_the_option_names_and_the_fabric_lacks_is_noted(tmp_path, capsys):
    options = {"uplink_oversubscription": {"laef": 4.0}}
    path = saved(tmp_path, flavors=[FULL], topology=FABRIC, options=options)
    arguments = ("--snapshot", path, "--flavor", "full", "--count", "8", "--frontier")
    unknown, assumed = fits(capsys, *arguments)[2].splitlines()
    assert unknown == (
        "note: uplink_oversubscription names level 'laef', expected one of leaf, pod, core"
    )
    assert assumed.startswith("note: no uplinks are stated, so 1 : 1 is assumed")
    options["uplink_oversubscription"] = {"leaf": 4.0}
    saved(tmp_path, flavors=[FULL], topology=FABRIC, options=options)
    assert fits(capsys, *arguments)[2] == ""


def test_a_plan_by_bottleneck_says_what_is_assumed_without_a_frontier_too(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8")
    by_bottleneck = ("--objective", "bottleneck", "--pattern", "halo2:3x4")
    for format_ in ((), ("--summary",)):
        code, _, err = fits(capsys, *arguments, *by_bottleneck, *format_)
        assert code == 0
        assumed, remark = err.splitlines()
        assert assumed.startswith("note: no uplinks are stated, so 1 : 1 is assumed")
        assert remark.startswith("note: hpc:pattern=halo2:3x4: a grid of 12 VMs, the group has 8")
    assert fits(capsys, *arguments, "--objective", "hops")[2] == ""


def test_the_assumed_objective_and_trade_off_choose_the_row(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8", *SLIM)
    by_objective = frontier(
        capsys, *arguments, "--objective", "bottleneck", "--bottleneck-tradeoff", "9"
    )
    [chosen] = [row for row in by_objective if row["Chosen"]]
    assert chosen == by_objective[-1]
    fitting = fits(capsys, *arguments, "--objective", "bottleneck", "--bottleneck-tradeoff", "9")
    assert "in 4 leaf switches" in fitting[1]
    tight = frontier(capsys, *arguments, "--objective", "bottleneck", "--bottleneck-tradeoff", "0")
    assert [row["Chosen"] for row in tight] == [True] + [False] * (len(tight) - 1)


@pytest.mark.parametrize("count", ["8", "11"])
def test_the_tradeoff_of_a_row_given_back_chooses_that_row(empty, capsys, count):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", count, *SLIM)
    rows = frontier(capsys, *arguments)
    assert len(rows) > 1
    for row in rows[1:]:
        again = frontier(
            capsys,
            *arguments,
            *("--objective", "bottleneck", "--bottleneck-tradeoff", str(row["Tradeoff"])),
        )
        [chosen] = [one for one in again if one["Chosen"]]
        assert chosen == {**row, "Chosen": True}


#            pod1                    pod2
#        /         \              /        \
#     leaf01      leaf02       leaf03     leaf04      the uplink of leaf02 has a tenth of a host's
#     . . . .     A A . .      A . . .    A . . .     rate
def test_a_ring_is_not_said_to_have_the_least_bottleneck_where_uplinks_differ(tmp_path, capsys):
    taken = [server(host, host, FULL) for host in ("n05", "n06", "n09", "n13")]
    slow = "{name: leaf02, uplinks: 1 x 10,"
    path = saved(tmp_path, taken, flavors=[FULL], topology=FABRIC.replace("{name: leaf02,", slow))
    arguments = ("--snapshot", path, "--flavor", "full", "--count", "6", "--frontier")
    code, _, err = fits(capsys, *arguments, "--pattern", "ring")
    assert code == 0
    assert err == (
        "note: a ring has the plan of least Hop-Byte, which has the least bottleneck where uplinks "
        "are equal; halo1 is planned by those that differ\n"
    )
    plans = frontier(capsys, *arguments[:-1], "--pattern", "halo1")
    assert plans[-1]["Bottleneck"] < plans[0]["Bottleneck"]


def test_a_group_within_one_leaf_has_one_row_without_harm(empty, capsys):
    [row] = frontier(capsys, "--snapshot", empty, "--flavor", "full", "--count", "4", *SLIM)
    assert (row["Leaves"], row["Harm"], row["Harm ratio"]) == (1, 0, None)


def test_members_of_the_group_count(tmp_path, capsys):
    members = [server("one", "n01", FULL), server("two", "n05", FULL)]
    path = saved(tmp_path, members, [group("job", members)], [FULL], topology=FABRIC)
    hops, *_ = frontier(
        capsys, "--snapshot", path, "--flavor", "full", "--group", "job", "--count", "6", *SLIM
    )
    assert (hops["Leaves"], hops["Most VMs"], hops["Fewest VMs"]) == (2, 4, 4)
    assert hops["Bottleneck"] == pytest.approx(16 / 7 * 8 / 100)


def test_a_group_that_does_not_fit_has_no_frontier_and_the_code_is_3(empty, capsys):
    code, out, _ = fits(
        capsys, "--snapshot", empty, "--flavor", "full", "--count", "17", "--frontier"
    )
    assert code == 3
    assert out.startswith("group of 17 does not fit: largest gang that fits: 16 on core1")


def test_a_class_that_is_not_placed_by_topology_has_none_and_the_code_is_1(empty, capsys):
    code, out, err = fits(
        capsys, "--snapshot", empty, "--flavor", "loose", "--count", "4", "--frontier"
    )
    assert (code, out) == (1, "")
    assert "class async is not placed by topology: links do not count" in err


#     leaf01        leaf02        leaf03        leaf04
#     A A A A       A . . .       . . . .       . . . .
#
# A isolated group of 5 uses the uplinks of leaf01 and leaf02.
@pytest.fixture
def half_isolated(tmp_path) -> str:
    there = [server(f"a{host}", host, APART) for host in ("n01", "n02", "n03", "n04", "n05")]
    return saved(tmp_path, there, [group("A", there)], [FULL, APART], topology=FABRIC)


def test_an_isolated_group_avoids_the_uplinks_of_others(half_isolated, capsys):
    arguments = ("--snapshot", half_isolated, "--flavor", "apart")
    rows = frontier(capsys, *arguments, "--policy", "soft-affinity", "--count", "6", *SLIM)
    [chosen] = [row for row in rows if row["Chosen"]]
    assert chosen["Leaves"] == 2
    code, out, _ = fits(capsys, *arguments, "--policy", "soft-affinity", "--count", "6")
    assert code == 0
    assert "leaf02" not in out


def test_a_refused_isolated_group_is_told_whose_uplinks_are_used(half_isolated, capsys):
    arguments = ("--snapshot", half_isolated, "--flavor", "apart", "--policy", "soft-affinity")
    code, out, _ = fits(capsys, *arguments, "--count", "9")
    assert code == 3
    reason, users, *_ = out.splitlines()
    assert "uplinks that no other isolated group uses" in reason
    assert users == (
        "uplinks that other isolated groups use: leaf01 by A (A-uuid), leaf02 by A (A-uuid)"
    )
    # The largest groups are isolated ones.
    code, out, _ = fits(capsys, *arguments, "-f", "json")
    assert [row["VMs"] for row in json.loads(out)] == [4, 8, 8]


def test_a_picture_of_the_plans_is_an_svg_file(empty, tmp_path, capsys):
    path = tmp_path / "plans.svg"
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8", *SLIM, "--frontier")
    code, _, err = fits(capsys, *arguments, "--picture", str(path))
    assert (code, err) == (0, f"{path}: written\n")
    root = ET.fromstring(path.read_text())
    assert root.attrib["aria-label"].startswith("Plans of the group. hops, chosen: bottleneck 0.18")
    first = path.read_text()
    fits(capsys, *arguments, "--picture", str(path))
    assert path.read_text() == first


def test_a_picture_that_cannot_be_written_is_refused_before_the_cloud_is_read(tmp_path, capsys):
    path = tmp_path / "missing" / "plans.svg"
    arguments = ("--snapshot", "no.json", "--flavor", "full", "--count", "8", "--frontier")
    code, _, err = fits(capsys, *arguments, "--picture", str(path))
    assert (code, err.strip()) == (
        1,
        f"{path}: cannot be written: expected a file in a folder that exists",
    )
    assert not Path("no.json").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--frontier",), "--frontier means nothing without --count"),
        (("--count", "4", "--frontier", "--summary"), "--frontier and --summary: expected one of"),
        (("--count", "4", "--picture", "a.svg"), "--picture means nothing without --frontier"),
        (("--count", "4", "--frontier", "--picture", "a.png"), "a name that ends in .svg"),
        (("--count", "4", "--pattern", "star"), "--pattern: expected alltoall, broadcast"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(empty, capsys, arguments, text):
    code, _, err = fits(capsys, "--snapshot", empty, "--flavor", "full", *arguments)
    assert code == 2
    assert text in err


def test_a_ratio_of_an_unknown_level_is_an_error(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--oversubscription", "row=2")
    code, _, err = fits(capsys, *arguments)
    assert code == 1
    assert "--oversubscription: expected LEVEL=RATIO,... with names of leaf, pod, core" in err


@pytest.mark.parametrize(
    ("pattern", "note", "traffic"),
    [
        ("halo2:3x4", "", "by halo2:3x4 on average"),
        ("halo2:4x2", "a grid of 8 VMs, the group has 12", "the same to all others"),
    ],
)
def test_a_pattern_counts_for_the_final_size_of_a_group(tmp_path, capsys, pattern, note, traffic):
    wishes = {"objective": "bottleneck", "pattern": pattern, "group_size": "12"}
    grows = flavor("grows", 16, app_class="sync", **wishes)
    path = saved(tmp_path, flavors=[grows], topology=FABRIC)
    arguments = ("--snapshot", path, "--flavor", "grows", "--count", "8", "--frontier", *SLIM)
    code, out, err = fits(capsys, *arguments)
    assert code == 0
    assert note in err
    assert bool(err) == bool(note)
    assert f"If each VM sends 1 GB, {traffic}" in out


def test_the_ratio_of_a_level_without_uplinks_states_none(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "8", "--frontier")
    code, _, err = fits(capsys, *arguments, "--oversubscription", "core=4")
    assert code == 0
    assert "note: no uplinks are stated, so 1 : 1 is assumed" in err


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"leaf": 0}, "0.001"),
        ({"leaf": "x"}, "'x'"),
        (["leaf"], "expected an object, found ['leaf']"),
        (4, "expected an object, found 4"),
    ],
    ids=str,
)
def test_a_wrong_ratio_of_a_snapshot_is_an_error_with_its_option(tmp_path, capsys, value, expected):
    options = {"uplink_oversubscription": value}
    path = saved(tmp_path, flavors=[FULL], topology=FABRIC, options=options)
    code, out, err = fits(
        capsys, "--snapshot", path, "--flavor", "full", "--count", "8", "--frontier"
    )
    assert (code, out) == (1, "")
    assert "options['uplink_oversubscription']: " in err
    assert expected in err
