"""hpc-sched topology show and check against a Nova in this process, through openstacksdk."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_sched.cli import main
from tests.functional.cloud_kinds import SHOWN
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

cloud_file = pytest.importorskip("tests.functional.cloud_file")

#        spine
#       /     \
#    leaf1    leaf2
#    n1-n3    n4 n5 n9      n6 and n7 are computes too, n9 is not
FABRIC = """\
switches:
- name: spine
  switches:
  - {name: leaf1, hosts: "n[1-3]"}
  - {name: leaf2, hosts: "n[4-5,9]"}
"""
# Of the VM full, which each test finds on n2.
FULL = 16

pytestmark = cloud_mark(SHOWN)


@pytest.fixture
def cloud(shared_cloud: TestedCloud, tmp_path: Path) -> Iterator[TestedCloud]:
    with cloud_file.written(shared_cloud, tmp_path / "clouds.yaml"):
        yield shared_cloud


@pytest.fixture
def call(cloud, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that asks the cloud about the fabric."""
    path = tmp_path / "fabric.yaml"
    path.write_text(FABRIC)

    def run(command: str, *arguments: str) -> tuple[int, str, str]:
        code = main.main(["topology", command, str(path), "--cloud", "test", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_check_finds_the_hosts_that_one_side_alone_knows(call):
    code, out, _ = call("check")
    assert code == 1
    assert out.splitlines() == [
        "missing: 2 hosts in Nova, but not in the topology: n[6-7]",
        "absent: 1 host in the topology, but not in Nova: n9",
        "found 2: 6 hosts, 2 leaves, depth 2; 7 hypervisors in Nova",
    ]


@pytest.mark.default
def test_show_counts_what_runs_below_each_switch(cloud, call, boot):
    servers = boot("two", count=3)
    cloud.wait(servers)
    code, out, _ = call("show", "-f", "json")
    assert code == 0
    rows = {row["Switch"]: row for row in json.loads(out)}
    whole = json.loads(call("show", "-f", "json", "--depth", "1")[1])[0]
    assert whole["VMs"] == rows["leaf1"]["VMs"] + rows["leaf2"]["VMs"]
    assert whole["VCPUs used"] == FULL + 2 * (whole["VMs"] - 1) > FULL
    assert (rows["leaf1"]["Not in Nova"], rows["leaf2"]["Not in Nova"]) == (0, 1)
    assert "VMs" not in call("show")[1].splitlines()[0]
    assert "vms" in call("show")[1].splitlines()[0]


def test_a_cloud_that_is_not_there_is_a_failure(call):
    code, out, err = call("show", "--cloud", "gone")
    assert (code, out) == (1, "")
    assert err
