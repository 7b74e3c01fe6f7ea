"""hpc-sched fits with segments and balance.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod, and a host
takes one VM of the flavor ``full``.
"""

import json

import pytest

from hpc_sched.cli import main
from tests.snapshots import flavor, group, saved, server

FULL = flavor("full", 16)


@pytest.fixture
def fits(tmp_path, capsys):
    snapshot = saved(tmp_path, flavors=[flavor(), FULL])

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.main(["fits", "--snapshot", snapshot, "--flavor", "full", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def below_leaves(out: str) -> list[int]:
    """Return the VMs of each leaf that a plan uses."""
    found: dict[str, int] = {}
    for row in json.loads(out):
        found[row["Leaf"]] = found.get(row["Leaf"], 0) + row["VMs"]
    return sorted(found.values())


@pytest.mark.parametrize(
    ("arguments", "vms"),
    [
        ((), [2, 4]),
        (("--segment", "3"), [3, 3]),
        (("--segment", "prefer:3"), [3, 3]),
        # Five do not fit below a leaf of four.
        (("--segment", "prefer:5"), [2, 4]),
        (("--balance", "true"), [3, 3]),
        (("--segment", "2", "--balance", "true"), [2, 4]),
        (("--segment", "3", "--segment-level", "pod"), [2, 4]),
    ],
)
def test_a_plan_is_in_the_stated_parts(fits, arguments, vms):
    code, out, _ = fits("--count", "6", *arguments, "-f", "json")
    assert (code, below_leaves(out)) == (0, vms)


def test_parts_that_fit_below_no_leaf_are_refused_with_what_is_needed(fits):
    code, out, err = fits("--count", "10", "--segment", "5")
    assert (code, err) == (3, "")
    assert out.startswith(
        "group of 10 needs parts of 5 under one leaf switch each: largest gang that fits: 4 on "
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--segment", "0"), "'0': expected N or prefer:N, N a whole number from 1 to 4096"),
        (("--segment", "prefer:"), "'prefer:': expected N or prefer:N"),
        (("--balance", "yes"), "'yes': expected one of true, prefer, false"),
    ],
)
def test_a_value_that_is_none_is_wrong_usage(fits, arguments, error):
    code, out, err = fits("--count", "6", *arguments)
    assert (code, out) == (2, "")
    assert error in err


def test_a_level_that_the_fabric_lacks_is_named(fits):
    code, out, _ = fits("--count", "6", "--segment", "3", "--segment-level", "rack")
    assert code == 3
    assert "hpc:segment_level='rack': expected one of the levels leaf, pod, core" in out


def test_parts_of_members_are_completed(tmp_path, capsys):
    members = [server("a", "n01", FULL), server("b", "n02", FULL)]
    snapshot = saved(tmp_path, members, [group("job", members)], [FULL])
    arguments = ("--flavor", "full", "--group", "job", "--count", "4", "--segment", "3")
    code = main.main(["fits", "--snapshot", snapshot, *arguments, "-f", "json"])
    rows = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [row["Leaf"] for row in rows if row["VMs"] == 1] == ["leaf01"]
    assert below_leaves(json.dumps(rows)) == [1, 3]
