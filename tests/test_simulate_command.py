"""hpc-sched simulate: what is printed, what is written, how it ends."""

import argparse
import csv
import dataclasses
import gzip
import html
import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

import hpc_sched
from hpc_sched.cli.main import main
from hpc_sched.cli.simulate import arguments
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job_record import NetworkedJobRecord
from hpc_sched.snapshot.snapshot_model import Aggregate
from tests import sample_data, snapshots

#         core
#      /        \
#   leaf1      leaf2
#   n1 n2      n3 n4
TOPOLOGY = """\
switches:
- name: core
  switches:
  - {name: leaf1, hosts: "n[1-2]"}
  - {name: leaf2, hosts: "n[3-4]"}
"""

# Number, submit, wait, runtime, processors, ..; job 3 cannot be used, job 4 is too large.
TRACE = """\
; a trace
1 100 -1 10 2 -1 2048 2 20 -1 1 1 1 -1 1 1 -1 -1
2 101 -1 10 3 -1 1024 3 20 -1 1 1 1 -1 1 2 -1 -1
3 102 -1 -1 2 -1 -1 -1 -1 -1 0 1 1 -1 1 1 -1 -1
4 103 -1 10 99 -1 -1 -1 -1 -1 1 1 1 -1 1 1 -1 -1
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    (tmp_path / "jobs.swf").write_text(TRACE)
    return tmp_path


ON_FOUR_HOSTS = ["jobs.swf", "--topology", "topology.yaml", "--host", "vcpus=2,memory=8192"]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_a_row_for_every_policy_and_seed_is_printed(files: Path, capsys):
    arguments = ["--policy", "random", "--policy", "exact-plan", "--seeds", "2", "-f", "csv"]
    classes = ["--classes", "sync=0.5,async=0.5"]
    assert main(["simulate", *ON_FOUR_HOSTS, *arguments, *classes]) == 0
    out, err = capsys.readouterr()
    rows = rows_of(out)
    assert [(row["policy"], row["seed"], row["drawn"]) for row in rows] == [
        ("random", "1", "True"),
        ("random", "2", "True"),
        ("exact-plan", "1", "True"),
        ("exact-plan", "2", "True"),
    ]
    assert {row["done"] for row in rows} == {"2"}
    assert {row["refused"] for row in rows} == {"1"}
    assert rows[2]["hop_byte_ratio"] == "1.0"
    assert "note: left out of jobs.swf: 1 row (no runtime), first on line 4" in err
    assert "one run stands for" not in err


def test_one_run_stands_for_all_seeds_where_nothing_is_drawn(files: Path, capsys):
    arguments = ["--policy", "random", "--policy", "exact-plan", "--seeds", "3", "--seed", "5"]
    assert main(["simulate", *ON_FOUR_HOSTS, *arguments, "-f", "csv"]) == 0
    out, err = capsys.readouterr()
    rows = [(row["policy"], row["seed"], row["drawn"]) for row in rows_of(out)]
    assert rows == [
        ("random", "5", "True"),
        ("random", "6", "True"),
        ("random", "7", "True"),
        ("exact-plan", "5", "False"),
    ]
    assert "note: only random draws: one run stands for all 3 seeds of the others" in err
    assert main(["simulate", *ON_FOUR_HOSTS, "--seeds", "3", "-f", "csv"]) == 0
    out, err = capsys.readouterr()
    assert [row["seed"] for row in rows_of(out)] == ["1"] * 3
    assert "note: nothing is drawn: one run stands for all 3 seeds" in err


def test_policies_named_before_all_come_first_and_once(files: Path, capsys):
    arguments = ["--policy", "slurm-tree", "--policy", "all", "-f", "csv"]
    assert main(["simulate", *ON_FOUR_HOSTS, *arguments]) == 0
    found = [row["policy"] for row in rows_of(capsys.readouterr().out)]
    rest = [name for name in POLICIES.names() if name != "slurm-tree"]
    assert found == ["slurm-tree", *rest]


TEN_SEEDS = [
    *("--synthetic", "25", "--size", "choice:4:8", "--interarrival", "exponential:100"),
    *("--topology", "topology.yaml", "--host", "vcpus=4", "--seeds", "10"),
    *("--policy", "random", "--policy", "exact-plan"),
]


def test_ten_seeds_are_a_row_a_policy_with_intervals_and_differences(files: Path, capsys):
    assert main(["simulate", *TEN_SEEDS]) == 0
    lines = capsys.readouterr().out.splitlines()
    names, random, exact = ([c.strip() for c in lines[i].split("|")[1:-1]] for i in (1, 3, 4))
    assert names[:3] == ["policy", "runs", "done"]
    column = names.index("hop_byte_ratio")
    assert (random[0], random[1], exact[0], exact[1]) == ("random", "10", "exact-plan", "10")
    mean, half_width = (float(number) for number in random[column].split(" ± "))
    assert 0 < half_width < mean
    assert exact[column].endswith(" *")
    assert lines[6] == "Difference to random, seed by seed, in % of its mean:"
    assert lines[7].split()[0] == "done"
    assert lines[8].startswith("exact-plan ")
    assert " ± " in lines[8]
    assert "Means over 10 seeds" in lines[9]
    assert max(map(len, lines)) < 170
    # A table of all columns, and a row a run, if that is requested.
    assert main(["simulate", *TEN_SEEDS, "-c", "policy", "-c", "crossing"]) == 0
    assert "| policy     | crossing" in capsys.readouterr().out
    assert main(["simulate", *TEN_SEEDS, "--each-run"]) == 0
    out = capsys.readouterr().out
    assert out.count("| exact-plan") == 10
    assert " *" not in out.partition("Difference to")[0]


def test_programs_get_every_run_of_ten_seeds_and_files_the_comparison(files: Path, capsys):
    assert main(["simulate", *TEN_SEEDS, "-f", "json", "--output", "out"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 20
    found = json.loads((files / "out" / "results.json").read_text())["comparison"]
    assert (found["evidence"], found["seeds"]) == ("intervals", list(range(1, 11)))
    measure = found["policies"]["exact-plan"]["hop_byte_ratio"]
    values = [
        [row["hop_byte_ratio"] for row in rows if row["policy"] == p]
        for p in ("random", "exact-plan")
    ]
    apart = [b - a for a, b in zip(*values, strict=True)]
    assert measure["mean"] == pytest.approx(statistics.fmean(values[1]))
    assert measure["difference"]["mean"] == pytest.approx(statistics.fmean(apart))
    error = statistics.stdev(apart) / math.sqrt(10)
    assert measure["difference"]["half_width"] == pytest.approx(2.2621571628 * error)
    assert measure["best"]
    assert len(rows_of((files / "out" / "runs.csv").read_text())) == 20


def test_the_best_is_marked_where_nothing_is_drawn_and_not_with_one_seed_that_is(
    files: Path, capsys
):
    both = ["--policy", "nova-default", "--policy", "exact-plan"]
    assert main(["simulate", *ON_FOUR_HOSTS, *both]) == 0
    out = capsys.readouterr().out
    assert "Nothing is drawn: any seed gives these numbers." in out
    assert "1 *" in next(line for line in out.splitlines() if "| exact-plan" in line)
    assert main(["simulate", *TEN_SEEDS, "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "One seed: another one changes what is drawn" in out
    assert " *" not in out


def test_the_example_of_the_page_shows_what_the_page_says_of_it(capsys):
    """Waits decided seed by seed although the means' intervals overlap, leaves undecided."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "simulator.rst").read_text()
    [command] = re.findall(
        r"^.. screen:: (hpc-sched .*\n(?:   .*\n)*)", page[page.index("Seeds") :], re.M
    )
    assert (
        main([*shlex.split(command)[1:], "-c", "policy", "-c", "wait_mean", "-c", "leaf_ratio"])
        == 0
    )
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if " ± " in line][:3]
    waits = {row[1].strip(): row[2].strip() for row in rows}
    assert [name for name, wait in waits.items() if wait.endswith("*")] == ["exact-plan"]
    ends = [[float(each) for each in wait.rstrip(" *").split(" ± ")] for wait in waits.values()]
    assert max(mean - half for mean, half in ends) < min(mean + half for mean, half in ends)
    assert not any("*" in row[3] for row in rows)


def test_the_page_has_every_column_of_the_jobs_in_their_order():
    page = (Path(__file__).resolve().parents[1] / "docs" / "simulator.rst").read_text()
    described = page.partition("``POLICY-seedN-jobs.csv``")[2].partition("``POLICY-seedN-events")[0]
    found = re.findall(r"^   ``(\w+)`` ", described, re.M)
    assert found == [field.name for field in dataclasses.fields(NetworkedJobRecord)]


def test_files_say_what_was_run_so_that_it_can_be_run_again(files: Path, capsys, monkeypatch):
    (files / "my jobs.swf").write_text(TRACE)
    arguments = ["simulate", "my jobs.swf", *ON_FOUR_HOSTS[1:], "--output", "out"]
    arguments += ["--classes", "async=1,sync=3", "--scores", "uniform:0:30", "--alpha", "50"]
    arguments += ["--memory", "total", "--cores-per-vm", "2", "--queue", "easy", "--load", "2"]
    arguments += ["--require", "leaf", "--hop-factors", "leaf=1.1", "--mtbf", "90000"]
    assert main(arguments) == 0
    document = json.loads((files / "out" / "results.json").read_text())
    settings = document["settings"]
    assert shlex.split(settings["command"]) == ["hpc-sched", *arguments]
    expected = {
        "version": hpc_sched.__version__,
        "policy": ["nova-default", "dudina2013", "exact-plan"],
        "seeds": [1],
        "classes": {"sync": 0.75, "async": 0.25},
        "scores": "uniform:0:30",
        "alpha": 50.0,
        "beta": 60.0,
        "memory": "total",
        "cores_per_vm": 2,
        "load": 2.0,
        "oversubscription": None,
        "homogeneous": "prefer",
        "require": "leaf",
        "max_leaves": None,
        "queue": "easy",
        "backfill_depth": 100,
        "hop_factors": {"host": 1.0, "leaf": 1.1, "pod": 1.1},
        "interference": 1.0,
        "mtbf": 90000.0,
        "repair": 3600.0,
        "requeue": True,
        "overruns": "run",
        "hosts": 4,
        "until": None,
    }
    assert {name: settings[name] for name in expected} == expected
    page = (files / "out" / "report.html").read_text()
    for text in (
        html.escape(settings["command"], quote=False).replace("'", "&#39;"),
        f"hpc_sched {hpc_sched.__version__}",
        "sync 75 %, async 25 %",
        "uniform:0:30; at most 50 on a host (alpha), 60 with class sync (beta)",
        "at most 2 cores each, the trace&#39;s memory, that of a job",
        "unknown: the topology does not state it",
        "every job under one switch of level leaf",
        "host x 1, leaf x 1.1, pod x 1.1",
    ):
        assert text in page, text
    # The same again: nothing depends on the time.
    before = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    assert main(shlex.split(settings["command"])[1:]) == 0
    assert before == {path.name: path.read_bytes() for path in (files / "out").iterdir()}


def test_every_option_of_the_scenario_is_in_the_settings(files: Path, capsys):
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser)
    options = vars(parser.parse_args([])).keys() - {"seed", "source_argument"}
    assert main(["simulate", "--synthetic", "3", "--output", "out"]) == 0
    settings = json.loads((files / "out" / "results.json").read_text())["settings"]
    assert options <= settings.keys()
    assert settings["sizes"] == "choice:4:8:16:32:64:128"
    assert settings["memory_mb"] == "constant:0"
    assert (settings["hosts"], settings["total_vcpus"]) == (256, 4096)
    assert settings["generate"]["radix"] == 12
    assert settings["oversubscription"] == {"leaf": 2.0, "pod": 2.0}


def test_people_get_a_table_of_the_main_numbers(files: Path, capsys):
    assert main(["simulate", *ON_FOUR_HOSTS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| policy       | seed | done | refused | left |" in lines[1]
    _, *rows = (line.split()[1] for line in lines if line.startswith("|"))
    assert rows == ["nova-default", "dudina2013", "exact-plan"]
    assert max(map(len, lines)) < 170


def test_core_hours_of_each_policy_have_a_revenue_with_prices(files: Path, capsys):
    # Jobs 1 and 2: 2 and 3 processors for 10 s, on hosts of 2.
    arguments = [*ON_FOUR_HOSTS, "--policy", "exact-plan", "--policy", "nova-default"]
    assert main(["simulate", *arguments, "-f", "json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert row["core_hours"] == pytest.approx(50 / 3600)
        assert (row["revenue"], row["revenue_per_host_hour"]) == (None, None)
    prices = ["--price", "360,none=1"]
    assert main(["simulate", *arguments, *prices, "-f", "json", "--output", "out"]) == 0
    packed, spread = json.loads(capsys.readouterr().out)
    assert packed["revenue"] == spread["revenue"] == pytest.approx(5)
    # A host for job 1, two for job 2; stock Nova has each VM on a host of its own.
    assert packed["host_hours"] == pytest.approx(30 / 3600)
    assert packed["host_core_hours"] == pytest.approx(60 / 3600)
    assert packed["revenue_per_host_hour"] == pytest.approx(600)
    assert packed["revenue_per_host_core_hour"] == pytest.approx(300)
    assert spread["revenue_per_host_hour"] < packed["revenue_per_host_hour"]
    found = json.loads((files / "out/results.json").read_text())
    assert found["about"]["Prices of a core-hour"] == "360,none=1"
    assert "Revenue</th>" in (files / "out/report.html").read_text()
    assert main(["simulate", *arguments, *prices]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| core_hours | host_core_hours | revenue | revenue_per_host_hour |" in lines[1]
    assert max(map(len, lines)) < 170


def test_a_class_of_the_jobs_without_a_price_is_named(files: Path, capsys):
    arguments = [*ON_FOUR_HOSTS, "--policy", "exact-plan", "--classes", "sync=1,async=1"]
    assert main(["simulate", *arguments, "--price", "sync=1"]) == 0
    assert "note: no price for class async: counted as 0" in capsys.readouterr().err
    assert main(["simulate", *arguments, "--price", "sync=1,async=0"]) == 0
    assert "no price" not in capsys.readouterr().err


def test_everything_is_written_into_a_folder(files: Path, capsys):
    arguments = ["--policy", "exact-plan", "--output", "new/folder", "--events"]
    assert main(["simulate", *ON_FOUR_HOSTS, *arguments]) == 0
    folder = files / "new/folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "exact-plan-seed1-events.txt",
        "exact-plan-seed1-jobs.csv",
        "report.html",
        "results.json",
        "runs.csv",
    ]
    jobs = rows_of((folder / "exact-plan-seed1-jobs.csv").read_text())
    assert [(job["number"], job["outcome"]) for job in jobs] == [
        ("3", "refused"),
        ("1", "done"),
        ("2", "done"),
    ]
    assert jobs[2] | {"start": "1.0", "end": "11.0", "hosts": "2", "hop_bytes": "2"} == jobs[2]
    assert (folder / "exact-plan-seed1-events.txt").read_text().splitlines()[:2] == [
        "0 submit 1: 2 VMs",
        "0 start 1: " + jobs_host(folder),
    ]
    found = json.loads((folder / "results.json").read_text())
    assert found["format"] == "hpc-sched simulation"
    assert found["runs"][0]["refusals"] == {
        "group of 99 does not fit: largest gang that fits: 8 on core": 1
    }
    assert rows_of((folder / "runs.csv").read_text())[0]["policy"] == "exact-plan"
    assert "written to new/folder: runs.csv, results.json, report.html" in capsys.readouterr().err


def jobs_host(folder: Path) -> str:
    """Return where job 1 started: two VMs fill any of the hosts."""
    line = (folder / "exact-plan-seed1-events.txt").read_text().splitlines()[1]
    assert line.endswith("*2")
    return line.rpartition(" ")[2]


def test_jobs_are_killed_at_their_walltimes_where_that_is_wanted(files: Path, capsys):
    """Factor 3: 30 s where 20 were requested, on two hosts; job 4, without a walltime, runs on."""
    (files / "jobs.swf").write_text(TRACE.replace(" 99 ", " 4 "))
    arguments = [*ON_FOUR_HOSTS, "--policy", "exact-plan", "--hop-factors", "host=3"]
    assert main(["simulate", *arguments, "-f", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["done"], row["killed"]) == (3, 0)
    assert main(["simulate", *arguments]) == 0
    assert "killed" not in capsys.readouterr().out
    arguments += ["--overruns", "kill"]
    assert main(["simulate", *arguments, "--output", "out", "--events"]) == 0
    names, cells = (
        [cell.strip() for cell in line.split("|")]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| ")
    )
    found = dict(zip(names, cells, strict=True))
    assert (found["done"], found["refused"], found["killed"], found["left"]) == ("1", "0", "2", "0")
    jobs = rows_of((files / "out" / "exact-plan-seed1-jobs.csv").read_text())
    assert [(job["trace_job"], job["outcome"], job["start"], job["end"]) for job in jobs] == [
        ("1", "killed", "0.0", "20.0"),
        ("2", "killed", "1.0", "21.0"),
        ("4", "done", "20.0", "50.0"),
    ]
    events = (files / "out" / "exact-plan-seed1-events.txt").read_text()
    assert "20 kill 1\n" in events
    document = json.loads((files / "out" / "results.json").read_text())
    assert document["settings"]["overruns"] == "kill"
    assert document["about"]["Overruns"].startswith("jobs are killed at their walltimes")
    assert "killed: ran beyond their walltime" in (files / "out" / "report.html").read_text()


def test_rows_of_jobs_have_the_numbers_and_times_of_a_real_trace(files: Path, capsys):
    trace = sample_data.path("swf/KTH-SP2-1996-2.1-cln.swf.gz")
    with gzip.open(trace, "rt") as lines:
        rows = (line.split() for line in lines if not line.startswith(";"))
        stated = [(row[0], float(row[1])) for row in islice(rows, 200)]
    arguments = [str(trace), "--limit", "200", "--load", "1.7", "--policy", "first-fit"]
    fabric = ["--generate", "levels=2,radix=16,hosts=100", "--host", "vcpus=1"]
    assert main(["simulate", *arguments, *fabric, "--output", "out"]) == 0
    jobs = rows_of((files / "out" / "first-fit-seed1-jobs.csv").read_text())
    assert Counter((job["trace_job"], float(job["trace_submit"])) for job in jobs) == Counter(
        stated
    )
    first = stated[0][1]
    for job in jobs:
        assert float(job["submit"]) == (float(job["trace_submit"]) - first) / 1.7


def test_a_number_that_a_trace_repeats_or_lacks_leaves_our_own_unique(files: Path, capsys):
    row = "{} {} -1 10 2 -1 -1 2 20 -1 1 1 1 -1 1 1 -1 -1\n"
    rows = [row.format(*of) for of in ((8, 50), (8, 60), (-1, 70))]
    (files / "jobs.swf").write_text("".join(rows))
    assert main(["simulate", *ON_FOUR_HOSTS, "--policy", "exact-plan", "--output", "out"]) == 0
    jobs = rows_of((files / "out" / "exact-plan-seed1-jobs.csv").read_text())
    found = [(job["number"], job["trace_job"], job["submit"], job["trace_submit"]) for job in jobs]
    assert found == [
        ("1", "8", "0.0", "50.0"),
        ("2", "8", "10.0", "60.0"),
        ("3", "", "20.0", "70.0"),
    ]


def test_the_order_of_hosts_in_the_description_changes_nothing(files: Path, capsys):
    other = TOPOLOGY.replace('"n[1-2]"', "[n2, n1]").replace('"n[3-4]"', "[n4, n3]")
    (files / "other.yaml").write_text(other)
    drawn = ["--synthetic", "40", "--size", "uniform:1:6", "--queue", "easy", "--until", "9000"]
    events = []
    for fabric in ("topology.yaml", "other.yaml"):
        arguments = ["--topology", fabric, "--host", "vcpus=2", "--mtbf", "2000", "--policy", "all"]
        assert main(["simulate", *drawn, *arguments, "--output", fabric[0], "--events"]) == 0
        events.append([file.read_text() for file in sorted(Path(fabric[0]).glob("*-seed1-*"))])
    assert " fail" in events[0][0]
    assert events[0] == events[1]


def test_runs_in_other_processes_give_the_same_results(files: Path, capsys):
    arguments = [*ON_FOUR_HOSTS, "--policy", "random", "--seeds", "3", "-f", "json"]
    arguments += ["--price", "0.05,async=0.07"]
    assert main(["simulate", *arguments, "--output", "one"]) == 0
    alone = capsys.readouterr().out
    assert main(["simulate", *arguments, "--output", "two", "--jobs", "2"]) == 0
    assert capsys.readouterr().out == alone
    assert len(list((files / "one").iterdir())) == 6
    for path in sorted((files / "one").iterdir()):
        other = (files / "two" / path.name).read_text()
        # The commands, which the files state, differ in this alone.
        assert path.read_text() == other.replace("--output two --jobs 2", "--output one"), path.name


@pytest.mark.ci
def test_runs_on_a_dask_cluster_give_the_same_results(files: Path, capsys):
    distributed = pytest.importorskip("distributed")
    arguments = [*ON_FOUR_HOSTS, "--policy", "random", "--seeds", "2", "-f", "json"]
    assert main(["simulate", *arguments]) == 0
    alone = capsys.readouterr().out
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as there:
        assert main(["simulate", *arguments, "--dask", there.scheduler_address]) == 0
    assert capsys.readouterr().out == alone


def test_factors_make_jobs_longer_and_are_told(files: Path, capsys):
    arguments = [*ON_FOUR_HOSTS, "--policy", "exact-plan", "-f", "json"]
    assert main(["simulate", *arguments, "--hop-factors", "leaf=2"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    # Two of three pairs of job 2 meet at the leaf, all of job 1 on a host.
    assert row["factor_mean"] == pytest.approx((1 + (2 + 2 + 1) / 3) / 2)


def test_measured_times_give_the_factors(files: Path, capsys):
    (files / "measured.csv").write_text("job,seconds,level\na,10,host\na,20,leaf\n")
    arguments = [*ON_FOUR_HOSTS, "--policy", "exact-plan", "-f", "json"]
    assert main(["simulate", *arguments, "--calibrate", "measured.csv"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["factor_mean"] == pytest.approx(4 / 3)
    assert "the model of measured.csv is off the measured times by 0.0 %" in err


# Of two types, with as many vcpus on either; without more all is equal and "new" first by name.
ON_TWO_TYPES = [
    *("--synthetic", "1", "--size", "constant:4", "--runtime", "constant:100"),
    *("--topology", "topology.yaml", "--policy", "exact-plan", "-f", "json"),
    *("--host", "vcpus=2,processor=new:n[1-2]", "--host", "vcpus=2,processor=old:n[3-4]"),
]


@pytest.mark.parametrize(
    ("arguments", "factor"),
    [
        ([], 1),
        (["--speeds", "new=0.8,old=1"], 1),
        (["--speeds", "new=2130,old=3000"], 1),
        (["--speeds", "old=0.8"], 1.25),
        (["--speeds", "new=0.8,old=1", "--processor-order", "new"], 1.25),
        (["--speeds", "new=2130,old=3000", "--processor-order", " new, old"], 3000 / 2130),
        (
            ["--speeds", "new=2130,old=3000", "--homogeneous", "false", "--size", "constant:8"],
            3000 / 2130,
        ),
    ],
    ids=[
        "no speeds",
        "relative numbers: the fast type",
        "frequencies: the fast type",
        "the only one with a speed",
        "relative numbers: the slow type",
        "frequencies: the slow type",
        "frequencies: the slowest of a job",
    ],
)
def test_speeds_order_processor_types_and_make_jobs_on_slow_ones_longer(
    files: Path, capsys, arguments, factor
):
    assert main(["simulate", *ON_TWO_TYPES, *arguments]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["factor_mean"] == pytest.approx(factor)


def test_the_order_of_processor_types_is_among_the_results(files: Path, capsys):
    arguments = ["--speeds", "new=2130,old=3000", "--processor-order", "new", "--output", "out"]
    assert main(["simulate", *ON_TWO_TYPES, *arguments]) == 0
    about = json.loads((files / "out" / "results.json").read_text())["about"]
    assert about["Processor types"] == (
        "new, then by speed (old 1, new 0.71), then by cores per host"
    )
    assert about["Runtimes"].endswith("new at speed 0.71, old at speed 1")
    assert main(["simulate", *ON_TWO_TYPES, "--output", "plain"]) == 0
    assert (
        "Processor types" not in json.loads((files / "plain" / "results.json").read_text())["about"]
    )


def test_measured_speeds_order_processor_types_too(files: Path, capsys):
    measured = "job,seconds,level,processor\na,20,host,new\na,10,host,old\n"
    (files / "measured.csv").write_text(measured)
    for order, factor in ([], 1), (["--processor-order", "new"], 2):
        arguments = [*ON_TWO_TYPES, "--calibrate", "measured.csv", *order]
        assert main(["simulate", *arguments]) == 0
        assert json.loads(capsys.readouterr().out)[0]["factor_mean"] == pytest.approx(factor)


@pytest.mark.parametrize(
    ("options", "arguments", "taken", "factor"),
    [
        ({}, [], "new", 1),
        ({"processor_speeds": {"new": 2130, "old": 3000}}, [], "old", 1),
        ({"processor_speeds": {"old": 3000}}, [], "old", 1),
        ({"processor_order": ["old"]}, [], "old", 1),
        ({"processor_order": ["old"]}, ["--processor-order", "new"], "new", 1),
        ({"processor_order": ["old"]}, ["--processor-order", ""], "new", 1),
        ({"processor_speeds": {"old": 3}}, ["--speeds", "new=3,old=2"], "new", 1),
        ({"processor_speeds": {"old": 3}}, ["--speeds", ""], "new", 1),
        (
            {"processor_order": ["old"]},
            ["--speeds", "new=3,old=2"],
            "old",
            1.5,
        ),
    ],
    ids=[
        "none",
        "speeds",
        "the speed of one type",
        "an order",
        "another order",
        "no order",
        "other speeds",
        "no speeds",
        "an order, and speeds of the command",
    ],
)
def test_order_and_speeds_of_processor_types_are_those_of_a_saved_cloud(
    files: Path, capsys, options, arguments, taken, factor
):
    """What nova.conf says of types orders them, and makes no job longer."""
    new, old = snapshots.HOSTS[:4], snapshots.HOSTS[4:8]
    state = snapshots.saved(
        files,
        hosts=[*new, *old],
        aggregates=[
            Aggregate("new", tuple(new), {"hpc:processor": "new"}),
            Aggregate("old", tuple(old), {"hpc:processor": "old"}),
        ],
        options=options,
    )
    jobs = ["--synthetic", "1", "--size", "constant:8", "--policy", "exact-plan"]
    command = ["simulate", "--snapshot", state, *jobs, *arguments, "-f", "json"]
    assert main([*command, "--output", "out", "--events"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["factor_mean"] == factor
    start = (files / "out" / "exact-plan-seed1-events.txt").read_text().splitlines()[1]
    hosts = {name.split("*")[0] for name in start.split()[3:]}
    assert hosts
    assert hosts <= set(new if taken == "new" else old)


def test_a_saved_cloud_is_where_it_starts(files: Path, capsys):
    state = snapshots.saved(files, [snapshots.server("vm1", "n01")])
    arguments = ["--synthetic", "20", "--size", "constant:4", "--policy", "exact-plan"]
    assert main(["simulate", "--snapshot", state, *arguments, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["done"] == 20


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.swf"], 1, "nothing.swf: cannot be read: No such file"),
        (["topology.yaml"], 1, "topology.yaml: expected rows of 18 numbers"),
        (["--policy", "exat-plan"], 1, "did you mean exact-plan"),
        (["--queue", "esy"], 1, "there is no queue discipline 'esy', did you mean easy"),
        (
            ["--queue", "easy", "--fair-share-half-life", "5"],
            1,
            "--fair-share-half-life does not go with --queue easy: expected one of fair-share",
        ),
        (["--fair-share-half-life", "0"], 2, "expected a number > 0, found '0'"),
        (["--require", "rack"], 1, "there is no level 'rack': expected one of leaf, pod, core"),
        (["--generate", "radix=1"], 2, "radix: expected 2 to 1000000 ports, found 1"),
        (["--host", "vcpus=1:x"], 1, "host type for 'x': there is no such host"),
        (["--topology", "jobs.swf"], 1, "jobs.swf"),
        (["--size", "zipf:3"], 2, "argument --size: expected one of"),
        (["--classes", "web=1"], 2, "argument --classes: expected CLASS=SHARE"),
        (["--price", "web=1"], 2, "argument --price: expected PRICE or CLASS=PRICE"),
        (["--load", "0"], 2, "expected a number > 0, found '0'"),
        (["--limit", "5"], 1, "are for a trace: name one"),
        (["jobs.swf", "--synthetic", "5"], 1, "--synthetic is for drawn jobs"),
        (["jobs.swf", "--vm-memory", "constant:5"], 1, "--vm-memory is for drawn jobs"),
        (["--events"], 2, "--events needs --output"),
        (["--dask", "x", "--jobs", "2"], 2, "--dask has workers of its own"),
        (["--output", "jobs.swf"], 1, "jobs.swf: cannot be made: File exists"),
        (["--snapshot", "jobs.swf"], 1, "jobs.swf: not JSON"),
        (["--snapshot", "x.json", "--generate", "radix=4"], 1, "x.json: cannot be read"),
        (["--calibrate", "jobs.swf"], 1, "jobs.swf:"),
        (["--hop-factors", "rack=2"], 1, "--hop-factors: expected LEVEL=FACTOR"),
        (["--speeds", "gold"], 2, "argument --speeds: expected TYPE=NUMBER,..., found 'gold'"),
        (["--speeds", "gold=0"], 2, "argument --speeds: gold: expected a number above 0"),
        (["--speeds", "gold=1"], 1, "--speeds: expected TYPE=NUMBER,... with names of nothing"),
    ],
)
def test_what_cannot_be_simulated_is_told(files: Path, capsys, arguments, code, said):
    assert main(["simulate", *arguments]) == code
    out, err = capsys.readouterr()
    assert said in err
    assert out == ""


def test_a_trace_with_a_damaged_row_later_on_names_its_line(files: Path, capsys):
    (files / "jobs.swf").write_text(TRACE + "x y z\n" * 2)
    assert main(["simulate", *ON_FOUR_HOSTS, "--policy", "random"]) == 0
    assert "2 rows (fewer than 18 fields), first on line 6" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_is_full_is_told_with_the_folder(files: Path, capsys):
    (files / "out").mkdir()
    (files / "out" / "exact-plan-seed1-jobs.csv").symlink_to("/dev/full")
    arguments = ["simulate", *ON_FOUR_HOSTS, "--policy", "exact-plan", "--output", "out"]
    assert main(arguments) == 1
    assert "out: cannot be written: No space left on device" in capsys.readouterr().err


def test_ctrl_c_leaves_the_results_so_far(tmp_path: Path):
    command = [
        *(sys.executable, "-m", "hpc_sched.cli.main", "simulate", "--synthetic", "300000"),
        *("--policy", "first-fit", "--policy", "exact-plan", "--output", str(tmp_path)),
        *("--measure", ","),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    jobs = tmp_path / "first-fit-seed1-jobs.csv"
    deadline = time.monotonic() + 60
    while not (jobs.exists() and jobs.stat().st_size > 20_000) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted: 1 of 2 runs have results" in err
    assert "first-fit" in out
    assert "Traceback" not in err
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["notes"][-1].startswith("interrupted: 1 of 2 runs have results")
    [run] = document["runs"]
    assert 0 < run["summary"]["done"] < 300_000
    # Every job that was submitted is accounted for.
    assert len(jobs.read_text().splitlines()) - 1 == run["summary"]["jobs"]


def test_sigterm_ends_the_workers_too(tmp_path: Path):
    command = [
        *(sys.executable, "-m", "hpc_sched.cli.main", "simulate", "--synthetic", "300000"),
        *("--policy", "first-fit", "--policy", "random", "--output", str(tmp_path), "--jobs", "2"),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("*-jobs.csv"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "Traceback" not in err
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("processes of the command are left")


def test_a_real_trace_runs_under_every_policy(capsys):
    trace = sample_data.path("swf/KTH-SP2-1996-2.1-cln.swf.gz")
    arguments = [str(trace), "--limit", "150", "--policy", "all", "--queue", "easy"]
    fabric = ["--generate", "levels=2,radix=16,hosts=100", "--host", "vcpus=1"]
    assert main(["simulate", *arguments, *fabric, "-f", "json"]) == 0
    rows = {row["policy"]: row for row in json.loads(capsys.readouterr().out)}
    assert {row["done"] for row in rows.values()} == {150}
    exact, random = rows["exact-plan"], rows["random"]
    assert exact["hops_per_pair"] < random["hops_per_pair"]
    assert all(exact["hops_per_pair"] <= row["hops_per_pair"] + 0.1 for row in rows.values())


def test_a_job_that_hosts_never_let_end_is_named_once_on_standard_error(files: Path, capsys):
    """Four hosts that fail every 100 s, and a job of 1,000 s on all of them."""
    Path("long.swf").write_text("1 0 -1 1000 8 -1 -1 8 1000 -1 1 1 1 -1 1 1 -1 -1\n")
    arguments = ["long.swf", "--topology", "topology.yaml", "--host", "vcpus=2"]
    arguments += ["--mtbf", "100", "--repair", "1", "--policy", "exact-plan", "--until", "60000"]
    assert main(["simulate", *arguments]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "job" in line]
    assert warnings == [
        "exact-plan, seed 1: job 1 (8 VMs, 1000 s) has lost a host 1,000 times, and may never "
        "end: hosts fail too often for it; --until ends a run"
    ]


@pytest.mark.ci
def test_a_library_says_nothing_on_the_screen_below_a_warning(files: Path):
    """matplotlib logs, at INFO, that it has made its cache of fonts."""
    command = [sys.executable, "-m", "hpc_sched.cli.main", "simulate", *ON_FOUR_HOSTS]
    command += ["--policy", "exact-plan", "--output", "results"]
    environment = {**os.environ, "MPLCONFIGDIR": str(files / "fresh")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "fontManager" not in done.stderr
    assert any((files / "fresh").iterdir())
    environment["MPLCONFIGDIR"] = str(files / "another")
    command.insert(3, "-v")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "fontManager" in done.stderr
