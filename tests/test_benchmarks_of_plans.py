"""The benchmarks of the planner: what they measure, and what they say of their numbers."""

import json
import os
import random
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = [
    pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are in a checkout only"),
    pytest.mark.ci,
]
sys.path.append(str(BENCHMARKS))

import churn_report  # noqa: E402 - found there
import plan_shapes  # noqa: E402 - likewise
from churn_workload import MEAN_SIZES, SIZES  # noqa: E402 - likewise
from plan_measure import GAVE_UP, NO_MEMORY, Limits, measured  # noqa: E402 - likewise


def ran(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a benchmark on the checkout that these tests are of."""
    return subprocess.run(
        [sys.executable, BENCHMARKS / script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("fabric", "depth", "leaves", "pod_is_below_the_root"),
    [
        ("three", 3, 50, True),
        ("one-leaf", 1, 1, False),
        ("single-flat", 2, 1000, False),
        ("single-pods", 3, 1000, True),
        ("five", 5, 50, True),
        ("two", 2, 50, False),
    ],
)
def test_a_fabric_has_its_levels_and_leaves(fabric, depth, leaves, pod_is_below_the_root):
    topology = plan_shapes.fabric_of(1000, fabric)
    assert (topology.depth, len(topology.leaves)) == (depth, leaves)
    assert len(topology.hosts) == 1000
    assert (plan_shapes.require_pod(topology) is not None) == pod_is_below_the_root


def test_the_same_seed_gives_the_same_room_and_members_take_some_of_it():
    topology = plan_shapes.fabric_of(400)
    shape = plan_shapes.Shape(400, "three", "1-1000", "tenth", 8)
    scene = plan_shapes.scene_of(topology, shape, 1)
    assert scene == plan_shapes.scene_of(topology, shape, 1)
    assert scene != plan_shapes.scene_of(topology, shape, 2)
    assert len(scene.member_leaves) == len(scene.members) == 2
    drawn = plan_shapes.free_on(topology, "1-1000", 1)
    assert {host: drawn[host] - scene.capacity[host] for host in drawn} == {
        host: scene.members.get(host, 0) for host in drawn
    }


@pytest.mark.parametrize(
    ("members", "new", "expected"),
    [(0, 200, [198, 190, 100]), (3, 10, [12, 8]), (3, 1, [3]), (0, 1, []), (3, 0, [])],
)
def test_bounds_exclude_the_plan_without_them_and_leave_the_members_their_leaves(
    members, new, expected
):
    found = plan_shapes.bounds(plan_shapes.WISHES, members, new)
    assert [bound["max_leaves"] for _, bound in found] == expected


def test_small_fabrics_are_planned_and_written_as_json(tmp_path):
    numbers = tmp_path / "numbers.json"
    size = ("--hosts", 60, "--count", 30, "--free", "0-4", "--members", "tenth", "--runs", 2)
    done = ran("plan.py", *size, "--json", numbers, "--limit-mb", 200)
    assert done.returncode == 0, done.stderr
    rows = json.loads(numbers.read_text())["rows"]
    assert len(done.stdout.splitlines()) == len(rows) + 1
    assert {row["fabric"] for row in rows} == set(plan_shapes.FABRICS)
    assert {row["answer"] for row in rows} == {"planned", "refused"}
    assert all(len(row["solve_ms"]) == len(row["plan_ms"]) == 2 for row in rows)
    assert all(row["peak_mb"] > 0 for row in rows)
    bound = [row for row in rows if row["max_leaves"] and row["answer"] == "planned"]
    assert bound
    assert all(row["leaves"] <= row["max_leaves"] for row in bound)
    tables = ran("plan_tables.py", numbers)
    assert tables.returncode == 0, tables.stderr
    assert "30 VMs:" in tables.stdout
    assert f"Not proven: 0 of {len(bound)} plans" in tables.stdout


def test_prices_of_a_leaf_are_tried_until_one_proves_the_plan():
    """At the third one, after 37 million sums, the best plan is on all leaves that it may have."""
    topology = plan_shapes.fabric_of(10_000, "five")
    shape = plan_shapes.Shape(10_000, "five", "0-64", "tenth", 4096)
    scene = plan_shapes.scene_of(topology, shape, 3)
    answer = replace(scene, constraints={"max_leaves": 54}).solve()
    assert answer.is_proven


@pytest.mark.parametrize("limit", ["--limit-ms", "--limit-mb"])
def test_a_row_above_a_limit_is_named_and_exits_with_1(limit):
    shape = ("--hosts", 60, "--fabric", "two", "--free", 1, "--members", "none", "--wish", "none")
    done = ran("plan.py", *shape, "--count", 30, "--runs", 1, limit, 0.0001)
    assert done.returncode == 1
    [row] = done.stdout.splitlines()[1:]
    assert f"more than 0.0001 {limit[-2:].upper()}: {row}".lower() in done.stderr.lower()


class TooMuch(plan_shapes.Scene):
    """A scene that no run ends."""

    def solve(self):
        if self.count == 1:
            raise MemoryError
        while True:
            pass


@pytest.mark.parametrize(("count", "answer"), [(1, NO_MEMORY), (2, GAVE_UP)])
def test_a_shape_that_takes_too_much_is_given_up(count, answer):
    topology = plan_shapes.fabric_of(60)
    scene = TooMuch(topology, dict.fromkeys(topology.hosts, 1), {}, count)
    row = measured(scene, 1, Limits(seconds=0.05, gigabytes=8.0))
    assert (row.answer, row.solve_ms, row.leaves, row.peak_mb) == (answer, [], None, None)


@pytest.mark.parametrize("sizes", SIZES)
def test_groups_have_the_mean_size_that_their_load_is_reckoned_with(sizes):
    draw = random.Random(1)
    drawn = [SIZES[sizes](draw) for _ in range(50_000)]
    assert min(drawn) == 2
    assert statistics.fmean(drawn) == pytest.approx(MEAN_SIZES[sizes], rel=0.03)


@pytest.mark.parametrize(("degrees", "t"), [(1, 12.706), (2, 4.303), (9, 2.262), (29, 2.045)])
def test_the_interval_of_a_mean_is_that_of_students_t(degrees, t):
    assert churn_report.student_t(degrees) == pytest.approx(t, abs=5e-4)


def test_a_difference_is_significant_if_0_is_outside_its_interval():
    def compared(*this):
        return churn_report.Comparison("uniform", "0.9", "Hop-Byte", 0.9, list(this), [100.0] * 3)

    assert compared(98.0, 99.0, 97.0).interval == pytest.approx((-4.4841, 0.4841), abs=1e-3)
    assert not compared(98.0, 99.0, 97.0).is_significant
    assert compared(97.9, 98.0, 98.1).is_significant
    one_seed = churn_report.Comparison("uniform", "0.9", "Hop-Byte", 0.9, [50.0], [100.0])
    assert not one_seed.is_significant


def test_sides_that_start_other_groups_are_not_compared():
    same = {"hop_bytes": 1.0, "normalised": 1.0, "occupied": 0.5}
    with pytest.raises(RuntimeError, match="uniform, saturated"):
        churn_report.compared(
            "uniform", "saturated", [({"sequence": "a"} | same, {"sequence": "b"} | same)]
        )


@pytest.mark.parametrize("salt", ["", "other"])
def test_the_same_planner_differs_from_itself_under_another_salt_alone(tmp_path, salt):
    numbers = tmp_path / "numbers.json"
    length = ("--seeds", 2, "--warm-up", 1.1, "--groups", 10)
    workload = ("--sizes", "uniform", "--load", "saturated")
    done = ran("churn.py", *workload, *length, "--against-salt", salt, "--json", numbers)
    assert done.returncode == 0, done.stderr
    rows = json.loads(numbers.read_text())["rows"]
    assert [row["measure"] for row in rows] == ["Hop-Byte", "normalised"]
    assert all((row["this"] != row["other"]) == bool(salt) for row in rows)
    assert all(row["occupied"] > 0.9 for row in rows)
    assert len(done.stdout.splitlines()) == 3


def test_the_gap_of_plans_for_patterns_has_a_row_for_each_pattern():
    made = ran("pattern_gap.py", "--trees", 18)
    assert made.returncode == 0, made.stderr
    heading, *rows = made.stdout.splitlines()
    assert heading.split() == [
        "pattern",
        "trees",
        "hops",
        "plan",
        "search",
        "highest",
        "above",
        "CPU",
        "ms",
    ]
    assert [row.split()[:2] for row in rows[-2:]] == [["ring", "2"], ["all", "18"]]
    assert len(rows) == 10
    for row in rows:
        _, _, by_hops, by_search, highest, *_ = row.split()
        assert 1 <= float(by_search) <= min(float(by_hops), float(highest))
