"""hpc-sched fits: standard output, standard error and exit code; the cloud is a file.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod, and a host
takes two VMs of the flavor ``half``.
"""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpc_sched.cli import main
from hpc_sched.core.plan.result import UnprovenGang
from hpc_sched.snapshot import group_fit
from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import FABRIC, HOSTS, flavor, group, saved, server, snapshot

FULL = flavor("full", 16)


def fits(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["fits", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows(capsys, *arguments: str) -> list[dict]:
    """Return what the command prints as JSON."""
    return json.loads(fits(capsys, *arguments, "-f", "json")[1])


def summary(capsys, *arguments: str) -> dict:
    [told] = rows(capsys, *arguments, "--summary")
    return told


@pytest.fixture
def empty(tmp_path) -> str:
    return saved(tmp_path, flavors=[flavor(), FULL])


def test_without_a_count_it_is_the_largest_group_of_each_level(empty, capsys):
    code, out, err = fits(capsys, "--snapshot", empty, "--flavor", "half")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "+-------+-----+--------+",
        "| Level | VMs | Switch |",
        "+-------+-----+--------+",
        f"| leaf  |   8 | {out.splitlines()[3].split()[5]} |",
        f"| pod   |  16 | {out.splitlines()[4].split()[5]}   |",
        "| core  |  32 | core1  |",
        "+-------+-----+--------+",
    ]


def test_a_group_that_fits_is_told_where_and_at_what_cost_and_the_code_is_0(empty, capsys):
    code, out, err = fits(capsys, "--snapshot", empty, "--flavor", "full", "--count", "4")
    assert (code, err) == (0, "")
    first, *table = out.splitlines()
    assert first.startswith("fits: 4 VMs on 4 hosts in 1 leaf switch under leaf0")
    # Four hosts of a leaf: six pairs, one switch each.
    assert first.endswith("Hop-Byte 6, least possible 6")
    assert ": 1 each" in table[3]


def test_a_group_that_does_not_fit_is_told_why_and_what_would_and_the_code_is_3(empty, capsys):
    arguments = ("--snapshot", empty, "--flavor", "full", "--count", "5", "--level", "leaf")
    code, out, err = fits(capsys, *arguments)
    assert (code, err) == (3, "")
    assert out.startswith("group of 5 needs one leaf: largest gang that fits under ")
    assert "| pod   |   8 |" in out
    code, out, err = fits(capsys, *arguments, "-f", "json")
    assert (code, json.loads(out)) == (3, [])
    assert err.startswith("group of 5 needs one leaf")


def test_the_summary_is_one_row_whether_it_fits_or_not(empty, capsys):
    told = summary(capsys, "--snapshot", empty, "--flavor", "full", "--count", "8")
    assert told == {
        "Fits": True,
        "Count": 8,
        "Members": 0,
        "Hosts": 8,
        "Leaves": 2,
        "Switch": told["Switch"],
        # Six pairs in each leaf, sixteen across the pod.
        "Hop-Byte": 2 * 6 + 16 * 3,
        "Least possible": 2 * 6 + 16 * 3,
        "Reason": None,
    }
    assert told["Switch"].startswith("pod")
    told = summary(capsys, "--snapshot", empty, "--flavor", "full", "--count", "17")
    assert (told["Fits"], told["Hop-Byte"], told["Leaves"]) == (False, None, None)
    assert "largest gang that fits: 16 on core1" in told["Reason"]


def test_wishes_of_the_flavor_count_as_the_scheduler_has_them(tmp_path, capsys):
    path = saved(tmp_path, flavors=[flavor("leafy", 16, require="leaf", app_class="sync"), FULL])
    assert main.main(["fits", "--snapshot", path, "--flavor", "leafy", "--count", "4"]) == 0
    assert main.main(["fits", "--snapshot", path, "--flavor", "leafy", "--count", "5"]) == 3
    args = ["fits", "--snapshot", path, "--flavor", "full", "--count", "5"]
    grouped = [*args, "--policy", "soft-affinity", "--property", "hpc:require=leaf"]
    assert main.main(grouped) == 3
    assert "group of 5 needs one leaf" in capsys.readouterr().out
    assert main.main([*args, "--max-leaves", "1"]) == 3
    assert main.main([*args, "--max-leaves", "2"]) == 0
    assert main.main([*args, "--max-leaves", "999999"]) == 0
    capsys.readouterr()


def test_a_wish_that_cannot_be_read_is_refused_as_by_the_filter(empty, capsys):
    args = ["--snapshot", empty, "--flavor", "full", "--count", "2"]
    code, out, err = fits(capsys, *args, "--property", "hpc:require=rack")
    assert code == 3
    assert "hpc:require='rack': expected one of the levels leaf, pod, core" in out
    assert "note: hpc:require='rack'" in err


def test_a_wish_that_cannot_be_read_is_told_once_where_rows_are_data(empty, capsys):
    args = ["--snapshot", empty, "--flavor", "full", "--count", "2", "-f", "json"]
    code, out, err = fits(capsys, *args, "--property", "hpc:require=rack")
    assert (code, json.loads(out)) == (3, [])
    assert err == "note: hpc:require='rack': expected one of the levels leaf, pod, core\n"


def test_disabled_hosts_and_those_that_are_down_take_nothing(tmp_path, capsys):
    path = saved(tmp_path, flavors=[FULL], disabled=["n01", "n02"], down=["n16"])
    [*_, core] = rows(capsys, "--snapshot", path, "--flavor", "full")
    assert core["VMs"] == 13


def test_the_group_keeps_its_policy(tmp_path, capsys):
    def most(*arguments: str) -> list[int]:
        found = rows(capsys, "--snapshot", path, "--flavor", "quarter", *arguments)
        return [row["VMs"] for row in found]

    path = saved(tmp_path, flavors=[flavor("quarter", 4)])
    assert most() == [16, 32, 64]
    assert most("--policy", "anti-affinity") == [4, 8, 16]
    assert most("--policy", "anti-affinity", "--max-per-host", "2") == [8, 16, 32]
    assert most("--policy", "affinity") == [4, 4, 4]
    assert most("--policy", "soft-anti-affinity") == [16, 32, 64]
    args = ["fits", "--snapshot", path, "--flavor", "quarter", "--policy", "affinity", "--count"]
    assert [main.main([*args, count]) for count in ("4", "5")] == [0, 3]
    assert (
        "5 VMs of a group with policy affinity need one host: largest gang that fits on one host: 4"
        in (capsys.readouterr().out)
    )
    assert main.main([*args[:-3], "--policy", "soft-anti-affinity", "--count", "4"]) == 0
    assert ": 1 each" in capsys.readouterr().out


def test_members_that_break_a_constraint_are_the_reason_whatever_is_printed(tmp_path, capsys):
    vms = [server("a", "n01", FULL), server("b", "n05", FULL)]
    path = saved(tmp_path, vms, [group("job", vms)], [FULL])
    args = ["--snapshot", path, "--flavor", "full", "--group", "job", "--max-leaves", "1"]
    why = "its members use 2 leaf switches, at most 1 are allowed"
    code, out, err = fits(capsys, *args, "-f", "json")
    assert [row["VMs"] for row in json.loads(out)] == [0, 0, 0]
    assert (code, err) == (0, f"note: no VM can join the group: {why}\n")
    why = f"1 more of a group with 2 members: {why}"
    code, out, err = fits(capsys, *args, "--count", "1", "-f", "json")
    assert (code, json.loads(out), err) == (3, [], f"{why}\n")
    assert summary(capsys, *args, "--count", "1")["Reason"] == why


def test_a_level_without_a_proof_has_no_number(empty, capsys, monkeypatch):
    monkeypatch.setattr(group_fit, "largest", lambda _: [UnprovenGang("pod", 7, "pod1")])
    found = rows(capsys, "--snapshot", empty, "--flavor", "full")
    assert found == [{"Level": "pod", "VMs": None, "Switch": "not proven"}]


def test_a_group_grows_beside_its_members(tmp_path, capsys):
    vms = [server("a", "n01", FULL), server("b", "n02", FULL)]
    path = saved(tmp_path, vms, [group("job", vms, "anti-affinity")], [FULL])
    args = ["--snapshot", path, "--flavor", "full", "--group", "job", "--count", "2"]
    [place] = rows(capsys, *args)
    assert place == {"Leaf": "leaf01", "Above": "pod1 core1", "VMs": 2, "Hosts": "n[03-04]: 1 each"}
    told = summary(capsys, *args)
    assert (told["Members"], told["Hop-Byte"], told["Switch"]) == (2, 6, "leaf01")
    code, out, _ = fits(capsys, *args[:-1], "3", "--level", "leaf")
    assert code == 3
    assert "beside its members: 2 on leaf01" in out
    # Its own flavor where none is named.
    code, out, err = fits(capsys, "--snapshot", path, "--group", "job", "--count", "1")
    assert (code, err) == (0, "note: of the group's own flavor full\n")


@pytest.mark.parametrize(
    ("drain", "left"),
    [
        (["leaf01"], 12),
        (["pod1"], 8),
        (["n01"], 15),
        (["n[01-03]", "n16"], 12),
        (["n[01-02],leaf04"], 10),
        (["core1"], 0),
    ],
    ids=str,
)
def test_drained_hosts_and_switches_take_nothing(empty, capsys, drain, left):
    options = [part for name in drain for part in ("--drain", name)]
    [*_, core] = rows(capsys, "--snapshot", empty, "--flavor", "full", *options)
    assert core["VMs"] == left


@pytest.mark.parametrize(
    ("name", "left"),
    [("rail-b", 12), ("0x0002c90200404718", 12), ("S-0002c90200404718", 12), ("shared", 8)],
)
def test_a_physical_switch_is_drained_with_all_leaves_that_it_is_part_of(
    empty, capsys, tmp_path, name, left
):
    path = tmp_path / "fabric.yaml"
    rails = "{name: leaf01, members: [rail-a, rail-b, shared], ids: ['0x2c90200404718'],"
    text = FABRIC.replace("{name: leaf01,", rails)
    path.write_text(text.replace("{name: leaf02,", "{name: leaf02, members: [shared, rail-c],"))
    args = ["--snapshot", empty, "--topology", str(path), "--flavor", "full", "--drain", name]
    [*_, core] = rows(capsys, *args)
    assert core["VMs"] == left


@pytest.mark.parametrize(
    ("add", "gangs"),
    [
        (["leaf01=n[21-24]"], [8, 12, 20]),
        (["pod2/leaf05=n[21-24]:like=n01"], [4, 12, 20]),
        (["pod3/leaf05=n21:like=n01"], "expected the switch above a new leaf"),
        (["leaf05=n[21-28]:like=n01"], [8, 8, 24]),
        (["leaf05=n21"], "leaf05: no host is there that the added ones could be like"),
        (["leaf01=n02"], "leaf01: host 'n02' is there already"),
        (["pod1=n21:like=n01"], "pod1 is no leaf switch"),
        (["leaf01=n21:like=n99"], "there is no host or switch 'n99'"),
        (["pod1/leaf05=n21:like=n01", "leaf05=n22:like=n01"], [4, 10, 18]),
    ],
    ids=str,
)
def test_added_hosts_are_as_large_as_the_one_they_are_like(empty, capsys, add, gangs):
    options = [part for text in add for part in ("--add", text)]
    code, out, err = fits(capsys, "--snapshot", empty, "--flavor", "full", *options, "-f", "json")
    if isinstance(gangs, str):
        assert (code, out) == (1, "")
        assert gangs in err
    else:
        assert [row["VMs"] for row in json.loads(out)] == gangs


@pytest.mark.parametrize("leaf", ["row1/rack1", "rail-a", "0x2c90200404718"])
def test_hosts_are_added_to_a_leaf_by_any_of_its_names(empty, capsys, tmp_path, leaf):
    path = tmp_path / "fabric.yaml"
    names = "{name: row1/rack1, members: [rail-a, shared], ids: ['0x2c90200404718'],"
    text = FABRIC.replace("{name: leaf01,", names)
    path.write_text(text.replace("{name: leaf02,", "{name: leaf02, members: [shared, rail-c],"))
    args = ["--snapshot", empty, "--topology", str(path), "--flavor", "full"]
    for like in ("", ":like=n05"):
        [first, *_] = rows(capsys, *args, "--add", f"{leaf}=n[21-22]{like}")
        assert (first["VMs"], first["Switch"]) == (6, "row1/rack1")
    code, _, err = fits(capsys, *args, "--add", "shared=n21:like=n01")
    assert (code, err) == (1, "shared is part of several switches: row1/rack1 and leaf02\n")


def test_an_added_host_is_empty_though_the_one_it_is_like_is_not(tmp_path, capsys):
    path = saved(tmp_path, [server("a", "n01", FULL)], flavors=[FULL])
    args = ["--snapshot", path, "--flavor", "full"]
    [leaf, *_] = rows(capsys, *args, "--add", "leaf01=n[21-24]:like=n01", "--drain", "leaf02")
    assert (leaf["VMs"], leaf["Switch"]) == (7, "leaf01")


def test_flavors_that_are_not_there_can_be_given_by_hand(empty, capsys):
    def most(*arguments: str) -> int:
        return rows(capsys, "--snapshot", empty, *arguments)[0]["VMs"]

    assert most("--vcpus", "16", "--ram", "1") == 4
    assert most("--vcpus", "1", "--ram", "65536") == 4
    assert most("--vcpus", "1", "--ram", "1", "--disk", "500") == 8
    assert most("--vcpus", "1", "--ram", "1", "--disk", "500", "--volume") == 64


def test_extreme_stays_away_from_hosts_with_vms_of_others(tmp_path, capsys):
    small = flavor("small", 1)
    vms = [server(f"a-{host}", host, small) for host in ("n01", "n05", "n06")]
    own = [server("b", "n09", flavor("alone", 8, app_class="extreme"))]
    path = saved(
        tmp_path, vms + own, [group("job", own)], [flavor("alone", 8, app_class="extreme")]
    )
    args = ["--snapshot", path, "--flavor", "alone"]
    assert rows(capsys, *args)[-1]["VMs"] == 2 * (16 - 4)
    # On its own host there is room for one VM more.
    assert rows(capsys, *args, "--group", "job")[-1]["VMs"] == 2 * (16 - 4) + 1


def test_cache_limits_count_where_the_filter_is_known_to_be_enabled(tmp_path, capsys):
    scored = flavor("scored", 1, cache_score="20")
    there = [server("a", "n01", flavor("busy", 1, app_class="async", cache_score="50"))]

    def most(**said) -> tuple[int, str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        path = saved(folder, there, flavors=[scored], **said)
        code, out, err = fits(capsys, "--snapshot", path, "--flavor", "scored", "-f", "json")
        assert code == 0
        return json.loads(out)[-1]["VMs"], err

    many, note = most()
    assert many == 16 * 16 - 1
    assert note == (
        "note: hpc:cache_score ignored: no nova.conf says whether HPCInterferenceFilter and "
        "HPCHomogeneityFilter are enabled\n"
    )
    assert most(filters=()) == (16 * 16 - 1, "")
    # 60 for sync: three a host, none beside 50 of another one.
    assert most(filters=("HPCInterferenceFilter",)) == (15 * 3, "")
    enabled = {"filters": ("HPCInterferenceFilter",)}
    assert most(**enabled, options={"sync_cache_score_limit": 100})[0] == 15 * 5 + 2
    aggregate = Aggregate("small", ("n16",), {"sync_cache_score_limit": "20"})
    assert most(**enabled, aggregates=[aggregate])[0] == 14 * 3 + 1


def test_bad_company_is_kept_apart_by_the_index_of_the_snapshot(tmp_path, capsys):
    here = [server("a", "n01", flavor("lu", 1, app_name="LU", app_class="async"))]
    path = saved(
        tmp_path,
        here,
        flavors=[flavor("wrf", 16, app_name="WRF"), flavor("half", 8, app_name="WRF")],
        filters=("HPCInterferenceFilter",),
        interference={"WRF": {"LU": 0.5}, "LU": {"WRF": 1.0}},
    )
    assert rows(capsys, "--snapshot", path, "--flavor", "half")[-1]["VMs"] == 2 * 15


def test_a_group_of_one_processor_type_where_the_filter_is_enabled(tmp_path, capsys):
    new = Aggregate("new", tuple(HOSTS[:6]), {"hpc:processor": "new"})
    old = Aggregate("old", tuple(HOSTS[6:]), {"hpc:processor": "old"})
    path = saved(
        tmp_path,
        flavors=[FULL, flavor("same", 16, homogeneous="true")],
        aggregates=[new, old],
        filters=("HPCHomogeneityFilter",),
        options={"processor_order": ["new"]},
    )
    args = ["--snapshot", path, "--flavor", "same", "--count"]
    code, out, _ = fits(capsys, *args, "6")
    assert code == 0
    assert ", all on new;" in out
    assert ", all on old;" in fits(capsys, *args, "10")[1]
    code, out, _ = fits(capsys, *args, "11")
    assert code == 3
    assert "no single processor type holds 11 VMs" in out
    assert main.main(["fits", "--snapshot", path, "--flavor", "full", "--count", "11"]) == 0
    capsys.readouterr()


def test_the_processor_type_with_the_best_figure_of_merit_is_taken(tmp_path, capsys):
    """Ten hosts of type old, of the same cores as the six of type new, which is last by name."""
    fast = Aggregate("new", tuple(HOSTS[:6]), {"hpc:processor": "new"})
    old = Aggregate("many", tuple(HOSTS[6:]), {"hpc:processor": "many"})
    cloud = {"flavors": [FULL], "aggregates": [fast, old], "filters": ("HPCHomogeneityFilter",)}
    args = ["--flavor", "full", "--count", "6", "--snapshot"]

    def chosen(*more: str, **options: object) -> str:
        out = fits(capsys, *args, saved(tmp_path, options=options, **cloud), *more)[1]
        return out.partition(", all on ")[2].partition(";")[0]

    assert chosen() == "many"
    assert chosen(processor_speeds={"new": 3000, "many": 2130}) == "new"
    assert chosen(processor_speeds="many=2130, new=3000") == "new"
    assert chosen(processor_speeds={"new": 3000}, processor_order=["many"]) == "many"
    conf = tmp_path / "nova.conf"
    conf.write_text(
        "[filter_scheduler]\nenabled_filters = HPCHomogeneityFilter\n"
        "[hpc_sched]\nprocessor_speeds = many=2.13, new=3.00\n"
    )
    assert chosen("--config-file", str(conf)) == "new"


def test_a_host_outside_the_topology_has_no_processor_type_of_the_root(tmp_path, capsys):
    # core, gold
    # a            (the root is above n03 to n16 too, which the description does not name)
    # n01-n02
    fabric = (
        """switches: [{name: core, processor: gold, switches: [{name: a, hosts: "n[01-02]"}]}]"""
    )
    same = flavor("same", 16, homogeneous="true")
    path = saved(tmp_path, flavors=[same], topology=fabric, filters=("HPCHomogeneityFilter",))
    args = ["--snapshot", path, "--flavor", "same", "--count"]
    assert ", all on gold;" in fits(capsys, *args, "2")[1]
    assert fits(capsys, *args, "3")[0] == 3


def test_without_a_count_a_group_of_one_processor_type_is_as_large_as_the_type(tmp_path, capsys):
    new = Aggregate("new", tuple(HOSTS[:6]), {"hpc:processor": "new"})
    old = Aggregate("old", tuple(HOSTS[6:]), {"hpc:processor": "old"})
    same = flavor("same", 16, homogeneous="true")
    vms = [server("a", "n01", same), server("b", "n16", same)]
    path = saved(
        tmp_path,
        vms,
        [group("mixed", vms), group("job", vms[:1])],
        [same],
        aggregates=[new, old],
        filters=("HPCHomogeneityFilter",),
    )
    args = ["--snapshot", path, "--flavor", "same"]
    assert [row["VMs"] for row in rows(capsys, *args)] == [4, 7, 9]
    assert [row["VMs"] for row in rows(capsys, *args, "--group", "job")] == [3, 5, 5]
    # Members on several types break the guarantee already, as the filter has it.
    code, out, _ = fits(capsys, *args, "--group", "mixed", "--count", "1")
    assert code == 3
    assert out.startswith("members of the group run on 2 processor types: new, old")
    assert {row["VMs"] for row in rows(capsys, *args, "--group", "mixed")} == {0}


def test_a_group_is_not_under_one_switch_where_its_members_are_not(tmp_path, capsys):
    vms = [server("a", "n01", FULL), server("b", "n05", FULL)]
    path = saved(tmp_path, vms, [group("job", vms)], [FULL])
    args = ["--snapshot", path, "--group", "job"]
    assert [row["VMs"] for row in rows(capsys, *args)] == [0, 6, 14]
    assert [row["VMs"] for row in rows(capsys, *args, "--max-leaves", "1")] == [0, 0, 0]


def test_a_group_on_two_islands_is_told_what_the_scheduler_does_with_it(tmp_path, capsys):
    vms = [server("a", "n01", FULL), server("b", "n16", FULL)]
    islands = 'switches: [{name: a, hosts: "n[01-08]"}, {name: b, hosts: "n[09-16]"}]'
    path = saved(tmp_path, vms, [group("job", vms)], [FULL], topology=islands)
    args = ["--snapshot", path, "--group", "job", "--count", "1"]
    told = "; the scheduler does not refuse it, and places it without a plan"
    assert told in fits(capsys, *args)[1]
    assert told not in fits(capsys, *args, "--level", "leaf")[1]


def test_every_level_that_is_shown_may_be_required(tmp_path, capsys):
    # a         b         unnamed        pod, which the description does not have
    # |         |         |        |     rack
    # n01-02    n03-14    n15    n16
    islands = (
        'levels: [rack]\nswitches: [{name: a, hosts: "n[01-02]"}, {name: b, hosts: "n[03-14]"}]'
    )
    path = saved(tmp_path, flavors=[FULL], topology=islands)
    args = ["--snapshot", path, "--flavor", "full", "--drain", "b"]
    assert [(row["Level"], row["VMs"]) for row in rows(capsys, *args)] == [("rack", 2), ("pod", 2)]
    pair = [*args, "--drain", "a", "--count", "2"]
    assert not summary(capsys, *pair, "--level", "rack")["Fits"]
    assert summary(capsys, *pair, "--level", "pod")["Fits"]
    assert "expected one of rack, pod" in fits(capsys, *pair, "--level", "core")[2]


def test_hosts_outside_the_topology_share_a_root_next_to_islands(tmp_path, capsys):
    # a              b              unnamed       level 3
    # pod            |              |       |     level 2
    # la    lb       |              |       |     level 1
    # n01   n02-03   n04-n05        n06 ... n16, eleven leaves
    islands = """\
switches:
- name: a
  switches:
  - {name: pod, switches: [{name: la, hosts: n01}, {name: lb, hosts: "n[02-03]"}]}
- {name: b, hosts: "n[04-05]"}
"""
    path = saved(tmp_path, flavors=[FULL], topology=islands)
    args = ["--snapshot", path, "--flavor", "full"]
    assert [row["VMs"] for row in rows(capsys, *args)] == [2, 3, 11]
    assert rows(capsys, *args)[-1]["Switch"] == "unnamed"
    more = rows(capsys, *args, "--add", "la=n[21-24]")
    assert [row["VMs"] for row in more] == [5, 7, 11]
    pair = ["--drain", "a", "--drain", "b", "--count", "2"]
    assert summary(capsys, *args, *pair)["Hop-Byte"] == 5
    assert summary(capsys, *args, *pair, "--level", "core")["Fits"]
    assert not summary(capsys, *args, *pair, "--level", "pod")["Fits"]
    code, _, err = fits(capsys, *args, "--add", "n06=n21")
    assert (code, "n06: no host is there that the added ones could be like" in err) == (1, True)


def test_bare_metal_takes_one_by_its_own_class_and_nothing_else(tmp_path, capsys):
    node = {"CUSTOM_NODE": 1}
    specs = {"resources:CUSTOM_NODE": "1"} | {
        f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")
    }
    metal = Flavor("metal", 1, 1024, 1, extra_specs=specs)
    path = saved(tmp_path, flavors=[metal, FULL], capacity=node)
    assert [row["VMs"] for row in rows(capsys, "--snapshot", path, "--flavor", "metal")] == [
        4,
        8,
        16,
    ]
    assert rows(capsys, "--snapshot", path, "--flavor", "full")[-1] == {
        "Level": "core",
        "VMs": 0,
        "Switch": None,
    }


def test_the_size_that_a_group_will_have_must_fit_where_the_level_is_required(tmp_path, capsys):
    path = saved(tmp_path, flavors=[flavor("grows", 16, group_size="5", require="leaf")])
    args = ["fits", "--snapshot", path, "--flavor", "grows", "--policy", "soft-affinity"]
    assert main.main([*args, "--count", "1"]) == 3
    assert "group of 5 needs one leaf" in capsys.readouterr().out


def test_classes_that_are_not_placed_by_topology_fit_where_there_is_room(tmp_path, capsys):
    path = saved(tmp_path, flavors=[flavor("loose", 16, app_class="async")])
    code, out, err = fits(capsys, "--snapshot", path, "--flavor", "loose", "--count", "16")
    assert code == 0
    assert "note: class async is not placed by topology" in err
    assert out.startswith("fits: 16 VMs on 16 hosts in 4 leaf switches under core1")


def test_a_service_of_many_bare_metal_nodes_takes_one_of_an_anti_affinity_group(tmp_path, capsys):
    found = snapshot(flavors=[FULL])
    nodes = [
        replace(node, host="ironic-1" if node.nodename < "n09" else "ironic-2")
        for node in found.hypervisors
    ]
    path = tmp_path / "state.json"
    snapshot_file.write(path, replace(found, hypervisors=tuple(nodes)))
    args = ["fits", "--snapshot", str(path), "--flavor", "full", "--policy", "anti-affinity"]
    assert main.main([*args, "--count", "2"]) == 0
    capsys.readouterr()
    code, out, _ = fits(capsys, *args[1:], "--count", "3")
    assert code == 3
    assert "largest gang that fits: 2 on core1" in out
    assert [row["VMs"] for row in rows(capsys, *args[1:])] == [1, 1, 2]


def test_an_affinity_group_is_on_the_service_that_has_most_under_one_switch(tmp_path, capsys):
    found = snapshot(flavors=[FULL])
    wide = ("n01", "n02", "n05", "n06", "n09")
    nodes = [
        replace(node, host="wide" if node.nodename in wide else node.host)
        if node.nodename < "n13"
        else replace(node, host="near")
        for node in found.hypervisors
    ]
    path = tmp_path / "state.json"
    snapshot_file.write(path, replace(found, hypervisors=tuple(nodes)))
    args = ["--snapshot", str(path), "--flavor", "full", "--policy", "affinity"]
    assert [row["VMs"] for row in rows(capsys, *args)] == [4, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "expected --flavor NAME, or --vcpus N --ram MB"),
        (["--vcpus", "1"], "expected --flavor NAME, or --vcpus N --ram MB"),
        (["--flavor", "a", "--vcpus", "1"], "--flavor a and --vcpus: expected one of them"),
        (["--flavor", "a", "--count", "0"], "expected a whole number >= 1, found '0'"),
        (["--flavor", "a", "--max-leaves", "1000000"], "expected a whole number from 1 to 999999"),
        (["--flavor", "a", "--add", "n01"], "expected [PARENT/]LEAF=HOSTS[:like=HOST], found"),
        (["--flavor", "a", "--add", "a=n[1-999999999]"], "at most 1000000"),
        (
            ["--flavor", "a", "--add", "a=n[1-9]", "--add", "b=m[1-999999]"],
            "together with those before 1000008; at most 1000000",
        ),
        (["--flavor", "a", "--property", "x"], "expected KEY=VALUE, found 'x'"),
        (["--flavor", "a", "--summary"], "--summary means nothing without --count"),
        (["--flavor", "a", "--level", "leaf"], "--level means nothing without --count"),
        (["--flavor", "a", "--policy", "none"], "invalid choice: 'none'"),
        (["--flavor", "a", "--max-per-host", "2"], "--max-per-host means nothing without"),
        (["--flavor", "a", "--group", "g", "--policy", "affinity"], "has a policy of its own"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_wrong_usage(empty, capsys, arguments, error):
    code, out, err = fits(capsys, "--snapshot", empty, *arguments)
    assert (code, out) == (2, "")
    assert error in err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--flavor", "hafl"], "there is no flavor 'hafl': there is half"),
        (
            ["--flavor", "half", "--count", "2", "--level", "rack"],
            "there is no level 'rack': expected one of leaf",
        ),
        (["--flavor", "half", "--group", "x"], "there is no server group 'x'"),
        (["--flavor", "half", "--drain", "leaf9"], "there is no host or switch 'leaf9': there is"),
        (["--flavor", "half", "--drain", "n[1"], "bad range in 'n[1'"),
        (
            ["--flavor", "half", "--drain", "n[01-09]", "--drain", "n[1-999999]"],
            "together with those before 1000008; at most 1000000",
        ),
        (["--flavor", "half", "--topology", "/nowhere"], "/nowhere: cannot be read"),
    ],
    ids=str,
)
def test_what_is_not_there_is_an_error_that_names_it(empty, capsys, arguments, error):
    code, out, err = fits(capsys, "--snapshot", empty, *arguments)
    assert (code, out) == (1, "")
    assert error in err


def test_another_topology_may_be_asked_than_the_one_in_the_snapshot(empty, capsys, tmp_path):
    other = Path(tmp_path / "flat.yaml")
    other.write_text('switches: [{name: one, hosts: "n[01-16]"}]')
    found = rows(capsys, "--snapshot", empty, "--flavor", "full", "--topology", str(other))
    assert found == [{"Level": "leaf", "VMs": 16, "Switch": "one"}]


def test_options_of_a_nova_conf_that_is_named_count(tmp_path, capsys):
    scored = flavor("scored", 1, cache_score="20")
    path = saved(tmp_path, flavors=[scored])
    conf = tmp_path / "nova.conf"
    conf.write_text(
        "[filter_scheduler]\nenabled_filters = ComputeFilter,HPCInterferenceFilter\n"
        "[hpc_sched]\nsync_cache_score_limit = 40\n"
    )
    args = ["--snapshot", path, "--flavor", "scored", "--config-file", str(conf)]
    assert rows(capsys, *args)[-1]["VMs"] == 2 * 16


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("cache_score_limit", "much"),
        ("processor_order", 5),
        ("processor_speeds", {"gold": 0}),
        ("processor_speeds", "gold"),
        ("processor_speeds", ["gold"]),
        ("implicit_groups", []),
    ],
)
def test_an_option_of_a_snapshot_that_cannot_be_is_an_error(tmp_path, capsys, option, value):
    path = saved(
        tmp_path,
        options={option: value},
        filters=("HPCInterferenceFilter", "HPCHomogeneityFilter"),
    )
    code, out, err = fits(capsys, "--snapshot", path, "--flavor", "half", "--count", "1")
    assert (code, out) == (1, "")
    assert f"options['{option}']" in err
