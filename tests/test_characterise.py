"""hpc-sched characterise: standard output, standard error and exit code."""

import io
import sys
from pathlib import Path

import pytest

from hpc_sched.cli import main

PERF = """\
# started on Mon May  6 10:00:00 2024

22000000,,LLC-load-misses,10003456789,100.00,,
7400000,,LLC-store-misses,10003456789,100.00,,
10000000000,ns,duration_time,10000000000,100.00,,
"""
SCORE = """\
misses:              29400000
seconds:             10
cache score per VM:  29.4
openstack flavor set --property hpc:cache_score=29.4 FLAVOR
"""
COUNTS = "\n".join(PERF.splitlines()[2:4])  # without a wall time


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that runs the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main.main(["characterise", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_score_of_a_file_and_the_flavors_property_are_printed(call):
    Path("perf.csv").write_text(PERF)
    assert call("perf.csv") == (0, SCORE, "")


def test_the_score_of_standard_input_is_that_of_a_file(call):
    assert call("-", stdin=PERF) == (0, SCORE, "")


def test_the_score_of_numbers_needs_no_file(call):
    assert call("--misses", "29.4e6", "--seconds", "10") == (0, SCORE, "")


def test_the_misses_of_several_vms_are_shared_among_them(call):
    code, out, _ = call("-", "--vms", "3", stdin=PERF)
    assert code == 0
    assert "cache_score=9.8 FLAVOR" in out


def test_seconds_that_are_given_win_over_those_of_perf(call):
    code, out, _ = call("-", "--seconds", "20", stdin=PERF)
    assert code == 0
    assert "seconds:             20\n" in out
    assert "cache_score=14.7 FLAVOR" in out


def test_numbers_are_printed_without_exponents(call):
    _, out, _ = call("--misses", "1e17", "--seconds", "0.00001")
    assert out == (
        "misses:              100000000000000000\n"
        "seconds:             0.00001\n"
        "cache score per VM:  100000000000000000\n"
        "openstack flavor set --property hpc:cache_score=100000000000000000 FLAVOR\n"
    )
    _, out, _ = call("--misses", "1", "--seconds", "0.1")
    assert "hpc:cache_score=0.0001 FLAVOR" in out
    _, out, _ = call("--misses", "-0", "--seconds", "1")
    assert "hpc:cache_score=0 FLAVOR" in out


@pytest.mark.parametrize(
    ("text", "misses", "seconds"),
    [
        pytest.param(
            "CPU0,100,,LLC-load-misses,9,100.00,,\nCPU1,20,,LLC-load-misses,9,100.00,,\n"
            "CPU0,3,,LLC-store-misses,9,100.00,,\nCPU1,4,,LLC-store-misses,9,100.00,,\n"
            "CPU0,5000000000,ns,duration_time,5000000000,100.00,1.0,G/sec\n",
            127,
            5,
            id="a line a CPU (-A)",
        ),
        pytest.param(
            "S0,64,100,,LLC-load-misses,9,100.00,,\nS1,64,20,,LLC-load-misses,9,100.00,,\n"
            "S0,64,7,,LLC-store-misses,9,100.00,,\n"
            "S0,1,5000000000,ns,duration_time,5,100.00,,\nS1,1,5000000000,ns,duration_time,5,100.00,,\n",
            127,
            5,
            id="a line a socket",
        ),
        pytest.param(
            "     1.000100000,100,,LLC-load-misses,9,100.00,,\n"
            "     1.000100000,3,,LLC-store-misses,9,100.00,,\n"
            "     2.500000000,20,,LLC-load-misses,9,100.00,,\n"
            "     2.500000000,4,,LLC-store-misses,9,100.00,,\n",
            127,
            2.5,
            id="intervals, whose last time stamp is the wall time",
        ),
        pytest.param(
            "1.0,100,,LLC-load-misses,9,100.00,,\n1.0,3,,LLC-store-misses,9,100.00,,\n"
            "2.0,20,,LLC-load-misses,9,100.00,,\n2.0,4,,LLC-store-misses,9,100.00,,\n"
            "summary,120,,LLC-load-misses,9,100.00,,\nsummary,7,,LLC-store-misses,9,100.00,,\n",
            127,
            2,
            id="intervals and their summary",
        ),
        pytest.param(
            "1.0,CPU0,100,,LLC-load-misses,9,100.00,,\n1.0,CPU0,7,,LLC-store-misses,9,100.00,,\n"
            "1.0,CPU0,1000000000,ns,duration_time,1,100.00,,\n"
            "2.0,CPU0,20,,LLC-load-misses,9,100.00,,\n"
            "2.0,CPU0,500000000,ns,duration_time,1,100.00,,\n",
            127,
            1.5,
            id="intervals with a duration each, a line a CPU",
        ),
        pytest.param(
            "100,,LLC-load-misses:u,0.52%,9,100.00,,\n20,,LLC-load-misses:k,0.1%,9,100.00,,\n"
            "7,,LLC-store-misses:uk,1.00%,9,100.00,,\n2000000000,ns,duration_time,0.3%,2,100.00,,\n",
            127,
            2,
            id="modifiers, and the variance of -r",
        ),
        pytest.param(
            "100,,cpu_core/LLC-load-misses/,9,100.00,,\n20,,cpu_atom/LLC-load-misses/u,9,100.00,,\n"
            "7,,cpu_core/LLC-store-misses:u/,9,100.00,,\n1000000000,,duration_time,1,100.00,,\n",
            127,
            1,
            id="two kinds of cores",
        ),
        pytest.param(
            "100,,LLC-load-misses,machine.slice/vm1,9,100.00,,\r\n"
            "27,,LLC-store-misses,machine.slice/vm1,9,100.00,,\r\n"
            "99,msec,task-clock,9,100.00,1.0,CPUs utilized\r\n,,,,,0.50,insn per cycle\r\n"
            "1000000000,ns,duration_time,machine.slice/vm1,1,100.00,,\r\n",
            127,
            1,
            id="a cgroup, other events and metrics",
        ),
    ],
)
def test_lines_of_perf_are_summed_up(call, text: str, misses: int, seconds: float):
    code, out, err = call("-", stdin=text)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [
        f"misses:              {misses}",
        f"seconds:             {seconds}",
    ]


@pytest.mark.parametrize(
    ("before", "again"),
    [("", ":u"), ("", ":G"), ("", ":ppp"), (":u", ""), (":u", ":uk"), (":uG", ":u")],
)
def test_what_was_counted_twice_is_refused(call, before: str, again: str):
    lines = [f"30,,LLC-load-misses{modifier},9,100.00,," for modifier in (before, again)]
    code, out, err = call("-", "--seconds", "10", stdin="\n".join(lines))
    assert (code, out) == (1, "")
    assert err.startswith("<stdin>:2: expected each mode of LLC-load-misses once, found some")


@pytest.mark.parametrize(("one", "other"), [(":u", ":k"), (":G", ":H"), (":u", ":u")])
def test_modes_that_are_apart_and_lines_of_several_cpus_are_added_up(call, one, other):
    lines = [f"30,,LLC-load-misses{modifier},9,100.00,," for modifier in (one, other)]
    code, out, _ = call("-", "--seconds", "10", stdin="\n".join(lines))
    assert (code, out.splitlines()[0].split()) == (0, ["misses:", "60"])


def test_without_a_wall_time_the_run_time_of_the_counter_counts_with_a_warning(call):
    code, out, err = call("-", stdin=COUNTS)
    assert code == 0
    assert "seconds:             10.003456789\ncache score per VM:  29.3898\n" in out
    assert err == (
        "warning: <stdin>: no wall time (the event duration_time, or -I): took the counter's "
        "10.003456789 s, which perf adds up over threads and CPUs; for more than one of them "
        "give --seconds\n"
    )
    assert call("-", "--seconds", "10", stdin=COUNTS) == (0, SCORE, "")


def test_without_any_time_the_seconds_must_be_given(call):
    bare = "\n".join(",".join(line.split(",")[:3]) for line in COUNTS.splitlines())
    code, out, err = call("-", stdin=bare)
    assert (code, out) == (1, "")
    assert err == (
        "<stdin>: expected the wall time, found neither the event duration_time nor time stamps "
        "of -I nor a counter's run time: give --seconds\n"
    )


def test_without_store_misses_the_loads_count_alone_with_a_warning(call):
    code, out, err = call("-", "--seconds", "10", stdin=COUNTS.splitlines()[0])
    assert code == 0
    assert "hpc:cache_score=22 FLAVOR" in out
    assert (
        err == "warning: <stdin>: no line of LLC-store-misses: the score is that of loads alone\n"
    )


def test_a_counter_that_ran_less_than_half_of_the_time_is_warned_of_once(call):
    text = COUNTS.replace("100.00", "49.99") + "\n1,,LLC-store-misses,9,60.00,,\n"
    code, out, err = call("-", "--seconds", "10", stdin=text)
    assert code == 0
    assert out != ""
    assert [line.split(" of the time")[0] for line in err.splitlines()] == [
        "warning: <stdin>:1: LLC-load-misses was counted 49.99 %",
        "warning: <stdin>:2: LLC-store-misses was counted 49.99 %",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ": expected a line of LLC-load-misses, found none; record it by: perf stat -e "),
        ("7,,LLC-store-misses,9,100.00,,\n", ": expected a line of LLC-load-misses, found none"),
        (
            "# x\n<not supported>,,LLC-load-misses,0,100.00,,\n",
            ":2: expected a count of LLC-load-misses, found <not supported>: this processor, or",
        ),
        (
            "1.0,CPU3,<not counted>,,LLC-store-misses:u,0,100.00,,\n",
            ":1: expected a count of LLC-store-misses:u, found <not counted>: perf had no counter",
        ),
        (
            "many,,LLC-load-misses,9,100.00\n",
            ":1: expected a count of LLC-load-misses, found 'many'",
        ),
        ("-1,,LLC-load-misses,9,100.00\n", ":1: expected a count of LLC-load-misses, found '-1'"),
        (",LLC-load-misses,9\n", ":1: expected a count of LLC-load-misses, found ''"),
        (
            "1,,LLC-load-misses,9,1\n1,s,duration_time,1\n",
            ":2: expected duration_time in ns, found 's'",
        ),
        (
            "\n 1,234,567      LLC-load-misses\n",
            ":2: expected value,unit,event,... as perf stat -x,",
        ),
        ("1;;LLC-load-misses;9;100.00;;\n", ":1: expected value,unit,event,... as perf stat -x,"),
        (" Performance counter stats for 'a':\n", ":1: expected value,unit,event,... as perf"),
    ],
    ids=[
        "nothing",
        "no loads",
        "an event that is not supported",
        "an event that was not counted",
        "a word for a count",
        "a negative count",
        "too few columns in front",
        "a duration in seconds",
        "output for people",
        "another separator",
        "a heading for people",
    ],
)
def test_an_output_that_tells_no_score_is_refused_with_its_line(call, text: str, error: str):
    Path("perf.csv").write_text(text)
    code, out, err = call("perf.csv", "--seconds", "1")
    assert (code, out) == (1, "")
    assert err.startswith(f"perf.csv{error}")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "expected one of FILE, --misses, --timings, found none"),
        (["perf.csv", "--misses", "1"], "found FILE and --misses"),
        (["perf.csv", "--timings", "runs.csv"], "found FILE and --timings"),
        (["--misses", "1"], "--misses needs --seconds"),
        (["perf.csv", "--output", "a.csv"], "--output means nothing with FILE"),
        (["perf.csv", "--tolerance", "0"], "--tolerance means nothing with FILE"),
        (["--timings", "a", "--seconds", "1"], "--seconds means nothing with --timings"),
        (["--timings", "a", "--vms", "1"], "--vms means nothing with --timings"),
        (["--timings", "a", "--output", "-"], "--output -: expected a file"),
        (["--timings", "a", "--tolerance", "10"], "expected a number from 0 to 1, found '10'"),
        (["--misses", "-1", "--seconds", "1"], "expected a number >= 0, found '-1'"),
        (["--misses", "nan", "--seconds", "1"], "expected a number >= 0, found 'nan'"),
        (["--misses", "1", "--seconds", "0"], "expected a number > 0, found '0'"),
        (["perf.csv", "--vms", "0"], "expected a whole number >= 1, found '0'"),
        (["perf.csv", "--vms", "1.5"], "expected a whole number >= 1, found '1.5'"),
        (["a", "b"], "unrecognized arguments: b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_that_make_no_sense_are_wrong_usage(call, arguments: list[str], error: str):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert error in err.splitlines()[-1]


def test_a_file_that_is_not_there_is_a_failure(call):
    assert call("no.csv") == (1, "", "no.csv: cannot be read: No such file or directory\n")
    assert call("--timings", "no.csv") == (
        1,
        "",
        "no.csv: cannot be read: No such file or directory\n",
    )


def test_the_help_has_examples(call):
    code, out, _ = call("--help")
    assert code == 0
    assert "hpc-sched characterise perf.csv --vms 4" in out
    assert "hpc-sched characterise --timings runs.csv --output index.csv" in out


RUNS = """\
application,neighbour,seconds
WRF,,90
WRF,-,80
WRF,-,81
EP,-,50
LU,-,70
WRF,EP,81
EP,WRF,51
WRF,LU,100
LU,WRF,73
EP,EP,50
"""
TABLE = """\
performance beside a neighbour on the same host, 1.00 = alone
application    EP     LU    WRF
EP           1.00      -   0.98
LU              -      -   0.96*
WRF          1.00   0.81*     -
* kept apart at a tolerance of 0.1: LU + WRF
"""


def test_timings_give_a_table_that_marks_the_pairs_kept_apart(call):
    Path("runs.csv").write_text(RUNS)
    assert call("--timings", "runs.csv") == (0, TABLE, "")
    assert call("--timings", "-", stdin=RUNS) == (0, TABLE, "")


def test_pairs_that_gain_are_marked_too(call):
    runs = "LU.C,-,220\nChaNGa,-,100\nLU.C,ChaNGa,100\nChaNGa,LU.C,101\n"
    _, out, _ = call("--timings", "-", stdin=runs)
    assert out.splitlines()[2:] == [
        "ChaNGa            -   0.99+",
        "LU.C           2.20+     -",
        "+ placed together where MDOBP chooses, at a tolerance of 0.1: ChaNGa + LU.C",
        "no pair is kept apart at a tolerance of 0.1",
    ]
    # A loss of 1 % counts now.
    _, out, _ = call("--timings", "-", "--tolerance", "0.005", stdin=runs)
    assert out.splitlines()[-1] == "* kept apart at a tolerance of 0.005: ChaNGa + LU.C"
    assert "+ placed" not in out


def test_the_tolerance_decides_which_pairs_are_kept_apart(call):
    _, out, _ = call("--timings", "-", "--tolerance", "0.2", stdin=RUNS)
    assert "*" not in out
    assert out.splitlines()[-1] == "no pair is kept apart at a tolerance of 0.2"
    _, out, _ = call("--timings", "-", "--tolerance", "0", stdin=RUNS)
    assert out.splitlines()[-1] == "* kept apart at a tolerance of 0: EP + WRF, LU + WRF"


def test_the_index_is_written_and_told_of_on_standard_error(call):
    assert call("--timings", "-", "--output", "index.csv", stdin=RUNS) == (
        0,
        TABLE,
        "index.csv: wrote 3 pairs: 3 new, 0 replaced, 0 kept\n",
    )
    assert Path("index.csv").read_text().splitlines()[1:] == [
        "EP,EP,1,1",
        "EP,WRF,0.980392,1",
        "LU,WRF,0.958904,0.81",
    ]


def test_pairs_measured_again_are_replaced_and_the_others_kept(call):
    Path("index.yaml").write_text("# May\n- [WRF, LU, 0.5, 0.5]\n- [BT, EP, 0.7, 1]\n")
    code, _, err = call("--timings", "-", "--output", "index.yaml", stdin=RUNS)
    assert (code, err) == (0, "index.yaml: wrote 4 pairs: 2 new, 1 replaced, 1 kept\n")
    assert Path("index.yaml").read_text().splitlines()[1:] == [
        '- ["BT", "EP", 0.7, 1]',
        '- ["EP", "EP", 1, 1]',
        '- ["EP", "WRF", 0.980392, 1]',
        '- ["LU", "WRF", 0.958904, 0.81]',
    ]


def test_an_index_that_is_broken_is_not_overwritten(call):
    Path("index.csv").write_text("WRF,LU,0.5\n")
    code, _, err = call("--timings", "-", "--output", "index.csv", stdin=RUNS)
    assert code == 1
    assert err.startswith("index.csv:1: expected 4 columns")
    assert Path("index.csv").read_text() == "WRF,LU,0.5\n"


@pytest.mark.parametrize(
    ("runs", "error"),
    [
        ("", "<stdin>: expected runs beside a neighbour, found none: nothing to compare\n"),
        ("WRF,-,80\n", "<stdin>: expected runs beside a neighbour, found none"),
        ("WRF,LU,80\n", "<stdin>: runs are missing: LU alone, LU beside WRF, WRF alone\n"),
        ("WRF,-,80\nWRF,-,x\n", "<stdin>:2: column 3: expected a number of seconds above 0"),
    ],
    ids=["no runs", "dedicated runs alone", "missing runs", "a word for seconds"],
)
def test_timings_that_tell_of_no_pair_are_refused(call, runs: str, error: str):
    code, out, err = call("--timings", "-", "--output", "index.csv", stdin=runs)
    assert (code, out) == (1, "")
    assert err.startswith(error)
    assert not Path("index.csv").exists()
