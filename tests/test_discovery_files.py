"""The files of docs/operator/fabric.rst that let root discover the fabric."""

import configparser
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from hpc_sched import topology

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
FOLDER = "/var/lib/hpc_sched"

# spine
# leaf1   one switch
# n1 n2
FABRIC = """\
Switch 2 "S-01" # "leaf1" enhanced port 0 lid 1 lmc 0
[1] "H-0a"[1](0b) # "n1 HCA-1" lid 2 4xEDR
[2] "H-1a"[1](1b) # "n2 HCA-1" lid 3 4xEDR
Ca 1 "H-0a" # "n1 HCA-1"
[1](0b) "S-01"[1] # lid 2 lmc 0 "leaf1" lid 1 4xEDR
Ca 1 "H-1a" # "n2 HCA-1"
[1](1b) "S-01"[2] # lid 3 lmc 0 "leaf1" lid 1 4xEDR
"""


def unit(name: str) -> configparser.ConfigParser:
    """Return a unit of systemd; no option stands twice in ours."""
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str
    found.read_string((EXAMPLES / name).read_text())
    return found


def line_of_systemd() -> list[str]:
    return shlex.split(unit("hpc-sched-fabric.service")["Service"]["ExecStart"])


def line_of_cron() -> list[str]:
    *_, line = (EXAMPLES / "hpc-sched-fabric.cron").read_text().splitlines()
    *when, user, command = line.split(None, 6)
    assert (when, user) == (["*/5", "*", "*", "*", "*"], "root")
    return ["/bin/sh", "-c", command]


BOTH = pytest.mark.parametrize("line", [line_of_systemd(), line_of_cron()], ids=["systemd", "cron"])


@pytest.fixture
def discover(tmp_path: Path):
    """Return a function that runs a line with an ibnetdiscover, and the file that it writes."""
    folder, programs = tmp_path / "hpc_sched", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()

    def run(line: list[str], ibnetdiscover: str) -> int:
        program = programs / "ibnetdiscover"
        program.write_text(f"#!/bin/sh\n{ibnetdiscover}\n")
        program.chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        command = [
            part.replace(FOLDER, str(folder)).replace("--signal=KILL 60", "--signal=KILL 1")
            for part in line
        ]
        return subprocess.run(
            command, cwd=folder, env={"PATH": path}, check=False, timeout=120
        ).returncode

    return run, folder / "fabric.txt"


@BOTH
def test_what_is_discovered_is_read_as_the_fabric(discover, line, tmp_path):
    run, path = discover
    (tmp_path / "printed").write_text(FABRIC)
    assert run(line, f"cat {tmp_path}/printed") == 0
    assert topology.load("ibnetdiscover", path=path).hosts == ("n1", "n2")
    assert [found.name for found in path.parent.iterdir()] == ["fabric.txt"]


@BOTH
@pytest.mark.parametrize(
    "ibnetdiscover",
    [
        pytest.param("echo half; exit 1", id="it fails"),
        pytest.param("echo half; trap '' TERM; exec sleep 20", id="it hangs"),
    ],
)
def test_a_discovery_that_fails_replaces_nothing(discover, line, ibnetdiscover):
    run, path = discover
    path.write_text("good")
    assert run(line, ibnetdiscover) != 0
    assert path.read_text() == "good"


@BOTH
def test_the_file_is_replaced_as_a_whole(discover, line):
    run, path = discover
    path.write_text("good")
    with path.open() as held:
        # A reader of the old file, and one that opens it while ibnetdiscover is printing.
        assert run(line, f"echo new; cat {path} >&2; grep -q good {path}") == 0
        assert held.read() == "good"
    assert path.read_text() == "new\n"


def test_the_units_belong_together():
    service, timer = unit("hpc-sched-fabric.service"), unit("hpc-sched-fabric.timer")
    assert service["Service"]["Type"] == "oneshot"
    assert service["Service"]["WorkingDirectory"] == FOLDER
    assert service["Service"]["StateDirectory"] == Path(FOLDER).name
    assert int(service["Service"]["TimeoutStartSec"]) > 60
    assert timer["Install"]["WantedBy"] == "timers.target"
    page = (ROOT / "docs" / "operator" / "fabric.rst").read_text()
    assert f"topology_file = {FOLDER}/fabric.txt" in page
    for path in EXAMPLES.glob("*hpc-sched-*"):
        assert f"literalinclude:: ../examples/{path.name}" in page
