"""hpc-sched simulate: the part that is measured, the offered load, and the run as delivered."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli.main import main
from tests.test_simulate_command import ON_FOUR_HOSTS, TOPOLOGY, TRACE

# Twenty jobs of two VMs, a minute apart, on hosts of two vcpus. Each runs for 90 s.
EVERY_MINUTE = [
    *("--synthetic", "20", "--interarrival", "constant:60", "--size", "constant:2"),
    *("--runtime", "constant:90", *ON_FOUR_HOSTS[1:], "--policy", "exact-plan"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    (tmp_path / "jobs.swf").write_text(TRACE)
    return tmp_path


def simulated(capsys: Any, *arguments: str) -> list[dict[str, Any]]:
    assert main(["simulate", *arguments, "-f", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_jobs_and_time_of_the_stated_part_are_measured_and_all_jobs_are_written(
    files: Path, capsys
):
    part = ["--measure", "270,630", "--output", "out"]
    [row] = simulated(capsys, *EVERY_MINUTE, *part)
    # Submitted at 300, 360 .. 600; two jobs of two of eight vcpus run half of the time, else one.
    assert (row["jobs"], row["done"], row["makespan"]) == (6, 6, 360)
    assert row["vcpu_use"] == pytest.approx((4 + 2) / 2 / 8)
    assert row["core_hours"] == pytest.approx(3 * 360 / 3600)
    with (files / "out" / "exact-plan-seed1-jobs.csv").open() as jobs:
        assert len(list(csv.DictReader(jobs))) == 20
    found = json.loads((files / "out" / "results.json").read_text())
    assert found["settings"]["measure"] == "270,630"
    assert found["about"]["Measured"].startswith("from 270 s until 630 s. Jobs are those submitted")
    assert found["runs"][0]["window"] == {"since": 270, "until": 630}
    assert found["runs"][0]["series"]["time"][-1] > 1000
    assert "from 270 s until 630 s" in (files / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("part", "jobs", "window"),
    [
        ("25%,75%", 10, {"since": 300, "until": 900}),
        ("600,", 10, {"since": 600, "until": None}),
        (",50%", 10, {"since": 0, "until": 600}),
        ("600,75%", 5, {"since": 600, "until": 900}),
    ],
)
def test_a_part_is_stated_in_seconds_or_in_percent_of_the_jobs(
    files: Path, capsys, part, jobs, window
):
    [row] = simulated(capsys, *EVERY_MINUTE, "--measure", part, "--output", "out")
    found = json.loads((files / "out" / "results.json").read_text())
    assert (row["jobs"], found["runs"][0]["window"]) == (jobs, window)


def test_the_table_says_what_is_measured(files: Path, capsys):
    assert main(["simulate", *EVERY_MINUTE, "--measure", "25%,75%"]) == 0
    out = capsys.readouterr().out
    assert "Measured: without the first 25 % of the jobs and the last 25 %. Jobs are those" in out
    assert main(["simulate", *EVERY_MINUTE]) == 0
    assert "Measured" not in capsys.readouterr().out


@pytest.mark.parametrize("part", [",", "0,", "0%,100%"])
def test_the_whole_run_gives_the_files_that_there_are_without_the_option(files: Path, capsys, part):
    arguments = [*EVERY_MINUTE, "--events", "--output"]
    simulated(capsys, *arguments, "plain")
    simulated(capsys, *arguments, "part", "--measure", part)
    for path in sorted((files / "plain").iterdir()):
        other = (files / "part" / path.name).read_text()
        # The commands, which the files state, differ in this alone.
        other = other.replace("--output part", "--output plain")
        assert path.read_text() == other.replace(f" --measure {part}", ""), path.name
    settings = json.loads((files / "plain" / "results.json").read_text())["settings"]
    assert settings["measure"] is None


def test_a_part_of_a_trace_follows_from_its_jobs(files: Path, capsys):
    """Of three jobs, at 0, 0.5 and 1.5 s, the first is left out; the last one is too large."""
    [row] = simulated(
        capsys, *ON_FOUR_HOSTS, "--policy", "exact-plan", "--measure", "40%,", "--load", "2"
    )
    assert (row["jobs"], row["done"], row["refused"]) == (2, 1, 1)


def test_a_part_without_a_job_is_a_note_with_its_time(files: Path, capsys):
    arguments = [*EVERY_MINUTE, "--policy", "random", "--seeds", "2", "--measure", "5000,"]
    assert main(["simulate", *arguments, "--output", "out", "-f", "json"]) == 0
    out, err = capsys.readouterr()
    assert {row["jobs"] for row in json.loads(out)} == {0}
    note = "no job was submitted in the time to measure, from 5000 s to the end: exact-plan, seed 1"
    assert f"note: {note} and 2 more" in err
    assert f"{note} and 2 more" in json.loads((files / "out/results.json").read_text())["notes"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--measure", "90%,20%"], 2, "argument --measure: expected FROM before UNTIL"),
        (["--measure", "5000,1%"], 1, "--measure 5000,1%: expected FROM before UNTIL, found 5000"),
        (["--measure", "3600"], 2, "argument --measure: expected FROM,UNTIL, each a time in s"),
        (["--use", "0"], 2, "argument --use: expected a number > 0, found '0'"),
        (["--use", "1", "--interarrival", "constant:1"], 2, "not allowed with argument --use"),
        (["jobs.swf", "--use", "1"], 1, "--use is for drawn jobs: it does not go with a trace"),
        (["--runtime", "constant:0"], 1, "--use: expected a mean interarrival time of"),
    ],
)
def test_what_cannot_be_measured_or_offered_is_refused(files: Path, capsys, arguments, code, said):
    assert main(["simulate", *arguments]) == code
    out, err = capsys.readouterr()
    assert said in " ".join(err.split())
    assert out == ""


def test_an_offered_load_is_the_share_of_the_vms_that_the_hosts_hold(files: Path, capsys):
    """Hosts of 5 vcpus hold two VMs of 2: eight VMs in all, half of them for 100 s."""
    arguments = ["--topology", "topology.yaml", "--host", "vcpus=5", "--cores-per-vm", "2"]
    arguments += ["--use", "0.5", "--size", "constant:2", "--runtime", "constant:100"]
    simulated(capsys, *arguments, "--synthetic", "5", "--output", "out")
    found = json.loads((files / "out" / "results.json").read_text())
    assert found["settings"]["interarrivals"] == "exponential:50"
    assert found["settings"]["use"] == 0.5
    assert found["about"]["Jobs"].endswith("offered load 50 % of the VMs that the cluster holds")


def test_a_steady_load_is_used_as_far_as_it_is_offered(files: Path, capsys):
    arguments = ["--topology", "topology.yaml", "--host", "vcpus=64", "--policy", "first-fit"]
    arguments += ["--size", "choice:1:2:4", "--runtime", "exponential:600", "--synthetic", "4000"]
    for use in (0.3, 0.8):
        [row] = simulated(capsys, *arguments, "--use", str(use))
        assert row["vcpu_use"] == pytest.approx(use, rel=0.06)
        assert row["jobs"] == 2800


def test_defaults_of_a_steady_load_apply_where_nothing_else_is_stated(files: Path, capsys):
    def settings(*arguments: str) -> tuple[Any, ...]:
        simulated(capsys, *arguments, "--policy", "first-fit", "--output", "out")
        found = json.loads((files / "out" / "results.json").read_text())["settings"]
        return found["use"], found["measure"], found["network"], found["oversubscription"]

    mix = {"ring": 0.3, "alltoall": 0.1, "halo3": 0.3, "none": 0.3}
    ratios = {"leaf": 2, "pod": 2}
    many, few = ("--synthetic", "100"), ("--synthetic", "99")
    assert settings(*many) == (0.9, "20%,90%", mix, ratios)
    assert settings(*few) == (0.9, None, mix, ratios)
    assert settings(*many, "--until", "5000") == (0.9, None, mix, ratios)
    assert settings(*many, "--measure", ",") == (0.9, None, mix, ratios)
    assert settings(*many, "--interarrival", "constant:60") == (None, None, mix, ratios)
    assert settings(*many, "--interference", "1.002")[2:] == (None, 2)
    assert settings(*many, "--generate", "hosts=64")[2:] == (None, 1)
    # A trace has what it had.
    assert settings("jobs.swf") == (None, None, None, 1)


def test_the_run_as_delivered_shows_what_policies_differ_in(capsys):
    """About ten seconds: the first command of a new user, so it must show something."""
    nova, dudina, exact = simulated(capsys)
    assert [row["policy"] for row in (nova, dudina, exact)] == [
        *("nova-default", "dudina2013", "exact-plan")
    ]
    assert {row["done"] for row in (nova, dudina, exact)} == {1400}
    for row in (nova, dudina, exact):
        assert 0.85 < row["vcpu_use"] < 1
    assert nova["wait_mean"] > 1.5 * dudina["wait_mean"]
    assert nova["factor_mean"] > 1.05 > 1.02 > dudina["factor_mean"] > exact["factor_mean"]
    assert nova["hops_per_pair"] > 1.5 * dudina["hops_per_pair"]
    assert dudina["hops_per_pair"] > 1.05 * exact["hops_per_pair"]
    assert nova["leaf_ratio"] > 3 * max(dudina["leaf_ratio"], exact["leaf_ratio"])
    assert all(math.isclose(row["makespan"], nova["makespan"]) for row in (dudina, exact))
