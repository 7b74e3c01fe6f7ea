"""hpc-sched topology show --free: equal to fits and to the metrics.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod, and a host
takes two VMs of the flavor ``half``.
"""

import json

import pytest

from hpc_sched.cli import main
from tests.scraped import samples_in
from tests.snapshots import HOSTS, flavor, saved, server

HALF = flavor("half", app_class="sync")
FULL = flavor("full", 16, app_class="sync")
WEB = flavor("web", 1)
# leaf02 and leaf03 have no VMs; the other two have one.
VMS = [server("a", "n01", FULL), server("b", "n13", FULL)]


@pytest.fixture
def cloud(tmp_path) -> str:
    return saved(tmp_path, VMS, flavors=[HALF, FULL, WEB])


@pytest.fixture
def run(capsys, cloud):
    """Return a function that runs a command on the cloud, to its code and both outputs."""

    def call(command: str, *arguments: str) -> tuple[int, str, str]:
        code = main.main([*command.split(), "--snapshot", cloud, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_it_prints_whole_free_leaves_largest_groups_and_the_formula(run):
    code, out, err = run("topology show --free", "--flavor", "half")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
2 of 4 leaves free as a whole: leaf[02-03]

flavor  level  largest  empty  slots  fragmentation
half    leaf         8      8     28           0.00
half    pod         14     16     28           0.12
half    core        28     32     28           0.00

fragmentation: 1 - largest / min(slots, empty)
"""
    )


def test_without_a_flavor_it_shows_those_of_hpc(run):
    _, out, _ = run("topology show --free")
    assert [line.split()[0] for line in out.splitlines()[3:9]] == ["full"] * 3 + ["half"] * 3


def test_without_a_flavor_of_hpc_the_leaves_are_shown_and_a_note(tmp_path, capsys):
    path = saved(tmp_path, VMS, flavors=[WEB])
    assert main.main(["topology", "show", "--snapshot", path, "--free"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "2 of 4 leaves free as a whole: leaf[02-03]\n"
    assert "choose with --flavor" in captured.err


def test_a_leaf_with_a_host_that_takes_no_vms_is_not_free_as_a_whole(tmp_path, capsys):
    path = saved(tmp_path, VMS, flavors=[FULL], disabled=["n05"], down=[HOSTS[11]])
    assert main.main(["topology", "show", "--snapshot", path, "--free"]) == 0
    assert capsys.readouterr().out.startswith("0 of 4 leaves free as a whole\n")


def test_its_rows_are_the_metrics_and_what_fits_shows(run):
    _, out, _ = run("topology show --free", "-f", "json")
    rows = json.loads(out)
    _, text, _ = run("metrics")
    metrics = {
        (name.removeprefix("hpc_sched_cloud_"), *(value for _, value in sorted(labels))): value
        for (name, labels), value in samples_in(text).items()
    }
    assert len(rows) == 6
    for row in rows:
        flavor_, level = row["Flavor"], row["Level"]
        assert row["Largest"] == metrics["largest_gang", flavor_, level]
        assert row["Fragmentation"] == metrics["fragmentation", flavor_, level]
        assert row["Slots"] == metrics["free_slots", flavor_]
        assert (row["Free leaves"], row["Leaves"]) == (metrics["free_leaves",], metrics["leaves",])
        best = min(row["Slots"], row["Empty"])
        assert row["Fragmentation"] == pytest.approx(1 - row["Largest"] / best)
        _, fits, _ = run("fits", "--flavor", flavor_, "-f", "json")
        assert row["Largest"] == {one["Level"]: one["VMs"] for one in json.loads(fits)}[level]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--flavor", "half"], "--flavor means nothing without --free"),
        (["--free", "--level", "pod"], "--free is of the whole cloud: --level means nothing"),
        (["--free", "--switch", "pod1"], "--switch means nothing with it"),
        (["--free", "--members"], "--members means nothing with it"),
        (["--free", *(f"--flavor=f{n}" for n in range(51))], "expected at most 50 times --flavor"),
    ],
)
def test_what_means_nothing_together_is_wrong_usage(run, arguments, why):
    code, out, err = run("topology show", *arguments)
    assert (code, out) == (2, "")
    assert why in err


def test_an_unknown_flavor_is_named(run):
    code, out, err = run("topology show --free", "--flavor", "haif")
    assert (code, out) == (1, "")
    assert "there is no flavor 'haif': there is half" in err
