"""Two nova-schedulers on one host, each a process of its own with metrics at a port of its own."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.functional.clouds import ROOT, write_topology
from tests.functional.worker_processes import free_port, wait
from tests.scraped import samples_in

pytestmark = pytest.mark.ci

DECIDED = ("hpc_sched_decisions_total", frozenset({("answer", "planned"), ("mode", "active")}))
# Counts some decisions, and goes on until its input ends. Arguments: options, the number.
SCHEDULER = """
import logging, sys
from nova import objects
objects.register_all()
import nova.conf
from hpc_sched import conf
CONF = nova.conf.CONF
conf.register_opts(CONF)
CONF(["--config-file", sys.argv[1]])
logging.basicConfig(level=logging.INFO)
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.exporter import decision_counts, worker
HPCGroupFilter()
for _ in range(int(sys.argv[2])):
    decision_counts.add("planned", None)
worker.start()
sys.stdin.read()
"""


@dataclass
class Scheduler:
    """A process, its address and its log."""

    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def decided(self) -> float | None:
        """Return the decisions that it shows, None without an endpoint."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=60) as answer:
                return samples_in(answer.read().decode())[DECIDED]
        except OSError:
            return None

    def errors(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("ERROR")]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Host:
    """Where they run."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack, self._started = folder, stack, 0
        self._topology = write_topology(folder, {"leaf1": ["n1", "n2"]})

    def start(self, address: str, decisions: int, **options: object) -> Scheduler:
        self._started += 1
        conf = self.folder / f"{self._started}.conf"
        shown = {"topology_file": self._topology, "metrics_address": address, **options}
        lines = [f"{name} = {value}" for name, value in shown.items()]
        state = f"[DEFAULT]\nstate_path = {self.folder}\n[hpc_sched]\n"
        conf.write_text(state + "\n".join(lines) + "\n")
        log = conf.with_suffix(".log")
        with log.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", SCHEDULER, conf, str(decisions)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stderr=errors,
            )
        found = Scheduler(process, address, log)
        self._stack.callback(found.kill)
        return found


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(tmp_path, stack)


@pytest.fixture
def addresses() -> list[str]:
    return [f"127.0.0.1:{free_port()}" for _ in range(2)]


def test_each_one_has_a_default_directory_and_metrics_of_its_own(host, addresses):
    first, second = host.start(addresses[0], 3), host.start(addresses[1], 5)
    wait(lambda: (first.decided(), second.decided()) == (3, 5))
    second.kill()
    second = host.start(addresses[1], 1)
    wait(lambda: (first.decided(), second.decided()) == (3, 1))
    assert first.errors() == second.errors() == []
    assert {path.name for path in (host.folder / "hpc_sched-metrics").iterdir()} == {
        address.replace(":", "-") for address in addresses
    }


def test_with_the_same_directory_neither_is_counted_as_the_other(host, addresses):
    shared = host.folder / "metrics"
    first = host.start(addresses[0], 3, metrics_directory=shared)
    wait(lambda: first.decided() == 3)
    second = host.start(addresses[1], 5, metrics_directory=shared)
    wait(lambda: second.decided() == 5)
    assert first.decided() == 3
    first.kill()
    # For longer than it takes a worker to find that the endpoint is free.
    for _ in range(3):
        time.sleep(1)
        assert (first.decided(), second.decided()) == (None, 5)
    first = host.start(addresses[0], 2, metrics_directory=shared)
    wait(lambda: first.decided() == 2)
    assert second.decided() == 5
    assert first.errors() == second.errors() == []
