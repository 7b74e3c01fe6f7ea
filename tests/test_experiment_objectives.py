"""hpc-sched experiment objectives: standard output, standard error, exit code and files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_sched.experiments.objectives import isolated_table, mix_table
from hpc_sched.experiments.objectives.fabrics import BOTTLENECK, HOPS, ISOLATED, STATED, UNBOUNDED
from hpc_sched.experiments.objectives.isolated_table import IsolatedStudy
from hpc_sched.experiments.objectives.mix_study import ALL, MixStudy
from hpc_sched.sim.measured.job_kinds import PATTERN, KindMeasures
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, Scenario
from tests import sim_results

JOB = ("--part", "job", "--runs", "1", "--pods", "1", "--neighbours", "packed")
MIXES = ("--part", "mixes", "--runs", "1", "--pods", "2", "--jobs", "20")


def results(scenario: Scenario, runs: Sequence[Run]) -> Mapping[Run, Result]:
    """Return made-up results: factors are 1 by hops, 1.5 within a bound, 2 without one."""
    found = {}
    for run in runs:
        factor = {HOPS.policy: 1.0, ISOLATED.policy: 1.0}.get(run.policy, 1.5)
        if scenario.tradeoff is None:
            factor = 2.0
        lost = 0.0 if run.policy == ISOLATED.policy else factor / 100
        kind = KindMeasures(PATTERN, "halo3", 9, 9, 0.1 * factor, 5.0, 1.0, factor**2, lost, lost)
        empty = sim_results.empty(run.policy, seed=run.seed)
        summary = replace(
            empty.summary,
            done=40,
            factor_mean=factor,
            goodput=0.9 / factor,
            lost=lost,
            wait_mean=100.0 * factor,
            vcpu_use=0.95,
        )
        found[run] = replace(empty, summary=summary, kinds=[kind])
    return found


def test_a_row_is_an_objective_against_hops_for_all_jobs_and_for_each_pattern():
    study = MixStudy(runs=2, pod_ratios=(1.0,))
    rows = mix_table.rows(study, results, lambda _: None)
    assert [(row.objective, row.pattern) for row in rows] == [
        (objective.name, pattern)
        for objective in (BOTTLENECK, STATED, UNBOUNDED, ISOLATED)
        for pattern in (ALL, "halo3")
    ]
    every, halo = rows[0], rows[1]
    assert every.runtime.mean == pytest.approx(1.5)
    assert every.goodput.mean == pytest.approx(-30.0)
    assert every.lost.mean == pytest.approx(0.5)
    assert every.wait is not None
    assert every.wait.mean == pytest.approx(50.0)
    assert halo.runtime.mean == pytest.approx(2.25)
    assert halo.wait is None


def test_notes_count_the_settings_whose_intervals_exclude_no_difference():
    study = MixStudy(runs=10, leaf_ratios=(4.0, 8.0), mixes=("halo3",))
    table = mix_table.table(study, mix_table.rows(study, results, lambda _: None))
    assert {row[4] for row in table.rows} == {"only halo3"}
    assert (
        "bottleneck: runtimes of all jobs are shorter than by hops in 0 of 4 settings and longer "
        "in 4; goodput is more in 0 and less in 4;"
    ) in table.notes[1]


def test_a_queue_discipline_is_a_row_for_hops_and_one_for_isolated_jobs():
    study = IsolatedStudy(runs=10, queues=("easy", "fcfs"))
    table = isolated_table.table(study, isolated_table.rows(study, results, lambda _: None))
    assert [row[:3] for row in table.rows] == [
        ("easy", "hops", 95.0),
        ("easy", "isolated", 95.0),
        ("fcfs", "hops", 95.0),
        ("fcfs", "isolated", 95.0),
    ]
    assert "the most that jobs lose in any run is 0 %" in table.notes[1]
    assert table.notes[1].endswith("Use is at least 90 % with the queues easy, fcfs.")


def test_all_objectives_of_a_seed_have_the_same_jobs():
    study = MixStudy(jobs=20)
    first, *_, last = study.settings()
    assert list(study.scenario(first).source.jobs(3)) == list(study.scenario(last).source.jobs(3))


def test_the_command_prints_a_row_for_each_case_and_draws_it(run_experiment):
    arguments = (*JOB, "--ranks", "32", "--picture", "a.svg", "-f", "csv")
    code, out, err = run_experiment("objectives", *arguments)
    assert (code, err) == (0, "objectives: 16 leaves, seed 1\n")
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["pattern"]]
    assert {row["objective"] for row in rows} >= {"bottleneck", "bottleneck, unbounded"}
    assert {row["± runtime"] for row in rows} == {""}  # of one run
    assert Path("a.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg" ')
    assert run_experiment("objectives", *arguments)[1] == out


def test_the_command_prints_a_row_for_each_mix(run_experiment):
    arguments = ("--mix", "halo3", "--objective", "bottleneck", "--sizes", "choice:16:32")
    code, out, err = run_experiment("objectives", *MIXES, *arguments)
    assert (code, err) == (
        0,
        "objectives: 16 leaves at 8:1, pods at 2:1, use 90 %, patterns halo3\n",
    )
    assert "only halo3  bottleneck" in out
    assert "choice:16:32" in out


def test_isolated_jobs_lose_nothing_by_each_other(run_experiment):
    arguments = ("--mix", "alltoall", "--objective", "isolated", "-f", "csv", "--use", "1.5")
    code, out, _ = run_experiment("objectives", *MIXES, *arguments)
    (row,) = [row for row in csv.DictReader(io.StringIO(out)) if row["pattern"]]
    assert code == 0
    assert float(row["lost, points"]) <= 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--leaves", "32"), "invalid choice: 32"),
        (("--pods", "0.5"), "expected a number >= 1"),
        (("--ranks", "0"), "expected a whole number from 1 to 1024"),
        (("--mix", "tree"), "invalid choice: 'tree'"),
        (("--sizes", "choice"), "expected choice:NUMBER"),
        (("--jobs", "9"), "--jobs: expected at least 10 drawn jobs"),
        (("--picture", "a.png"), "--picture a.png: expected a name that ends in .svg"),
        (("--part", "mixes", "--picture", "a.svg"), "--picture draws the table of --part job"),
    ],
)
def test_arguments_that_make_no_sense_are_wrong_usage(
    run_experiment, arguments: Sequence[str], error: str
):
    code, out, err = run_experiment("objectives", *arguments)
    assert (code, out) == (2, "")
    assert error in err.splitlines()[-1]


def test_a_picture_that_cannot_be_written_is_a_failure_before_the_runs(run_experiment):
    code, out, err = run_experiment("objectives", *JOB, "--picture", "missing/a.svg")
    assert (code, out) == (1, "")
    assert err == "missing/a.svg: cannot be written: expected a file in a folder that exists\n"


def test_a_job_that_does_not_fit_is_a_failure(run_experiment):
    code, out, err = run_experiment("objectives", *JOB, "--ranks", "250")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("250 ranks, but ")
