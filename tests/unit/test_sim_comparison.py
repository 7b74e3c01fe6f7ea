"""What is said of policies by their runs: means, intervals, differences, the best."""

import json
import math
import random
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpc_sched.sim.results import Result, Summary
from hpc_sched.sim.statistics.columns import COLUMNS, MORE, Scope, plus_minus
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.sim.statistics.policy_comparison import Evidence, compare
from hpc_sched.sim.statistics.sentences import about_marks
from tests.sim_results import empty

NOT_MEASURES = {"policy", "seed", "drawn", "jobs", "wait_limit"}


def run(policy: str, seed: int = 1, **known) -> Result:
    """Return a run that has done ten jobs."""
    known = {"drawn": True, "jobs": 10, "done": 10} | known
    return empty(policy, seed=seed, **known)


def seeds(policy: str, waits, **known) -> list[Result]:
    """Return a run for each wait, with the seeds from 1 on."""
    return [run(policy, seed, wait_mean=wait, **known) for seed, wait in enumerate(waits, 1)]


def drawn_waits(shift: float, spread: float, count: int = 10) -> list[float]:
    """Return waits that differ much from seed to seed, and by the shift from policy to policy."""
    dice = random.Random(f"{shift} {spread}")
    of_seeds = random.Random("seeds")
    return [
        of_seeds.uniform(100, 900) + shift + dice.uniform(-spread, spread) for _ in range(count)
    ]


def best(results, field: str = "wait_mean") -> set[str]:
    return set(compare(results).best[field])


def test_every_measure_of_a_run_is_a_column_once():
    named = [column.field for column in COLUMNS]
    assert len(set(named)) == len(named)
    assert {field.name for field in fields(Summary)} - NOT_MEASURES == set(named)


def test_an_interval_is_that_of_scipy():
    values = drawn_waits(0, 50)
    found = compare(seeds("a", values)).policies[0].means["wait_mean"]
    low, high = stats.t.interval(0.95, 9, np.mean(values), stats.sem(values))
    assert found.mean - found.half_width == pytest.approx(low)
    assert found.mean + found.half_width == pytest.approx(high)
    assert (found.least, found.most, found.seeds) == (min(values), max(values), 10)


def test_an_interval_covers_the_true_mean_as_often_as_it_says():
    dice = random.Random(1)
    covered = 0
    for _ in range(2000):
        found = Estimate.of([dice.gauss(5, 2) for _ in range(10)], is_drawn=True)
        covered += abs(found.mean - 5) <= found.half_width
    assert 0.935 < covered / 2000 < 0.965


def test_policies_are_compared_seed_by_seed():
    """Waits are hundreds of seconds apart from seed to seed, and 20 from policy to policy."""
    slow, fast = drawn_waits(20, 5), drawn_waits(0, 5)
    found = compare([*seeds("slow", slow), *seeds("fast", fast)])
    means = [policy.means["wait_mean"] for policy in found.policies]
    assert means[0].mean - means[0].half_width < means[1].mean, "the intervals overlap"
    apart = found.policies[1].differences["wait_mean"]
    low, high = stats.ttest_rel(fast, slow).confidence_interval(0.95)
    assert apart.mean == pytest.approx(np.mean(fast) - np.mean(slow))
    assert apart.mean - apart.half_width == pytest.approx(low)
    assert apart.mean + apart.half_width == pytest.approx(high)
    assert high < 0
    assert found.best["wait_mean"] == {"fast"}
    percent, half = found.percent(found.policies[1], "wait_mean")
    assert percent == pytest.approx(100 * apart.mean / np.mean(slow))
    assert half == pytest.approx(100 * apart.half_width / np.mean(slow))


def test_what_is_not_separated_is_not_best():
    results = [*seeds("a", drawn_waits(0, 50)), *seeds("b", drawn_waits(1, 50))]
    assert compare(results).evidence is Evidence.INTERVALS
    assert best(results) == set()


def test_the_best_is_better_than_every_other_policy():
    first, second, last = drawn_waits(0, 1), drawn_waits(20, 1), drawn_waits(40, 1)
    three = [*seeds("b", second), *seeds("c", last), *seeds("a", first)]
    assert best(three) == {"a"}
    # Not separated from one of them: none is the best, although c is worse than both.
    near = drawn_waits(0.1, 1)
    assert best([*seeds("c", last), *seeds("a", first), *seeds("near", near)]) == set()
    # One that equals it with every seed shares its place.
    assert best([*three, *seeds("same", first)]) == {"a", "same"}
    assert best([*seeds("a", first), *seeds("same", first)]) == set()


def test_the_order_of_policies_and_seeds_changes_no_best():
    results = [*seeds("a", drawn_waits(0, 1)), *seeds("b", drawn_waits(9, 1))]
    for _ in range(5):
        random.Random(3).shuffle(results)
        assert best(results) == {"a"}


@pytest.mark.parametrize("count", [1, 2, 9])
def test_with_fewer_than_ten_seeds_nothing_is_best_and_there_is_no_interval(count):
    results = [*seeds("a", [1.0] * count), *seeds("b", [900.0] * count)]
    found = compare(results)
    assert found.evidence is (Evidence.ONE_SEED if count == 1 else Evidence.RANGE)
    assert not any(found.best.values())
    assert found.policies[0].means["wait_mean"].half_width is None
    assert found.policies[1].differences["wait_mean"].half_width is None


def test_where_nothing_is_drawn_the_numbers_decide():
    results = [run("a", drawn=False, wait_mean=5.0), run("b", drawn=False, wait_mean=5.001)]
    found = compare(results)
    assert found.evidence is Evidence.EXACT
    assert found.best["wait_mean"] == {"a"}
    # A table in which both read alike marks both, unless that is all of them.
    assert found.marked("wait_mean", "{:.4f}".format) == {"a"}
    assert found.marked("wait_mean", "{:.1f}".format) == set()
    found = compare([*results, run("c", drawn=False, wait_mean=7.0)])
    assert found.marked("wait_mean", "{:.1f}".format) == {"a", "b"}


def test_the_run_of_a_policy_that_draws_nothing_stands_for_every_seed():
    waits = drawn_waits(0, 50)
    results = [run("fixed", drawn=False, wait_mean=40.0), *seeds("drawn", waits)]
    found = compare(results)
    assert found.evidence is Evidence.INTERVALS
    fixed, drawn = found.policies
    assert fixed.means["wait_mean"].half_width == 0
    apart = drawn.differences["wait_mean"]
    assert apart.seeds == 10
    assert apart.half_width == pytest.approx(drawn.means["wait_mean"].half_width)
    assert found.best["wait_mean"] == {"fixed"}
    # Nine draws of the other show nothing, though its own number is known.
    assert best(results[:-1]) == set()


def test_seeds_that_only_one_policy_has_are_in_no_difference():
    waits = drawn_waits(0, 1, 12)
    found = compare([*seeds("a", waits), *seeds("b", [wait + 5 for wait in waits[:10]])])
    assert found.policies[0].means["wait_mean"].seeds == 12
    assert found.policies[1].differences["wait_mean"].seeds == 10
    assert found.best["wait_mean"] == {"a"}
    assert best([*seeds("a", waits), *seeds("b", [wait + 5 for wait in waits[:9]])]) == set()


def test_rounding_is_no_difference():
    tenth = 0.1 + 0.2
    results = [*seeds("a", [0.3] * 10), *seeds("b", [tenth] * 10), *seeds("c", [1.0] * 10)]
    found = compare(results)
    assert found.best["wait_mean"] == {"a", "b"}
    assert found.policies[1].differences["wait_mean"].mean == 0
    noisy = Estimate.of([1.0, 1.0 + 1e-15] * 5, is_drawn=True)
    assert (noisy.mean, noisy.half_width) == (1.0, 0.0)


@given(st.lists(st.floats(0, 1e9), min_size=10, max_size=30))
def test_an_estimate_is_within_least_and_most(values):
    found = Estimate.of(values, is_drawn=True)
    slack = 1e-6 * max(values)
    assert found.least - slack <= found.mean <= found.most + slack
    assert 0 <= found.half_width < math.inf


def decided(**known) -> set[str]:
    """Return the measures with a best policy: two that draw nothing, one better in everything."""
    better = {column.field: 2 if column.better == MORE else 1 for column in COLUMNS}
    worse = {name: 3 - value for name, value in better.items()}
    plain = {"jobs": 10, "done": 9, "refused": 1, "apart": 0, "factor_mean": 1.0}
    plain |= {"killed": 0, "failed": 0, "left": 0, "restarts": 0}
    for name, value in known.items():
        plain.pop(name, None)
        if value is not None:
            better[name], worse[name] = value
    found = compare(
        [
            empty("better", **better | plain),
            empty("worse", **worse | plain),
        ]
    )
    return {name for name, policies in found.best.items() if policies == {"better"}}


ALL_JOBS = {"done", "refused", "killed", "failed", "left"}
USE = {"vcpu_use", "memory_use"} | {
    "revenue",
    "revenue_per_host_hour",
    "revenue_per_host_core_hour",
}
HOURS = {"core_hours", "host_core_hours", "host_hours"}
HOPS = {"hop_byte_ratio", "hops_per_pair"}
# Decided where the jobs are the same; the counts of jobs are equal then.
REST = {column.field for column in COLUMNS} - ALL_JOBS - USE - HOPS
REST -= {"apart", "restarts", "factor_mean"}


def test_with_the_same_jobs_every_measure_is_decided():
    assert decided() == REST | HOPS | USE


def test_more_use_is_no_merit_where_placements_change_runtimes():
    assert decided(factor_mean=(1.0, 1.1)) == REST | HOPS | {"factor_mean"}
    assert decided(factor_mean=(1.1, 1.1)) == REST | HOPS


@pytest.mark.parametrize("name", ["restarts", "killed", "failed", "left"])
def test_more_use_is_no_merit_where_work_is_lost_or_left(name):
    assert not decided(**{name: (1, 1)}) & USE


@pytest.mark.parametrize("name", ["killed", "failed", "left"])
def test_fewer_hours_are_no_merit_where_jobs_are_not_done(name):
    """Their hours count too, and a policy that has done less of them spends less."""
    assert decided(**{name: (1, 1)}) & HOURS == set()
    assert decided(restarts=(1, 1)) & HOURS == HOURS


def test_what_is_about_other_jobs_is_not_compared():
    """Fewer jobs done: those that waited longest may be the ones that are missing."""
    assert decided(done=(9, 8), left=(0, 1)) == {"done", "left"}
    assert decided(apart=(0, 1)) == REST | USE | {"apart"}


def test_runs_with_other_jobs_are_not_compared():
    """The last run of a command that was interrupted has fewer."""
    assert decided(jobs=(10, 7)) == set()


def test_a_policy_that_has_done_nothing_is_no_competitor():
    idle = run("idle", done=0, drawn=False, wait_mean=None)
    results = [
        idle,
        *(run(name, drawn=False, makespan=time) for name, time in (("a", 9), ("b", 8))),
    ]
    assert best(results, "makespan") == {"b"}
    assert best(results, "refused") == set()


def test_a_comparison_is_plain_json():
    results = [*seeds("a", drawn_waits(0, 1)), run("b", drawn=False, hop_byte_ratio=math.inf)]
    found = json.loads(json.dumps(compare(results).as_json(), allow_nan=False))
    assert (found["evidence"], found["baseline"]) == ("intervals", "a")
    assert found["policies"]["a"]["wait_mean"]["difference"] is None
    assert found["policies"]["b"]["hop_byte_ratio"] is None
    assert found["policies"]["b"]["done"]["difference"]["mean"] == 0
    assert compare([]).as_json()["baseline"] is None


@pytest.mark.parametrize(
    ("mean", "half_width", "texts"),
    [
        (1.2541, 0.0123, ("1.254", "0.012")),
        (12345.6, 420.4, ("12,346", "420")),
        (5.0, 5.0, ("5.0", "5.0")),
        (0.0, 0.00099, ("0.00000", "0.00099")),
    ],
)
def test_a_mean_has_the_digits_that_its_interval_leaves(mean, half_width, texts):
    assert plus_minus(mean, half_width) == texts


def said(results: list[Result]) -> str:
    return " ".join(about_marks(compare(results), "*"))


def test_what_is_marked_is_said_and_why():
    one, other = run("a"), run("b")
    assert "One seed: another one changes what is drawn" in said([one, other])
    assert "the runs of a, and may" in said([one, run("b", drawn=False)])
    assert said([one]) == ""
    few = [*seeds("a", [1, 2]), *seeds("b", [1, 2])]
    assert said(few).startswith("2 seeds are too few")
    many = [*seeds("a", [1] * 10), *seeds("b", [2] * 10)]
    assert said(many).startswith("Means over 10 seeds")
    fixed = [run("a", drawn=False), run("b", drawn=False)]
    assert "any seed gives these numbers" in said(fixed)
    assert "more use is no merit" not in said(fixed)
    grown = [replace(each, summary=replace(each.summary, factor_mean=1.5)) for each in fixed]
    assert "more use is no merit" in said(grown)
    fewer = [fixed[0], run("b", drawn=False, done=9)]
    assert "not done equally many jobs" in said(fewer)
    assert compare(fewer).unlike == {
        *(Scope.DONE, Scope.DONE_ON_ONE_ISLAND, Scope.OCCUPIED, Scope.SPENT, Scope.SPAN)
    }
    assert "A run was stopped early" in said([fixed[0], run("b", drawn=False, jobs=5)])
