"""hpc-sched experiment: standard output, standard error and exit code.

The tables of the experiments are recorded in tests/printed. After an intended change of results::

    HPC_SCHED_RECORD=1 python -m pytest tests/test_experiment_command.py -k recorded
"""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest

from hpc_sched.cli import experiment_command as experiment
from hpc_sched.cli.network_experiment import NetworkExperiment
from hpc_sched.experiments.experiment_table import Setting, Table, Verdict
from tests import sample_data

# number submit wait runtime processors cpu memory, then nothing but the status
ROW = "{0} {1} 0 {2} {3} -1 {4} -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
TRACE = "".join(ROW.format(i, 60 * i, 100 + i, 1 + i % 4, 300_000 * i) for i in range(1, 5))
PRINTED = Path(__file__).parent / "printed"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dudina2013", []),
        ("gupta2012", []),
        ("gupta2013", ["--runs", "1", "--trace", "swf/METACENTRUM-2009-2.swf.gz"]),
    ],
)
def test_the_printed_tables_are_those_recorded(run_experiment, name: str, arguments: list[str]):
    *others, last = arguments or [""]
    given = [*others, str(sample_data.path(last))] if last else []
    code, out, _ = run_experiment(name, *given)
    assert code == 0
    record = PRINTED / f"{name}.txt"
    if os.environ.get("HPC_SCHED_RECORD"):
        record.write_text(out)
    assert out == record.read_text()


def test_a_table_is_next_to_the_published_numbers_with_a_verdict_and_settings_below(run_experiment):
    code, out, err = run_experiment("gupta2012", "--runs", "1")
    assert (code, err) == (0, "gupta2012: 1 run in each setting\n")
    lines = out.splitlines()
    assert lines[0] == "Gupta2012, section 5, topology: time less by in one rack than on two"
    assert any(line.split()[:1] == ["published"] for line in lines)
    assert any(line.startswith("Not reproduced. ") for line in lines)
    words = ["link", "of", "a", "rack", "10", "Gb/s,", "3.2:1", "3.1.1"]
    assert words in [line.split() for line in lines]
    assert any(line.endswith("guessed: varied") for line in lines)


def test_rows_for_programs_have_verdicts_and_settings_but_no_notes(run_experiment):
    code, out, _ = run_experiment("dudina2013", "--runs", "1", "-f", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    parts = ["", ", all benchmarks", ", where a gain begins"]
    assert list(dict.fromkeys(row["table"] for row in rows)) == [
        f"Dudina2013, section 4{part}" for part in parts
    ]
    assert rows[0]["verdict"] in {"explained in part", "not reproduced"}
    assert rows[0]["why"].startswith("The mean is ")
    assert (rows[1]["numbers"], rows[1]["mean less by, %"]) == ("published", "14.0")
    assert rows[2]["numbers"] == "simulated"
    settings = {row["setting"]: row for row in rows if row["table"] == rows[0]["table"]}
    assert settings["VMs of the job"]["stated in section"] == "4"
    assert settings["link of a host"]["stated in section"] == "guessed"
    assert "nothing slows the job down" not in out


def test_the_same_seed_gives_the_same_text_and_another_one_another(run_experiment):
    _, once, _ = run_experiment("gupta2012", "--runs", "1")
    assert run_experiment("gupta2012", "--runs", "1")[1] == once
    assert run_experiment("gupta2012", "--runs", "1", "--seed", "2")[1] != once


@pytest.mark.parametrize("name", ["trace.swf", "trace.swf.gz"])
def test_a_trace_gives_the_two_tables_the_case_study_and_both_figures(run_experiment, name: str):
    content = TRACE.encode()
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    code, out, err = run_experiment(
        "gupta2013", "--trace", name, "--runs", "1", "--curves", "curves.csv"
    )
    assert code == 0
    titles = [line.partition(":")[0] for line in out.splitlines() if line.startswith("Gupta2013, ")]
    assert titles == [
        "Gupta2013, Table I",
        "Gupta2013, Table II",
        "Gupta2013, Figure 8, table",
        "Gupta2013, Figure 8, chart",
        "Gupta2013, Figure 9a",
        "Gupta2013, Figure 9b",
    ]
    assert "all jobs          103656     4" in out
    progress = err.splitlines()
    assert progress[:2] == ["gupta2013: Table II", "gupta2013: run 1: least-free-pe, fcfs"]
    assert progress[-1] == "gupta2013: curves"
    curves = list(csv.DictReader(Path("curves.csv").read_text().splitlines()))
    named = {(row["placement"], row["queue"], row["beta"]) for row in curves}
    assert len(named) == 9
    assert ("least-free-pe, blind", "fcfs by cores", "") in named
    assert ("mdobp in limits", "passing", "60") in named
    one = [row for row in curves if (row["placement"], row["queue"]) == ("mdobp", "fcfs")]
    assert [int(row["jobs"]) for row in one] == list(range(1, len(one) + 1))
    times = [float(row["seconds"]) for row in one]
    assert times == sorted(times)


def test_rows_of_several_tables_have_the_columns_of_all(run_experiment):
    Path("trace.swf").write_text(TRACE)
    code, out, _ = run_experiment("gupta2013", "--trace", "trace.swf", "-f", "json", "--runs", "1")
    assert code == 0
    rows = json.loads(out)
    by_table: dict[str, list] = {}
    for row in rows:
        by_table.setdefault(row["table"].removeprefix("Gupta2013, "), []).append(row)
    assert all(found[0]["verdict"] and found[0]["why"] for found in by_table.values())
    [known] = [row for row in by_table["Table II"] if row["memory per core"] == "above 8 GB"]
    assert known["published"] == 33
    known = by_table["Figure 9a"][1]
    assert (known["jobs of default"], known["jobs of MDOBP"], known["gain, %"]) == (801, 910, 13.6)
    known = by_table["Figure 9b"][1]
    assert (known["jobs"], known["beta"], known["runtimes less by, %"]) == (1060, 60.0, 10.0)
    assert known["against blind default, %"] == 32.3
    scores = [row["value"] for row in rows if row["setting"] == "cache score of a job"]
    assert scores == ["drawn, uniform from 0 to 30"]


def test_without_a_trace_it_is_told_which_one_and_where_it_is(run_experiment):
    code, out, err = run_experiment("gupta2013")
    assert (code, out) == (1, "")
    assert err == (
        "--trace: expected the file METACENTRUM-2009-2.swf, or METACENTRUM-2009-2.swf.gz, which "
        f"is at {experiment.ARCHIVE}\n"
    )


def test_a_trace_that_cannot_be_read_is_a_failure(run_experiment):
    code, out, err = run_experiment("gupta2013", "--trace", "no.swf")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "no.swf: cannot be read: No such file or directory"
    Path("text.swf").write_text("no trace\n")
    code, _, err = run_experiment("gupta2013", "--trace", "text.swf")
    assert code == 1
    assert err.splitlines()[-1].startswith("text.swf: expected rows of 18 numbers, found 1 row")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["gupta2012", "--runs", "0"], "expected a whole number >= 1, found '0'"),
        (["gupta2012", "--seed", "x"], "expected a whole number >= 0, found 'x'"),
        (["gupta2012", "--trace", "a.swf"], "unrecognized arguments: --trace a.swf"),
        (["gupta2012", "-c", "numbers"], "columns need a format that has them"),
    ],
)
def test_arguments_that_make_no_sense_are_wrong_usage(
    run_experiment, arguments: list[str], error: str
):
    code, out, err = run_experiment(*arguments)
    assert (code, out) == (2, "")
    assert error in err.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [experiment.Dudina2013, experiment.Gupta2012, experiment.Gupta2013, NetworkExperiment],
)
def test_the_help_has_examples_and_exit_codes(run_experiment, command: type[experiment.Experiment]):
    code, out, _ = run_experiment(command.NAME, "--help")
    assert code == 0
    assert f"hpc-sched experiment {command.NAME}{command.FURTHER} -f csv" in out
    assert "exit codes" in out


def test_columns_are_as_wide_as_their_cells_and_those_without_any_are_left_out():
    table = Table(
        source="A",
        title="T",
        columns=("what", "jobs of the default", "never", "gain, %"),
        rows=(("one", 10, None, 1.5), ("another", None, None, 10.0)),
        settings=(Setting("nodes", "8", "VII"), Setting("queue", "fcfs", "guessed")),
        verdict=Verdict("explained in part", "By chance."),
        notes=("A note.",),
    )
    text = (
        "A: T\n"
        "\n"
        "            jobs\n"
        "              of\n"
        "             the  gain,\n"
        "what     default      %\n"
        "-------  -------  -----\n"
        "one           10    1.5\n"
        "another        -     10\n"
    )
    rest = (
        "\n"
        "Explained in part. By chance.\n"
        "\n"
        "setting  value  stated in section\n"
        "-------  -----  -----------------\n"
        "nodes    8      VII\n"
        "queue    fcfs   guessed\n"
        "\n"
        "* A note.\n"
    )
    assert experiment.render([table]) == text + rest
    bare = Table("A", "T", table.columns, table.rows)
    assert experiment.render([bare]) == text
    assert experiment.render([bare, bare]) == f"{text}\n\n{text}".replace("\n\n\n", "\n\n")
