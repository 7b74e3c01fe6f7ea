"""hpc-sched fits where Nova's filters count VMs: the fabric is that of :mod:`tests.snapshots`."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from hpc_sched.snapshot.snapshot_model import Aggregate
from tests.snapshots import HOSTS, flavor, saved, server

ONE = flavor("one", 1)
LIMITS = {"max_io_ops_per_host": 2, "max_instances_per_host": 3}
IO_OPS = "IoOpsFilter ([filter_scheduler] max_io_ops_per_host)"


@pytest.fixture
def fits(tmp_path: Path, capsys: Any):
    """Run a command on a cloud; return its exit code, JSON and standard error."""

    def run(*arguments: str, servers: Any = (), **fields: Any) -> tuple[int, Any, str]:
        fields = {"options": LIMITS} | fields
        path = saved(tmp_path, servers, flavors=[ONE], **fields)
        asked = ["fits", "--snapshot", path, "--flavor", "one", *arguments, "-f", "json"]
        code = main.main(asked)
        said = capsys.readouterr()
        return code, json.loads(said.out or "[]"), said.err

    return run


def test_the_limit_of_a_filter_bounds_every_host(fits):
    code, rows, _ = fits("--count", "8", "--level", "leaf", filters=("IoOpsFilter",))
    assert code == 0
    assert [row["Hosts"] for row in rows] == ["n[05-08]: 2 each"]
    code, _, why = fits("--count", "9", "--level", "leaf", filters=("IoOpsFilter",))
    assert code == 3
    assert "largest gang that fits under one leaf: 8 on leaf02 " in why
    assert why.endswith(f"; {IO_OPS} runs out first\n")


def test_the_largest_groups_are_those_that_filters_pass(fits):
    _, rows, _ = fits(filters=("NumInstancesFilter",))
    assert [row["VMs"] for row in rows] == [12, 24, 48]


def test_vms_on_a_host_count_and_of_operations_those_that_show(fits):
    there = [server("job", "n01", ONE), server("new", "n02", ONE, status="BUILD")]
    count = ("--count", "7", "--level", "leaf", "--drain", "n[05-16]")
    code, rows, _ = fits(*count, servers=there, filters=("IoOpsFilter",))
    assert [row["Hosts"] for row in rows] == ["n[01,03-04]: 2 each, n02: 1"]
    assert code == 0
    code, _, why = fits("--count", "8", *count[2:], servers=there, filters=("IoOpsFilter",))
    assert code == 3
    assert "under one leaf: 7" in why
    _, _, why = fits("--count", "11", *count[2:], servers=there, filters=("NumInstancesFilter",))
    assert "under one leaf: 10" in why


def test_aggregates_override_a_limit_by_their_least_one(fits):
    aggregates = [
        Aggregate("slow", HOSTS[:4], {"max_io_ops_per_host": "1"}),
        Aggregate("fast", HOSTS[:8], {"max_io_ops_per_host": "4"}),
        Aggregate("wrong", HOSTS[8:9], {"max_io_ops_per_host": "many"}),
    ]
    _, rows, _ = fits(aggregates=aggregates, filters=("AggregateIoOpsFilter",))
    assert [row["VMs"] for row in rows] == [16, 20, 36]
    _, rows, _ = fits(aggregates=aggregates, filters=("IoOpsFilter",))
    assert [row["VMs"] for row in rows] == [8, 16, 32]


def test_hard_affinity_beyond_the_limit_names_it(fits):
    affinity = ("--policy", "affinity", "--count")
    _, _, why = fits(*affinity, "12", filters=("IoOpsFilter",), options={"max_io_ops_per_host": 8})
    assert f"largest gang that fits on one host: 8; {IO_OPS} runs out first" in why


def test_filters_whose_limit_is_not_known_are_named(fits):
    options = {"counting_filters": ["SiteFilter"]}
    enabled = ("IoOpsFilter", "SiteFilter", "JsonFilter", "ComputeFilter")
    _, rows, why = fits(options=options, filters=enabled)
    assert "how many VMs IoOpsFilter, SiteFilter let a host take is not known" in why
    assert [row["VMs"] for row in rows] == [64, 128, 256]
    _, _, why = fits(filters=("IoOpsFilter", "ComputeFilter"))
    assert "not known" not in why
