"""The benchmark of the choice of hosts: that it runs, and what it says of its numbers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hpc_sched

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are in a checkout only")
sys.path.append(str(BENCHMARKS))

import choice_report  # noqa: E402 - found there
import record_rows  # noqa: E402 - likewise
from choice_report import GROUP, OTHER, Row  # noqa: E402 - likewise
from record_report import Compared, table  # noqa: E402 - likewise

ROOT = {"tree": str(Path(hpc_sched.__file__).resolve().parent.parent)}


def row(**values: object) -> Row:
    return Row(**{"hosts": 10_000, "count": 16, "kind": GROUP, "side": "plugin"} | values)


@pytest.mark.parametrize(
    ("values", "target"),
    [
        ({}, 0.10),
        ({"hosts": 5_000}, 0.15),
        ({"hosts": 5_000, "count": 1}, 1.0),
        ({"hosts": 1_000}, None),
        ({"count": 17}, None),
        ({"kind": OTHER, "count": 1}, 1.05),
        ({"side": "bunch", "count": 256}, 1.15),
        ({"side": "stock"}, None),
        ({"side": "sharing"}, None),
        ({"side": "sharing", "kind": OTHER, "count": 1}, 1.08),
        ({"side": "sharing", "kind": OTHER, "count": 1, "hosts": 5_000}, None),
    ],
    ids=lambda value: (
        " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else ""
    ),
)
def test_each_kind_of_request_has_its_target(values, target):
    found = row(**values).target
    assert found == (None if target is None else pytest.approx(target))


def test_a_ratio_above_its_target_is_missed_and_one_below_is_not():
    late = choice_report.missed([row(ratios=[0.2, 0.3, 0.01]), row(ratios=[0.09])])
    assert late == ["plugin, 10,000 hosts, 16 VMs (group): 0.200 is more than 0.10"]


@pytest.mark.ci
def test_groups_over_time_are_compared_seed_by_seed(tmp_path: Path):
    command = [sys.executable, str(BENCHMARKS / "groups_over_time.py"), "--keep", str(tmp_path)]
    command += ["--fabric", "4x8x8", "--sizes", "powers", "--use", "0.75"]
    command += ["--seeds", "2", "--synthetic", "40"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    titles, *rows = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert titles == "fabric sizes use relative to Hop-Byte, % leaves, % largest pod, % wait, s"
    base, peer = rows[:2]
    assert base.startswith("4x8x8 powers 0.75 least-hops ")
    assert peer.startswith("4x8x8 powers 0.75 kueue-best-fit ")
    assert base.endswith(" +0.00 +-0.00")
    # The runs are kept: the second command reads them.
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (again.stdout, again.stderr) == (found.stdout, "")


def test_a_ratio_that_is_no_number_is_missed():
    assert choice_report.missed([row(ratios=[float("nan")])])


def test_targets_of_which_nothing_has_been_measured_are_named():
    whole = [
        row(count=count, kind=kind, side=side, ratios=[0.01])
        for count, kind, side in [
            (1, OTHER, "plugin"),
            (1, OTHER, "sharing"),
            *[(n, GROUP, side) for n in (1, 16, 64, 256) for side in ("plugin", "bunch")],
        ]
    ]
    stock = row(side="stock", kind="memory", count=0, megabytes=300.0)
    whole += [stock, row(kind="memory", count=0, megabytes=310.0)]
    assert choice_report.unmeasured(whole) == []
    # Stock Nova left out; another size; one side alone.
    whole[6].ratios = []
    whole[2].hosts = 5_000
    assert choice_report.unmeasured(whole[:-2]) == [
        "plugin, 10,000 hosts, 1 VMs (group)",
        "plugin, 10,000 hosts, 64 VMs (group)",
        "plugin, 10,000 hosts, memory",
    ]


def test_too_much_memory_is_missed():
    stock = row(side="stock", kind="memory", count=0, megabytes=300.0)
    ours = row(kind="memory", count=0, megabytes=361.0)
    assert choice_report.missed([stock, ours]) == [
        "plugin, 10,000 hosts: 61 MB more than stock Nova, at most 60 wanted"
    ]


@pytest.mark.parametrize(("count", "ranks"), [(6, (1, 6)), (9, (2, 8)), (25, (8, 18))])
def test_the_interval_of_a_median_is_that_of_the_sign_test(count, ranks):
    assert row(ratios=range(count, 0, -1)).interval == ranks


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_few_turns_have_no_interval(count):
    assert row(ratios=range(count)).interval is None


def test_growth_is_fitted_over_hosts_and_vms():
    rows = [
        row(hosts=h, count=n, seconds=[1e-6 * h * n**0.5]) for h in (1000, 4000) for n in (1, 16)
    ]
    assert choice_report.fit(rows) == ["plugin: CPU time grows with H^1.00 and N^0.50"]


@pytest.mark.nightly("processes", "seven processes that import Nova")
def test_a_small_cloud_is_measured_and_written_as_json(tmp_path):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, BENCHMARKS / "choice.py", "--hosts", "60", "--counts", "1", "3"]
    turns = ["--pairs", "1", "--near-pairs", "1", "--json", numbers]
    done = subprocess.run([*command, *turns], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(numbers.read_text())
    sides = [(found["count"], found["kind"], found["side"]) for found in rows]
    assert sides == [
        *((1, OTHER, side) for side in ("stock", "plugin", "sharing")),
        *((n, GROUP, side) for n in (1, 3) for side in ("stock", "plugin", "bunch", "sharing")),
        *((0, "memory", side) for side in ("stock", "plugin", "bunch", "sharing")),
    ]  # fmt: skip
    queries = {(found["kind"], found["side"]): found["queries"] for found in rows if found["count"]}
    # Two for its members, two for the VMs that it claims, one for those of other requests.
    assert queries[GROUP, "plugin"] == 5
    assert queries[OTHER, "plugin"] == queries[GROUP, "stock"] == 0
    assert "peak memory" in done.stdout


def test_a_row_of_the_record_has_the_median_of_its_pairs():
    compared = Compared("plan", "ms")
    for this, other in [(0.002, 0.02), (0.003, 0.02), (0.001, 0.02)]:
        compared.this.append({"took": this, "number": 4, "megabytes": 1.0})
        compared.other.append({"took": other, "number": 4, "megabytes": 9.0})
    head, line = table([compared]).splitlines()
    assert head.split() == ["row", "this", "other", "ratio", "95", "%", "per", "s", "MB"]
    # Three pairs cannot tell where the true ratio is.
    assert line.split() == ["plan", "2.00", "ms", "20.00", "ms", "0.100", "2,000", "1"]
    compared.this *= 2
    compared.other *= 2
    assert "0.050-0.150" in table([compared])


@pytest.mark.parametrize("group", sorted(set(record_rows.GROUPS) - {"shared"}))
def test_each_row_of_the_record_can_be_measured_with_any_checkout(group, tmp_path):
    trace = tmp_path / record_rows.METACENTRUM
    trace.write_text("1 0 0 60 4 -1 -1 4 60 -1 1 1 -1 -1 1 -1 -1 -1\n")
    (tmp_path / record_rows.KTH).write_text(trace.read_text())
    small = {"hosts": 40, "jobs": 1, "count": 3}
    for row in record_rows.rows_of([group], tmp_path, jobs=1):
        assert row.trace is None or row.trace.exists()
        task = {name: small.get(name, value) for name, value in row.task.items()}
        done = subprocess.run(
            [sys.executable, BENCHMARKS / "record_worker.py", json.dumps({**ROOT, **task})],
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout)["took"] > 0


def test_the_cost_of_the_network_is_a_row_for_each_level_of_detail():
    found = subprocess.run(
        [sys.executable, BENCHMARKS / "network.py", "--jobs", "30", "--steps", "10"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[:4] for line in found.stdout.splitlines()[1:]] == [
        ["drawn", "exact-plan", "none", "30"],
        ["drawn", "exact-plan", "links", "30"],
        ["drawn", "exact-plan", "steps", "10"],
    ]
