"""A real nova-scheduler, its master and workers as processes of their own, gets SIGHUP."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.clouds import SAMPLE_CONF
from tests.functional.database_files import write_conf, write_databases
from tests.functional.trees import write_tree

pytestmark = pytest.mark.ci

BIN = Path(sys.executable).parent
SECONDS = 120  # a slow machine; it takes some ten

# The oslo.service of Nova 31 calls SIGHUP by another name of its number.
BEGUN = ("Starting scheduler node", "Child caught SIGHUP", "Child caught SIG_UNBLOCK")

OPTIONS = {
    # How long a worker of Nova 33 goes on serving after it has to end; minutes by default.
    "DEFAULT": {"transport_url": "fake://", "host": "here", "manager_shutdown_timeout": "1"},
    "scheduler": {"workers": "2"},
    "placement": {"auth_type": "none", "endpoint_override": "http://127.0.0.1:1/"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with nova.conf and the databases of one cell."""
    topology = write_tree(tmp_path / "topology.yaml", {"leaf1": ["n1", "n2"]})
    enabled = SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]
    ours = {"hpc_sched": {"topology_file": str(topology)}}
    write_conf(tmp_path / "nova.conf", write_databases(tmp_path), OPTIONS, ours, text=enabled)
    return tmp_path


@pytest.fixture(
    # Empty is what the release of Nova runs on by itself.
    params=["", "false"],
    ids=["as the release does", "on eventlet"],
)
def scheduler(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen]:
    """Return nova-scheduler's master process, its workers running."""
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [BIN / "nova-scheduler", "--config-file", folder / "nova.conf"],
            stdout=stream,
            stderr=stream,
            env=os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": request.param},
            start_new_session=True,
        )
    try:
        wait_for(log, "Starting scheduler node", 2)
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(log: Path, text: str, count: int = 1) -> list[str]:
    """Return the lines of a log that hold a text, once there are that many."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = [line for line in log.read_text().splitlines() if text in line]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)


def wait_for_workers(log: Path, count: int) -> None:
    """Wait until workers have begun so often: new processes, or on eventlet the old ones anew."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        text = log.read_text()
        if sum(map(text.count, BEGUN)) >= count:
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


def options_in(log: Path) -> list[str]:
    """Return the digests of options in a log, each one once, oldest first."""
    text = log.read_text()
    return list(dict.fromkeys(re.findall(r"hpc_sched \S+ on here: options (\w+), ", text)))


def each_said_once(lines: list[str]) -> None:
    """Check that no process has said a thing twice: on eventlet the workers say it too."""
    processes = [line.split()[2] for line in lines]
    assert len(processes) == len(set(processes)), lines


def test_sighup_reads_the_file_and_changed_options_and_keeps_what_was_good(folder, scheduler):
    log = folder / "log"
    wait_for(log, "Topology loaded: 2 hosts, 1 leaf, depth 1")
    each_said_once(wait_for(log, "(yaml, 2 hosts, 1 leaf, depth 1)"))

    # Replaced by a move: a scheduler that looks meanwhile would find it half written.
    new = write_tree(folder / "new.yaml", {"leaf1": ["n1", "n2"], "leaf2": ["n3"]})
    new.replace(folder / "topology.yaml")
    scheduler.send_signal(signal.SIGHUP)
    wait_for(log, "hosts new: n3; switches new: leaf2; now 3 hosts, 2 leaves")
    # Nova replaces its workers, or starts anew in them.
    wait_for_workers(log, 4)
    each_said_once(wait_for(log, "Topology changed"))
    each_said_once(wait_for(log, "(yaml, 3 hosts, 2 leaves, depth 1)"))

    new.write_text("switches: 7\n")
    new.replace(folder / "topology.yaml")
    scheduler.send_signal(signal.SIGHUP)
    lines = wait_for(log, "the last good topology stays in use")
    assert "topology.yaml:1: switches: expected a list, found '7'" in lines[0]
    wait_for_workers(log, 6)
    each_said_once(wait_for(log, "the last good topology stays in use"))

    other = write_tree(folder / "other.yaml", {"leaf9": ["n1", "n2", "n3"]})
    config = folder / "nova.conf"
    config.write_text(config.read_text().replace(str(folder / "topology.yaml"), str(other)))
    scheduler.send_signal(signal.SIGHUP)
    lines = wait_for(log, "switches new: leaf9")
    assert str(other) in lines[0]
    wait_for_workers(log, 8)

    before = options_in(log)
    config.write_text(config.read_text() + "\n[hpc_sched]\nplanning_timeout = 3\n")
    scheduler.send_signal(signal.SIGHUP)
    wait_for_workers(log, 10)
    [old], [_, new] = before, options_in(log)
    assert old != new
    assert scheduler.poll() is None
