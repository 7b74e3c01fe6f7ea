"""hpc-sched experiment: standard output, standard error and exit code."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from hpc_sched.cli import experiment_command as experiment
from hpc_sched.cli import main
from hpc_sched.experiments import gupta2013_tables
from hpc_sched.experiments.table import Table

# number submit wait runtime processors cpu memory, then nothing but the status
ROW = "{0} {1} 0 {2} {3} -1 {4} -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
TRACE = "".join(ROW.format(i, 60 * i, 100 + i, 1 + i % 4, 300_000 * i) for i in range(1, 31))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(["experiment", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch):
    """Leave what is varied out: each figure has its first setting alone."""
    for name in ("PACKING", "INTERFERENCE"):
        monkeypatch.setattr(gupta2013_tables, name, getattr(gupta2013_tables, name)[:1])


def test_a_table_stands_beside_the_published_numbers_with_its_guesses_below(call):
    code, out, err = call("gupta2012", "--runs", "1")
    assert (code, err) == (0, "gupta2012: 1 run in each setting\n")
    lines = out.splitlines()
    assert lines[0] == "Gupta2012, section 5: 8 VMs by racks and by processor types"
    assert any(line.split()[:2] == ["topology", "published"] for line in lines)
    assert any(line.startswith("* Guessed: ") for line in lines)
    assert max(map(len, lines)) <= 100


def test_rows_for_programs_have_all_columns_and_no_notes(call):
    code, out, _ = call("dudina2013", "--runs", "1", "-f", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert rows[0]["numbers"] == "published"
    assert rows[0]["mean less by, %"] == "14.0"
    assert rows[1]["numbers"] == "simulated"
    assert "Guessed" not in out


def test_the_same_seed_gives_the_same_text_and_another_one_another(call):
    _, once, _ = call("dudina2013", "--runs", "1")
    assert call("dudina2013", "--runs", "1")[1] == once
    assert call("dudina2013", "--runs", "1", "--seed", "2")[1] != once


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["trace.swf", "trace.swf.gz"])
def test_a_trace_gives_table_2_and_both_figures(call, name: str):
    content = TRACE.encode()
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    code, out, err = call("gupta2013", "--trace", name, "--runs", "1")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("Gupta2013, ")] == [
        "Gupta2013, Table II: jobs of METACENTRUM-2009-2 by memory used per core",
        "Gupta2013, Figure 9a: jobs completed on 1,024 cores, MDOBP against the default",
        "Gupta2013, Figure 9b: the same with cache interference minded",
    ]
    assert "all jobs          103656    30" in out
    assert err.splitlines() == [
        "gupta2013: Table II",
        "gupta2013: Figure 9a: setting 1 of 1",
        "gupta2013: Figure 9b: setting 1 of 1",
    ]


@pytest.mark.usefixtures("quick")
def test_rows_of_several_tables_have_the_columns_of_all(call):
    Path("trace.swf").write_text(TRACE)
    code, out, _ = call("gupta2013", "--trace", "trace.swf", "-f", "json", "--runs", "1")
    assert code == 0
    rows = json.loads(out)
    assert [row["published"] for row in rows if row["memory per core"] == "above 8 GB"] == [33]
    [known] = [r for r in rows if (r["figure"], r["numbers"]) == ("9a", "published")]
    assert (known["jobs of the default"], known["jobs"], known["gain, %"]) == (801, 910, 13.6)
    [known] = [r for r in rows if (r["figure"], r["numbers"]) == ("9b", "published")]
    assert (known["jobs of the default"], known["jobs"], known["gain, %"]) == (801, 1060, 32.3)
    assert {row["default"] for row in rows if row["numbers"] == "simulated"} == {
        "least-free-pe",
        "most-free-pe",
    }


@pytest.mark.usefixtures("quick")
def test_the_curves_of_figure_9_are_written_for_a_plot(call):
    Path("trace.swf").write_text(TRACE)
    code, _, _ = call("gupta2013", "--trace", "trace.swf", "--runs", "1", "--curves", "curves.csv")
    assert code == 0
    rows = list(csv.DictReader(Path("curves.csv").read_text().splitlines()))
    placements = list(dict.fromkeys(row["placement"] for row in rows))
    assert placements[:3] == ["least-free-pe", "most-free-pe", "mdobp"]
    assert placements[-1] == "mdobp in limits, beta 60, -20 %"
    assert len(placements) == 9
    done = [int(row["jobs"]) for row in rows if row["placement"] == "mdobp"]
    assert done == list(range(1, len(done) + 1))
    times = [float(row["seconds"]) for row in rows if row["placement"] == "mdobp"]
    assert times == sorted(times)


def test_without_a_trace_it_is_told_which_one_and_where_it_is(call):
    code, out, err = call("gupta2013")
    assert (code, out) == (1, "")
    assert err == (
        "--trace: expected the file METACENTRUM-2009-2.swf, or METACENTRUM-2009-2.swf.gz, which "
        f"is at {experiment.ARCHIVE}\n"
    )


def test_a_trace_that_cannot_be_read_is_a_failure(call):
    code, out, err = call("gupta2013", "--trace", "no.swf")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "no.swf: cannot be read: No such file or directory"
    Path("text.swf").write_text("no trace\n")
    code, _, err = call("gupta2013", "--trace", "text.swf")
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
def test_arguments_that_make_no_sense_are_wrong_usage(call, arguments: list[str], error: str):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert error in err.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [experiment.Dudina2013, experiment.Gupta2012, experiment.Gupta2013],
)
def test_the_help_has_examples_and_exit_codes(call, command: type[experiment.Experiment]):
    code, out, _ = call(command.NAME, "--help")
    assert code == 0
    assert f"hpc-sched experiment {command.NAME}{command.TRACE} -f csv" in out
    assert "exit codes" in out


def test_columns_are_as_wide_as_their_cells_and_those_without_any_are_left_out():
    table = Table(
        title="T",
        columns=("what", "jobs of the default", "never", "gain, %"),
        rows=(("one", 10, None, 1.5), ("another", None, None, 10.0)),
        notes=("A note.",),
    )
    assert experiment.render([table]) == (
        "T\n"
        "\n"
        "            jobs\n"
        "              of\n"
        "             the  gain,\n"
        "what     default      %\n"
        "-------  -------  -----\n"
        "one           10    1.5\n"
        "another        -     10\n"
        "\n"
        "* A note.\n"
    )
