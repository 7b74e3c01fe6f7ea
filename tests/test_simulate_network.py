"""hpc-sched simulate --network: its options, their errors, and what the results say of them."""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpc_sched.cli.main import main
from hpc_sched.cli.simulate.arguments import add_arguments
from hpc_sched.cli.simulate.scenario_builder import RequestedRuns, requested_runs
from hpc_sched.sim import result_files
from hpc_sched.sim.scenario import simulate
from tests import snapshots

# Eight jobs of two VMs, at the same time or nearly, on hosts of one vcpu.
JOBS = [
    *("--synthetic", "8", "--interarrival", "constant:30", "--size", "constant:2"),
    *("--runtime", "constant:600", "--policy", "random"),
]
GENERATED = ["--generate", "levels=2,radix=6,oversubscription=2,hosts=12", "--host", "vcpus=1"]
ALWAYS = ["--network", "ring=1", "--communication", "constant:1"]
TREE = """\
switches:
- name: core
  switches:
  - {name: leaf1, hosts: "a[1-6]"}
  - {name: leaf2, hosts: "b[1-6]"}
"""
STATED = "levels: [leaf, core]\noversubscription: {leaf: 6}\n" + TREE
# The same ratio by cables: 6 hosts of 100 Gb/s below 100 Gb/s.
CABLED = "uplinks: {leaf: [2 x 25, 1 x 50]}\nhost_links: 1 x 100\n" + TREE
ISLANDS = "switches:\n- {name: west, hosts: 'a[1-6]'}\n- {name: east, hosts: 'b[1-6]'}\n"
ONE_LEAF = "switches:\n- {name: leaf1, hosts: 'a[1-6]'}\n"
ONE_HOST = "switches:\n- {name: leaf1, hosts: a1}\n"
TRACE = "".join(
    f"{number} {10 * number} -1 600 2 -1 -1 2 1200 -1 1 1 1 {number % 2} 1 1 -1 -1\n"
    for number in range(1, 7)
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("tree", TREE),
        ("stated", STATED),
        ("cabled", CABLED),
        ("islands", ISLANDS),
        ("one_leaf", ONE_LEAF),
        ("one_host", ONE_HOST),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "jobs.swf").write_text(TRACE)
    (tmp_path / "known.csv").write_text("application,pattern,communication\n1,ring,1\n")
    return tmp_path


def on(name: str) -> list[str]:
    return ["--topology", f"{name}.yaml", "--host", "vcpus=1"]


def results(*arguments: str) -> RequestedRuns:
    """Simulate and write the jobs, but no report, which takes longer than all the rest."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(list(arguments))
    args.output, args.events = Path("out"), True
    requested = requested_runs(args)
    result_files.prepare(args.output)
    for run in requested.runs:
        simulate(requested.scenario, run)
    return requested


def factors(policy: str = "random") -> list[float]:
    with open(f"out/{policy}-seed1-jobs.csv", encoding="utf-8") as file:
        return [float(row["factor"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("policy", ["random", "exact-plan"])
def test_jobs_are_slower_by_their_places_and_by_each_other(policy: str):
    jobs = [*JOBS[:-1], policy, *GENERATED]
    results(*jobs)
    assert set(factors(policy)) == {1.0}
    results(*jobs, *ALWAYS)
    assert max(factors(policy)) > 1.2 if policy == "random" else max(factors(policy)) == 1.0
    assert min(factors(policy)) >= 1 - 1e-9


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--communication", "constant:0.3"], 1, "expected --network too", id="share"),
        pytest.param(["--oversubscription", "leaf=4"], 1, "--oversubscription is of a", id="ratio"),
        pytest.param(["--network-detail", "steps"], 1, "--network-detail is of a", id="detail"),
        pytest.param(["--network", "star=1"], 2, "expected PATTERN=SHARE", id="unknown pattern"),
        pytest.param(["--network", ""], 2, "--network: expected", id="no pattern"),
        pytest.param(
            [*ALWAYS[:2], "--communication", "constant:1.5"], 2, "from 0 to 1", id="share above 1"
        ),
        pytest.param(
            [*ALWAYS, "--network-detail", "packets"], 2, "invalid choice", id="unknown detail"
        ),
        pytest.param(
            ["--network", "ring=1", "--network-file", "known.csv"], 2, "not allowed", id="both"
        ),
        pytest.param(
            ["--network-file", "known.csv", "--communication", "constant:1"],
            *(1, "--communication is in the file of --network-file"),
            id="a share with a file that has it",
        ),
        pytest.param(
            ["--network-file", "missing.csv"], 1, "missing.csv: cannot be read", id="no file"
        ),
        pytest.param(
            [*ALWAYS, "--hop-factors", "core=1.1"], 1, "what --hop-factors and", id="hop factors"
        ),
        pytest.param(
            [*ALWAYS, "--calibrate", "m.csv"], 1, "--calibrate state", id="measured factors"
        ),
        *(
            pytest.param(
                *([*ALWAYS, "--oversubscription", text], 1, f"--oversubscription: expected {said}"),
                id=text or "no ratio",
            )
            for text, said in (
                ("core=4", "LEVEL=RATIO,... with names of leaf, pod, found 'core'"),
                ("leaf=0", "leaf from 0.001 to 1000, found '0'"),
                ("leaf=-4", "leaf from 0.001 to 1000, found '-4'"),
                ("leaf=nan", "leaf from 0.001 to 1000, found 'nan'"),
                ("leaf=1e9", "leaf from 0.001 to 1000, found '1e9'"),
                ("leaf=four", "leaf from 0.001 to 1000, found 'four'"),
                ("4", "LEVEL=RATIO,..., found '4'"),
                ("", "LEVEL=RATIO,..., found ''"),
            )
        ),
    ],
)
def test_an_argument_that_cannot_be_is_refused(arguments: list[str], code: int, said: str, capsys):
    assert main(["simulate", *JOBS, *on("tree"), *arguments]) == code
    out, err = capsys.readouterr()
    assert said in " ".join(err.split())
    assert out == ""
    assert "Traceback" not in err


def test_the_settings_have_what_applied():
    arguments = [*JOBS, *GENERATED, "--network", "ring=3,none=1", "--output", "out"]
    assert main(["simulate", *arguments]) == 0
    found: dict[str, Any] = json.loads(Path("out/results.json").read_text())
    assert found["about"]["Network"].startswith("ring 75 %, none 25 %; constant:0.3 of the runtime")
    settings = found["settings"]
    assert settings["network"] == {"ring": 0.75, "none": 0.25}
    assert settings["communication"] == "constant:0.3"
    assert settings["network_detail"] == "links"
    assert settings["oversubscription"] == {"leaf": 2.0}
    assert settings["network_file"] is None


def test_the_settings_of_a_file_have_the_level_of_detail_that_applied():
    found = results("jobs.swf", *on("stated"), "--policy", "random", "--network-file", "known.csv")
    settings = found.settings
    assert (settings["network"], settings["network_file"]) == (None, "known.csv")
    assert (settings["communication"], settings["network_detail"]) == (None, "links")
    assert dict(found.about)["Network"].startswith(
        "as stated by application; oversubscribed leaf 6"
    )


def test_what_drawn_jobs_communicate_is_in_the_settings_under_its_options_only():
    settings = results(*JOBS, *GENERATED, *ALWAYS).settings
    assert "communications" not in settings
    assert not [value for value in settings.values() if "Mix(" in str(value)]


def test_stated_ratios_are_those_of_the_page_on_a_generated_fabric_too():
    generated = "2 : 1, 4 ports down and 2 up on each switch below the roots"
    found = dict(results(*JOBS, *GENERATED, *ALWAYS).about)
    assert found["Oversubscription"] == generated
    found = dict(results(*JOBS, *GENERATED, *ALWAYS, "--oversubscription", "leaf=8").about)
    assert found["Oversubscription"] == "leaf 8 : 1"
    assert "oversubscribed leaf 8 : 1" in found["Network"]


def test_kinds_of_jobs_are_named_with_the_other_files_and_leave_with_the_network(capsys):
    arguments = ["simulate", *JOBS, *GENERATED, "--output", "out"]
    assert main([*arguments, *ALWAYS]) == 0
    assert "report.html, kinds.csv, and each run's jobs" in capsys.readouterr().err
    assert Path("out/kinds.csv").exists()
    assert main(arguments) == 0
    assert "report.html, and each run's jobs" in capsys.readouterr().err
    assert not Path("out/kinds.csv").exists()


def test_without_a_network_its_settings_are_null():
    settings = results(*JOBS, *on("tree")).settings
    names = ("network", "network_file", "network_detail", "communication", "oversubscription")
    assert [settings[name] for name in names] == [None] * 5


def test_the_ratios_of_a_file_are_known_without_a_network_too():
    found = results(*JOBS, *on("stated"))
    assert found.settings["oversubscription"] == {"leaf": 6.0}
    assert dict(found.about)["Oversubscription"] == "leaf 6 : 1"


def test_an_argument_holds_before_the_topology_file_and_the_file_before_1():
    found = results(*JOBS, *on("tree"), *ALWAYS)
    assert found.settings["oversubscription"] == {"leaf": 1.0}
    assert any(note.startswith("no level is oversubscribed") for note in found.notes)
    even = factors()
    found = results(*JOBS, *on("stated"), *ALWAYS)
    assert found.settings["oversubscription"] == {"leaf": 6.0}
    assert dict(found.about)["Oversubscription"] == "leaf 6 : 1"
    assert found.notes == ()
    thin = factors()
    assert sum(even) < sum(thin)
    stated = [*on("stated"), *ALWAYS, "--oversubscription", "leaf=1"]
    assert results(*JOBS, *stated).settings["oversubscription"] == {"leaf": 1.0}
    assert factors() == even
    assert results(*JOBS, *on("tree"), *ALWAYS, "--oversubscription", "leaf=6")
    assert factors() == thin


def test_the_uplinks_of_a_file_are_those_of_the_network():
    results(*JOBS, *on("stated"), *ALWAYS)
    thin = factors()
    found = results(*JOBS, *on("cabled"), *ALWAYS)
    assert found.settings["oversubscription"] == {"leaf": 6.0}
    assert found.notes == ()
    assert factors() == pytest.approx(thin)
    without = results(*JOBS, *on("cabled"))
    assert without.settings["oversubscription"] == {"leaf": 6.0}


def test_an_argument_holds_before_the_uplinks_of_its_level():
    results(*JOBS, *on("tree"), *ALWAYS)
    even = factors()
    argument = [*on("cabled"), *ALWAYS, "--oversubscription", "leaf=1"]
    assert results(*JOBS, *argument).settings["oversubscription"] == {"leaf": 1.0}
    assert factors() == pytest.approx(even)


def test_a_leaf_with_fewer_uplinks_than_others_slows_the_jobs_that_use_it():
    one = CABLED.replace('hosts: "b[1-6]"', 'uplinks: 1 x 10, hosts: "b[1-6]"')
    assert one != CABLED
    Path("one.yaml").write_text(one)
    results(*JOBS, *on("cabled"), *ALWAYS)
    thin = factors()
    results(*JOBS, *on("one"), *ALWAYS)
    assert sum(factors()) > sum(thin)


#           core
#     /       |       \
#   one      two     three      three has 1 x 100 Gb/s up, the others 2 x 100; hosts 1 x 100
#   a1 a2   b1 b2    c1 c2
def test_one_oversubscribed_leaf_is_enough_for_no_note_that_none_is():
    leaves = [
        '{name: one, hosts: "a[1-2]"}',
        '{name: two, hosts: "b[1-2]"}',
        '{name: three, uplinks: 1 x 100, hosts: "c[1-2]"}',
    ]
    text = "uplinks: {leaf: 2 x 100}\nhost_links: 1 x 100\nswitches:\n"
    text += f"- {{name: core, switches: [{', '.join(leaves)}]}}\n"
    Path("mixed.yaml").write_text(text)
    found = results(*JOBS, *on("mixed"), *ALWAYS)
    assert found.settings["oversubscription"] == {"leaf": 1.0}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "ratio", "is_noted"),
    [("tree", "pod=6", True), ("tree", "leaf=6", False), ("islands", "leaf=6", False)],
)
def test_a_ratio_of_a_single_root_is_none_of_any_uplink(name: str, ratio: str, is_noted: bool):
    """Roots of islands have uplinks, as if their islands were joined above them."""
    found = results(*JOBS, *on(name), *ALWAYS, "--oversubscription", ratio)
    notes = [note for note in found.notes if note.startswith("no level is oversubscribed")]
    assert bool(notes) == is_noted


def test_all_levels_of_detail_agree_and_each_is_in_the_settings():
    found = []
    for detail in ("links", "steps", "replay"):
        more = [*on("stated"), *ALWAYS, "--network-detail", detail]
        assert results(*JOBS, *more).settings["network_detail"] == detail
        found.append(factors())
    assert found[1] == pytest.approx(found[0], rel=0.01)
    assert found[2] == pytest.approx(found[0], rel=0.01)


def test_a_trace_has_a_network_by_the_names_of_its_applications():
    """Jobs 2, 4 and 6 are of application 0, which no row names."""
    results("jobs.swf", *on("stated"), "--policy", "random", "--network-file", "known.csv")
    with open("out/random-seed1-jobs.csv", encoding="utf-8") as file:
        found = {int(row["number"]): float(row["factor"]) for row in csv.DictReader(file)}
    assert [found[number] for number in (2, 4, 6)] == [1.0] * 3
    assert max(found.values()) > 1.1


def test_a_file_of_other_jobs_is_noted_on_the_page_too(capsys):
    Path("other.csv").write_text("job,pattern,communication\n77,ring,1\n")
    arguments = ["simulate", "jobs.swf", *on("stated"), "--policy", "random", "--output", "out"]
    note = "other.csv: by its rows none of the jobs that were measured communicates"
    assert main([*arguments, "--network-file", "other.csv"]) == 0
    assert f"note: {note}" in capsys.readouterr().err
    assert json.loads(Path("out/results.json").read_text())["notes"] == [note]
    assert main([*arguments, "--network-file", "known.csv"]) == 0
    assert "by its rows none" not in capsys.readouterr().err


def test_runtimes_of_a_network_are_not_called_those_of_the_trace():
    arguments = ["jobs.swf", *on("stated"), "--policy", "random"]
    assert dict(results(*arguments).about)["Runtimes"] == "as the trace has them"
    found = dict(results(*arguments, *ALWAYS).about)["Runtimes"]
    assert found == "by places and neighbours, see Network"


def test_a_trace_has_drawn_patterns_with_a_network():
    arguments = ["jobs.swf", *on("stated"), "--policy", "random"]
    results(*arguments, *ALWAYS)
    slow = max(factors())
    results(*arguments)
    assert (slow > 1.1, max(factors())) == (True, 1.0)


def leaf_ratios(requested: RequestedRuns) -> set[float]:
    """Return what plans have as links of hosts over uplinks, of each leaf."""
    topology, found = requested.scenario.cluster.topology, requested.scenario.capacities
    below = np.bincount(topology.leaf_index, found.hosts, len(topology.switches))
    leaves = np.unique(topology.leaf_index)
    return set((below[leaves] / found.switches[leaves]).tolist())


@pytest.mark.parametrize("network", [[], ALWAYS], ids=["without a network", "with one"])
def test_plans_by_bottleneck_have_the_uplinks_of_a_generated_fabric(network: list[str]):
    jobs = [*JOBS[:-1], "bottleneck"]
    assert leaf_ratios(results(*jobs, *GENERATED, *network)) == {2.0}


@pytest.mark.parametrize("network", [[], ALWAYS], ids=["without a network", "with one"])
def test_plans_by_bottleneck_have_the_uplinks_that_options_of_a_snapshot_state(
    folder: Path, network: list[str]
):
    state = snapshots.saved(
        folder, options={"uplink_oversubscription": {"leaf": 4.0}}, topology=snapshots.FABRIC
    )
    arguments = ["--synthetic", "4", "--size", "constant:2", "--snapshot", state, *network]
    found = results(*arguments, "--policy", "bottleneck")
    assert leaf_ratios(found) == {4.0}
    assert found.settings["oversubscription"]["leaf"] == 4.0
    assert not any("oversubscribed" in note for note in found.notes)


def test_a_snapshot_has_a_network(folder: Path):
    state = snapshots.saved(folder)
    Path("cloud.yaml").write_text(STATED)
    arguments = ["--synthetic", "4", "--size", "constant:2", "--snapshot", state, *ALWAYS]
    found = results(*arguments, "--policy", "exact-plan")
    assert found.settings["network"] == {"ring": 1.0}
    assert min(factors("exact-plan")) >= 1


@pytest.mark.parametrize("name", ["islands", "one_leaf", "one_host"])
def test_a_small_fabric_has_a_network(name: str):
    """On islands a group is on one; on a leaf, hosts' own links are all that jobs use."""
    jobs = [*JOBS[:-1], "exact-plan", *on(name), "--host", "vcpus=4"]
    found = results(*jobs, *ALWAYS)
    text = Path("out/exact-plan-seed1-jobs.csv").read_text()
    assert {row["outcome"] for row in csv.DictReader(text.splitlines())} == {"done"}
    assert found.settings["oversubscription"] == {"leaf": 1.0}
    assert set(factors("exact-plan")) == {1.0}
    assert len(found.notes) == 1


def test_a_job_on_several_islands_has_the_links_above_both():
    """Nova spreads over islands; no plan of least Hop-Byte has more than one."""
    jobs = ["--synthetic", "1", "--size", "constant:4", "--runtime", "constant:600"]
    results(*jobs, *on("islands"), *ALWAYS, "--policy", "random", "--oversubscription", "leaf=6")
    [factor] = factors()
    assert factor >= 1


def test_the_same_command_writes_the_same_bytes():
    arguments = [*JOBS, *GENERATED, *ALWAYS]
    results(*arguments)
    names = ("random-seed1-jobs.csv", "random-seed1-events.txt")
    before = [Path("out", name).read_bytes() for name in names]
    results(*arguments)
    assert [Path("out", name).read_bytes() for name in names] == before


def test_the_default_run_has_a_network_and_says_that_it_is_assumed():
    found = results("--synthetic", "30", "--policy", "random")
    [note] = found.notes
    assert note.startswith("jobs communicate by --network ring=0.3,halo3=0.3")
    assert note.endswith("an assumption")
    assert found.settings["oversubscription"] == {"leaf": 2.0, "pod": 2.0}
    found = results("--synthetic", "30", "--policy", "random", "--communication", "constant:0")
    assert set(factors()) == {1.0}
