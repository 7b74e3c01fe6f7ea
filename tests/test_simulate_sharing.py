"""``hpc-sched simulate`` on hosts that applications share: classes of MDOBP, the index."""

import csv
import json
from pathlib import Path

import pytest

from hpc_sched.cli.main import main
from tests import snapshots

INDEX = "LU.C, ChaNGa, 2.0, 1.0\n"
# Two jobs at the same time, of one VM each, on two hosts of two cores under one leaf.
TWO = [
    *("--synthetic", "2", "--interarrival", "constant:1", "--size", "constant:1"),
    *("--runtime", "constant:60", "--generate", "levels=1,radix=2", "--host", "vcpus=2"),
    *("--vm-memory", "constant:32768", "--policy", "gupta2013"),
]
HALF = ["--applications", "LU.C=0.5,ChaNGa=0.5"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index.csv").write_text(INDEX)
    return tmp_path


def starts(folder: Path, *arguments: str) -> list[str]:
    """Return the hosts of the jobs in the order of their starts."""
    said = [*TWO, "--output", "out", "--events", *arguments]
    assert main(["simulate", *said]) == 0
    lines = (folder / "out/gupta2013-seed1-events.txt").read_text().splitlines()
    return [line.partition(": ")[2] for line in lines if " start " in line]


def factors(folder: Path) -> list[float]:
    with open(folder / "out/gupta2013-seed1-jobs.csv", encoding="utf-8") as file:
        return [float(row["factor"]) for row in csv.DictReader(file)]


def test_jobs_that_are_not_hpc_are_packed_where_the_classes_name_them(folder: Path):
    assert starts(folder, "--classes", "none=1") == ["n1", "n2"]
    assert starts(folder, "--classes", "none=1", "--mdobp-classes", "none,async") == ["n1", "n1"]
    assert starts(folder, "--classes", "none=1", "--mdobp-classes", "") == ["n1", "n2"]


def test_the_index_attracts_and_changes_runtimes(folder: Path, capsys):
    """By the angle alone each job gets a host of its own: both need little memory."""
    arguments = ["--classes", "none=1", "--mdobp-classes", "none", "--vm-memory", "constant:4096"]
    assert starts(folder, *arguments, *HALF) == ["n1", "n2"]
    assert starts(folder, *arguments, *HALF, "--interference-file", "index.csv") == ["n1", "n1"]
    found = json.loads((folder / "out/results.json").read_text())
    assert found["about"]["Interference index"] == (
        "index.csv, 2 applications; changes below 0.1 place no job"
    )
    assert found["about"]["Classes placed by MDOBP"] == "none"
    assert found["settings"]["interference_tolerance"] == 0.1
    assert "by the interference index" in found["about"]["Runtimes"]
    # ChaNGa, which came first, ran alone at its start; LU.C is twice as fast beside it.
    assert factors(folder) == [0.5, 1.0]


def test_without_applications_of_the_index_it_changes_nothing(folder: Path, capsys):
    plain = starts(folder, "--classes", "async=1")
    index = ["--interference-file", "index.csv", "--applications", "EP.B=1"]
    assert starts(folder, "--classes", "async=1", *index) == plain
    assert factors(folder) == [1.0, 1.0]
    assert "note: not in the interference index: EP.B" in capsys.readouterr().err


def test_a_snapshot_has_the_options_and_the_index_where_no_argument_states_them(
    folder: Path, capsys
):
    state = snapshots.saved(
        folder,
        options={"mdobp_classes": ["async", "none"], "interference_tolerance": 0.5},
        interference={"LU.C": {"ChaNGa": 2.0}, "ChaNGa": {"LU.C": 0.8}},
    )
    arguments = ["--synthetic", "20", "--policy", "gupta2013", "--classes", "none=1", *HALF]
    arguments += ["--size", "constant:1", "--runtime", "lognormal:600:1.5"]
    arguments += ["--interarrival", "exponential:15", "--output", "out", "--events"]
    arguments += ["--snapshot", state]

    def hosts(*more: str) -> set[str]:
        assert main(["simulate", *arguments, *more]) == 0
        lines = (folder / "out/gupta2013-seed1-events.txt").read_text().splitlines()
        return {line.partition(": ")[2] for line in lines if " start " in line}

    assert hosts() == {"n01"}
    about = json.loads((folder / "out/results.json").read_text())["about"]
    assert about["Interference index"].startswith("that of the snapshot, 2 applications; changes")
    assert about["Classes placed by MDOBP"] == "async, none"
    assert len(hosts("--mdobp-classes", "sync")) > 1
    # A loss of 0.2 counts now.
    assert len(hosts("--interference-tolerance", "0.2")) > 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--mdobp-classes", "sync,extreme"], 2, "expected some of sync, async, none, found"),
        (["--applications", "LU C=1"], 2, "argument --applications: expected NAME=SHARE"),
        (["--interference-tolerance", "2"], 2, "expected a number from 0 to 1, found '2'"),
        (["--interference-file", "none.csv"], 1, "none.csv: cannot be read: No such file"),
        (
            ["--interference-file", "wrong.csv"],
            1,
            "wrong.csv:1: column 3: expected a performance above 0",
        ),
    ],
)
def test_what_cannot_be_used_is_told(folder: Path, capsys, arguments, code, said):
    (folder / "wrong.csv").write_text("LU.C, ChaNGa, 0, 1\n")
    assert main(["simulate", *arguments]) == code
    assert said in capsys.readouterr().err
