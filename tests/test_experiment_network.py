"""hpc-sched experiment network: standard output, standard error, exit code and files.

The tables of one size at one oversubscription are recorded in tests/printed. After an intended
change of results::

    HPC_SCHED_RECORD=1 python -m pytest tests/test_experiment_network.py -k recorded
"""

import csv
import io
import os
from pathlib import Path

import pytest

PRINTED = Path(__file__).parent / "printed" / "network.txt"
QUICK = ("--ranks", "8", "16", "--oversubscription", "8")
# Two leaves of two hosts at 2:1, an uplink of 10 bytes/s. Ranks 0 and 1 send 20 bytes each to the
# other leaf: 4 s. They compute 1 s and 3 s before: rank 0 sends alone for 2 s, and with a barrier
# both begin after 3 s.
CASE = """\
agg 10 0 0 1 2 2 2
rank 0 c 1 s 2 0 20 w
rank 1 c 3 s 3 0 20 w
rank 2 r 0 0 w
rank 3 r 1 0 w
"""


def test_the_printed_tables_are_those_recorded(run_experiment):
    code, out, err = run_experiment("network", *QUICK)
    assert code == 0
    assert err.splitlines()[:2] == [
        "network: seed 1: leaves at 8:1",
        "network: seed 1: other jobs",
    ]
    if os.environ.get("HPC_SCHED_RECORD"):
        PRINTED.write_text(out)
    assert out == PRINTED.read_text()


def test_rows_for_programs_have_a_column_for_each_oversubscription(run_experiment):
    code, out, _ = run_experiment(
        "network", "--ranks", "8", "--oversubscription", "4", "1", "--runs", "1", "-f", "csv"
    )
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    found = [row for row in rows if row["table"] == "Network" and row["pattern"]]
    assert len(found) == 2 * 6 * 6
    assert {row["at 1:1"] for row in found} == {"1.0"}
    assert {row["± at 4:1"] for row in found} == {""}  # of one run
    assert any(float(row["at 4:1"]) < 1 for row in found)


def test_the_picture_is_the_same_for_the_same_seed(run_experiment):
    arguments = ("--ranks", "8", "--oversubscription", "8", "--runs", "1", "--picture")
    assert (
        run_experiment("network", *arguments, "a.svg")[0]
        == run_experiment("network", *arguments, "b.svg")[0]
        == 0
    )
    assert Path("a.svg").read_text() == Path("b.svg").read_text()
    assert Path("a.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg" ')


def test_a_case_is_a_row_with_seconds_at_each_level_of_detail(run_experiment):
    Path("two.case").write_text(CASE)
    code, out, err = run_experiment("network", "--case", "two.case", "two.case", "-f", "csv")
    assert (code, err) == (0, "network: two.case\nnetwork: two.case\n")
    first, second = csv.DictReader(io.StringIO(out))
    assert first["case"] == second["case"] == "two.case"
    assert (first["ranks"], first["steps"]) == ("4", "1")
    # Rank 0 has sent all its bytes when rank 1 begins.
    assert float(first["replay, s"]) == 5
    assert float(first["by steps, s"]) == float(first["by links, s"]) == 7
    assert first["steps off by, %"] == first["links off by, %"] == "40.0"
    code, out, _ = run_experiment("network", "--case", "two.case")
    assert out.startswith("Network, cases: each file at three levels of detail\n")
    assert "runtime over" not in out


def test_what_is_no_case_is_an_error_with_file_and_line(run_experiment):
    Path("bad.case").write_text(CASE.replace("rank 2 r 0 0 w", "rank 9 w"))
    code, out, err = run_experiment("network", "--case", "bad.case")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "bad.case:4: expected a host from 0 to 3, found 'rank 9 w'"
    Path("lost.case").write_text("agg 10 0 0 1 2 2 2\nrank 0 s 1 0 20 w\nrank 1 w\n")
    code, _, err = run_experiment("network", "--case", "lost.case")
    assert code == 1
    assert err.splitlines()[-1].startswith("lost.case: rank 0 sends a message of tag 0 to rank 1")
    code, _, err = run_experiment("network", "--case", "no.case")
    assert err.splitlines()[-1] == "no.case: cannot be read: No such file or directory"


@pytest.mark.parametrize("path", ["missing/network.svg", "folder.svg"])
def test_a_picture_that_cannot_be_written_is_a_failure_before_the_runs(run_experiment, path: str):
    Path("folder.svg").mkdir()
    small = ("--ranks", "4", "--oversubscription", "8", "--runs", "1")
    code, out, err = run_experiment("network", *small, "--picture", path)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"{path}: cannot be written: expected a file in a folder that exists"
    ]


def test_a_job_that_does_not_fit_is_a_failure(run_experiment):
    code, out, err = run_experiment("network", "--ranks", "200", "--runs", "1")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "200 ranks, but 154 free hosts"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--ranks", "3"], "expected a whole number from 4 to 100000, found '3'"),
        (["--oversubscription", "0.5"], "expected a number >= 1, found '0.5'"),
        (["--case", "a", "--picture", "b.svg"], "--case has no picture"),
        (["--picture", "network.png"], "--picture network.png: expected a name that ends in .svg"),
        (["--case"], "expected at least one argument"),
    ],
)
def test_arguments_that_make_no_sense_are_wrong_usage(
    run_experiment, arguments: list[str], error: str
):
    code, out, err = run_experiment("network", *arguments)
    assert (code, out) == (2, "")
    assert error in err.splitlines()[-1]
