"""hpc-sched simulate --wait-for-place: options, tables and files."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_sched.cli.main import main

#         core
#      /        \
#   leaf1      leaf2
#   n1 n2 n3   n4 n5 n6
TOPOLOGY = """\
switches:
- name: core
  switches:
  - {name: leaf1, hosts: "n[1-3]"}
  - {name: leaf2, hosts: "n[4-6]"}
"""

# Number, submit, wait, runtime, processors, ..: two jobs leave a host below each leaf. Job 3 could
# have both at 10, and has a leaf of its own when job 1 ends at 60.
TRACE = """\
1 0 -1 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1
2 0 -1 200 2 -1 -1 2 200 -1 1 1 1 -1 1 1 -1 -1
3 10 -1 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1
"""
ON_SIX_HOSTS = ["jobs.swf", "--topology", "topology.yaml", "--host", "vcpus=1"]
LIMITS = ["--prefer", "leaf", "--wait-for-place"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    (tmp_path / "jobs.swf").write_text(TRACE)
    return tmp_path


def simulated(capsys, *arguments: str) -> list[dict[str, str]]:
    assert main(["simulate", *ON_SIX_HOSTS, "--policy", "exact-plan", *arguments, "-f", "csv"]) == 0
    return list(csv.DictReader(capsys.readouterr().out.splitlines()))


def test_each_limit_has_a_row_and_shows_what_waiting_costs_and_gains(capsys):
    rows = simulated(capsys, *LIMITS, "0,20,50,1000")
    shown = ("policy", "wait_limit", "held", "as_preferred", "wait_mean", "leaf_ratio")
    assert [[row[name] for name in shown] for row in rows] == [
        ["exact-plan@0", "0.0", "0", "0.6666666666666666", "0.0", "1.3333333333333333"],
        ["exact-plan@20", "20.0", "1", "0.6666666666666666", str(20 / 3), "1.3333333333333333"],
        ["exact-plan@50", "50.0", "1", "1.0", str(50 / 3), "1.0"],
        ["exact-plan@1000", "1000.0", "1", "1.0", str(50 / 3), "1.0"],
    ]


def test_a_run_without_a_limit_has_none_of_its_columns(capsys):
    [row] = simulated(capsys, "--prefer", "leaf")
    assert not {"wait_limit", "held", "as_preferred"} & row.keys()


def test_with_one_limit_the_policy_has_its_own_name(capsys):
    [row] = simulated(capsys, *LIMITS, "50")
    assert (row["policy"], row["wait_limit"]) == ("exact-plan", "50.0")


@pytest.mark.parametrize("queue", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize(
    ("without", "with_a_limit"),
    [
        pytest.param(["--prefer", "leaf"], ["--prefer", "leaf"], id="a preferred level"),
        pytest.param([], ["--max-leaves", "1"], id="a preferred number of leaves"),
    ],
)
def test_a_limit_of_0_writes_the_files_of_a_run_without_preference(
    files: Path, capsys, queue: str, without: list[str], with_a_limit: list[str]
):
    common = ["--queue", queue, "--events"]
    [before] = simulated(capsys, *common, *without, "--output", "before")
    zero = ["--wait-for-place", "0"]
    [after] = simulated(capsys, *common, *with_a_limit, *zero, "--output", "after")
    for name in ("exact-plan-seed1-jobs.csv", "exact-plan-seed1-events.txt"):
        assert (files / "after" / name).read_bytes() == (files / "before" / name).read_bytes()
    assert {name: after[name] for name in before} == before


def test_max_leaves_is_a_preference_with_a_limit_and_a_guarantee_without(capsys):
    [kept] = simulated(capsys, "--max-leaves", "1")
    assert (kept["wait_mean"], kept["leaf_ratio"]) == (str(50 / 3), "1.0")
    rows = simulated(capsys, "--max-leaves", "1", "--wait-for-place", "20,1000")
    assert [(row["wait_mean"], row["leaf_ratio"]) for row in rows] == [
        (str(20 / 3), "1.3333333333333333"),
        (str(50 / 3), "1.0"),
    ]


def test_a_job_of_more_leaves_than_preferred_is_refused_by_a_guarantee_alone(files: Path, capsys):
    large = "4 20 -1 10 6 -1 -1 6 10 -1 1 1 1 -1 1 1 -1 -1\n"
    (files / "jobs.swf").write_text(TRACE + large)
    [kept] = simulated(capsys, "--max-leaves", "1")
    [preferred] = simulated(capsys, "--max-leaves", "1", "--wait-for-place", "20")
    assert (kept["refused"], preferred["refused"], preferred["done"]) == ("1", "0", "4")


def test_the_table_has_the_columns_of_the_trade_off(capsys):
    arguments = ["--policy", "exact-plan", *LIMITS, "0,50"]
    assert main(["simulate", *ON_SIX_HOSTS, *arguments]) == 0
    header = capsys.readouterr().out.splitlines()[1].replace("|", " ").split()
    assert header == [
        *("policy", "seed", "done", "refused", "left", "held", "wait_mean", "wait_median"),
        *("wait_p95", "hop_byte_ratio", "leaf_ratio", "as_preferred"),
    ]


def test_with_ten_seeds_each_limit_is_compared_with_the_first_one(capsys):
    drawn = ["--synthetic", "30", "--topology", "topology.yaml", "--host", "vcpus=4"]
    sizes = ["--size", "choice:3:5", "--seeds", "10", "--policy", "exact-plan"]
    assert main(["simulate", *drawn, *sizes, *LIMITS, "0,300"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| exact")] == [
        "exact-plan@0",
        "exact-plan@300",
    ]
    assert any(line.startswith("Difference to exact-plan@0") for line in lines)


def test_several_processes_give_the_same_rows_as_one(capsys):
    limits = ["--policy", "exact-plan", *LIMITS, "0,50", "-f", "csv"]
    assert main(["simulate", *ON_SIX_HOSTS, *limits]) == 0
    # In a process of its own: workers outlive a command, in the folder of the test that began them.
    command = [sys.executable, "-m", "hpc_sched.cli.main", "simulate", *ON_SIX_HOSTS, *limits]
    done = subprocess.run([*command, "--jobs", "2"], capture_output=True, text=True, check=True)
    assert done.stdout == capsys.readouterr().out


def test_all_files_name_the_limit_and_the_settings_have_all_limits(files: Path, capsys):
    simulated(capsys, *LIMITS, "0,7.5,0", "--output", "out")
    assert sorted(path.name for path in (files / "out").glob("*jobs.csv")) == [
        "exact-plan@0-seed1-jobs.csv",
        "exact-plan@7.5-seed1-jobs.csv",
    ]
    document = json.loads((files / "out" / "results.json").read_text())
    settings = document["settings"]
    assert (settings["prefer"], settings["wait_for_place"]) == ("leaf", [0.0, 7.5])
    assert settings["policy"] == ["exact-plan"]
    assert document["about"]["Preferred place"] == (
        "under one switch of level leaf; jobs wait for it up to 0, 7.5 s"
    )
    assert [run["summary"]["wait_limit"] for run in document["runs"]] == [0.0, 7.5]
    assert "exact-plan@7.5" in (files / "out" / "report.html").read_text()


@pytest.mark.parametrize("text", ["-1", "0,-5", "inf", "nan", "", "5,", "1e10", "soon"])
def test_a_limit_that_is_no_time_is_wrong_usage(text: str, capsys):
    assert main(["simulate", *ON_SIX_HOSTS, "--prefer", "leaf", f"--wait-for-place={text}"]) == 2
    err = capsys.readouterr().err
    assert f"expected numbers from 0 to 1e+09, as in 0,300,1800, found {text!r}" in err


def test_a_limit_without_anything_to_wait_for_is_wrong_usage(capsys):
    assert main(["simulate", *ON_SIX_HOSTS, "--wait-for-place", "5"]) == 2
    assert "--wait-for-place needs --prefer or --max-leaves" in capsys.readouterr().err


def test_an_unknown_preferred_level_is_an_error_that_names_the_levels(capsys):
    assert main(["simulate", *ON_SIX_HOSTS, "--prefer", "rack"]) == 1
    assert "there is no level 'rack': expected one of leaf, pod" in capsys.readouterr().err
