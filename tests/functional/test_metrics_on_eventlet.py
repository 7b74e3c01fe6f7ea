"""Metrics of two workers on eventlet: from the first request on, and after one is killed."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.functional.clouds import ROOT, write_topology
from tests.functional.worker_processes import free_port, wait
from tests.scraped import samples_in

DECIDED = ("hpc_sched_decisions_total", frozenset({("answer", "planned"), ("mode", "active")}))
WORKERS = ("hpc_sched_workers", frozenset())


def test_green_workers_share_an_endpoint_that_outlives_the_one_that_serves(tmp_path: Path):
    address = f"127.0.0.1:{free_port()}"
    topology = write_topology(tmp_path, {"leaf1": ["n1", "n2"]})
    arguments = [topology, address, tmp_path]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.functional.eventlet_workers", *arguments],
            cwd=ROOT,
            stderr=log,
            env={**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "false"},
        )

    def workers() -> list[int]:
        return [int(path.name) for path in tmp_path.glob("[0-9]*")]

    def decide(pid: int) -> None:
        (tmp_path / str(pid) / "request").touch()

    def shown(sample: tuple) -> float | None:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
                return samples_in(answer.read().decode()).get(sample)
        except OSError:
            return None

    try:
        first, second = wait(lambda: len(found := workers()) == 2 and found)
        # Without a request there is no thread.
        assert shown(WORKERS) is None
        decide(first)
        wait(lambda: shown(DECIDED) == 1)
        decide(second)
        wait(lambda: (shown(DECIDED), shown(WORKERS)) == (2, 2))
        os.kill(first, signal.SIGKILL)
        wait(lambda: shown(DECIDED) == 2 and shown(WORKERS) == 1)
        [third] = wait(lambda: set(workers()) - {first, second})
        decide(third)
        wait(lambda: (shown(DECIDED), shown(WORKERS)) == (3, 2))
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
