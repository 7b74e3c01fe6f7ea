"""hpc-sched experiment traces: the exact plan against peers on whole queues of jobs."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_sched.experiments.traces import trace_table
from hpc_sched.experiments.traces.trace_study import PEERS, PLAN, TraceStudy
from hpc_sched.sim.results import Summary
from hpc_sched.sim.scenario import Run, Scenario
from tests import sim_results

QUICK = ("--jobs", "40", "--hosts", "64", "--runs", "2")


def summaries(_scenario: Scenario, runs: Sequence[Run]) -> Mapping[Run, Summary]:
    """Return made-up summaries: the plan has factors of 1.1 and 1.3, peers of 1.5 and 1.9."""
    found = {}
    for run in runs:
        is_plan = run.policy == PLAN
        known = {
            "goodput": 0.8 if is_plan else 0.7,
            "factor_mean": (0.9 if is_plan else 1.1) + (0.2 if is_plan else 0.4) * run.seed,
            "lost": 0.02 if is_plan else 0.05 + 0.01 * run.seed,
            "wait_mean": 100.0,
            "done": 40,
        }
        found[run] = replace(sim_results.empty(run.policy, seed=run.seed).summary, **known)
    return found


def test_a_row_is_the_plan_less_a_peer_seed_by_seed():
    study = TraceStudy(runs=2, ratios=(4.0,), shares=(0.3,))
    rows = trace_table.rows(study, summaries, lambda _: None)
    assert [row.peer for row in rows] == list(PEERS)
    row = rows[0]
    assert row.goodput.mean == pytest.approx(10.0)
    # -0.4 and -0.6 of a mean of 1.7.
    assert row.runtime.mean == pytest.approx(-50 / 1.7)
    assert row.lost.mean == pytest.approx(-4.5)
    assert row.wait.mean == 0.0


def test_notes_count_the_comparisons_whose_intervals_exclude_0():
    study = TraceStudy(runs=10, ratios=(4.0,), shares=(0.3,))
    table = trace_table.table(study, trace_table.rows(study, summaries, lambda _: None))
    count = len(PEERS)
    assert f"has more goodput in {count}, the peer in 0" in table.notes[1]
    assert f"has shorter runtimes in {count}, the peer in 0" in table.notes[2]


def test_all_policies_of_a_seed_have_the_same_jobs():
    study = TraceStudy(jobs=20)
    first, second = (study.scenario(ratio, 0.3).source.jobs(3) for ratio in (1.0, 8.0))
    assert list(first) == list(second)
    runs = list(study.policies())
    assert {run.seed for run in runs} == set(range(1, 11))
    assert len(runs) == 10 * (1 + len(PEERS))


def test_the_command_prints_a_row_for_each_setting_and_peer(run_experiment):
    arguments = (*QUICK, "--oversubscription", "8", "1", "--communication", "0.3", "-f", "csv")
    code, out, err = run_experiment("traces", *arguments)
    assert (code, err.splitlines()[0]) == (0, "traces: leaves at 1:1, 30 % communication")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["policy"]]
    assert [(row["oversubscription"], row["policy"]) for row in rows] == [
        (ratio, peer) for ratio in ("1.0", "8.0") for peer in PEERS
    ]
    # At 1:1 no placement changes a runtime, but of doubling between ranks that are no power of two.
    assert all(
        abs(float(row["runtime, %"])) < 0.5 for row in rows if row["oversubscription"] == "1.0"
    )


def test_a_trace_has_its_own_jobs(run_experiment):
    lines = [
        f"{n} {n * 10} 0 50 {2 * n} -1 -1 {2 * n} 60 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 9)
    ]
    Path("jobs.swf").write_text("\n".join(lines) + "\n")
    of_a_trace = ("--trace", "jobs.swf", "--runs", "1", "--hosts", "64", "--jobs", "6")
    setting = ("--oversubscription", "4", "--communication", "0.5")
    code, out, _ = run_experiment("traces", *of_a_trace, *setting)
    assert code == 0
    assert "the first 6 of the trace" in out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--hosts", "100"), "--hosts: expected a multiple of 64"),
        (("--jobs", "9"), "--jobs: expected at least 10 drawn jobs"),
        (("--oversubscription", "0.5"), "expected a number >= 1"),
        (("--communication", "1.5"), "expected a number above 0, at most 1"),
    ],
)
def test_arguments_that_make_no_sense_are_wrong_usage(
    run_experiment, arguments: Sequence[str], error: str
):
    code, _, err = run_experiment("traces", *arguments)
    assert code == 2
    assert error in err


def test_a_trace_of_which_no_job_fits_is_a_failure_that_names_the_run(run_experiment):
    Path("jobs.swf").write_text("1 0 0 50 65 -1 -1 65 60 -1 1 1 1 1 1 1 -1 -1\n")
    of_a_trace = ("--trace", "jobs.swf", "--runs", "1", "--hosts", "64")
    setting = ("--oversubscription", "4", "--communication", "0.5")
    code, out, err = run_experiment("traces", *of_a_trace, *setting)
    assert (code, out) == (1, "")
    assert "exact-plan, seed 1: none of 1 measured job is done, 1 refused: expected jobs" in err


def test_a_trace_that_cannot_be_read_is_a_failure(run_experiment):
    code, _, err = run_experiment("traces", "--trace", "missing.swf", "--runs", "1")
    assert code == 1
    assert "missing.swf" in err
